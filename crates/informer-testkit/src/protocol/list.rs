//! LIST: one consistent snapshot, whole or in pages, written as it is read.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Response};
use informer_core::ObjectKey;
use informer_core::selector::{FieldSelector, LabelSelector};

use super::body::stream_response;
use super::params::{ListWant, Parameters};
use super::token::Token;
use super::{
    At, Backend, Body, Object, ReadError, ReadSide, Representation, Snapshot, negotiate, render, unreadable,
};
use crate::resource::Resource;
use crate::status::Status;

/// How many objects are looked at between two chunks.
const STEP: usize = 64;

impl<B: Backend> ReadSide<B> {
    pub(super) async fn list(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Status> {
        let representation = negotiate(headers)?.list()?;
        let parameters = Parameters::parse(query)?;
        let want = parameters.list_want()?;
        let (labels, fields) = parameters.selectors(resource)?;
        let pages = match &want {
            ListWant::Continue(token) => token.pages.saturating_add(1),
            _ => 1,
        };
        let (snapshot, after) = self.find(resource, want).await?;
        let mut scan = Scan { snapshot, namespace: namespace.map(str::to_owned), after, labels, fields };
        let version = scan.snapshot.version();
        let Some(limit) = parameters.effective_limit() else {
            let parts = Envelope::new(resource, representation, version, "");
            return Ok(stream_response(whole(resource, representation, scan, parts)));
        };

        let mut items = scan.take(limit + 1);
        let mut page = String::new();
        if items.len() > limit {
            items.truncate(limit);
            if let Some(last) = items.last() {
                let token = Token { version: Some(version), after: last.key().clone(), pages };
                page = format!(",\"continue\":\"{}\"", token.encode());
                if scan.labels.is_everything() && scan.fields.is_everything() {
                    let remaining = scan.snapshot.remaining(namespace, last.key());
                    page.push_str(&format!(",\"remainingItemCount\":{remaining}"));
                }
            }
        }
        let parts = Envelope::new(resource, representation, version, &page);
        Ok(stream_response(written(Arc::clone(resource), representation, items, parts)))
    }

    /// The state that is wanted, and the key after which to start.
    async fn find(
        &self,
        resource: &Resource,
        want: ListWant,
    ) -> Result<(B::Snapshot, Option<ObjectKey>), Status> {
        match want {
            ListWant::Newest { reached } => {
                if let Some(version) = reached {
                    self.wait_for(resource, version).await?;
                }
                Ok((self.snapshot(resource, At::Newest).await?, None))
            }
            ListWant::Exact(version) => {
                self.wait_for(resource, version).await?;
                Ok((self.snapshot(resource, At::Exact(version)).await?, None))
            }
            ListWant::Continue(token) => {
                let at = token.version.map_or(At::Newest, At::Exact);
                match self.backend.snapshot(resource, at).await {
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
pub(crate) fn expired_page(token: &str) -> Option<Status> {
    Token::read(token).map(expired_token)
}

/// Walks over a snapshot and keeps what is selected.
struct Scan<S> {
    snapshot: S,
    namespace: Option<String>,
    after: Option<ObjectKey>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl<S: Snapshot> Scan<S> {
    /// What is selected among the next objects; `None` at the end.
    fn step(&mut self) -> Option<Vec<Object>> {
        let mut objects = self.snapshot.page(self.namespace.as_deref(), self.after.as_ref(), STEP);
        self.after = Some(objects.last()?.key().clone());
        objects.retain(|object| object.is_selected_by(&self.labels, &self.fields));
        Some(objects)
    }

    /// The next `count` selected objects, or fewer at the end.
    fn take(&mut self, count: usize) -> Vec<Object> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let Some(objects) = self.step() else { break };
            taken.extend(objects);
        }
        taken.truncate(count);
        taken
    }
}

/// What stands before and behind the items.
struct Envelope {
    head: String,
    tail: String,
}

impl Envelope {
    /// Built-in kinds and metadata have the metadata first. Lists of custom resources have their fields in
    /// alphabetical order, so there the version and the token come **behind** the items.
    fn new(resource: &Resource, representation: Representation, version: u64, page: &str) -> Self {
        let alphabetical_metadata = || {
            // continue, remainingItemCount, resourceVersion
            let page = page.strip_prefix(',').map(|page| format!("{page},")).unwrap_or_default();
            format!("{{{page}\"resourceVersion\":\"{version}\"}}")
        };
        let metadata = format!("{{\"resourceVersion\":\"{version}\"{page}}}");
        match representation {
            Representation::Metadata => Self {
                head: format!(
                    "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"items\":["
                ),
                tail: "]}\n".to_owned(),
            },
            Representation::Full if resource.custom => Self {
                head: format!("{{\"apiVersion\":\"{}\",\"items\":[", resource.api_version()),
                tail: format!(
                    "],\"kind\":\"{}List\",\"metadata\":{}}}\n",
                    resource.kind,
                    alphabetical_metadata()
                ),
            },
            Representation::Full => Self {
                head: format!("{}\"metadata\":{metadata},\"items\":[", render::list_prefix(resource)),
                tail: "]}\n".to_owned(),
            },
        }
    }
}

/// Writes a list while walking over the snapshot.
fn whole<S: Snapshot>(
    resource: &Arc<Resource>,
    representation: Representation,
    scan: Scan<S>,
    parts: Envelope,
) -> impl futures_util::Stream<Item = Result<Bytes, super::BodyError>> + Send + use<S> {
    let state = Some((Writer::new(Arc::clone(resource), representation, parts), scan));
    stream::unfold(state, |state| async move {
        let (mut writer, mut scan) = state?;
        match scan.step() {
            Some(objects) => {
                let chunk = writer.items(&objects);
                Some((Ok(chunk), Some((writer, scan))))
            }
            None => Some((Ok(writer.end()), None)),
        }
    })
}

/// Writes a page.
fn written(
    resource: Arc<Resource>,
    representation: Representation,
    items: Vec<Object>,
    parts: Envelope,
) -> impl futures_util::Stream<Item = Result<Bytes, super::BodyError>> + Send {
    let state = Some((Writer::new(resource, representation, parts), items.into_iter()));
    stream::unfold(state, |state| async move {
        let (mut writer, mut items) = state?;
        let objects: Vec<Object> = items.by_ref().take(STEP).collect();
        if objects.is_empty() {
            return Some((Ok(writer.end()), None));
        }
        Some((Ok(writer.items(&objects)), Some((writer, items))))
    })
}

struct Writer {
    resource: Arc<Resource>,
    representation: Representation,
    parts: Envelope,
    started: bool,
}

impl Writer {
    fn new(resource: Arc<Resource>, representation: Representation, parts: Envelope) -> Self {
        Self { resource, representation, parts, started: false }
    }

    fn items(&mut self, objects: &[Object]) -> Bytes {
        let mut out = std::mem::take(&mut self.parts.head).into_bytes();
        for object in objects {
            if std::mem::replace(&mut self.started, true) {
                out.push(b',');
            }
            render::item(&mut out, &self.resource, object, self.representation);
        }
        out.into()
    }

    fn end(&mut self) -> Bytes {
        let mut out = std::mem::take(&mut self.parts.head);
        out.push_str(&self.parts.tail);
        out.into()
    }
}
