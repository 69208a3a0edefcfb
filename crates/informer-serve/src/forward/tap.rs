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
    /// Until the end of the body, which comes before the caller has read all of it.
    place: Option<P>,
}

impl<P> Tap<P> {
    pub(super) fn new(body: Incoming, watched: Option<(VersionScan, Telling)>, place: P) -> Self {
        let mut tap = Self { body, watched, place: Some(place) };
        if tap.body.is_end_stream() {
            tap.has_ended();
        }
        tap
    }

    /// Nothing more comes: a write that named no version is known as such now.
    fn has_ended(&mut self) {
        self.watched = None;
        self.place = None;
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
            self.has_ended();
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
