//! The whole pipeline against a busy cluster whose API server is killed: at every quiet point all
//! who keep a copy have what the server has, every handler was given a legal history, and every
//! outage was told.
//!
//! What is random comes from a seed, which a failure shows; `INFORMER_CHURN_SEED` sets it.

mod outages;
mod programs;
mod writer;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures_util::StreamExt;
use informer::{Event, SharedInformer, SharedInformerFactory};
use informer_tests::fixtures::install_widgets;
use informer_tests::harness::Arm;
use informer_tests::helpers::{differences, eventually_ok, raw_list};
use informer_tests::observe::{Collection, DEADLINE, GateKeeper, History, store_of};
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use tokio::time::{Instant, timeout};

use outages::{Outage, Told};
use programs::{Gateway, Watch, parse_kubectl};
use writer::{Kind, LABEL, Outcome, Writer};

const NAMESPACES: usize = 10;
const PODS: usize = 2_000;
const WIDGETS: usize = 120;

/// Places for objects that do not exist at first.
const SPARE_PODS: usize = 300;
const SPARE_WIDGETS: usize = 30;

/// Each ends with a quiet point.
const ROUNDS: usize = 22;
const OPERATIONS: usize = 150;

/// In the middle of these the API server is killed.
const OUTAGES: [usize; 2] = [8, 15];

/// In the middle of this one a handler is registered.
const LATE: usize = 5;

/// For a whole round, whatever it waits for.
const ROUND_DEADLINE: Duration = Duration::from_secs(120);

/// What the gateway is asked for.
const TIER: &str = "gold";

const PODS_PATH: &str = "/api/v1/pods";
const WIDGETS_PATH: &str = "/apis/example.com/v1/widgets";

on_both_arms!(own every_copy_is_exact_at_every_quiet_point, |arm| async {
    let seed = match std::env::var("INFORMER_CHURN_SEED") {
        Ok(text) => text.parse().context("INFORMER_CHURN_SEED is a number")?,
        Err(_) => RandomState::new().hash_one("churn"),
    };
    let churn = Churn::start(&arm, seed).await.with_context(|| format!("seed {seed}"))?;
    churn.run().await
});

/// All who keep a copy, and the one who writes.
struct Churn<'a> {
    arm: &'a Arm,
    seed: u64,
    writer: Writer,
    factory: SharedInformerFactory,
    pods: SharedInformer<Pod>,
    widgets: SharedInformer<DynamicObject>,
    prompt: Arc<History<Pod>>,
    slow: Arc<History<Pod>>,
    /// Registered in the middle of a round, and shown everything again now and then.
    late: Option<Arc<History<Pod>>>,
    stream: Arc<History<DynamicObject>>,
    /// Holds the slow handler back.
    gate: GateKeeper,
    pods_told: Told,
    widgets_told: Told,
    watch: Watch,
    gateway: Gateway,
}

