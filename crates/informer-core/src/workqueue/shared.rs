//! A queue shared by several workers.

use std::fmt;
use std::hash::Hash;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

use super::sync::Mutex;
use super::{Queue, WaiterId, Waiters};

/// A [`Queue`] behind a lock, with the tasks that wait for it. Of code from outside, only the rate
/// limiter runs under the lock.
pub struct SharedQueue<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    queue: Queue<K>,
    takers: Waiters,
    drainers: Waiters,
    /// Whether waits for the drain are cancelled.
    is_drain_off: bool,
}

/// The registration of a waiting task. If the wait ends early, release it with
/// [`SharedQueue::leave`].
#[derive(Debug, Default)]
pub struct Ticket(Option<WaiterId>);

/// The result of [`SharedQueue::poll_take`].
#[derive(Debug, PartialEq, Eq)]
pub enum Polled<K> {
    /// An item; [`Queue::done`] must be called for it.
    Item(K),
    /// No item will come any more.
    Over,
    /// No item yet: the waker will be woken. If there is a time, poll again at that time, even if
    /// not woken.
    Pending(Option<Duration>),
}

impl<K: Hash + Eq + Clone + 'static> SharedQueue<K> {
    /// Shares a queue.
    pub fn new(queue: Queue<K>) -> Self {
        let state = State {
            queue,
            takers: Waiters::default(),
            drainers: Waiters::default(),
            is_drain_off: false,
        };
        Self { state: Mutex::new(state) }
    }

    /// Reads or changes the queue, and wakes the tasks that the change concerns. Items whose delay
    /// has passed are added first.
    pub fn with<R>(&self, now: Duration, change: impl FnOnce(&mut Queue<K>) -> R) -> R {
        self.update(|state| {
            state.queue.advance(now);
            change(&mut state.queue)
        })
    }

    /// Takes an item, or registers `waker` to wait for one.
    pub fn poll_take(&self, now: Duration, ticket: &mut Ticket, waker: &Waker) -> Polled<K> {
        self.update(|state| {
            state.queue.advance(now);
            if let Some(item) = state.queue.take(now) {
                state.takers.leave(&mut ticket.0);
                return Polled::Item(item);
            }
            if state.queue.is_over() {
                state.takers.leave(&mut ticket.0);
                return Polled::Over;
            }
            let deadline = state.queue.next_deadline();
            Polled::Pending(state.takers.wait(&mut ticket.0, waker, deadline))
        })
    }

    /// Ends a wait for an item. A wake-up in progress is passed on to another waiting task.
    pub fn leave(&self, ticket: &mut Ticket) {
        if ticket.0.is_some() {
            self.update(|state| state.takers.leave(&mut ticket.0));
        }
    }

    /// Shuts the queue down: no item is added any more, queued ones are still handed out. Ends all
    /// waits for a drain.
    pub fn shut_down(&self) {
        self.update(|state| {
            state.queue.shut_down();
            state.is_drain_off = true;
        });
    }

    /// Shuts the queue down, to be followed by a wait for the drain.
    pub fn begin_drain(&self) {
        self.update(|state| {
            state.queue.shut_down();
            state.is_drain_off = false;
        });
    }

    /// Whether the drain has ended: all items were handed out and are done, or waits for the drain
    /// were cancelled. If not, registers `waker`.
    pub fn poll_drained(&self, ticket: &mut Ticket, waker: &Waker) -> bool {
        self.update(|state| {
            let has_ended = state.has_drain_ended();
            if has_ended {
                state.drainers.leave(&mut ticket.0);
            } else {
                state.drainers.wait(&mut ticket.0, waker, None);
            }
            has_ended
        })
    }

    /// Ends a wait for the drain.
    pub fn leave_drain(&self, ticket: &mut Ticket) {
        self.update(|state| state.drainers.leave(&mut ticket.0));
    }

    /// Changes the state under the lock, then wakes the tasks that this concerns without it.
    fn update<R>(&self, change: impl FnOnce(&mut State<K>) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        let wakers = state.settle();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

impl<K: Hash + Eq + Clone + 'static> State<K> {
    fn has_drain_ended(&self) -> bool {
        self.is_drain_off || self.queue.is_drained()
    }

    fn settle(&mut self) -> Vec<Waker> {
        let (items, deadline, is_over) =
            (self.queue.len(), self.queue.next_deadline(), self.queue.is_over());
        let mut wakers = self.takers.settle(items, deadline, is_over);
        wakers.append(&mut self.drainers.settle(0, None, self.has_drain_ended()));
        wakers
    }
}

impl<K> fmt::Debug for SharedQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQueue").finish_non_exhaustive()
    }
}
