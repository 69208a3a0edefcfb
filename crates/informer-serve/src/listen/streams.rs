//! The streams of one HTTP/2 connection. A stream is reset if the client does not read it, and a
//! connection is closed if it has no streams for too long.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures_util::TryFutureExt;
use futures_util::future::MapOk;
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::rt::Executor;
use tokio::time::{Duration, Instant, Sleep, sleep, sleep_until};

use super::Limits;
use super::connection::Service;

/// Maximum size of the frames that hyper gets of a body. It buffers a whole frame as soon as the
/// client's window has room for one byte of it.
const MAX_PIECE: usize = 16 * 1024;

tokio::task_local! {
    /// The state of the body of the task's stream, as seen in the last poll of the task.
    static SEEN: Cell<Seen>;
}

/// The state of a body, as seen in one poll of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The body was not polled.
    Nothing,
    /// The body has nothing to send at the moment.
    Idle,
    /// The body returned a frame and was not polled again, so the client's window has no room for
    /// the frame.
    Waiting,
}

/// Runs each stream of one connection in a task. Clones belong to the same connection.
///
/// A stream is reset if a frame of its body waits for window space for [`Limits::stall`]. The time
/// limit on writes to the socket does not cover this: each HTTP/2 stream has its own window, and
/// other streams may make progress all the time. The timer exists only while a frame waits.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    limits: Limits,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug)]
struct Open {
    count: usize,
    /// When a stream was last seen open. Initially the start of the connection.
    last_seen: Instant,
    had_any: bool,
}

impl Streams {
    pub(super) fn new(limits: Limits) -> Self {
        let open = Open { count: 0, last_seen: Instant::now(), had_any: false };
        Self { limits, open: Arc::new(Mutex::new(open)) }
    }

    /// Whether the connection ever had a stream.
    pub(super) fn had_any(&self) -> bool {
        lock(&self.open).had_any
    }

    /// Resolves once the connection has been without a stream for the time limit.
    pub(super) async fn unused(&self) {
        let limits = self.limits;
        self.without(|open| match open.had_any {
            true => open.last_seen + limits.idle,
            // The first request has a shorter limit, as over HTTP/1.1.
            false => open.last_seen + limits.request_head,
        })
        .await;
    }

    /// Resolves once the connection has been without a stream for `limit`, counted from this call.
    pub(super) async fn unused_for(&self, limit: Duration) {
        let begun = Instant::now();
        self.without(|open| open.last_seen.max(begun) + limit).await;
    }

    /// Resolves once the deadline has passed and no stream is open. It wakes up only when the
    /// deadline may have passed, so that opening and closing streams stays cheap.
    async fn without(&self, deadline: impl Fn(&Open) -> Instant) {
        loop {
            let next = {
                let mut open = lock(&self.open);
                if open.count > 0 {
                    open.last_seen = Instant::now();
                }
                deadline(&open)
            };
            if next <= Instant::now() {
                return;
            }
            sleep_until(next).await;
        }
    }

    fn begin(&self) -> Counted {
        let mut open = lock(&self.open);
        open.count += 1;
        open.had_any = true;
        Counted(Arc::clone(&self.open))
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let (counted, limit) = (self.begin(), self.limits.stall);
        tokio::spawn(SEEN.scope(Cell::new(Seen::Nothing), async move {
            until_stalled(Box::pin(stream), limit).await;
            drop(counted);
        }));
    }
}

/// Runs a stream to its end, or until its body has waited for `limit`. Dropping the stream resets
/// it and discards its buffered data. It is boxed, because the future of this function would
/// contain it more than once.
async fn until_stalled(mut stream: Pin<Box<impl Future<Output = ()>>>, limit: Duration) {
    let mut waiting: Option<Pin<Box<Sleep>>> = None;
    std::future::poll_fn(|context| {
        SEEN.with(|it| it.set(Seen::Nothing));
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        match SEEN.with(Cell::get) {
            Seen::Nothing => {}
            Seen::Idle => waiting = None,
            Seen::Waiting => waiting = Some(Box::pin(sleep(limit))),
        }
        waiting.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(context))
    })
    .await;
}

/// Counts as one open stream until it is dropped.
struct Counted(Arc<Mutex<Open>>);

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = lock(&self.0);
        open.count -= 1;
        open.last_seen = Instant::now();
    }
}

/// The service of a connection, with bodies that report their state to [`Streams`].
pub(super) struct OfStreams(pub(super) Service);

type Answered = Response<Body>;

impl hyper::service::Service<Request<Incoming>> for OfStreams {
    type Response = Answered;
    type Error = Infallible;
    type Future = MapOk<
        <Service as hyper::service::Service<Request<Incoming>>>::Future,
        fn(Answered) -> Answered,
    >;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let in_pieces: fn(Answered) -> Answered =
            |response| response.map(|body| Body::new(Pieces { body, rest: Bytes::new() }));
        self.0.call(request).map_ok(in_pieces)
    }
}

/// Splits the frames of a body into pieces and records in [`SEEN`] whether a piece waits.
struct Pieces {
    body: Body,
    /// The rest of a large frame.
    rest: Bytes,
}

impl Pieces {
    /// Takes the next piece of `rest`. The last byte of a large frame is a piece of its own, so
    /// that hyper sees the end of the body only once the window had room for all bytes before it.
    fn cut(&mut self) -> Bytes {
        let length = match self.rest.len() {
            1 => 1,
            more => (more - 1).min(MAX_PIECE),
        };
        self.rest.split_to(length)
    }

    fn next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(self.cut()))));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let Poll::Ready(Some(Ok(frame))) = polled else { return polled };
        let frame = match frame.into_data() {
            Ok(data) if data.len() > MAX_PIECE => {
                self.rest = data;
                Frame::data(self.cut())
            }
            Ok(data) => Frame::data(data),
            Err(other) => other,
        };
        Poll::Ready(Some(Ok(frame)))
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = self.next(context);
        let is_waiting = matches!(polled, Poll::Ready(Some(Ok(_))));
        let seen = if is_waiting { Seen::Waiting } else { Seen::Idle };
        SEEN.with(|it| it.set(seen));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut all = SizeHint::new();
        if let Some(upper) = hint.upper() {
            all.set_upper(upper.saturating_add(rest));
        }
        all.set_lower(hint.lower().saturating_add(rest));
        all
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
