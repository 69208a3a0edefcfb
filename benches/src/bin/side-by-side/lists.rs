//! First lists: CPU time, resident memory, and heap.

use std::collections::HashMap;

use anyhow::Result;
use informer_benches::client::Target;
use informer_benches::figures::Figures;

use crate::cluster::Cluster;
use crate::programs::{Programs, Running};
use crate::recordings::Recordings;
use crate::runs::{Conditions, INITIALS, Run, Runs};

/// What was measured, by rounds; `None` where a client failed.
#[derive(Default)]
pub(crate) struct Lists(HashMap<(Run, Conditions), Vec<Option<Phases>>>);

struct Phases {
    first: Figures,
    /// If the heap is counted.
    relist: Option<Figures>,
}

/// Measures all clients in turn. `--section` chooses the conditions.
pub(crate) async fn measure(
    rounds: usize,
    conditions: &[Conditions],
    programs: &Programs,
    cluster: &mut Cluster,
) -> Result<Lists> {
    let recordings = Recordings::new(cluster.target().client().await?)?;
    let mut steps: Vec<(Run, Conditions)> = Vec::new();
    for &conditions in conditions {
        let runs = INITIALS.into_iter().flat_map(|initial| Runs::of(initial).under(conditions));
        steps.extend(runs.map(|run| (run, conditions)));
    }
    let mut lists = Lists::default();
    for round in 0..rounds {
        for &(run, conditions) in &steps {
            if conditions == Conditions::Counted && round > 0 {
                continue;
            }
            let what = format!("round {}/{rounds}: {run} ({conditions:?})", round + 1);
            let outcome = match conditions {
                Conditions::Server => first(programs.sync(run, &cluster.target(), false)?).await,
                Conditions::Recording => {
                    let recording = recordings.of(run.initial, run.wire).await?;
                    first(programs.sync(run, &Target::Recording(recording), false)?).await
                }
                Conditions::Counted => {
                    let running = programs.sync(run, &cluster.excludable()?, true)?;
                    first_and_relist(running, cluster).await
                }
            };
            let phases = match outcome {
                Ok(phases) => {
                    let Figures { objects, cpu_us, resident, .. } = &phases.first;
                    let (cpu, resident) = (cpu_us / 1000, resident / 1_000_000);
                    eprintln!("{what}: {objects} objects, {cpu} ms of CPU, {resident} MB resident");
                    Some(phases)
                }
                // A client that fails once does not cost the others their figures.
                Err(error) => {
                    eprintln!("{what}: FAILED: {error:#}");
                    None
                }
            };
            lists.0.entry((run, conditions)).or_default().push(phases);
        }
        // There and back, so that no client always comes after the same one.
        steps.reverse();
    }
    Ok(lists)
}

async fn first(mut running: Running) -> Result<Phases> {
    let first = running.next().await?;
    running.end().await?;
    Ok(Phases { first, relist: None })
}

async fn first_and_relist(mut running: Running, cluster: &mut Cluster) -> Result<Phases> {
    let first: Figures = running.next().await?;
    cluster.force_relist(first.objects / 100).await?;
    let relist = Some(running.next().await?);
    running.end().await?;
    Ok(Phases { first, relist })
}

impl Lists {
    /// CPU time per object, µs.
    pub(crate) fn cpu(&self, run: Run, conditions: Conditions) -> Vec<Option<f64>> {
        self.each(run, conditions, |phases| Some(phases.first.cpu_per_object()))
    }

    /// Resident memory, MB.
    pub(crate) fn resident(&self, run: Run) -> Vec<Option<f64>> {
        self.each(run, Conditions::Server, |phases| Some(phases.first.resident as f64 / 1e6))
    }

    /// Settled heap per object, bytes. Go can tell without counting.
    pub(crate) fn heap(&self, run: Run) -> Vec<Option<f64>> {
        let counted = self.each(run, Conditions::Counted, |phases| phases.first.heap_per_object());
        match counted.is_empty() {
            true => self.each(run, Conditions::Server, |phases| phases.first.heap_per_object()),
            false => counted,
        }
    }

    /// The high-water mark of the first list's heap over what is settled after it.
    pub(crate) fn first_peak(&self, run: Run) -> Vec<Option<f64>> {
        self.each(run, Conditions::Counted, |phases| phases.first.peak_over_settled())
    }

    /// That of the relist's.
    pub(crate) fn relist_peak(&self, run: Run) -> Vec<Option<f64>> {
        self.each(run, Conditions::Counted, |phases| phases.relist.as_ref()?.peak_over_settled())
    }

    fn each(
        &self,
        run: Run,
        conditions: Conditions,
        value: impl Fn(&Phases) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        let phases = self.0.get(&(run, conditions)).map_or(&[][..], Vec::as_slice);
        phases.iter().map(|phases| value(phases.as_ref()?)).collect()
    }
}
