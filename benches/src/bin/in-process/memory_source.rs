//! A source that has everything in memory, and sends when it is told to.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use futures_util::stream::{self, StreamExt};
use futures_util::task::AtomicWaker;
use informer::source::{
    Failure, ListChunk, ListHead, ListRequest, ListStream, ListWatch, WatchChunk, WatchFrame, WatchRequest,
    WatchStream, WireObject,
};

/// Lists what it has, one list after the other; all watches together send the chunks of one [`Feed`].
pub(crate) struct MemorySource {
    lists: Mutex<VecDeque<Vec<Vec<WireObject>>>>,
    feed: Arc<Feed>,
    listed: AtomicUsize,
}

/// What watches send, and how much of it is let go.
#[derive(Default)]
pub(crate) struct Feed {
    chunks: Mutex<VecDeque<Result<Vec<WatchFrame>, Failure>>>,
    let_go: AtomicUsize,
    sent: AtomicUsize,
    waker: AtomicWaker,
}

impl Feed {
    pub(crate) fn new(chunks: impl IntoIterator<Item = Result<Vec<WatchFrame>, Failure>>) -> Arc<Self> {
        Arc::new(Self { chunks: Mutex::new(chunks.into_iter().collect()), ..Self::default() })
    }

    /// Lets one chunk more go.
    pub(crate) fn let_go(&self) {
        self.let_go.fetch_add(1, Ordering::AcqRel);
        self.waker.wake();
    }

    fn poll(&self, context: &std::task::Context<'_>) -> Poll<Option<Result<WatchChunk, Failure>>> {
        self.waker.register(context.waker());
        if self.sent.load(Ordering::Acquire) == self.let_go.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let Some(chunk) = self.chunks.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else {
            return Poll::Pending;
        };
        self.sent.fetch_add(1, Ordering::AcqRel);
        Poll::Ready(Some(chunk.map(WatchChunk)))
    }
}

impl MemorySource {
    pub(crate) fn new(lists: impl IntoIterator<Item = Vec<WireObject>>, feed: &Arc<Feed>) -> Self {
        // In chunks of what a connection may bring at a time.
        let chunked = |list: Vec<WireObject>| list.chunks(100).map(<[WireObject]>::to_vec).collect();
        let lists = Mutex::new(lists.into_iter().map(chunked).collect());
        Self { lists, feed: Arc::clone(feed), listed: AtomicUsize::new(0) }
    }
}

impl ListWatch for MemorySource {
    async fn list(&self, _: &ListRequest) -> Result<ListStream, Failure> {
        let items = self.lists.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_default();
        let number = self.listed.fetch_add(1, Ordering::Relaxed) as u64 + 1;
        let head = ListHead { resource_version: (number * 10).into(), ..ListHead::default() };
        let items = stream::iter(items.into_iter().map(|items| Ok(ListChunk::Items(items))));
        Ok(ListStream(items.chain(stream::iter([Ok(ListChunk::End(head))])).boxed()))
    }

    async fn watch(&self, _: &WatchRequest) -> Result<WatchStream, Failure> {
        let feed = Arc::clone(&self.feed);
        Ok(WatchStream(stream::poll_fn(move |context| feed.poll(context)).boxed()))
    }
}
