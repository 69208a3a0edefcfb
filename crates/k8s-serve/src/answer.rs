//! Response bodies: whole, or streamed.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, Response, header};
use http_body::{Frame, SizeHint};
use informer_core::wire::MediaType;
use jiff::Timestamp;
use serde_json::Value;

use crate::accept::StatusForm;
use crate::form::Form;
use crate::json::Indenter;
use crate::object::{Object, WriteError};
use crate::protobuf;
use crate::resource::Resource;
use crate::status::Status;
use crate::writer::{Writer, failure};

pub use crate::list::collection;
pub use crate::writer::error_event;

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
            Repr::Full(bytes) => stream::iter(bytes.map(Ok)).boxed(),
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

/// The content type of a watch.
pub(crate) fn stream_type(media: MediaType) -> &'static str {
    match media {
        // A real server does not add `;stream=watch` here, even if it was asked for.
        MediaType::Json => media.as_str(),
        MediaType::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
    }
}

pub(crate) fn json_response(code: u16, json: String) -> Response<Body> {
    response(code, "application/json", Body::full(json.into()))
}

pub(crate) fn plain_response(code: u16, text: &'static str) -> Response<Body> {
    let body = Body::full(Bytes::from_static(text.as_bytes()));
    let mut response = response(code, "text/plain; charset=utf-8", body);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
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
    resource: &Arc<Resource>,
    object: &impl Object,
    form: Form,
) -> Result<Response<Body>, Status> {
    let writer = Writer::new(Arc::clone(resource), form, None);
    Ok(object_response(code, &writer, object, form, Timestamp::now())?)
}

pub(crate) fn object_response(
    code: u16,
    writer: &Writer,
    object: &impl Object,
    form: Form,
    now: Timestamp,
) -> Result<Response<Body>, WriteError> {
    let mut out = Vec::with_capacity(2 * object.wire().bytes.len() + 128);
    writer.object(&mut out, object, now).map_err(|error| error.about(object))?;
    end_line(form.media(), &mut out);
    Ok(response(code, form.media().as_str(), Body::full(out.into())))
}

/// A failure, in a form that the client accepts.
#[must_use]
pub fn refusal(status: &Status, headers: &http::HeaderMap) -> Response<Body> {
    status_response(status, crate::accept::status_form(headers, crate::ProtobufSupport::Served))
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
    stream_response(stream_type(media), stream::iter([Ok(event)]))
}

pub(crate) fn status_response(status: &Status, form: StatusForm) -> Response<Body> {
    let (media, body) = match form {
        StatusForm::Media(media) => {
            let mut body = failure(status, media);
            end_line(media, &mut body);
            (media, body)
        }
        StatusForm::Raw => {
            let mut body = Vec::new();
            Indenter::default().push(status.to_json().as_bytes(), &mut body);
            (MediaType::Json, body)
        }
    };
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
    let mut body = match media {
        MediaType::Json => document.to_string().into_bytes(),
        MediaType::Protobuf => protobuf::document(document),
    };
    end_line(media, &mut body);
    response(code, media.as_str(), Body::full(body.into()))
}

/// The response with its JSON indented, for people.
pub(crate) fn indented(response: Response<Body>) -> Response<Body> {
    let content_type = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !content_type.is_some_and(|it| it.starts_with(MediaType::Json.as_str().as_bytes())) {
        return response;
    }
    response.map(|body| {
        let mut indenter = Indenter::default();
        let mut indent = move |chunk: &Bytes| {
            let mut out = Vec::with_capacity(2 * chunk.len());
            indenter.push(chunk, &mut out);
            Bytes::from(out)
        };
        match body.0 {
            Repr::Full(bytes) => Body::full(bytes.map(|bytes| indent(&bytes)).unwrap_or_default()),
            Repr::Stream(chunks) => {
                Body::stream(chunks.map(move |chunk| chunk.map(|chunk| indent(&chunk))))
            }
        }
    })
}

/// JSON documents end with a line break.
fn end_line(media: MediaType, out: &mut Vec<u8>) {
    match media {
        MediaType::Json => out.push(b'\n'),
        MediaType::Protobuf => {}
    }
}

pub(crate) fn response(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
