//! The run: who writes, who disturbs, and the quiet points between.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use informer_tests::fixtures::{create_namespace, install_widgets};
use informer_tests::helpers::{differences, eventually_ok, raw_list};
use informer_tests::real::{RealCluster, SWITCH};
use kube::Client;
use tokio::time::{Instant, sleep};

use crate::Arguments;
use crate::burst::Burst;
use crate::child::Informers;
use crate::collection::{Collection, Digest, NAMESPACES, Objects};
use crate::process::Process;
use crate::protocol::{Contents, Figures, Question, View, Views};
use crate::record::{Quiet, Record, Sample, megabytes};
use crate::report;
use crate::schedule::Schedule;
use crate::writer::Writer;

/// How long everybody has, at a quiet point, to be equal to the server; twice that while an
/// informer backs off, which takes up to 30 s for each failure in a row.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long the server has to answer a list: it may just have been started.
const SERVER: Duration = Duration::from_secs(60);

/// How long nothing happens at a quiet point before memory is read.
const SETTLE: Duration = Duration::from_secs(1);

/// How often memory is read in between.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// How long a burst lasts: this, and up to five seconds more.
const BURST: Duration = Duration::from_secs(5);

/// How many changes each connection makes straight in etcd while the API server is down.
const BEHIND_ITS_BACK: usize = 10;

/// Runs the soak, prints and writes the report.
///
/// # Errors
///
/// When anything is not as it must be.
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else {
        bail!("the soak needs a real API server: set {SWITCH}=1")
    };
    let mut soak = Soak::start(arguments, cluster).await?;
    let outcome = soak.run().await;
    let mut record = soak.end();
    record.failure = outcome.err().map(|error| format!("{error:#}"));
    let text = report::markdown(arguments, &record);
    println!("\n{text}");
    if let Some(path) = &arguments.report {
        std::fs::write(path, &text).with_context(|| path.display().to_string())?;
    }
    if let Some(failure) = &record.failure {
        bail!("{failure}");
    }
    let broken: Vec<String> = record
        .verdicts()
        .into_iter()
        .filter(|verdict| !verdict.holds)
        .map(|verdict| verdict.what)
        .collect();
    ensure!(broken.is_empty(), "not so:\n{}", broken.join("\n"));
    Ok(())
}

struct Soak<'a> {
    arguments: &'a Arguments,
    cluster: RealCluster,
    client: Client,
    writer: Writer,
    burst: tokio::sync::Mutex<Burst>,
    informers: Informers,
    samples: Arc<Mutex<Vec<Sample>>>,
    record: Record,
    bursts: Schedule,
    restarts: Schedule,
    compactions: Schedule,
}

impl<'a> Soak<'a> {
    /// A cluster with all its objects, and informers that follow it.
    async fn start(arguments: &'a Arguments, cluster: RealCluster) -> anyhow::Result<Self> {
        let client = cluster.client().await?;
        for namespace in NAMESPACES {
            create_namespace(&client, namespace).await?;
        }
        install_widgets(&client).await?;
        let writer = Writer::new(client.clone(), arguments.seed);
        let mut burst = Burst::new(cluster.etcd_url(), arguments.seed)?;
        writer.populate().await?;
        burst.write(Instant::now() + BURST, 100).await?;
        let log = arguments.report.as_deref().map(log_of);
        let informers = Informers::start(&cluster.kubeconfig_path(), log.as_deref())?;
        let samples = Arc::new(Mutex::new(Vec::new()));
        let record = Record::new(report::commit());
        tokio::spawn(sample(informers.id(), record.began, Arc::clone(&samples)));
        // Seconds apart, so that what comes at one time comes into the middle of a burst.
        let offset = Duration::from_secs;
        Ok(Self {
            arguments,
            client,
            writer,
            burst: tokio::sync::Mutex::new(burst),
            informers,
            samples,
            record,
            bursts: Schedule::new(arguments.burst_every, offset(0)),
            restarts: Schedule::new(arguments.restart_every, offset(3)),
            compactions: Schedule::new(arguments.compact_every, offset(2)),
            cluster,
        })
    }

    async fn run(&mut self) -> anyhow::Result<()> {
        self.quiet_point().await.context("at first")?;
        let end = self.record.began + self.arguments.duration;
        while Instant::now() < end {
            let number = self.record.quiet.len();
            self.busy_time(end).await.with_context(|| format!("before quiet point {number}"))?;
            let reached = self.quiet_point().await;
            reached
                .with_context(|| format!("quiet point {number} of seed {}", self.arguments.seed))?;
        }
        let _: Figures = self.informers.ask(Question::Stop).await?;
        self.informers.end().await
    }

    fn end(self) -> Record {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Record { samples, written: self.writer.written(), ..self.record }
    }

