//! What updates cost a synced client, and how late they reach its handler.
//!
//! `peers/etcd-writer` writes them: each new state says in the annotation [`SENT`] when it was sent, and a Pod called
//! [`LAST`] is behind the last one of a burst.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::HEAP;
use crate::cpu::of_process as cpu_time;

/// The annotation that tells when a state was sent, in nanoseconds since 1970.
pub const SENT: &str = "benches.informer/sent";

/// The name of the Pod behind the last update.
pub const LAST: &str = "the-last-of-the-events";

/// What one burst of updates cost one client, as it prints it. All times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventFigures {
    /// CPU time of the process, user and system, from when it was at rest before the first event until the last one.
    pub cpu_us: u64,
    /// From the first event to the last.
    pub wall_us: u64,
    /// Of each event that the handler was given, from the sending of its state to that call. A drain does not know.
    pub latencies: Option<Vec<u64>>,
    /// Blocks allocated, where they are counted.
    pub allocations: Option<usize>,
}

/// Takes the figures of one burst after another, from inside a handler.
#[derive(Debug)]
pub struct Recorder {
    burst: Mutex<Option<Burst>>,
    done: UnboundedSender<EventFigures>,
}

#[derive(Debug)]
struct Burst {
    cpu: Duration,
    allocations: usize,
    counted: bool,
    first: Option<Instant>,
    latencies: Vec<u64>,
}

impl Recorder {
    /// One that ignores events until [`begin`](Self::begin), and where the figures come out.
    #[must_use]
    pub fn new() -> (Self, UnboundedReceiver<EventFigures>) {
        let (done, figures) = unbounded_channel();
        (Self { burst: Mutex::new(None), done }, figures)
    }

    /// Begins a burst: the next event is the first one. Unless allocations shall be `counted`, they are not from here on,
    /// since that takes time.
    pub fn begin(&self, counted: bool) {
        if !counted {
            HEAP.stop();
        }
        *self.burst() = Some(Burst::begin(counted));
    }

    /// An event came with a state of this name and annotation [`SENT`].
    pub fn record(&self, name: &str, sent: Option<&str>) {
        if name == LAST {
            return self.end();
        }
        if let Some(burst) = self.burst().as_mut() {
            burst.first.get_or_insert_with(Instant::now);
            burst.latencies.push(since(sent).as_micros() as u64);
        }
    }

    /// The burst has ended, for a client that is not given events one by one.
    pub fn end(&self) {
        if let Some(burst) = self.burst().take() {
            // Whoever waits no more has had all that it wanted.
            _ = self.done.send(burst.end());
        }
    }

    /// Bytes came, for a client that is not given events one by one.
    pub fn received(&self) {
        if let Some(burst) = self.burst().as_mut() {
            burst.first.get_or_insert_with(Instant::now);
        }
    }

    fn burst(&self) -> MutexGuard<'_, Option<Burst>> {
        self.burst.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Burst {
    fn begin(counted: bool) -> Self {
        // More than any burst has, so that it does not grow in between.
        let latencies = Vec::with_capacity(1 << 13);
        Self { cpu: cpu_time(), allocations: HEAP.calls(), counted, first: None, latencies }
    }

    fn end(self) -> EventFigures {
        EventFigures {
            cpu_us: cpu_time().saturating_sub(self.cpu).as_micros() as u64,
            wall_us: self.first.map_or(0, |first| first.elapsed().as_micros() as u64),
            allocations: self.counted.then(|| HEAP.calls() - self.allocations),
            latencies: (!self.latencies.is_empty()).then_some(self.latencies),
        }
    }
}

/// What is not a time was sent in 1970.
fn since(sent: Option<&str>) -> Duration {
    let sent = sent.and_then(|digits| digits.parse().ok()).map(Duration::from_nanos);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(sent.unwrap_or_default())
}

/// Prints the figures of so many bursts as they come. Another burst begins before each line, and must not come before that
/// was read.
///
/// # Errors
/// If there will be no more of them.
///
/// # Cancel safety
/// What was printed stays so.
pub async fn print_bursts(
    recorder: &Recorder,
    figures: &mut UnboundedReceiver<EventFigures>,
    bursts: usize,
) -> Result<()> {
    for _ in 0..bursts {
        let figures = figures.recv().await.context("the client ended")?;
        let line = serde_json::to_string(&figures)?;
        // Whoever reads the line may be faster than what comes after it.
        recorder.begin(figures.allocations.is_some());
        println!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_begin_when_told_and_end_with_the_last_pod() {
        let (recorder, mut figures) = Recorder::new();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let sent = format!("{:020}", (now - Duration::from_secs(5)).as_nanos());
        recorder.record("early", Some(&sent));
        recorder.record(LAST, Some(&sent));
        recorder.begin(true);
        recorder.record("a", Some(&sent));
        recorder.record("b", Some(&sent));
        recorder.record(LAST, Some(&sent));
        recorder.record("in between", Some(&sent));
        recorder.begin(true);
        recorder.received();
        recorder.end();
        let mut next = || figures.try_recv().unwrap();
        let (first, second) = (next(), next());
        let latencies = first.latencies.unwrap();
        assert_eq!(latencies.len(), 2, "what came before it began is not in it");
        assert!(latencies.iter().all(|late| *late >= 5_000_000));
        assert_eq!(second.latencies, None);
        assert!(figures.try_recv().is_err());
    }

    #[test]
    fn what_says_no_time_is_as_late_as_can_be() {
        let years = Duration::from_secs(50 * 365 * 86_400);
        assert!(since(None) > years && since(Some("soon")) > years);
    }
}
