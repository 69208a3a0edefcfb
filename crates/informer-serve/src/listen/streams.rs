//! The streams of one HTTP/2 connection: a stream whose client does not read is reset, and a
//! connection without streams is closed.

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

/// Size of the pieces in which a body is handed over. A larger piece would be buffered whole as
/// soon as the client's window has room for one byte of it.
const MAX_PIECE: usize = 16 * 1024;

tokio::task_local! {
    /// What became of the body of the stream that a task serves, in the last poll of that task.
    static SEEN: Cell<Seen>;
}

/// What was seen of a body in one poll of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// It was not polled.
    Nothing,
    /// It has nothing to send at the moment.
    Idle,
    /// It gave a frame, and was not asked for another one: the client has no room for it.
    Waiting,
}

/// Runs the streams of one connection, each in a task; clones are of the same connection.
///
/// A stream ends when its body has a frame that the client makes no room for during
/// [`Limits::stall`]. HTTP/2 has a window for each stream, so that the socket may take bytes all
/// the time. The timer exists only while a frame waits.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    limits: Limits,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug)]
struct Open {
    count: usize,
    /// When the last one was seen, or the connection began.
    last_seen: Instant,
    had_any: bool,
}

impl Streams {
    pub(super) fn new(limits: Limits) -> Self {
        let open = Open { count: 0, last_seen: Instant::now(), had_any: false };
        Self { limits, open: Arc::new(Mutex::new(open)) }
    }

    /// Whether there has been a stream.
    pub(super) fn had_any(&self) -> bool {
        lock(&self.open).had_any
    }

    /// Resolves once the connection was without a stream for as long as it may be.
    pub(super) async fn unused(&self) {
        let limits = self.limits;
        self.without(|open| match open.had_any {
            true => open.last_seen + limits.idle,
            // Nothing has been asked for.
            false => open.last_seen + limits.request_head,
        })
        .await;
    }

    /// Resolves once the connection was without a stream for `limit`, from now on.
    pub(super) async fn unused_for(&self, limit: Duration) {
        let begun = Instant::now();
        self.without(|open| open.last_seen.max(begun) + limit).await;
    }

    /// Resolves once a deadline is over and there is no stream. It is looked at when it may be
    /// over, not with every stream.
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

/// Runs a stream to its end, or until its body has waited for `limit`. The stream is reset then,
/// and what was buffered of it dropped. In a box, since a future would hold it more than once.
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

/// Counts as one stream until it is dropped.
struct Counted(Arc<Mutex<Open>>);

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = lock(&self.0);
        open.count -= 1;
        open.last_seen = Instant::now();
    }
}

/// The service of a connection whose bodies [`Streams`] watches over.
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

/// A body in pieces, which says in [`SEEN`] whether one of them waits.
struct Pieces {
    body: Body,
    /// What is left of a large frame.
    rest: Bytes,
}

impl Pieces {
    /// The first piece of what is left. The last byte of a large frame comes by itself: the end of
    /// the body is not handed over before there is room for all of it.
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
