//! Answers: objects written straight from the cache, piece by piece.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use http::HeaderValue;
use http::header::{CONTENT_TYPE, HeaderName, WARNING};
use informer::{InformerState, Resource};
use kube::core::DynamicObject;
use serde_json::json;

use crate::object::Full;

/// How much is written before it is sent, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
const MAX_WARNING_BYTES: usize = 512;

/// A list to answer with.
pub(super) struct List {
    pub(super) resource: Resource,
    pub(super) version: String,
    pub(super) items: Vec<Arc<DynamicObject>>,
    /// The token of the next page, if there is one.
    pub(super) next: Option<String>,
}

impl List {
    /// `{"apiVersion":"v1","kind":"List","metadata":{…},"items":[…]}`, serialised while it is sent.
    pub(super) fn into_response(self) -> Response {
        let mut metadata = json!({"resourceVersion": self.version});
        if let Some(next) = &self.next {
            metadata["continue"] = json!(next);
        }
        let head = format!(r#"{{"apiVersion":"v1","kind":"List","metadata":{metadata},"items":["#);
        let state = (head.into_bytes(), self.items.into_iter(), self.resource, true);
        let chunks = stream::unfold(Some(state), |state| async move {
            let (mut chunk, mut items, resource, mut first) = state?;
            while chunk.len() < CHUNK_BYTES {
                let Some(item) = items.next() else {
                    chunk.extend_from_slice(b"]}\n");
                    return Some((Ok::<_, Infallible>(Bytes::from(chunk)), None));
                };
                if !first {
                    chunk.push(b',');
                }
                first = false;
                write_object(&mut chunk, &resource, &item);
            }
            let next = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
            Some((Ok(Bytes::from(chunk)), Some((next, items, resource, first))))
        });
        json_response(Body::from_stream(chunks))
    }
}

/// One object.
pub(super) fn object(resource: &Resource, object: &DynamicObject) -> Response {
    let mut text = Vec::new();
    write_object(&mut text, resource, object);
    text.push(b'\n');
    json_response(Body::from(text))
}

/// Says so in a header when the cache does not follow the server at the moment.
pub(super) fn warn_if_behind(response: &mut Response, state: &InformerState) {
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

fn write_object(text: &mut Vec<u8>, resource: &Resource, object: &DynamicObject) {
    // Writing to memory does not fail, and neither do the types: string keys, finite numbers.
    if let Err(error) = serde_json::to_writer(&mut *text, &Full::new(resource, object)) {
        tracing::error!(%resource, %error, "an object cannot be serialised");
    }
}

fn json_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Nothing that a browser should guess at or keep.
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
