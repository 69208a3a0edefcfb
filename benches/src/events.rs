//! What updates cost a synced client, and how late they reach its handler.
//!
//! `peers/etcd-writer` writes them: each new state says in the annotation [`SENT`] when it was
//! sent, and a Pod called [`LAST`] is behind the last one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::HEAP;
use crate::cpu::of_process as cpu_time;

/// The annotation that tells when a state was sent, in nanoseconds since 1970.
pub const SENT: &str = "benches.informer/sent";

/// The name of the Pod behind the last update.
pub const LAST: &str = "the-last-of-the-events";

/// What the updates cost one client, as it prints it. All times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventFigures {
    /// CPU time of the process, user and system, from when it was at rest before the first event
    /// until the last one.
    pub cpu_us: u64,
    /// Of each event that the handler was given, from the sending of its state to that call.
    pub latencies: Vec<u64>,
}

/// Takes the figures from inside a handler.
#[derive(Debug)]
pub struct Recorder(Mutex<State>);

#[derive(Debug)]
enum State {
    /// Events are ignored.
    Waiting(oneshot::Sender<EventFigures>),
    Recording {
        since: Duration,
        latencies: Vec<u64>,
        done: oneshot::Sender<EventFigures>,
    },
    Ended,
}

impl Recorder {
    /// One that ignores events until [`begin`](Self::begin), and where the figures come out.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<EventFigures>) {
        let (done, figures) = oneshot::channel();
        (Self(Mutex::new(State::Waiting(done))), figures)
    }

    /// The next event is the first one. Allocations are not counted from here on, since that takes
    /// time.
    pub fn begin(&self) {
        HEAP.stop();
        let mut state = self.state();
        *state = match std::mem::replace(&mut *state, State::Ended) {
            // More than there are, so that it does not grow in between.
            State::Waiting(done) => {
                State::Recording { since: cpu_time(), latencies: Vec::with_capacity(1 << 13), done }
            }
            begun @ (State::Recording { .. } | State::Ended) => begun,
        };
    }

    /// An event came with a state of this name and annotation [`SENT`].
    pub fn record(&self, name: &str, sent: Option<&str>) {
        let mut state = self.state();
        let State::Recording { latencies, .. } = &mut *state else { return };
        if name != LAST {
            return latencies.push(since(sent).as_micros() as u64);
        }
        if let State::Recording { since, latencies, done } =
            std::mem::replace(&mut *state, State::Ended)
        {
            let cpu_us = cpu_time().saturating_sub(since).as_micros() as u64;
            // The receiver is gone only when the program ends.
            _ = done.send(EventFigures { cpu_us, latencies });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is not a time was sent in 1970.
fn since(sent: Option<&str>) -> Duration {
    let sent = sent.and_then(|digits| digits.parse().ok()).map(Duration::from_nanos);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(sent.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_between_the_beginning_and_the_last_pod_is_recorded() {
        let (recorder, mut figures) = Recorder::new();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let sent = format!("{:020}", (now - Duration::from_secs(5)).as_nanos());
        recorder.record("early", Some(&sent));
        recorder.begin();
        recorder.record("a", Some(&sent));
        recorder.record("b", Some(&sent));
        assert!(figures.try_recv().is_err());
        recorder.record(LAST, Some(&sent));
        recorder.record("late", Some(&sent));
        let latencies = figures.try_recv().unwrap().latencies;
        assert_eq!(latencies.len(), 2);
        assert!(latencies.iter().all(|late| *late >= 5_000_000));
    }

    #[test]
    fn what_says_no_time_is_as_late_as_can_be() {
        let years = Duration::from_secs(50 * 365 * 86_400);
        assert!(since(None) > years && since(Some("soon")) > years);
    }
}
