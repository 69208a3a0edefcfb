//! LIST: one consistent snapshot, whole or in pages, written as it is read.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderMap, Response};
use informer_core::ObjectKey;
use informer_core::wire::MediaType;
use k8s_protobuf::{Kind, encode};

use crate::accept::{Form, FormKind};
use crate::answer::{Body, BodyError, stream_response};
use crate::backend::{At, Backend, ReadError, Snapshot};
use crate::object::{Object, WriteError};
use crate::params::{ListWant, Parameters, Selectors};
use crate::read::{ReadSide, unreadable};
use crate::render;
use crate::resource::Resource;
use crate::status::Status;
use crate::token::Token;

mod json;

/// How many objects are looked at between two chunks.
const STEP: usize = 64;

impl<B: Backend> ReadSide<B> {
    pub(crate) async fn list(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Status> {
        let form = self.negotiate(headers, resource)?.list()?;
        let parameters = Parameters::parse(query)?;
        let want = parameters.list_want()?;
        let selectors = parameters.selectors(resource)?;
        let pages = match &want {
            ListWant::Continue(token) => token.pages.saturating_add(1),
            _ => 1,
        };
        let (snapshot, after) = self.find(resource, want).await?;
        let mut scan = Scan { snapshot, namespace: namespace.map(str::to_owned), after, selectors };
        let mut page = Page { version: scan.snapshot.version(), token: None, remaining: None };
        let Some(limit) = parameters.effective_limit() else {
            return match form.0 {
                FormKind::Json(part) => Ok(json_response(json::whole(resource, part, scan, &page))),
                FormKind::Protobuf { list, .. } => {
                    protobuf_response(list, scan.messages(form).await?, &page)
                }
            };
        };

        let mut items = scan.take(limit + 1);
        if items.len() > limit {
            items.truncate(limit);
            if let Some(last) = items.last() {
                let token = Token { version: Some(page.version), after: last.key().clone(), pages };
                page.token = Some(token.encode());
                if scan.selectors.are_everything() {
                    page.remaining = Some(scan.snapshot.remaining(namespace, last.key()));
                }
            }
        }
        items_response(resource, items, &page, form)
    }

    /// The state that is wanted, and the key after which to start.
    async fn find(
        &self,
        resource: &Resource,
        want: ListWant,
    ) -> Result<(B::Snapshot, Option<ObjectKey>), Status> {
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
            ListWant::Continue(token) => {
                let at = token.version.map_or(At::Newest, At::Exact);
                match self.backend().snapshot(resource, at).await {
                    Ok(snapshot) => Ok((snapshot, Some(token.after))),
                    Err(ReadError::Expired { .. }) => Err(expired_token(token)),
                    Err(other) => Err(unreadable(other)),
                }
            }
        }
    }
}

/// An expired token comes with another one, for clients that can do without consistency.
fn expired_token(token: Token) -> Status {
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new \
         list without the continue parameter, or use the continue token in this response to retrieve the \
         remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
         that were created, modified, or deleted between the time the first chunk was returned and now may show \
         up in the list.",
    );
    status.continue_token = Some(Token { version: None, ..token }.encode());
    status
}

/// The answer to a page whose token is too old.
#[must_use]
pub fn expired_page(token: &str) -> Option<Status> {
    Token::read(token).map(expired_token)
}

/// Walks over a snapshot and keeps what is selected.
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

    /// All that are selected, as messages: their lengths stand before the first of them.
    async fn messages(mut self, form: Form) -> Result<Vec<Bytes>, WriteError> {
        let mut messages = Vec::new();
        while let Some(objects) = self.step() {
            for object in &objects {
                messages.push(render::message(object, form)?.into_owned().into());
            }
            // Others want to be served meanwhile: what was never sent in this form has to be
            // written first.
            tokio::task::yield_now().await;
        }
        Ok(messages)
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
pub fn collection<O: Object>(
    resource: &Arc<Resource>,
    items: Vec<O>,
    version: u64,
    form: Form,
) -> Result<Response<Body>, Status> {
    items_response(resource, items, &Page { version, token: None, remaining: None }, form)
}

fn items_response<O: Object>(
    resource: &Arc<Resource>,
    items: Vec<O>,
    page: &Page,
    form: Form,
) -> Result<Response<Body>, Status> {
    match form.0 {
        FormKind::Json(part) => {
            Ok(json_response(json::page(Arc::clone(resource), part, items, page)))
        }
        FormKind::Protobuf { list, .. } => {
            let messages = items
                .iter()
                .map(|item| Ok(render::message(item, form)?.into_owned().into()))
                .collect::<Result<_, WriteError>>()?;
            protobuf_response(list, messages, page)
        }
    }
}

fn json_response(
    chunks: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
) -> Response<Body> {
    stream_response(MediaType::Json.as_str(), chunks)
}

/// Sends a list of messages in chunks.
fn protobuf_response(
    list: Kind,
    messages: Vec<Bytes>,
    page: &Page,
) -> Result<Response<Body>, Status> {
    let metadata = serde_json::json!({
        "resourceVersion": page.version.to_string(),
        "continue": page.token,
        "remainingItemCount": page.remaining,
    });
    let mut head = Vec::new();
    encode::list_head(list, &metadata, messages.iter().map(Bytes::len), &mut head)
        .map_err(|error| Status::new(500, "InternalError", error.to_string()))?;
    let chunks = stream::unfold(Some((head, messages.into_iter())), |state| async move {
        let (mut out, mut messages) = state?;
        let mut count = 0;
        for message in messages.by_ref().take(STEP) {
            encode::list_item(&message, &mut out);
            count += 1;
        }
        if count == 0 {
            encode::list_tail(&mut out);
            return Some((Ok(out.into()), None));
        }
        Some((Ok(out.into()), Some((Vec::new(), messages))))
    });
    Ok(stream_response(MediaType::Protobuf.as_str(), chunks))
}
