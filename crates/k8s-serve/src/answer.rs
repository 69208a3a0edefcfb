//! Response bodies: whole, or streamed.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{Response, header};
use http_body::{Frame, SizeHint};
use informer_core::wire::MediaType;
use serde_json::Value;

use crate::accept::{Form, stream_type};
use crate::object::Object;
use crate::resource::Resource;
use crate::status::Status;
use crate::{protobuf, render};

pub use crate::list::collection;
pub use crate::render::error_event;

/// The body of a response.
pub struct Body(Repr);

enum Repr {
    Full(Option<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>),
}

/// The body ended early, on purpose: the connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the response was cut")]
pub struct BodyError;

impl Body {
    /// A body that is there as a whole.
    #[must_use]
    pub fn full(bytes: Bytes) -> Self {
        Self(Repr::Full(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }

    /// A body that comes in chunks. It is polled only as fast as the client reads.
    pub fn stream(chunks: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static) -> Self {
        Self(Repr::Stream(Box::pin(chunks)))
    }

    /// The body as chunks.
    #[must_use]
    pub fn into_chunks(self) -> Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>> {
        match self.0 {
            Repr::Full(bytes) => futures_util::stream::iter(bytes.map(Ok)).boxed(),
            Repr::Stream(chunks) => chunks,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Repr::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Repr::Stream(chunks) => {
                chunks.poll_next_unpin(cx).map(|chunk| chunk.map(|c| c.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Repr::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Repr::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Repr::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Full(bytes) => write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Repr::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

pub(crate) fn json_response(code: u16, json: String) -> Response<Body> {
    response(code, "application/json", Body::full(json.into()))
}

pub(crate) fn plain_response(code: u16, text: &'static str) -> Response<Body> {
    response(code, "text/plain; charset=utf-8", Body::full(Bytes::from_static(text.as_bytes())))
}

pub(crate) fn stream_response(
    content_type: &'static str,
    chunks: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
) -> Response<Body> {
    response(200, content_type, Body::stream(chunks))
}

/// An object.
///
/// # Errors
/// 500 if it cannot be written in this form.
pub fn object(
    code: u16,
    resource: &Resource,
    object: &impl Object,
    form: Form,
) -> Result<Response<Body>, Status> {
    let mut out = Vec::with_capacity(object.wire().bytes.len() + 128);
    render::object(&mut out, resource, object, form)?;
    Ok(response(code, form.media().as_str(), Body::full(out.into())))
}

/// What a path that nothing serves is answered with: no `Status`, also on a real server.
#[must_use]
pub fn not_found() -> Response<Body> {
    plain_response(404, "404 page not found\n")
}

/// A watch that is opened, and ends with an error.
#[must_use]
pub fn failed_watch(status: &Status, media: MediaType) -> Response<Body> {
    let event = error_event(status, media);
    stream_response(stream_type(media), futures_util::stream::iter([Ok(event)]))
}

pub(crate) fn status_response(status: &Status, media: MediaType) -> Response<Body> {
    let body = render::failure(status, media);
    let mut response = response(status.code, media.as_str(), Body::full(body.into()));
    if status.details.retry_after_seconds > 0 {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, status.details.retry_after_seconds.into());
    }
    response
}

/// A document that says what it is.
pub(crate) fn document_response(code: u16, document: &Value, media: MediaType) -> Response<Body> {
    match media {
        MediaType::Json => json_response(code, document.to_string()),
        MediaType::Protobuf => {
            response(code, media.as_str(), Body::full(protobuf::document(document).into()))
        }
    }
}

pub(crate) fn response(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, private"));
    response
}