    /// Writes, and lets happen what is due.
    async fn busy_time(&mut self, end: Instant) -> anyhow::Result<()> {
        let Self {
            arguments, cluster, writer, burst, bursts, restarts, compactions, record, ..
        } = self;
        let began = Instant::now();
        let end = end.min(began + arguments.quiet_every).max(began + Duration::from_secs(10));
        // Returns how much was written meanwhile: what nobody can watch is what makes watches
        // expire.
        let restart = async || {
            cluster.kill_apiserver().await?;
            let written = match burst.try_lock() {
                Ok(mut burst) => burst.write(Instant::now() + BURST, BEHIND_ITS_BACK).await?.writes,
                Err(_) => 0,
            };
            cluster.start_apiserver().await?;
            anyhow::Ok(written)
        };
        let bursts = async {
            let mut came = Vec::new();
            while bursts.is_due(end).await {
                let length = BURST + Duration::from_millis(997 * (bursts.times % 6));
                came.push(burst.lock().await.write(Instant::now() + length, usize::MAX).await?);
            }
            anyhow::Ok(came)
        };
        let restarts = async {
            let mut written = Vec::new();
            while restarts.is_due(end).await {
                written.push(restart().await?);
            }
            anyhow::Ok(written)
        };
        let compactions = async {
            let (mut compacted, mut written) = (0, Vec::new());
            while compactions.is_due(end).await {
                cluster.compact().await?;
                compacted += 1;
                if compactions.times % 2 == 0 {
                    written.push(restart().await?);
                }
            }
            anyhow::Ok((compacted, written))
        };
        let write = async {
            writer.write_until(end, arguments.writes).await;
            Ok(())
        };
        let (came, mut restarted, (compacted, forgotten), ()) =
            tokio::try_join!(bursts, restarts, compactions, write)?;
        restarted.extend(forgotten);
        record.bursts.extend(came);
        record.restarts += restarted.len() as u64;
        record.behind_its_back += restarted.iter().sum::<u64>();
        record.compactions += compacted;
        record.writing += began.elapsed();
        Ok(())
    }

    /// Waits until everybody has what the server lists.
    async fn quiet_point(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut expected = self.lists().await?;
        let mut listed = Instant::now();
        let mut stores_took = None;
        loop {
            let views: Views = self.informers.ask(Question::Views).await?;
            ensure!(views.faults.is_empty(), "faults:\n{}", views.faults.join("\n"));
            let equal = |views: &[View]| {
                views.iter().all(|view| Digest::of(&expected[&view.collection]) == view.digest)
            };
            let stores = equal(&views.stores) && views.not_watching.is_empty();
            if stores && stores_took.is_none() {
                stores_took = Some(began.elapsed());
            }
            let all = stores && equal(&views.handlers);
            if all || listed.elapsed() > DEADLINE / 10 {
                let again = self.lists().await?;
                listed = Instant::now();
                if all && again == expected {
                    break;
                }
                expected = again;
            }
            let deadline = if views.not_watching.is_empty() { DEADLINE } else { 2 * DEADLINE };
            if began.elapsed() > deadline && !all {
                bail!("not equal within {deadline:?}:\n{}", self.unequal(&expected, &views).await?);
            }
            sleep(Duration::from_millis(50)).await;
        }
        let handlers = began.elapsed();
        sleep(SETTLE).await;
        let figures: Figures = self.informers.ask(Question::Figures).await?;
        ensure!(figures.index_faults.is_empty(), "{}", figures.index_faults.join("\n"));
        for one in &figures.registrations {
            ensure!(one.depth == 0 && one.panics == 0, "a registration is not at rest: {one:?}");
        }
        for one in &figures.informers {
            ensure!(one.undecodable == 0, "an object was not decoded: {one:?}");
        }
        let quiet = Quiet {
            at: self.record.began.elapsed(),
            stores: stores_took.unwrap_or(handlers),
            handlers,
            objects: figures.informers.iter().map(|one| one.objects).sum(),
            process: self.informers.process()?,
            figures,
        };
        println!("{}", self.line(&quiet));
        self.record.quiet.push(quiet);
        Ok(())
    }

    /// What the server lists, past every cache.
    async fn lists(&self) -> anyhow::Result<BTreeMap<Collection, Objects>> {
        let mut lists = BTreeMap::new();
        for collection in Collection::ALL {
            let path = collection.path();
            let list = eventually_ok(&path, SERVER, async || raw_list(&self.client, &path).await);
            lists.insert(collection, list.await?);
        }
        Ok(lists)
    }

    async fn unequal(
        &mut self,
        expected: &BTreeMap<Collection, Objects>,
        views: &Views,
    ) -> anyhow::Result<String> {
        let Contents(contents) = self.informers.ask(Question::Contents).await?;
        let unequal =
            contents.iter().filter(|(_, collection, objects)| *objects != expected[collection]);
        let mut lines: Vec<String> = unequal
            .map(|(name, collection, objects)| {
                format!("{name}: {}", differences(objects, &expected[collection]))
            })
            .collect();
        lines.extend(views.not_watching.iter().cloned());
        Ok(lines.join("\n"))
    }

    fn line(&self, quiet: &Quiet) -> String {
        let Quiet { at, stores, handlers, objects, process, figures } = quiet;
        let last = self.record.bursts.last();
        format!(
            "{:>6.0} s: quiet point {}, stores equal after {:.2} s, handlers after {:.2} s; {objects} objects, \
             RSS {:.1} MB, heap {:.1} MB, {} tasks, {} threads, {} files; {:?}, {} restarts, last burst {last:?}; {:?}",
            at.as_secs_f64(),
            self.record.quiet.len(),
            stores.as_secs_f64(),
            handlers.as_secs_f64(),
            megabytes(process.resident),
            megabytes(figures.heap),
            figures.tasks,
            process.threads,
            process.files,
            self.writer.written(),
            self.record.restarts,
            figures.told,
        )
    }
}

/// Reads a process's memory until it is gone.
async fn sample(process: u32, began: Instant, samples: Arc<Mutex<Vec<Sample>>>) {
    while let Ok(Process { resident, .. }) = Process::read(process) {
        let sample = Sample { at: began.elapsed(), resident };
        samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
        sleep(SAMPLE_EVERY).await;
    }
}

/// What the informers log is put beside the report.
fn log_of(report: &Path) -> PathBuf {
    report.with_extension("log")
}
