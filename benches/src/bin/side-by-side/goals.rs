//! What we have set ourselves, and whether it is reached.

use informer_benches::figures::{Figures, Initial, Kept, Wire};

use crate::numbers::{Spread, Table, short};
use crate::runs::{INITIALS, Library, Run, ours};
use crate::samples::Samples;
use crate::{memory, replay, sync};

/// Everything that goals are read off.
struct Goals<'a> {
    sync: &'a sync::Measured,
    replay: &'a replay::Measured,
    memory: &'a memory::Measured,
    table: Table,
}

/// All goals, with what was measured for each way of the first list.
pub(crate) fn table(
    samples: &Samples,
    sync: &sync::Measured,
    replay: &replay::Measured,
    memory: &memory::Measured,
) -> String {
    let table = Table::new(&["goal", "at most", "WatchList", "LIST", ""]);
    let mut goals = Goals { sync, replay, memory, table };
    goals.heap(samples);
    goals.peaks();
    goals.whole_process();
    goals.cpu();
    goals.resident();
    goals.behind_the_socket();
    goals.table.section("Goals", "Ours from protobuf. *Net* CPU time is that minus the client's own drain's, and goals of CPU time are medians of the rounds. \
             – was not measured.")
}

impl Goals<'_> {
    fn heap(&mut self, samples: &Samples) {
        let heap = |kept| {
            move |goals: &Self, initial| goals.memory.heap(our(kept, Wire::Protobuf, initial), goals.sync)
        };
        let bytes = samples.protobuf.without_managed_fields;
        self.at_most("heap per Pod: lazy, bytes", 3200.0, heap(Kept::Lazy));
        self.at_most(
            "heap per Pod: lazy, over the mean protobuf without managedFields",
            1.2,
            |goals, initial| {
                let heap = heap(Kept::Lazy)(goals, initial);
                Spread::ratios(&[heap.median()], &[Some(bytes)])
            },
        );
        self.at_most("heap per Pod: typed, over kube-runtime stripped", 1.0, |goals, initial| {
            let other = goals.memory.heap(kube_runtime_stripped(initial), goals.sync);
            Spread::ratios(&[heap(Kept::Typed)(goals, initial).median()], &[other.median()])
        });
        self.at_most("heap per Pod: ten fields, bytes", 1000.0, heap(Kept::TenFields));
        self.at_most("heap per Pod: metadata, bytes", 2200.0, heap(Kept::Metadata));
        self.at_most("heap per Pod: lazy metadata, bytes", 1500.0, heap(Kept::LazyMetadata));
    }

    fn peaks(&mut self) {
        let worst = |goals: &Self, initial, of: fn(&memory::Phases) -> Option<&Figures>| {
            let phases = ours(initial).into_iter().filter_map(|run| goals.memory.of(run));
            let peaks = phases.filter_map(|phases| of(phases)?.peak_over_settled());
            peaks.reduce(f64::max).into_iter().collect::<Spread>()
        };
        self.at_most("peak over settled, the worst of ours, first list", 1.15, move |goals, initial| {
            worst(goals, initial, |phases| Some(&phases.first))
        });
        self.at_most("peak over settled, the worst of ours, relist", 1.15, move |goals, initial| {
            worst(goals, initial, |phases| phases.relist.as_ref())
        });
    }

    /// With everything that a socket costs.
    fn whole_process(&mut self) {
        let whole = |other: fn(Initial) -> Run| {
            move |goals: &Self, initial| {
                let own = our(Kept::Typed, Wire::Json, initial);
                Spread::ratios(&goals.sync.cpu(own), &goals.sync.cpu(other(initial)))
            }
        };
        self.each_at_most("CPU: typed JSON over client-go JSON", [0.25, 1.0 / 3.0], whole(client_go_json));
        self.at_most("CPU: typed JSON over kube-runtime", 0.5, whole(kube_runtime));
    }

    fn cpu(&mut self) {
        let net = |kept, other: fn(Initial) -> Run| {
            move |goals: &Self, initial| {
                let own = our(kept, Wire::Protobuf, initial);
                Spread::ratios(&goals.sync.net(own), &goals.sync.net(other(initial)))
            }
        };
        self.at_most("net CPU: lazy over client-go protobuf", 1.0 / 6.0, net(Kept::Lazy, client_go));
        self.at_most("net CPU: typed over client-go protobuf", 0.5, net(Kept::Typed, client_go));
        self.at_most(
            "net CPU: typed over kube-runtime stripped",
            0.5,
            net(Kept::Typed, kube_runtime_stripped),
        );
    }

    fn resident(&mut self) {
        let resident = |other: fn(Initial) -> Run| {
            move |goals: &Self, initial| {
                let own = our(Kept::Lazy, Wire::Protobuf, initial);
                Spread::ratios(&goals.sync.resident(own), &goals.sync.resident(other(initial)))
            }
        };
        self.at_most("VmRSS: lazy over client-go protobuf stripped", 1.0 / 3.0, resident(client_go_stripped));
        self.at_most("VmRSS: lazy over kube-runtime stripped", 1.0 / 7.0, resident(kube_runtime_stripped));
    }

    fn behind_the_socket(&mut self) {
        let replay = |kept| move |goals: &Self, initial| goals.replay.of(our(kept, Wire::Protobuf, initial));
        self.at_most("bytes to store: lazy, µs per Pod", 3.0, replay(Kept::Lazy));
        self.at_most("bytes to store: ten fields, µs per Pod", 4.0, replay(Kept::TenFields));
        self.at_most("bytes to store: metadata, µs per Pod", 4.0, replay(Kept::Metadata));
        self.at_most("bytes to store: typed, µs per Pod", 22.0, replay(Kept::Typed));
        let ratio = |kept, other: fn(Initial) -> Run| {
            move |goals: &Self, initial| {
                let own = goals.replay.of(our(kept, Wire::Protobuf, initial));
                Spread::ratios(&[own.median()], &[goals.replay.of(other(initial)).median()])
            }
        };
        self.at_most("bytes to store: lazy over client-go protobuf", 1.0 / 6.0, ratio(Kept::Lazy, client_go));
        self.at_most("bytes to store: typed over client-go protobuf", 0.5, ratio(Kept::Typed, client_go));
        self.at_most(
            "bytes to store: typed over kube-runtime stripped",
            0.5,
            ratio(Kept::Typed, kube_runtime_stripped),
        );
        self.at_most("a lazy Pod written as JSON, µs", 8.0, |goals, initial| goals.replay.to_json(initial));
    }

    fn at_most(&mut self, goal: &str, limit: f64, value: impl Fn(&Self, Initial) -> Spread) {
        self.each_at_most(goal, [limit; 2], value);
    }

    /// With a limit for each way of the first list.
    fn each_at_most(&mut self, goal: &str, limits: [f64; 2], value: impl Fn(&Self, Initial) -> Spread) {
        let values = INITIALS.map(|initial| value(self, initial));
        let verdict = verdict(&values, limits);
        let [watch_list, list] = values.map(|value| value.to_string());
        let limit = match limits {
            [one, other] if one == other => short(one),
            [one, other] => format!("{}; {}", short(one), short(other)),
        };
        self.table.row(&[goal.to_owned(), limit, watch_list, list, verdict.to_owned()]);
    }
}

