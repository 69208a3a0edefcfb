//! CPU time and resident memory of a first list, from the server.

use std::collections::HashMap;

use anyhow::Result;
use informer_benches::figures::Figures;

use crate::Arguments;
use crate::cluster::Cluster;
use crate::numbers::{Spread, Table};
use crate::programs::Programs;
use crate::runs::{Drain, Run};

/// What was measured, by rounds; `None` where a client failed.
#[derive(Default)]
pub(crate) struct Measured {
    runs: HashMap<Run, Vec<Option<Figures>>>,
    drains: HashMap<Drain, Vec<Option<Figures>>>,
}

/// One thing to measure.
#[derive(Clone, Copy)]
enum Step {
    Run(Run),
    Drain(Drain),
}

pub(crate) async fn measure(
    arguments: &Arguments,
    programs: &Programs,
    cluster: &Cluster,
) -> Result<Measured> {
    let runs: Vec<Run> = Run::all().into_iter().filter(|run| arguments.wants(&run.to_string())).collect();
    let mut steps = Vec::new();
    for run in &runs {
        steps.push(Step::Run(*run));
        if !steps.iter().any(|step| matches!(step, Step::Drain(drain) if *drain == run.drain())) {
            steps.push(Step::Drain(run.drain()));
        }
    }
    let (target, mut measured) = (cluster.target(), Measured::default());
    for round in 0..arguments.rounds {
        for step in &steps {
            let (name, outcome) = match step {
                Step::Run(run) => (run.to_string(), programs.sync(*run, &target).await),
                Step::Drain(drain) => (drain.to_string(), programs.drain(*drain, &target).await),
            };
            let figures = told(&format!("round {}/{}: {name}", round + 1, arguments.rounds), outcome);
            match step {
                Step::Run(run) => measured.runs.entry(*run).or_default().push(figures),
                Step::Drain(drain) => measured.drains.entry(*drain).or_default().push(figures),
            }
        }
        // There and back, so that nobody always comes after the same one.
        steps.reverse();
    }
    Ok(measured)
}

/// Says how it went. A client that fails once does not cost the others their figures.
pub(crate) fn told(what: &str, outcome: Result<Figures>) -> Option<Figures> {
    match outcome {
        Ok(figures) => {
            let (cpu, resident) = (figures.cpu_us / 1000, figures.resident / 1_000_000);
            eprintln!("{what}: {} objects, {cpu} ms of CPU, {resident} MB resident", figures.objects);
            Some(figures)
        }
        Err(error) => {
            eprintln!("{what}: FAILED: {error:#}");
            None
        }
    }
}

impl Measured {
    pub(crate) fn of(&self, run: Run) -> &[Option<Figures>] {
        self.runs.get(&run).map_or(&[], Vec::as_slice)
    }

    /// CPU time per object, µs.
    pub(crate) fn cpu(&self, run: Run) -> Vec<Option<f64>> {
        self.each(run, Figures::cpu_per_object)
    }

    /// CPU time per object beyond its drain's, µs.
    pub(crate) fn net(&self, run: Run) -> Vec<Option<f64>> {
        let drained = self.drained(run);
        self.cpu(run).into_iter().zip(drained).map(|(cpu, drained)| Some(cpu? - drained?)).collect()
    }

    /// CPU time of its drain, per object, µs.
    fn drained(&self, run: Run) -> Vec<Option<f64>> {
        let drains = self.drains.get(&run.drain()).map_or(&[][..], Vec::as_slice);
        let both = self.of(run).iter().zip(drains);
        both.map(|(own, drain)| Some(drain.as_ref()?.cpu_us as f64 / own.as_ref()?.objects.max(1) as f64))
            .collect()
    }

    /// Resident memory, bytes.
    pub(crate) fn resident(&self, run: Run) -> Vec<Option<f64>> {
        self.each(run, |figures| figures.resident as f64)
    }

    /// The most that was resident, bytes.
    pub(crate) fn resident_peak(&self, run: Run) -> Vec<Option<f64>> {
        self.each(run, |figures| figures.resident_peak as f64)
    }

    fn each(&self, run: Run, value: impl Fn(&Figures) -> f64) -> Vec<Option<f64>> {
        self.of(run).iter().map(|figures| figures.as_ref().map(&value)).collect()
    }

    pub(crate) fn table(&self) -> String {
        if self.runs.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&[
            "client",
            "CPU, µs per Pod",
            "its drain",
            "minus drain",
            "received by the drain, MB",
            "time, s",
        ]);
        for run in Run::all().into_iter().filter(|run| self.runs.contains_key(run)) {
            let spread =
                |values: Vec<Option<f64>>| values.into_iter().flatten().collect::<Spread>().to_string();
            let drains = self.drains.get(&run.drain()).map_or(&[][..], Vec::as_slice);
            let received = drains.iter().flatten().filter_map(|drain| Some(drain.bytes? as f64 / 1e6));
            table.row(&[
                run.to_string(),
                spread(self.cpu(run)),
                spread(self.drained(run)),
                spread(self.net(run)),
                received
                    .collect::<Spread>()
                    .median()
                    .map_or_else(|| "–".into(), |bytes| format!("{bytes:.1}")),
                spread(self.each(run, |figures| figures.wall_us as f64 / 1e6)),
            ]);
        }
        table.section(
            "CPU time to the first sync",
            "User and system time of the client's process, from the start of the informer until it has synced. A *drain* is a \
             program with the same HTTP client that asks for the same bytes and throws them away; client-go's asks for gzip, \
             as client-go does, and what it received is counted unpacked. A client that is faster than the server is woken for every small piece of the \
             answer, a slower one finds many at a time: net figures of the cheapest clients are within that noise, and may be \
             negative. Medians of the rounds, ranges in parentheses.",
        )
    }
}
