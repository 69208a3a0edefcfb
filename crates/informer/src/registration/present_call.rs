//! How long the present call of a handler has been running, and a word about one that does not
//! return (G31).

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep_until;

use crate::shared::Shared;

/// A call that runs for so long is warned of, once.
const LONG_CALL: Duration = Duration::from_secs(30);

/// The present call of a handler, for others than the thread that it runs on.
#[derive(Default)]
pub(crate) struct PresentCall {
    /// When it began, in nanoseconds of the informer's time, plus one; 0 while there is none.
    began: AtomicU64,
    /// The same of the last call that was warned of.
    warned: AtomicU64,
}

impl PresentCall {
    pub(super) fn begin(&self, now: Duration) {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX - 1);
        self.began.store(nanos + 1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// When it began.
    pub(super) fn since(&self) -> Option<Duration> {
        self.began.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_nanos)
    }

    /// When to warn of it, if there is a call that was not warned of yet. From `now` on it was, if
    /// that is due.
    fn warning(&self, now: Duration) -> Option<Duration> {
        let began = self.began.load(Ordering::Relaxed);
        let due = Duration::from_nanos(began.checked_sub(1)?) + LONG_CALL;
        let is_new = began != self.warned.load(Ordering::Relaxed);
        if due <= now {
            self.warned.store(began, Ordering::Relaxed);
        }
        is_new.then_some(due)
    }
}

impl<T> Shared<T> {
    /// Warns of callbacks that run for long, for ever. A call that begins now is due after the next
    /// look, so that one timer is enough, and calls set none.
    pub(crate) async fn watch_callbacks(&self) -> Infallible {
        loop {
            let now = self.now();
            let (mut next, mut long) = (now + LONG_CALL, Vec::new());
            {
                let mut registrations = self.registrations();
                registrations
                    .retain(|registration| !registration.is_removed() || registration.is_running());
                for registration in registrations.iter() {
                    match registration.call.warning(now) {
                        Some(due) if due <= now => long.push(registration.to_string()),
                        Some(due) => next = next.min(due),
                        None => {}
                    }
                }
            }
            for handler in &long {
                tracing::warn!(
                    informer = %self.name,
                    "a call of {handler} has been running for {LONG_CALL:?}; until it returns, this handler gets no events"
                );
            }
            if !long.is_empty() {
                // Those who follow the status see it there.
                self.live.send_modify(|_| {});
            }
            sleep_until(self.epoch + next).await;
        }
    }
}