impl<'a> Churn<'a> {
    /// A quarter of the objects are there before the informers, the others come while they run.
    async fn start(arm: &'a Arm, seed: u64) -> anyhow::Result<Self> {
        let mut namespaces = Vec::new();
        for _ in 0..NAMESPACES {
            namespaces.push(arm.namespace("churn").await?);
        }
        install_widgets(arm.direct()).await?;
        let program = programs::build().await?;
        let mut writer =
            Writer::new(arm.direct(), namespaces, PODS + SPARE_PODS, WIDGETS + SPARE_WIDGETS, seed);
        writer.create_markers().await?;
        let mut first = writer.creates(Kind::Pod, 0, PODS / 4);
        first.extend(writer.creates(Kind::Widget, 0, WIDGETS / 4));
        all_done(&writer.carry_out(first).await)?;

        let factory = SharedInformerFactory::builder(arm.client().await?).build();
        let pods = factory.informer::<Pod>()?;
        let widgets = factory.for_resource("example.com", "v1", "widgets").await?;
        let history = |name| History::new(name).reading(pods.unsynced_store());
        let (prompt, slow) = (history("the prompt handler"), history("the slow handler"));
        let record = Arc::clone(&prompt);
        pods.add_handler(|h| h.name("prompt").on_event(move |event| record.record(event)))?;
        let (record, (stop, gate)) = (Arc::clone(&slow), GateKeeper::new(false));
        let slow_event = move |event: &Event<Pod>| {
            stop.pass();
            record.record(event);
        };
        pods.add_handler(|h| h.name("slow").capacity(64).on_event(slow_event))?;
        let stream = History::new("the stream of Widgets").reading(widgets.unsynced_store());
        let (record, mut events) = (Arc::clone(&stream), widgets.events()?);
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                record.record(&event);
            }
        });
        let (pods_told, widgets_told) =
            (Told::by("the Pods' status", &pods), Told::by("the Widgets' status", &widgets));
        factory.start();
        let watch = Watch::start(&program, &arm.kubeconfig()).await?;
        let gateway = Gateway::start(&program, &arm.kubeconfig(), DEADLINE).await?;
        pods.synced_within(DEADLINE).await?;
        widgets.synced_within(DEADLINE).await?;
        Ok(Self {
            arm,
            seed,
            writer,
            factory,
            pods,
            widgets,
            prompt,
            slow,
            late: None,
            stream,
            gate,
            pods_told,
            widgets_told,
            watch,
            gateway,
        })
    }

    async fn run(mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        for round in 0..ROUNDS {
            println!(
                "{} {:?}: round {round} of seed {}",
                self.arm.name(),
                began.elapsed(),
                self.seed
            );
            let happened = timeout(ROUND_DEADLINE, self.round(round)).await;
            happened
                .unwrap_or_else(|_| bail!("not within {ROUND_DEADLINE:?}"))
                .with_context(|| self.describe(round))?;
        }
        self.end().await.with_context(|| self.describe(ROUNDS))
    }

    async fn round(&mut self, round: usize) -> anyhow::Result<()> {
        // Every other round the slow handler stands still while the others follow, and its events
        // merge.
        if round % 2 == 1 {
            self.gate.close();
        }
        let outage = match round {
            0 => {
                let mut rest = self.writer.creates(Kind::Pod, PODS / 4, PODS);
                rest.extend(self.writer.creates(Kind::Widget, WIDGETS / 4, WIDGETS));
                all_done(&self.writer.carry_out(rest).await)?;
                None
            }
            _ if OUTAGES.contains(&round) => Some(self.outage(round == OUTAGES[0]).await?),
            _ => {
                let operations = self.writer.round(OPERATIONS);
                let until = self.writer.tried() + OPERATIONS / 2;
                let register = async {
                    self.writer.has_tried(until).await;
                    (round == LATE).then(|| self.register_late()).transpose()
                };
                let (outcome, late) = tokio::join!(self.writer.carry_out(operations), register);
                none_failed(&outcome)?;
                self.late = late?.or_else(|| self.late.take());
                None
            }
        };
        self.quiet_point(round).await?;
        if let Some(([pods, widgets], lines)) = outage {
            self.watch.says("watching again", lines, DEADLINE).await?;
            self.pods_told.recovered(&self.pods, pods, DEADLINE).await?;
            self.widgets_told.recovered(&self.widgets, widgets, DEADLINE).await?;
        }
        Ok(())
    }

    fn register_late(&self) -> anyhow::Result<Arc<History<Pod>>> {
        let late = History::new("the late handler").reading(self.pods.unsynced_store()).resyncing();
        let record = Arc::clone(&late);
        let resync = Duration::from_secs(2);
        self.pods.add_handler(|h| {
            h.name("late").resync(resync).on_event(move |event| record.record(event))
        })?;
        Ok(late)
    }

    /// Kills the API server in the middle of a round, starts it again once everybody has told of
    /// it, and at once deletes and replaces objects: in a race with those who come back, or before
    /// they can.
    async fn outage(&mut self, race: bool) -> anyhow::Result<([Outage; 2], usize)> {
        let lines = self.watch.lines_said();
        let operations = self.writer.round(OPERATIONS);
        let until = self.writer.tried() + OPERATIONS / 2;
        let kill = async {
            self.writer.has_tried(until).await;
            let began = [self.pods_told.outage(), self.widgets_told.outage()];
            self.arm.kill_server().await?;
            self.arm.begin_outage().await;
            anyhow::Ok(began)
        };
        let (cut_short, began) = tokio::join!(self.writer.carry_out(operations), kill);
        let began = began?;
        ensure!(
            !cut_short.failed.is_empty(),
            "the server was killed after the round: {cut_short:?}"
        );
        self.pods_told.of(began[0], DEADLINE).await?;
        self.widgets_told.of(began[1], DEADLINE).await?;
        self.watch.says("trying again", lines, DEADLINE).await?;
        self.gateway.warns(&asked("pods"), DEADLINE).await?;
        if race {
            self.arm.end_outage().await;
        }
        self.arm.start_server().await?;
        let losses = self.writer.losses(OPERATIONS / 2);
        let losses = self.writer.carry_out(losses).await;
        println!(
            "{}: {} failed in the outage; after it {losses:?}",
            self.arm.name(),
            cut_short.failed.len()
        );
        if let Some(server) = self.arm.test_server() {
            // The real server has forgotten by dying.
            server.cluster().compact();
        }
        self.arm.end_outage().await;
        // A server that has just started refuses a request now and then.
        ensure!(losses.done > OPERATIONS / 8, "the server is not back: {losses:?}");
        Ok((began, lines))
    }

    /// Compares everything with the server, once everybody has reached the newest version.
    async fn quiet_point(&mut self, round: usize) -> anyhow::Result<()> {
        let mark = async |kind| {
            eventually_ok("the marker is written", DEADLINE, async || {
                self.writer.mark(kind, round).await
            })
            .await
        };
        let (pods_version, widgets_version) = (mark(Kind::Pod).await?, mark(Kind::Widget).await?);
        reached(&self.pods, &pods_version).await?;
        reached(&self.widgets, &widgets_version).await?;

        let pods = raw_list(self.arm.direct(), PODS_PATH).await?;
        let widgets = raw_list(self.arm.direct(), WIDGETS_PATH).await?;
        same("the store of Pods", &store_of(&self.pods)?, &pods)?;
        same("the store of Widgets", &store_of(&self.widgets)?, &widgets)?;

        let gold = self.labelled(PODS_PATH).await?;
        ensure!(gold.len() > PODS / 10 && gold.len() < PODS, "{} Pods are {TIER}", gold.len());
        let answer = self.gateway.list(&asked("pods"), &pods_version, DEADLINE).await?;
        same("the gateway's answer about Pods", &answer, &gold)?;
        let answer =
            self.gateway.list(&asked("example.com/v1/widgets"), &widgets_version, DEADLINE).await?;
        same("the gateway's answer about Widgets", &answer, &self.labelled(WIDGETS_PATH).await?)?;
        self.watch.reaches(&pods, DEADLINE).await?;

        self.gate.open();
        self.prompt.reaches(&pods, DEADLINE).await?;
        self.slow.reaches(&pods, DEADLINE).await?;
        if let Some(late) = &self.late {
            late.reaches(&pods, DEADLINE).await?;
        }
        self.stream.reaches(&widgets, DEADLINE).await?;

        self.writer.learn(Kind::Pod, &pods);
        self.writer.learn(Kind::Widget, &widgets);
        Ok(())
    }

    /// What must have happened on the way, or the test shows nothing.
    async fn end(&self) -> anyhow::Result<()> {
        let (prompt, slow) = (self.prompt.counts(), self.slow.counts());
        ensure!(
            prompt.initial >= PODS / 4 && prompt.added > PODS && prompt.deleted > 100,
            "{prompt:?}"
        );
        ensure!(
            slow.updated < prompt.updated,
            "the slow handler was given as much as the prompt one"
        );
        let merged = |name| {
            let registrations = self.pods.status().registrations;
            registrations.into_iter().find(|one| one.name == name).map(|one| one.merged)
        };
        ensure!(
            merged("slow").is_some_and(|merged| merged > 0),
            "nothing was merged for the slow handler"
        );
        for told in [&self.pods_told, &self.widgets_told] {
            ensure!(told.outages() >= OUTAGES.len(), "outages were not told");
        }
        let late =
            self.late.as_ref().map(|late| late.counts()).context("nobody registered late")?;
        ensure!(late.initial > PODS / 2 && late.resynced > 0, "{late:?}");
        println!(
            "seed {}, {}: prompt {prompt:?}, slow {slow:?}, late {late:?}",
            self.seed,
            self.arm.name()
        );
        println!("{:?}, {:?} merged for the slow one", self.pods.status().counters, merged("slow"));
        self.factory.shutdown().await;
        Ok(())
    }

    /// What `kubectl get -A -l` says, or on the other arm what it would ask for.
    async fn labelled(&self, path: &str) -> anyhow::Result<Collection> {
        let selector = format!("{LABEL}={TIER}");
        let Some(cluster) = self.arm.real_cluster() else {
            let selector = selector.replace('/', "%2F").replace('=', "%3D");
            return raw_list(self.arm.direct(), &format!("{path}?labelSelector={selector}")).await;
        };
        let resource = path.rsplit('/').next().unwrap_or_default();
        parse_kubectl(
            &cluster.kubectl(["get", resource, "-A", "-l", &selector, "-o", "json"]).await?,
        )
    }

    fn describe(&self, round: usize) -> String {
        let (pods, widgets) = (self.pods.status(), self.widgets.status());
        format!("round {round} of seed {}\n{pods}\n{pods:#?}\n{widgets}\n{widgets:#?}", self.seed)
    }
}

/// How the gateway is asked for the objects of the tier.
fn asked(resource: &str) -> String {
    format!("/{resource}?labels[{LABEL}]={TIER}")
}

async fn reached<T: Send + Sync + 'static>(
    informer: &SharedInformer<T>,
    version: &str,
) -> anyhow::Result<()> {
    let reached = timeout(DEADLINE, informer.wait_for(version)).await;
    Ok(reached
        .with_context(|| format!("version {version} is not reached: {}", informer.status()))??)
}

fn same(what: &str, left: &Collection, right: &Collection) -> anyhow::Result<()> {
    ensure!(left == right, "{what} is not what the server lists: {}", differences(left, right));
    Ok(())
}

fn none_failed(outcome: &Outcome) -> anyhow::Result<()> {
    ensure!(outcome.failed.is_empty(), "the server refuses changes: {outcome:#?}");
    Ok(())
}

fn all_done(outcome: &Outcome) -> anyhow::Result<()> {
    none_failed(outcome)?;
    ensure!(outcome.moot == 0, "objects exist before they are created: {outcome:?}");
    Ok(())
}
