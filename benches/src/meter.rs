//! Measures a phase of the process from the inside.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::HEAP;
use crate::cpu::of_process as cpu_time;
use crate::figures::{Figures, Heap, Phase};
use crate::resident::Resident;

/// Measures one phase after another.
#[derive(Debug)]
pub struct Meter {
    counted: bool,
    empty: usize,
    began: Duration,
    took: Duration,
}

impl Meter {
    /// Begins the first phase. Unless the heap shall be `counted`, it is not from here on, since
    /// that takes time.
    #[must_use]
    pub fn start(counted: bool) -> Self {
        if !counted {
            HEAP.stop();
        }
        HEAP.reset();
        Self { counted, empty: HEAP.live(), began: cpu_time(), took: Duration::ZERO }
    }

    /// The phase has reached its goal: what comes now, until the next one, takes none of its time.
    pub fn stop(&mut self) {
        self.took = cpu_time().saturating_sub(self.began);
    }

    /// Waits until nothing moves any more, and measures memory. The next phase begins when this
    /// returns.
    ///
    /// # Errors
    /// As [`Resident::read`].
    ///
    /// # Cancel safety
    /// The phase goes on.
    pub async fn finish(&mut self, phase: Phase, objects: usize) -> Result<Figures> {
        let settled = settle().await;
        let resident = Resident::read()?;
        let heap = self.counted.then(|| Heap {
            settled: settled.saturating_sub(self.empty),
            over: Some(HEAP.peak().saturating_sub(settled)),
        });
        HEAP.reset();
        self.began = cpu_time();
        Ok(Figures {
            phase,
            objects,
            cpu_us: self.took.as_micros() as u64,
            bytes: None,
            decoded: None,
            heap,
            resident: resident.now,
            resident_peak: resident.peak,
        })
    }
}

/// Prints a line for the process that waits for it.
///
/// # Errors
/// None that can be told.
pub fn print(figures: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(figures)?);
    Ok(())
}

/// What is allocated once nothing moves any more.
async fn settle() -> usize {
    let (mut live, mut same) = (HEAP.live(), 0);
    while same < 10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = HEAP.live();
        same = if now == live { same + 1 } else { 0 };
        live = now;
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_phase_and_ends_with_it() {
        let mut meter = Meter { counted: true, empty: 0, began: cpu_time(), took: Duration::ZERO };
        while cpu_time() - meter.began < Duration::from_millis(1) {}
        meter.stop();
        let took = meter.took;
        assert!(took >= Duration::from_millis(1));
        while cpu_time() - meter.began < Duration::from_millis(2) {}
        assert_eq!(meter.took, took);
    }
}
