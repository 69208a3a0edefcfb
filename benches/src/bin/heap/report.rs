//! Figures, their table, and their limits.

use std::fmt::Write;

use informer_benches::figures::{Figures, Initial, Kept, Phase, Wire};

const MB: usize = 1_000_000;

/// One informer, all its phases.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) kept: Kept,
    pub(crate) wire: Wire,
    pub(crate) initial: Initial,
    pub(crate) phases: [Figures; 2],
}

/// Settled, and the high-water mark over it.
fn heap(figures: &Figures) -> (usize, usize) {
    figures.heap.map_or((0, 0), |heap| (heap.settled, heap.over.unwrap_or_default()))
}

/// Everything measured as a Markdown table.
pub(crate) fn table(measured: &[Measured]) -> String {
    let mut text = String::from(
        "| kept | wire | initial | phase | objects | MB received | decoded | heap per object, bytes | heap settled, MB | high-water over settled, MB | VmHWM, MB | VmRSS, MB |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for Measured { kept, wire, initial, phases } in measured {
        let mut before = 0;
        for figures in phases {
            let phase = match figures.phase {
                Phase::First => "first list",
                Phase::Relist => "relist",
            };
            let (settled, over) = heap(figures);
            let bytes = figures.bytes.unwrap_or_default() as usize;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {phase} | {} | {} | {} | {} | {} | {} | {} | {} |",
                kept.name(),
                wire.name(),
                initial.name(),
                figures.objects,
                megabytes(bytes - before),
                figures.decoded.unwrap_or_default(),
                settled / figures.objects.max(1),
                megabytes(settled),
                megabytes(over),
                megabytes(figures.resident_peak),
                megabytes(figures.resident),
            );
            before = bytes;
        }
    }
    text
}

/// What is above its limit, in words.
pub(crate) fn violations(measured: &Measured, objects: usize, changed: usize) -> Vec<String> {
    let Measured { kept, wire, initial, phases } = measured;
    let who = format!("{}, {}, {}", kept.name(), wire.name(), initial.name());
    let mut found = Vec::new();
    let mut limit = |what: &str, is: usize, at_most: usize| {
        if is > at_most {
            found.push(format!("{who}: {what} is {is}, above {at_most}"));
        }
    };
    for figures in phases {
        let phase = figures.phase;
        let (settled, over) = heap(figures);
        limit(
            &format!("number of objects missing ({phase:?})"),
            objects - figures.objects.min(objects),
            0,
        );
        // G35: 1.15 × (settled + changed objects); what is settled holds the changed ones already.
        let share = settled / 100 * 15;
        limit(&format!("high-water mark over settled ({phase:?}, G35)"), over, share);
        if *kept == Kept::Typed {
            let least = if *wire == Wire::Json { 8_000 } else { 5_500 };
            let missing =
                (objects * least).saturating_sub(figures.bytes.unwrap_or_default() as usize);
            limit("number of bytes that the list is too short for these limits", missing, 0);
            limit(&format!("resident memory ({phase:?})"), figures.resident_peak, 750 * MB);
        }
        limit(
            &format!("heap per object ({phase:?})"),
            settled / objects.max(1),
            heap_per_object(*kept),
        );
        if phase == Phase::Relist {
            // G7
            limit(
                "objects decoded in the relist",
                figures.decoded.unwrap_or_default() as usize,
                changed,
            );
        }
    }
    found
}

/// A few percent above what generated Pods take.
fn heap_per_object(kept: Kept) -> usize {
    match kept {
        Kept::Typed => 29_000,
        Kept::Lazy => 2_800,
        Kept::Metadata => 2_500,
    }
}

fn megabytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / MB as f64)
}

#[cfg(test)]
mod tests {
    use informer_benches::figures::Heap;

    use super::*;

    /// A thousand Pods, a hundredth of which has changed.
    fn measured(kept: Kept, change: impl FnOnce(&mut Figures)) -> Measured {
        let settled = 1_000 * heap_per_object(kept);
        let first = Figures {
            phase: Phase::First,
            objects: 1_000,
            cpu_us: 0,
            bytes: Some(16_000_000),
            decoded: Some(1_000),
            heap: Some(Heap { settled, over: Some(settled / 10) }),
            resident: 700 * MB,
            resident_peak: 700 * MB,
        };
        let mut relist = Figures { phase: Phase::Relist, decoded: Some(10), ..first };
        change(&mut relist);
        Measured { kept, wire: Wire::Json, initial: Initial::List, phases: [first, relist] }
    }

    #[test]
    fn each_limit_is_told_when_exceeded_and_only_then() {
        let told =
            |kept, change: fn(&mut Figures)| violations(&measured(kept, change), 1_000, 10).len();
        assert_eq!(told(Kept::Typed, |_| {}), 0);
        assert_eq!(told(Kept::Metadata, |_| {}), 0);
        let too_much = |figures: &mut Figures| {
            let settled = figures.heap.map_or(0, |heap| heap.settled);
            figures.heap = Some(Heap { settled, over: Some(settled / 6) });
        };
        assert_eq!(told(Kept::Typed, too_much), 1);
        let more_settled = |figures: &mut Figures| {
            figures.heap = Some(Heap { settled: 29_001_000, over: Some(0) });
        };
        assert_eq!(told(Kept::Typed, more_settled), 1);
        assert_eq!(told(Kept::Lazy, more_settled), 1);
        assert_eq!(told(Kept::Typed, |figures| figures.resident_peak = 751 * MB), 1);
        assert_eq!(told(Kept::Typed, |figures| figures.bytes = Some(7_000_000)), 1);
        assert_eq!(told(Kept::Metadata, |figures| figures.decoded = Some(11)), 1);
        assert_eq!(told(Kept::Metadata, |figures| figures.objects = 999), 1);
    }
}
