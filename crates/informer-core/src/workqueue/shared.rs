//! A queue that several workers share.

use std::fmt;
use std::hash::Hash;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

use super::sync::Mutex;
use super::{Queue, WaiterId, Waiters};

/// A [`Queue`] behind a lock, with those who wait for it. Nothing is called under the lock but the rate limiter.
pub struct SharedQueue<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    queue: Queue<K>,
    takers: Waiters,
    drainers: Waiters,
    /// Whether nobody shall wait for the drain any more.
    is_drain_off: bool,
}

/// The place of one who waits; given back with [`SharedQueue::leave`] if the wait ends before its time.
#[derive(Debug, Default)]
pub struct Ticket(Option<WaiterId>);

/// What one who asks for an item gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Polled<K> {
    /// An item, to be given back with [`Queue::done`].
    Item(K),
    /// Nothing will come any more.
    Over,
    /// Nothing yet: the waker will be woken. With a time, ask again then, woken or not.
    Pending(Option<Duration>),
}

impl<K: Hash + Eq + Clone + 'static> SharedQueue<K> {
    /// Shares a queue.
    pub fn new(queue: Queue<K>) -> Self {
        let state =
            State { queue, takers: Waiters::default(), drainers: Waiters::default(), is_drain_off: false };
        Self { state: Mutex::new(state) }
    }

    /// Looks at the queue or changes it, and wakes whom that concerns. Items whose time has come are added first.
    pub fn with<R>(&self, now: Duration, change: impl FnOnce(&mut Queue<K>) -> R) -> R {
        self.update(|state| {
            state.queue.advance(now);
            change(&mut state.queue)
        })
    }

    /// Asks for an item.
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

    /// Ends a wait for an item. A wake-up that was on its way goes to another who waits.
    pub fn leave(&self, ticket: &mut Ticket) {
        if ticket.0.is_some() {
            self.update(|state| state.takers.leave(&mut ticket.0));
        }
    }

    /// Shuts the queue down; see [`Queue::shut_down`]. Those who wait for a drain wait no more.
    pub fn shut_down(&self) {
        self.update(|state| {
            state.queue.shut_down();
            state.is_drain_off = true;
        });
    }

    /// Shuts the queue down, for somebody who will wait for the drain.
    pub fn begin_drain(&self) {
        self.update(|state| {
            state.queue.shut_down();
            state.is_drain_off = false;
        });
    }

    /// Asks whether the drain has ended: all was handed out and is done, or nobody shall wait for it any more.
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

    /// Changes the state, and then, without the lock, wakes whom that concerns.
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
        let (items, deadline, is_over) = (self.queue.len(), self.queue.next_deadline(), self.queue.is_over());
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
