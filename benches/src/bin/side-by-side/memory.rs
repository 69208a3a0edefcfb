//! Requested heap, in a first list and a relist. One round: it hardly varies.

use std::collections::HashMap;

use anyhow::{Context, Result};
use informer_benches::client::Target;
use informer_benches::figures::Figures;

use crate::Arguments;
use crate::cluster::Cluster;
use crate::numbers::{Spread, Table, or_dash, short};
use crate::programs::{Mode, Programs};
use crate::runs::{Library, Run};
use crate::sync;

/// What was measured.
#[derive(Default)]
pub(crate) struct Measured {
    runs: HashMap<Run, Phases>,
}

/// Of one informer.
pub(crate) struct Phases {
    pub(crate) first: Figures,
    pub(crate) relist: Option<Figures>,
}

pub(crate) async fn measure(
    arguments: &Arguments,
    programs: &Programs,
    cluster: &mut Cluster,
) -> Result<Measured> {
    let mut measured = Measured::default();
    let wanted = |run: &Run| run.library != Library::ClientGo && arguments.wants(&run.to_string());
    for run in Run::all().into_iter().filter(wanted) {
        match phases(run, arguments.objects / 100, programs, cluster).await {
            Ok(phases) => {
                let peak = |figures: &Figures| or_dash(figures.peak_over_settled().map(short));
                let (first, relist) = (peak(&phases.first), or_dash(phases.relist.as_ref().map(peak)));
                let heap = or_dash(phases.first.heap_per_object().map(short));
                eprintln!("heap: {run}: {heap} bytes per object, peak {first}, relist {relist}");
                measured.runs.insert(run, phases);
            }
            Err(error) => eprintln!("heap: {run}: FAILED: {error:#}"),
        }
    }
    Ok(measured)
}

async fn phases(run: Run, changed: usize, programs: &Programs, cluster: &mut Cluster) -> Result<Phases> {
    let excludable: Option<Target> = cluster.excludable()?;
    let mode = Mode { counted: true, relist: excludable.is_some(), access: false };
    let mut informer = programs.start(run, &excludable.unwrap_or_else(|| cluster.target()), mode)?;
    let first = informer.next().await.context("first list")?;
    let relist = match mode.relist {
        true => {
            cluster.force_relist(changed).await?;
            Some(informer.next().await.context("relist")?)
        }
        false => None,
    };
    informer.end().await?;
    Ok(Phases { first, relist })
}

impl Measured {
    pub(crate) fn of(&self, run: Run) -> Option<&Phases> {
        self.runs.get(&run)
    }

    /// Settled heap per object, bytes: counted in Rust, and what Go says.
    pub(crate) fn heap(&self, run: Run, sync: &sync::Measured) -> Spread {
        let counted = self.of(run).and_then(|phases| phases.first.heap_per_object());
        let told = sync.of(run).iter().flatten().filter_map(Figures::heap_per_object);
        counted.into_iter().chain(told).collect()
    }

    pub(crate) fn table(&self, sync: &sync::Measured) -> String {
        let mut table = Table::new(&[
            "client",
            "heap per Pod, bytes",
            "peak over settled, first list",
            "peak over settled, relist",
            "decoded in the relist",
            "VmRSS, MB",
            "VmHWM, MB",
        ]);
        let measured = |run: &Run| self.runs.contains_key(run) || !sync.of(*run).is_empty();
        for run in Run::all().into_iter().filter(measured) {
            let megabytes = |bytes: Vec<Option<f64>>| {
                bytes.into_iter().flatten().map(|bytes| bytes / 1e6).collect::<Spread>().to_string()
            };
            let first = self.of(run).map(|phases| &phases.first);
            let relist = self.of(run).and_then(|phases| phases.relist.as_ref());
            let peak =
                |figures: Option<&Figures>| or_dash(figures.and_then(Figures::peak_over_settled).map(short));
            table.row(&[
                run.to_string(),
                self.heap(run, sync).to_string(),
                peak(first),
                peak(relist),
                or_dash(relist.and_then(|figures| figures.decoded)),
                megabytes(sync.resident(run)),
                megabytes(sync.resident_peak(run)),
            ]);
        }
        table.section(
            "Memory",
            "*Heap*: in Rust, bytes requested from the allocator, counted in runs of their own; in Go, the difference of HeapAlloc after \
             two collections. *Peak over settled*: the most that was allocated at any moment of the phase, as a multiple of what is settled \
             after it. In the relist, 1 % of the Pods have changed while the client was shut out, and the server has forgotten its history. \
             *VmRSS* is that of the whole synced process, in Go after FreeOSMemory; *VmHWM* is the most it was. Both are taken in the runs \
             that measure time.",
        )
    }
}