/// Whether all of them that were measured keep to their limits.
pub(crate) fn verdict(values: &[Spread; 2], limits: [f64; 2]) -> &'static str {
    let medians = values.iter().map(Spread::median);
    match medians.zip(limits).all(|(median, limit)| median.is_none_or(|it| it <= limit)) {
        _ if values.iter().all(|value| value.median().is_none()) => "–",
        true => "ok",
        false => "**MISSED**",
    }
}

fn our(kept: Kept, wire: Wire, initial: Initial) -> Run {
    Run { library: Library::Informer, kept, wire, stripped: false, initial }
}

fn client_go(initial: Initial) -> Run {
    Run { library: Library::ClientGo, kept: Kept::Typed, wire: Wire::Protobuf, stripped: false, initial }
}

fn client_go_json(initial: Initial) -> Run {
    Run { wire: Wire::Json, ..client_go(initial) }
}

fn kube_runtime(initial: Initial) -> Run {
    Run { stripped: false, ..kube_runtime_stripped(initial) }
}

fn client_go_stripped(initial: Initial) -> Run {
    Run { stripped: true, ..client_go(initial) }
}

fn kube_runtime_stripped(initial: Initial) -> Run {
    Run { library: Library::KubeRuntime, kept: Kept::Typed, wire: Wire::Json, stripped: true, initial }
}
