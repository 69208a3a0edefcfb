//! The one timer of a reflector.

use std::future::pending;
use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// Rings when it is due, or earlier, when it was due once.
///
/// Deadlines of a watch move away with every event. To set a timer anew each time wakes the thread
/// that waits for the runtime's next timer, which costs more than the event; so an alarm that is
/// set to ring later rings when it would have, and is set again then.
#[derive(Default)]
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    pub(super) fn set(&mut self, due: Option<Instant>) {
        let Some(due) = due else { return };
        match &mut self.0 {
            None => self.0 = Some(Box::pin(sleep_until(due))),
            Some(timer) if due < timer.deadline() => timer.as_mut().reset(due),
            Some(_) => {}
        }
    }

    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn rings(&mut self) {
        let Some(timer) = &mut self.0 else { return pending().await };
        timer.await;
        self.0 = None;
    }
}
