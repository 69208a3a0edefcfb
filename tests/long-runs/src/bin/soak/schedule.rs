//! When things are due that happen again and again.

use std::time::Duration;

use tokio::time::Instant;

/// Something that is due now and then, but only while objects are written.
#[derive(Debug)]
pub(crate) struct Schedule {
    every: Duration,
    next: Instant,
    /// How often it was due.
    pub(crate) times: u64,
}

impl Schedule {
    /// Every so often, `offset` late.
    pub(crate) fn new(every: Duration, offset: Duration) -> Self {
        Self { every, next: Instant::now() + every + offset, times: 0 }
    }

    /// Waits until it is due; `false` if that is not before `end`. What is missed in a quiet time
    /// is due after it.
    pub(crate) async fn is_due(&mut self, end: Instant) -> bool {
        if self.next >= end {
            return false;
        }
        tokio::time::sleep_until(self.next).await;
        self.next += self.every;
        self.times += 1;
        true
    }
}
