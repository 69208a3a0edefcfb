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
    goals.cpu();
    goals.resident();
    goals.behind_the_socket();
    goals.table.section("Goals", "*Net* CPU time is that minus the client's own drain's. – was not measured.")
}

impl Goals<'_> {
    fn heap(&mut self, _samples: &Samples) {
        let heap =
            |kept, wire| move |goals: &Self, initial| goals.memory.heap(our(kept, wire, initial), goals.sync);
        self.at_most("heap per Pod: ten fields, bytes", 1000.0, heap(Kept::TenFields, Wire::Json));
        self.at_most("heap per Pod: metadata typed, bytes", 2200.0, heap(Kept::Metadata, Wire::Json));
        self.at_most("heap per Pod: typed over kube-runtime stripped", 1.0, |goals, initial| {
            let heap = |run| [goals.memory.heap(run, goals.sync).median()];
            Spread::ratios(
                &heap(our(Kept::Typed, Wire::Json, initial)),
                &heap(kube_runtime_stripped(initial)),
            )
        });
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

    fn cpu(&mut self) {
        let net = |own: fn(Initial) -> Run, other: fn(Initial) -> Run| {
            move |goals: &Self, initial| {
                Spread::ratios(&goals.sync.net(own(initial)), &goals.sync.net(other(initial)))
            }
        };
        let typed = |initial| our(Kept::Typed, Wire::Protobuf, initial);
        self.at_most("net CPU: typed over client-go protobuf", 0.5, net(typed, client_go));
        self.at_most("net CPU: typed over kube-runtime stripped", 0.5, net(typed, kube_runtime_stripped));
        let typed = |initial| our(Kept::Typed, Wire::Json, initial);
        self.at_most(
            "net CPU: typed from JSON over kube-runtime stripped",
            1.0,
            net(typed, kube_runtime_stripped),
        );
    }

    fn resident(&mut self) {}

    fn behind_the_socket(&mut self) {
        let replay = |kept| move |goals: &Self, initial| goals.replay.of(our(kept, Wire::Protobuf, initial));
        self.at_most("bytes to store: ten fields from protobuf, µs per Pod", 4.0, replay(Kept::TenFields));
        self.at_most("bytes to store: metadata from protobuf, µs per Pod", 4.0, replay(Kept::Metadata));
        self.at_most("bytes to store: typed from protobuf, µs per Pod", 22.0, replay(Kept::Typed));
    }

    fn at_most(&mut self, goal: &str, limit: f64, value: impl Fn(&Self, Initial) -> Spread) {
        let values = INITIALS.map(|initial| value(self, initial));
        let medians: Vec<f64> = values.iter().filter_map(Spread::median).collect();
        let verdict = match medians.iter().all(|median| *median <= limit) {
            _ if medians.is_empty() => "–",
            true => "ok",
            false => "**MISSED**",
        };
        let [watch_list, list] = values.map(|value| value.to_string());
        self.table.row(&[goal.to_owned(), short(limit), watch_list, list, verdict.to_owned()]);
    }
}

fn our(kept: Kept, wire: Wire, initial: Initial) -> Run {
    Run { library: Library::Informer, kept, wire, stripped: false, initial }
}

fn client_go(initial: Initial) -> Run {
    Run { library: Library::ClientGo, kept: Kept::Typed, wire: Wire::Protobuf, stripped: false, initial }
}

fn kube_runtime_stripped(initial: Initial) -> Run {
    Run { library: Library::KubeRuntime, kept: Kept::Typed, wire: Wire::Json, stripped: true, initial }
}
