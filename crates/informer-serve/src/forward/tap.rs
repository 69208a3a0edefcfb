//! The body of a forwarded answer on its way to the caller.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::version::VersionScan;
use super::writes::Telling;

/// Passes the body of an answer on, frame by frame, and looks for the version that it names.
pub(super) struct Tap<P> {
    body: Incoming,
    watched: Option<(VersionScan, Telling)>,
    /// Kept until the end of the body.
    _permit: P,
}

impl<P> Tap<P> {
    pub(super) fn new(body: Incoming, watched: Option<(VersionScan, Telling)>, permit: P) -> Self {
        Self { body, watched, _permit: permit }
    }
}

impl<P: Unpin> Body for Tap<P> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(chunk) = frame.data_ref()
            && let Some((scan, telling)) = &mut self.watched
            && let Some(version) = scan.push(chunk)
        {
            // Before the caller gets to see it.
            telling.named(version);
            self.watched = None;
        }
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) || self.body.is_end_stream() {
            // Nothing more comes: a write that named no version is known as such now.
            self.watched = None;
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
