//! What happened, to be judged and reported.

use std::time::Duration;

use tokio::time::Instant;

use crate::burst::Came;
use crate::process::Process;
use crate::protocol::Figures;
use crate::trend::Trend;
use crate::writer::Written;

/// Everything that a run leaves behind.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) began: Instant,
    pub(crate) commit: String,
    /// How long objects were written through the API, quiet times left out.
    pub(crate) writing: Duration,
    pub(crate) written: Written,
    pub(crate) bursts: Vec<Came>,
    /// Written straight while the API server was down.
    pub(crate) behind_its_back: u64,
    pub(crate) restarts: u64,
    pub(crate) compactions: u64,
    pub(crate) quiet: Vec<Quiet>,
    pub(crate) samples: Vec<Sample>,
    /// What ended the run before its time.
    pub(crate) failure: Option<String>,
}

/// A quiet point that was passed.
#[derive(Debug, Clone)]
pub(crate) struct Quiet {
    /// Since the beginning.
    pub(crate) at: Duration,
    /// From the last write until all stores were equal to the server's lists, and until all
    /// handlers had been told so.
    pub(crate) stores: Duration,
    pub(crate) handlers: Duration,
    pub(crate) objects: usize,
    pub(crate) process: Process,
    pub(crate) figures: Figures,
}

/// The memory of the informers' process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    pub(crate) resident: usize,
}

/// Whether something is as it must be.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) holds: bool,
    pub(crate) what: String,
}

impl Record {
    /// Of a run that begins now, with the sources of `commit`.
    pub(crate) fn new(commit: String) -> Self {
        Self {
            began: Instant::now(),
            commit,
            writing: Duration::ZERO,
            written: Written { done: 0, moot: 0, failed: 0 },
            bursts: Vec::new(),
            behind_its_back: 0,
            restarts: 0,
            compactions: 0,
            quiet: Vec::new(),
            samples: Vec::new(),
            failure: None,
        }
    }

    /// The quiet points that memory is judged by: those of the last two thirds.
    pub(crate) fn judged(&self) -> &[Quiet] {
        let Some(last) = self.quiet.last() else { return &[] };
        let first = self.quiet.iter().position(|quiet| quiet.at >= last.at / 3);
        &self.quiet[first.unwrap_or_default()..]
    }

    /// The trend of a figure over the quiet points that are judged.
    pub(crate) fn trend(&self, figure: impl Fn(&Quiet) -> f64) -> Option<Trend> {
        let samples: Vec<_> =
            self.judged().iter().map(|quiet| (quiet.at.as_secs_f64(), figure(quiet))).collect();
        Trend::of(&samples)
    }

    /// All that must hold. Empty quiet points fail.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict {
            holds: self.failure.is_none() && !self.quiet.is_empty(),
            what: "all stores and all handlers' views equal to the server's lists at every quiet point, \
                   every history legal, every index exact"
                .to_owned(),
        }];
        for (name, figure) in memory() {
            let Some(trend) = self.trend(figure) else { continue };
            verdicts.push(Verdict {
                holds: trend.is_within_noise(),
                what: format!(
                    "{name} does not grow: {:+.2} MB/hour ± {:.2}, which is {:+.2} MB of {:.1} MB",
                    trend.slope,
                    trend.margin,
                    trend.growth(),
                    trend.mean
                ),
            });
        }
        verdicts.extend(self.constant("tasks", |quiet| quiet.figures.tasks));
        verdicts.extend(self.constant("threads", |quiet| quiet.process.threads));
        verdicts.extend(self.constant("open files", |quiet| quiet.process.files));
        if let Some(Quiet { figures, .. }) = self.quiet.last() {
            let told: u64 =
                figures.told.iter().filter(|(kind, _)| kind.contains("410")).map(|(_, n)| n).sum();
            let merged: u64 = figures.registrations.iter().map(|one| one.merged).sum();
            let happened = [
                (self.restarts, told, "restarts made watches expire"),
                (self.bursts.len() as u64, merged, "bursts made a slow handler's events merge"),
            ];
            let happened = happened.into_iter().filter(|(cause, ..)| *cause > 0);
            verdicts.extend(happened.map(|(_, effect, what)| Verdict {
                holds: effect > 0,
                what: format!("{what}: {effect}"),
            }));
        }
        verdicts
    }

    /// The most of something in the last third must not exceed the most before by more than three,
    /// which is what a connection that is just being replaced makes.
    fn constant(&self, name: &str, figure: impl Fn(&Quiet) -> usize) -> Option<Verdict> {
        if self.quiet.len() < Trend::FEWEST {
            return None;
        }
        let figures: Vec<usize> = self.quiet.iter().map(figure).collect();
        let (before, last) = figures.split_at(figures.len() * 2 / 3);
        let (before, last) = (before.iter().max()?, last.iter().max()?);
        Some(Verdict {
            holds: *last <= before + 3,
            what: format!("{name} do not grow: at most {last} in the last third, {before} before"),
        })
    }
}

/// Bytes as MB.
pub(crate) fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

type Figure = fn(&Quiet) -> f64;

/// The figures of memory that are judged, in MB.
pub(crate) fn memory() -> [(&'static str, Figure); 4] {
    [
        ("RSS", |quiet| megabytes(quiet.process.resident)),
        ("RSS, anonymous", |quiet| megabytes(quiet.process.anonymous)),
        ("PSS", |quiet| megabytes(quiet.process.proportional)),
        ("heap", |quiet| megabytes(quiet.figures.heap)),
    ]
}
