//! Whom to wake: those who wait for an item.

use std::task::Waker;
use std::time::Duration;

/// Names one who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaiterId(u64);

/// Those who wait for an item, first come first served, and which of them keeps the time.
///
/// Two things hold whenever the queue's lock is free ([`settle`](Self::settle) sees to it):
/// - as many waiters are woken as there are items, or all of them;
/// - if an item waits for its time, then some waiter sleeps no longer than until then, the *timekeeper*, or some
///   waiter is woken, who will see to it.
///
/// A waiter that is woken comes back, takes what it wanted or goes on waiting, or it leaves; each is followed by
/// `settle`, so that a wake-up given to one who leaves goes on to the next.
#[derive(Debug, Default)]
pub struct Waiters {
    waiting: Vec<Waiter>,
    /// Who sleeps until when.
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
    /// Notes one who begins to wait, or waits on. Says until when it must sleep at most, if it keeps the time.
    pub fn wait(
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

    /// Notes that one waits no more.
    pub fn leave(&mut self, id: &mut Option<WaiterId>) {
        let Some(id) = id.take() else { return };
        self.waiting.retain(|waiter| waiter.id != id);
        self.resign(id);
    }

    /// Chooses who must be woken, with `items` to be handed out, the next deadline of those that wait for their
    /// time, and whether all is over.
    pub fn settle(&mut self, items: usize, deadline: Option<Duration>, is_over: bool) -> Vec<Waker> {
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

    /// One who wakes up or leaves sleeps no more until the time it kept.
    fn resign(&mut self, id: WaiterId) {
        if self.timekeeper.is_some_and(|(keeper, _)| keeper == id) {
            self.timekeeper = None;
        }
    }

    fn is_kept(&self, deadline: Duration) -> bool {
        self.timekeeper.is_some_and(|(_, until)| until <= deadline)
    }
}
