//! A body wrapper that reports the data and the end of the body to an observer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Observes a body. It is dropped when the body has returned its last frame, so before the reader
/// has processed that frame.
pub(crate) trait Observer {
    /// Called with each data frame, before the reader gets it.
    fn data(&mut self, _: &Bytes) {}

    /// Called at the end of the body, but not if the body fails or is dropped earlier.
    fn end(&mut self) {}
}

/// A body with an observer. Its frames are passed through unchanged.
pub(crate) struct Observed<B, O> {
    body: B,
    observer: Option<O>,
}

impl<B: Body<Data = Bytes>, O: Observer> Observed<B, O> {
    pub(crate) fn new(body: B, observer: O) -> Self {
        let mut observed = Self { body, observer: Some(observer) };
        if observed.body.is_end_stream() {
            observed.has_ended();
        }
        observed
    }

    fn has_ended(&mut self) {
        if let Some(mut observer) = self.observer.take() {
            observer.end();
        }
    }
}

impl<B, O> Body for Observed<B, O>
where
    B: Body<Data = Bytes> + Unpin,
    O: Observer + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(data), Some(observer)) = (frame.data_ref(), &mut self.observer) {
                    observer.data(data);
                }
                if self.body.is_end_stream() {
                    self.has_ended();
                }
            }
            Poll::Ready(Some(Err(_))) => self.observer = None,
            Poll::Ready(None) => self.has_ended(),
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
