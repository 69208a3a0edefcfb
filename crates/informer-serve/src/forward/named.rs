//! The version that an answer names, for readers of the answer that know what to do with it.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::version::VersionScan;

/// Calls `tell` with the version that the body of a response names, before its reader gets it.
pub(crate) fn on_version(
    response: Response,
    tell: impl FnOnce(u64) + Send + Unpin + 'static,
) -> Response {
    let scan = VersionScan::of(response.headers());
    response.map(|body| Body::new(Scanned { body, scan, tell: Some(tell) }))
}

struct Scanned<F> {
    body: Body,
    scan: VersionScan,
    tell: Option<F>,
}

impl<F: FnOnce(u64) + Unpin> http_body::Body for Scanned<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && self.tell.is_some()
            && let Some(version) = frame.data_ref().and_then(|it| self.scan.push(it))
            && let Some(tell) = self.tell.take()
        {
            tell(version);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
