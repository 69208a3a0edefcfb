//! LIST: one consistent snapshot, whole or in pages, written as it is read.

use std::sync::Arc;

use http::{HeaderMap, Response};
use informer_core::ObjectKey;
use jiff::Timestamp;

use crate::accept::Served;
use crate::answer::Body;
use crate::backend::{At, Backend, ReadError, Snapshot};
use crate::form::{Form, FormKind};
use crate::object::{Object, WriteError};
use crate::page::{NextPage, expired_page};
use crate::params::{ListWant, Parameters, Selectors};
use crate::read::{Failure, Miss, ReadSide};
use crate::resource::Resource;
use crate::status::Status;
use crate::token::{Scope, Token};
use crate::writer::Writer;

use body::Items;

mod body;

/// How many objects are looked at at once.
const STEP: usize = 64;

impl<B: Backend> ReadSide<B> {
    pub(crate) async fn list(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Failure> {
        let negotiated = self.negotiate_for(headers, resource, Served::Collections)?;
        let parameters = Parameters::parse(query)?;
        let scope = scope(resource, namespace);
        let want = parameters.list_want(scope)?;
        let selectors = parameters.selectors(resource)?;
        let form = negotiated.list(&parameters)?;
        let (snapshot, after) = self.find(resource, want, query).await?;
        let now = self.backend().now();
        let writer = self.writer(resource, form).await?;
        let mut page = Page { version: snapshot.version(), token: None, remaining: None };
        let mut scan = Scan { snapshot, namespace: namespace.map(str::to_owned), after, selectors };
        let Some(limit) = parameters.effective_limit() else {
            if writer.table().is_some_and(|table| table.order().is_some()) {
                let all: Items<B::Snapshot> = Items::Taken(scan.take(usize::MAX));
                return Ok(body::respond(writer, form, all, &page, now).await?);
            }
            return Ok(body::respond(writer, form, Items::Scan(scan), &page, now).await?);
        };

        let mut items = scan.take(limit.saturating_add(1));
        if items.len() > limit {
            items.truncate(limit);
            if let Some(last) = items.last() {
                let token = Token { version: Some(page.version), after: last.key().clone() };
                page.token = Some(token.encode(scope));
                if scan.selectors.are_everything() {
                    page.remaining = Some(scan.snapshot.remaining(namespace, last.key()));
                }
            }
        }
        let items: Items<B::Snapshot> = Items::Taken(items);
        let mut response = body::respond(writer, form, items, &page, now).await?;
        if let Some(token) = page.token {
            response.extensions_mut().insert(NextPage(token));
        }
        Ok(response)
    }

    /// The state that is wanted, and the key after which to start.
    async fn find(
        &self,
        resource: &Resource,
        want: ListWant,
        query: &str,
    ) -> Result<(B::Snapshot, Option<ObjectKey>), Failure> {
        match want {
            ListWant::Newest { reached, at } => {
                if let Some(version) = reached {
                    self.wait_for(resource, version).await?;
                }
                Ok((self.snapshot(resource, at).await?, None))
            }
            ListWant::Exact(version) => {
                self.wait_for(resource, version).await?;
                Ok((self.snapshot(resource, At::Exact(version)).await?, None))
            }
            ListWant::Continue(Token { version: None, after }) => {
                Ok((self.snapshot(resource, At::Newest).await?, Some(after)))
            }
            ListWant::Continue(Token { version: Some(version), after }) => {
                self.wait_for(resource, version).await?;
                match self.backend().snapshot(resource, At::Exact(version)).await {
                    Ok(snapshot) => Ok((snapshot, Some(after))),
                    Err(ReadError::Expired { .. }) => {
                        let token = form_urlencoded::parse(query.as_bytes())
                            .find(|(name, _)| name == "continue")
                            .and_then(|(_, token)| expired_page(&token));
                        let status =
                            token.unwrap_or_else(|| Status::expired("the list is too old"));
                        Err(Failure { status, miss: Some(Miss::Expired) })
                    }
                    Err(other) => Err(other.into()),
                }
            }
        }
    }
}

fn scope<'a>(resource: &Resource, namespace: Option<&'a str>) -> Scope<'a> {
    match namespace {
        _ if !resource.namespaced => Scope::Cluster,
        None => Scope::AllNamespaces,
        Some(namespace) => Scope::Namespace(namespace),
    }
}

/// Walks over a snapshot and keeps what is selected.
#[derive(Clone)]
struct Scan<S> {
    snapshot: S,
    namespace: Option<String>,
    after: Option<ObjectKey>,
    selectors: Selectors,
}

impl<S: Snapshot> Scan<S> {
    /// What is selected among the next objects; `None` at the end.
    fn step(&mut self) -> Option<Vec<S::Object>> {
        let mut objects = self.snapshot.page(self.namespace.as_deref(), self.after.as_ref(), STEP);
        self.after = Some(objects.last()?.key().clone());
        objects.retain(|object| self.selectors.select(object));
        Some(objects)
    }

    /// The next `count` selected objects, or fewer at the end.
    fn take(&mut self, count: usize) -> Vec<S::Object> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let Some(objects) = self.step() else { break };
            taken.extend(objects);
        }
        taken.truncate(count);
        taken
    }
}

/// The metadata of a list.
struct Page {
    version: u64,
    /// That of the next page.
    token: Option<String>,
    remaining: Option<usize>,
}

/// A collection as it was when it was deleted.
///
/// # Errors
/// 500 if an object cannot be written in this form.
pub async fn collection<S: Snapshot>(
    resource: &Arc<Resource>,
    items: Vec<S::Object>,
    version: u64,
    form: Form,
) -> Result<Response<Body>, Status> {
    let page = Page { version, token: None, remaining: None };
    let writer = Writer::new(Arc::clone(resource), form, None);
    Ok(body::respond(writer, form, Items::<S>::Taken(items), &page, Timestamp::now()).await?)
}
