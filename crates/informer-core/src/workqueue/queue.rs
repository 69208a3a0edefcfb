//! The queue's state machine.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

use super::delays::Delays;
use super::limiter::RateLimiter;
use super::metrics::{Histogram, Metrics};
use super::ready::{Priority, Ready};

/// A queue of items to process (client-go's `workqueue`, with delays and rate limits). Items are
/// keys: small, cheap to clone, and equal if they identify the same work.
///
/// - Items are handed out in the order in which they were added; an item that is queued already is
///   not added again.
/// - Items of [low priority](Self::add_with_priority) wait for all others, but of ten items handed out while
///   some wait, one is of low priority. An item that is added again normally loses its low priority,
///   and then waits behind those that had none.
/// - No item is handed out twice at the same time. An item that is added again while a worker
///   processes it is queued once more after [`done`](Self::done).
/// - An item added with a delay is queued when the delay has passed; if it is delayed twice, at the
///   earlier time.
///
/// Time is an argument: the time since a fixed moment. It must not decrease.
pub struct Queue<K> {
    ready: Ready<K>,
    processing: HashMap<K, InWork>,
    /// How many items of `processing` were added again.
    again: usize,
    delays: Delays<K>,
    limiter: Box<dyn RateLimiter<K>>,
    is_shutting_down: bool,
    counted: Counted,
}

/// An item that a worker processes.
struct InWork {
    since: Duration,
    /// When it was added again, and how urgently.
    again: Option<(Duration, Priority)>,
}

#[derive(Default)]
struct Counted {
    adds: u64,
    retries: u64,
    queue_duration: Histogram,
    work_duration: Histogram,
}

impl<K: Hash + Eq + Clone + 'static> Queue<K> {
    /// An empty queue; [`add_rate_limited`](Self::add_rate_limited) uses `limiter`.
    #[must_use]
    pub fn new(limiter: impl RateLimiter<K>) -> Self {
        Self {
            ready: Ready::new(),
            processing: HashMap::new(),
            again: 0,
            delays: Delays::new(),
            limiter: Box::new(limiter),
            is_shutting_down: false,
            counted: Counted::default(),
        }
    }

    /// Adds an item, unless it is queued already, or the queue is shutting down.
    pub fn add(&mut self, now: Duration, item: K) {
        self.add_with_priority(now, item, Priority::Normal);
    }

    /// Adds an item with a priority. One that is queued already, or will be again, keeps the higher
    /// of both priorities. Delayed items come with normal priority at their time.
    pub fn add_with_priority(&mut self, now: Duration, item: K, priority: Priority) {
        if self.is_shutting_down || self.ready.raise(&item, priority) {
            return;
        }
        let Some(in_work) = self.processing.get_mut(&item) else {
            self.counted.adds += 1;
            self.ready.push(now, item, priority);
            return;
        };
        match &mut in_work.again {
            Some((_, asked)) => *asked = priority.max(*asked),
            again => {
                *again = Some((now, priority));
                self.again += 1;
                self.counted.adds += 1;
            }
        }
    }

    /// Adds an item once `delay` has passed. An item that is already delayed keeps the earlier
    /// time.
    pub fn add_after(&mut self, now: Duration, item: K, delay: Duration) {
        if self.is_shutting_down {
            return;
        }
        self.counted.retries += 1;
        if delay.is_zero() {
            self.add(now, item);
        } else {
            self.delays.insert(item, now.saturating_add(delay));
        }
    }

    /// Adds an item after the delay that the rate limiter returns for it.
    pub fn add_rate_limited(&mut self, now: Duration, item: K) {
        let delay = self.limiter.when(now, &item);
        self.add_after(now, item, delay);
    }

    /// Makes the rate limiter forget an item's failures. [`done`](Self::done) must still be called
    /// for the item.
    pub fn forget(&mut self, item: &K) {
        self.limiter.forget(item);
    }

    /// The number of failures that the rate limiter has counted for an item.
    #[must_use]
    pub fn num_requeues(&self, item: &K) -> u32 {
        self.limiter.num_requeues(item)
    }

    /// Adds the items whose delay has passed, in the order of their deadlines.
    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some(item) = self.delays.pop_due(now) {
            self.add(now, item);
        }
    }

    /// When the next delayed item is due.
    #[must_use]
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        self.delays.next()
    }

    /// Hands out the next item (client-go's `Get`). [`done`](Self::done) must be called for it.
    pub(crate) fn take(&mut self, now: Duration) -> Option<K> {
        let (item, added) = self.ready.pop()?;
        self.counted.queue_duration.observe(now.saturating_sub(added));
        self.processing.insert(item.clone(), InWork { since: now, again: None });
        Some(item)
    }

    /// Marks the processing of an item as ended. An item that was added again meanwhile is queued,
    /// even if the queue is shutting down. Does nothing for an item that is not being processed.
    pub fn done(&mut self, now: Duration, item: &K) {
        let Some((item, in_work)) = self.processing.remove_entry(item) else { return };
        self.counted.work_duration.observe(now.saturating_sub(in_work.since));
        if let Some((added, priority)) = in_work.again {
            self.again -= 1;
            self.ready.push(added, item, priority);
        }
    }

    /// The number of queued items, without delayed ones and those added again while being
    /// processed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no item is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of delayed items.
    #[cfg(test)]
    pub(super) fn delayed(&self) -> usize {
        self.delays.len()
    }

    /// Refuses further items and drops the delayed ones. Queued items are still handed out.
    pub(crate) fn shut_down(&mut self) {
        self.is_shutting_down = true;
        self.delays.clear();
    }

    /// Whether the queue was shut down.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.is_shutting_down
    }

    /// Whether no item will be handed out any more. Once true, it stays true.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        self.is_shutting_down && self.is_empty() && self.again == 0
    }

    /// Whether no item will be handed out any more and none is being processed. Once true, it stays
    /// true.
    #[must_use]
    pub(crate) fn is_drained(&self) -> bool {
        self.is_over() && self.processing.is_empty()
    }

    /// The queue's metrics.
    #[must_use]
    pub fn metrics(&self, now: Duration) -> Metrics {
        let in_work = || self.processing.values().map(|in_work| now.saturating_sub(in_work.since));
        Metrics {
            depth: self.ready.len() + self.again,
            depth_low: self.ready.low(),
            adds: self.counted.adds,
            retries: self.counted.retries,
            queue_duration: self.counted.queue_duration.clone(),
            work_duration: self.counted.work_duration.clone(),
            unfinished_work: in_work().fold(Duration::ZERO, Duration::saturating_add),
            longest_running_processor: in_work().max().unwrap_or_default(),
        }
    }
}

/// Prints no items.
impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("ready", &self.ready.len())
            .field("processing", &self.processing.len())
            .field("is_shutting_down", &self.is_shutting_down)
            .finish_non_exhaustive()
    }
}
