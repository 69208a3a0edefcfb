//! Selects which waiting tasks to wake.

use std::task::Waker;
use std::time::Duration;

/// Identifies a waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WaiterId(u64);

/// Tasks that wait for an item, first come first served. One of them may be the timekeeper.
///
/// Two invariants hold whenever the queue's lock is free; [`settle`](Self::settle) restores them:
/// - As many waiters are woken as there are items, or all of them.
/// - If an item is delayed, then some waiter, the *timekeeper*, sleeps no longer than until it is
///   due; or some waiter is woken, and becomes the timekeeper if it waits again.
///
/// A woken waiter either polls again or leaves. Both are followed by `settle`, so that the wake-up
/// of a waiter that leaves is passed on to the next.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: Vec<Waiter>,
    /// The timekeeper, and until when it sleeps.
    timekeeper: Option<(WaiterId, Duration)>,
    last: u64,
}

#[derive(Debug)]
struct Waiter {
    id: WaiterId,
    waker: Waker,
    is_woken: bool,
}

impl Waiters {
    /// Adds or updates a waiter. Returns the latest time at which it must poll again, if it is the
    /// timekeeper.
    pub(crate) fn wait(
        &mut self,
        id: &mut Option<WaiterId>,
        waker: &Waker,
        deadline: Option<Duration>,
    ) -> Option<Duration> {
        let id = *id.get_or_insert_with(|| {
            self.last += 1;
            WaiterId(self.last)
        });
        match self.waiting.iter_mut().find(|waiter| waiter.id == id) {
            Some(waiter) => {
                waiter.waker.clone_from(waker);
                waiter.is_woken = false;
            }
            None => self.waiting.push(Waiter { id, waker: waker.clone(), is_woken: false }),
        }
        self.resign(id);
        let deadline = deadline.filter(|&deadline| !self.is_kept(deadline))?;
        self.timekeeper = Some((id, deadline));
        Some(deadline)
    }

    /// Removes a waiter.
    pub(crate) fn leave(&mut self, id: &mut Option<WaiterId>) {
        let Some(id) = id.take() else { return };
        self.waiting.retain(|waiter| waiter.id != id);
        self.resign(id);
    }

    /// Selects the waiters to wake. `items` are to be handed out, `deadline` is that of the next
    /// delayed item, and `is_over` wakes all.
    pub(crate) fn settle(
        &mut self,
        items: usize,
        deadline: Option<Duration>,
        is_over: bool,
    ) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let woken = self.waiting.iter().filter(|waiter| waiter.is_woken).count();
        let mut missing = if is_over { usize::MAX } else { items.saturating_sub(woken) };
        if woken == 0 && missing == 0 && deadline.is_some_and(|deadline| !self.is_kept(deadline)) {
            missing = 1;
        }
        for waiter in self.waiting.iter_mut().filter(|waiter| !waiter.is_woken).take(missing) {
            waiter.is_woken = true;
            wakers.push(waiter.waker.clone());
        }
        wakers
    }

    /// A waiter that wakes up or leaves is no longer the timekeeper.
    fn resign(&mut self, id: WaiterId) {
        if self.timekeeper.is_some_and(|(keeper, _)| keeper == id) {
            self.timekeeper = None;
        }
    }

    fn is_kept(&self, deadline: Duration) -> bool {
        self.timekeeper.is_some_and(|(_, until)| until <= deadline)
    }
}
