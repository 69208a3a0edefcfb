//! CPU time from received bytes to the store: the same clients with answers out of memory instead of a socket.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::Result;
use informer_benches::client::Target;
use informer_benches::figures::{Figures, Initial, Kept, Wire};

use crate::Arguments;
use crate::numbers::{Spread, Table};
use crate::programs::{Mode, Programs};
use crate::runs::{Drain, INITIALS, Library, Run};
use crate::samples::Samples;
use crate::sync::told;

/// CPU time per object beyond that of a drain of the same recording, µs.
#[derive(Default)]
pub(crate) struct Measured {
    net: HashMap<Run, Vec<f64>>,
    /// What it takes to write a kept object as JSON, and to decode it, µs.
    access: HashMap<Initial, Vec<(f64, f64)>>,
}

pub(crate) async fn measure(
    arguments: &Arguments,
    programs: &Programs,
    samples: &Samples,
) -> Result<Measured> {
    let mut runs = Run::all();
    // No goal needs what client-go takes for JSON, which is more than all the others together.
    runs.retain(|run| run.library != Library::ClientGo || run.wire == Wire::Protobuf);
    runs.retain(|run| arguments.wants(&run.to_string()));
    let mut measured = Measured::default();
    for round in 0..arguments.rounds {
        let mut drains: HashMap<Drain, Option<u64>> = HashMap::new();
        for run in &runs {
            let drain = run.drain();
            let target =
                Target::Recording(samples.recording(drain.initial, drain.wire, drain.metadata).await?);
            let name = |what: &str| format!("replay {}/{}: {what}", round + 1, arguments.rounds);
            if let Entry::Vacant(entry) = drains.entry(drain) {
                let figures = told(&name(&drain.to_string()), programs.drain(drain, &target).await);
                entry.insert(figures.map(|figures| figures.cpu_us));
            }
            let figures = if run.kept == Kept::Lazy {
                let accessed = accessed(*run, programs, &target).await;
                let access = measured.access.entry(run.initial).or_default();
                access.extend(accessed.as_ref().ok().map(|(_, access)| *access));
                told(&name(&run.to_string()), accessed.map(|(figures, _)| figures))
            } else {
                told(&name(&run.to_string()), programs.sync(*run, &target).await)
            };
            if let (Some(figures), Some(drained)) = (figures, drains[&drain]) {
                let net = (figures.cpu_us as f64 - drained as f64) / figures.objects.max(1) as f64;
                measured.net.entry(*run).or_default().push(net);
            }
        }
    }
    Ok(measured)
}

/// Runs an informer and has it write and decode everything that it keeps.
async fn accessed(run: Run, programs: &Programs, target: &Target) -> Result<(Figures, (f64, f64))> {
    let mut informer = programs.start(run, target, Mode { access: true, ..Mode::default() })?;
    let first = informer.next().await?;
    let (json, decode) = (informer.next().await?, informer.next().await?);
    informer.end().await?;
    Ok((first, (json.cpu_per_object(), decode.cpu_per_object())))
}

impl Measured {
    /// Writing a kept object as JSON, µs.
    pub(crate) fn to_json(&self, initial: Initial) -> Spread {
        self.access.get(&initial).into_iter().flatten().map(|(json, _)| *json).collect()
    }

    fn decode(&self, initial: Initial) -> Spread {
        self.access.get(&initial).into_iter().flatten().map(|(_, decode)| *decode).collect()
    }

    pub(crate) fn of(&self, run: Run) -> Spread {
        self.net.get(&run).into_iter().flatten().copied().collect()
    }

    pub(crate) fn table(&self) -> String {
        if self.net.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&["client", "CPU, µs per Pod"]);
        for run in Run::all().into_iter().filter(|run| self.net.contains_key(run)) {
            table.row(&[run.to_string(), self.of(run).to_string()]);
        }
        for initial in INITIALS.into_iter().filter(|initial| self.access.contains_key(initial)) {
            let name = initial.name();
            table.row(&[
                format!("a lazy Pod written as JSON, after {name}"),
                self.to_json(initial).to_string(),
            ]);
            table.row(&[format!("a lazy Pod decoded, after {name}"), self.decode(initial).to_string()]);
        }
        table.section(
            "CPU time from received bytes to the store",
            "The same informers, whose HTTP client answers out of memory what the server has said, in chunks of 32 KiB; minus a drain \
             of that. This is the steadier measure: how often a client is woken by a socket depends on who is faster, it or the server. \
             kube-runtime is given the LIST in one page.",
        )
    }
}
