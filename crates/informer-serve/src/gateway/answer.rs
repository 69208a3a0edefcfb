//! Answers: objects written straight from the bytes in the cache, piece by piece.

use std::sync::Arc;
use std::vec;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderName, WARNING};
use http::{HeaderValue, StatusCode};
use informer::decode::DecodeError;
use informer::{InformerState, Resource};
use prometheus_client::metrics::counter::Counter;
use serde_json::json;

use crate::metrics::Metrics;
use crate::object::{Object, full_name};
use crate::refusal::Refusal;

/// How much is written before it is sent, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
const MAX_WARNING_BYTES: usize = 512;

/// A list to answer with.
pub(crate) struct List {
    pub(crate) resource: Resource,
    pub(crate) version: String,
    pub(crate) items: Vec<Arc<Object>>,
    /// The token of the next page, if there is one.
    pub(crate) next: Option<String>,
}

impl List {
    /// `{"apiVersion":"v1","kind":"List","metadata":{…},"items":[…]}`, written while it is sent.
    ///
    /// # Errors
    /// When one of the first objects cannot be written. If it is a later one the body ends with an
    /// error, and with it the connection: a list is never short of an object without a word.
    pub(crate) fn into_response(self, metrics: &Metrics) -> Result<Response, Refusal> {
        let mut metadata = json!({"resourceVersion": self.version});
        if let Some(next) = &self.next {
            metadata["continue"] = json!(next);
        }
        let head = format!(r#"{{"apiVersion":"v1","kind":"List","metadata":{metadata},"items":["#);
        let unwritable = metrics.unwritable().clone();
        let items = self.items.into_iter();
        let mut items =
            Items { resource: self.resource, items, begun: false, ended: false, unwritable };
        let first = items.chunk(head.into_bytes())?;
        let chunks = stream::unfold((Some(first), items), |(first, mut items)| async move {
            let chunk = match first {
                Some(first) => Ok(first),
                None if items.ended => return None,
                None => items.chunk(Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4)),
            };
            items.ended |= chunk.is_err();
            let chunk = chunk.map(Bytes::from).map_err(|refusal| refusal.message);
            Some((chunk, (None, items)))
        });
        Ok(json_response(Body::from_stream(chunks)))
    }
}

/// The items of a list that are still to be written.
struct Items {
    resource: Resource,
    items: vec::IntoIter<Arc<Object>>,
    begun: bool,
    ended: bool,
    unwritable: Counter,
}

impl Items {
    /// Appends items until it is enough for once, and the end of the list after the last.
    fn chunk(&mut self, mut chunk: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        while chunk.len() < CHUNK_BYTES {
            let Some(item) = self.items.next() else {
                self.ended = true;
                chunk.extend_from_slice(b"]}\n");
                break;
            };
            if std::mem::replace(&mut self.begun, true) {
                chunk.push(b',');
            }
            write_object(&mut chunk, &self.resource, &item, &self.unwritable)?;
        }
        Ok(chunk)
    }
}

/// One object.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn object(
    resource: &Resource,
    object: &Object,
    metrics: &Metrics,
) -> Result<Response, Refusal> {
    let mut text = Vec::new();
    write_object(&mut text, resource, object, metrics.unwritable())?;
    text.push(b'\n');
    Ok(json_response(Body::from(text)))
}

/// Says so in a header when the cache does not follow the server at the moment.
pub(crate) fn warn_if_behind(response: &mut Response, state: &InformerState) {
    if matches!(state, InformerState::Watching { .. } | InformerState::Listing { .. }) {
        return;
    }
    let text: String = format!("the cache may be behind: {state}")
        .chars()
        .map(|it| if it.is_ascii_graphic() && it != '"' && it != '\\' { it } else { ' ' })
        .take(MAX_WARNING_BYTES)
        .collect();
    if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
        response.headers_mut().insert(WARNING, value);
    }
}

/// Appends an object. Servers do not send what cannot be written; if one does, whoever asks is
/// told.
fn write_object(
    text: &mut Vec<u8>,
    resource: &Resource,
    object: &Object,
    unwritable: &Counter,
) -> Result<(), Refusal> {
    object.write_json(text).map_err(|error| {
        unwritable.inc();
        refusal(resource, object, &error)
    })
}

fn refusal(resource: &Resource, object: &Object, error: &DecodeError) -> Refusal {
    let name = full_name(object);
    tracing::error!(%resource, %name, %error, "an object cannot be written as JSON");
    let message = format!(
        "{} {name:?} cannot be written as JSON: what the API server sent is malformed ({error}); ask for other objects by namespace= or selectors, and look at this one with `kubectl get`",
        resource.group_resource()
    );
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message)
}

fn json_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Nothing that a browser should guess at or keep.
    headers.insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
