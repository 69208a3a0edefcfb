//! Histories of a cluster as clients see them through `serve`: whatever happens to the API server,
//! to the replicas and to the connections on both of their sides, every client ends with the
//! collection, no watch and no read `NotOlderThan` goes back in time, no deletion is missed, and
//! no client lists that need not.
//!
//! Each history has every [`Trouble`] once, in an order that comes from a seed.
//!
//! | variable | |
//! |---|---|
//! | `INFORMER_HISTORIES` | how many histories |
//! | `INFORMER_HISTORIES_SEED` | the seed of the first; a failure names it |

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures_util::future::try_join_all;
use informer_tests::harness::{Arm, Saved, Sharing};
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::real::RealCluster;
use informer_tests::tap::{Note, Side, What};
use tokio::time::{Instant, timeout};

use churn::Churn;
use clients::{Clients, client};
use judge::{READER, Seen, judge};
use stage::Stage;

mod churn;
mod clients;
mod judge;
mod stage;

const SOON: Duration = Duration::from_secs(60);

/// For a trouble and what follows from it.
const DEADLINE: Duration = Duration::from_secs(120);

/// How a record says that the API server's history is about to be replaced.
const RESTORED: &str = "Restored";

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// The API server is killed, and comes back.
    ServerKilled,
    /// The replicas lose their watches.
    UpstreamCut,
    /// Meanwhile the API server forgets its history, so that the replicas must list.
    Compacted,
    /// The clients lose their watches.
    DownstreamCut,
    /// The only replica is killed, and the next one begins with what there is then.
    Restarted,
    /// The only replica is killed; the next one at its address has not caught up.
    Replaced,
    /// Two replicas at one address, of which one lags behind.
    TwoReplicas,
    /// A replica takes the place of another, which ends in peace.
    Rolling,
}

const TROUBLES: [Trouble; 8] = [
    Trouble::ServerKilled,
    Trouble::UpstreamCut,
    Trouble::Compacted,
    Trouble::DownstreamCut,
    Trouble::Restarted,
    Trouble::Replaced,
    Trouble::TwoReplicas,
    Trouble::Rolling,
];

/// On the test kit several histories go on at a time.
#[tokio::test(flavor = "multi_thread")]
async fn clients_miss_nothing_on_the_test_kit() -> anyhow::Result<()> {
    // client-go waits longer after each of its lists: it is slow, and once is enough.
    let play = async |(number, seed)| {
        let has_go = number == 0 && RealCluster::enabled();
        History::play(&Arm::testkit().await?, seed, has_go).await
    };
    try_join_all(seeds(3)?.enumerate().map(play)).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_miss_nothing_on_a_real_api_server() -> anyhow::Result<()> {
    for seed in seeds(1)? {
        let Some(arm) = Arm::real(Sharing::Own).await? else { return Ok(()) };
        History::play(&arm, seed, true).await?;
    }
    Ok(())
}

fn seeds(count: u64) -> anyhow::Result<impl Iterator<Item = u64>> {
    let variable = |name: &str| -> anyhow::Result<Option<u64>> {
        let value = std::env::var(name).ok();
        value.map(|it| it.parse().with_context(|| format!("{name} is a number"))).transpose()
    };
    let first = variable("INFORMER_HISTORIES_SEED")?;
    let count =
        variable("INFORMER_HISTORIES")?.unwrap_or_else(|| if first.is_some() { 1 } else { count });
    let first = first.unwrap_or_else(|| RandomState::new().hash_one("histories") >> 32);
    Ok(first..first + count)
}

struct History<'a> {
    arm: &'a Arm,
    stage: Stage<'a>,
    churn: Churn,
    clients: Clients,
    reader: kube::Client,
    backup: Saved,
}

impl<'a> History<'a> {
    async fn play(arm: &'a Arm, seed: u64, has_go: bool) -> anyhow::Result<()> {
        let of_seed = || format!("INFORMER_HISTORIES_SEED={seed}, on the {} arm", arm.name());
        let mut history = Self::begin(arm, seed, has_go).await.with_context(of_seed)?;
        let mut troubles = TROUBLES;
        history.churn.random.shuffle(&mut troubles);
        let seen = match history.troubles(&troubles).await {
            Ok(seen) => seen,
            Err(error) => {
                let file = Path::new(env!("CARGO_TARGET_TMPDIR"))
                    .join(format!("history-{}-{seed}.txt", arm.name()));
                std::fs::write(&file, history.stage.record.read(shown))?;
                let what = format!("{}, {troubles:?}; the record is {}", of_seed(), file.display());
                return Err(error).context(what);
            }
        };
        println!("{}: {seen:?}", of_seed());
        // Or the history shows nothing.
        ensure!(seen.gaps > 0 && seen.changed_histories > 0, "{}: {seen:?}", of_seed());
        ensure!(seen.resumed > 0 && seen.ahead > 0 && seen.gone > 0, "{}: {seen:?}", of_seed());
        history.clients.end(arm).await.with_context(of_seed)
    }

    async fn troubles(&mut self, troubles: &[Trouble]) -> anyhow::Result<Seen> {
        let began = Instant::now();
        for trouble in troubles {
            println!("{:?}: {trouble:?}", began.elapsed());
            let passed = timeout(DEADLINE, self.trouble(*trouble)).await;
            passed
                .unwrap_or_else(|_| bail!("it takes longer than {DEADLINE:?}"))
                .with_context(|| format!("{trouble:?}: {}", self.faults()))?;
            self.judge()?;
        }
        println!("{:?}: {RESTORED}", began.elapsed());
        let seen = timeout(DEADLINE, self.restored()).await;
        let seen = seen.unwrap_or_else(|_| bail!("it takes longer than {DEADLINE:?}"));
        println!("{:?}: ended", began.elapsed());
        seen.with_context(|| format!("{RESTORED}: {}", self.faults()))
    }

    async fn begin(arm: &'a Arm, seed: u64, has_go: bool) -> anyhow::Result<Self> {
        let mut churn = Churn::new(arm, seed).await?;
        churn.writes(20).await?;
        let backup = arm.save().await?;
        let stage = Stage::new(arm).await?;
        let url = stage.front.url();
        let clients = Clients::start(&url, &churn.namespaces[0], has_go).await?;
        let reader = client(&url, READER)?;
        let history = Self { arm, stage, churn, clients, reader, backup };
        history.clients.have_all(arm).await?;
        Ok(history)
    }

    async fn trouble(&mut self, trouble: Trouble) -> anyhow::Result<()> {
        self.stage.reached(format!("{trouble:?}"));
        self.churn.writes(5).await?;
        match trouble {
            Trouble::ServerKilled => {
                self.arm.kill_server().await?;
                self.arm.start_server().await?;
                self.churn.writes(15).await?;
            }
            Trouble::UpstreamCut => {
                for _ in 0..3 {
                    self.arm.cut_watches().await;
                    self.churn.writes(10).await?;
                }
            }
            Trouble::Compacted => {
                self.arm.begin_outage().await;
                self.churn.writes(15).await?;
                if self.churn.random.bool() {
                    self.stage.front.cut();
                }
                self.churn.writes(15).await?;
                self.arm.compact().await?;
                self.arm.end_outage().await;
                if self.churn.random.bool() {
                    self.stage.front.cut();
                }
            }
            Trouble::DownstreamCut => {
                for _ in 0..3 {
                    self.stage.front.cut();
                    self.churn.writes(10).await?;
                    self.clients.have_all(self.arm).await?;
                }
            }
            Trouble::Restarted => {
                let before = self.stage.replicas.remove(0);
                self.stage.route();
                before.kill();
                self.churn.writes(20).await?;
                let next = self.stage.start().await?;
                self.stage.replicas.push(next);
                self.stage.route();
            }
            Trouble::Replaced => self.replaced().await?,
            Trouble::TwoReplicas => self.two_replicas().await?,
            Trouble::Rolling => {
                let next = self.stage.start().await?;
                self.churn.writes(10).await?;
                let before = self.stage.replicas.remove(0);
                self.stage.replicas.push(next);
                self.stage.route();
                self.churn.writes(5).await?;
                before.stop().await?;
            }
        }
        self.churn.writes(5).await?;
        self.clients.have_all(self.arm).await
    }

    async fn replaced(&mut self) -> anyhow::Result<()> {
        let next = self.stage.start().await?;
        next.upstream.hold();
        self.churn.writes(20).await?;
        // Or there would be no one to lag behind.
        self.clients.have_all(self.arm).await?;
        let before = self.stage.replicas.remove(0);
        self.stage.replicas.push(next);
        self.stage.route();
        let killed = self.stage.record.read(<[Note]>::len);
        before.kill();
        self.churn.writes(5).await?;
        self.come_back(killed).await;
        if self.churn.random.bool() {
            self.read_the_newest().await?;
        }
        self.stage.replicas[0].upstream.release();
        Ok(())
    }

    async fn two_replicas(&mut self) -> anyhow::Result<()> {
        let second = self.stage.start().await?;
        self.stage.replicas.push(second);
        self.stage.route();
        self.stage.front.cut();
        self.churn.writes(10).await?;
        self.clients.have_all(self.arm).await?;
        let behind = self.churn.random.usize(..2);
        self.stage.replicas[behind].upstream.hold();
        for _ in 0..2 {
            self.churn.writes(10).await?;
            let cut = self.stage.record.read(<[Note]>::len);
            self.stage.front.cut();
            self.come_back(cut).await;
            if self.churn.random.bool() {
                self.read_the_newest().await?;
            }
        }
        self.stage.replicas[behind].upstream.release();
        self.clients.have_all(self.arm).await?;
        let one = self.stage.replicas.remove(self.churn.random.usize(..2));
        self.stage.route();
        one.kill();
        Ok(())
    }

    /// Waits until every client has asked for something since the record was so long.
    async fn come_back(&self, since: usize) {
        let have_asked = |notes: &[Note]| {
            let asked = notes[since..].iter().filter_map(|note| match &note.what {
                What::Asked { query, .. } if note.side == Side::Downstream => Some(&query.agent),
                _ => None,
            });
            let agents: BTreeSet<_> = asked.filter(|agent| *agent != READER).collect();
            agents.len() == self.clients.count()
        };
        self.stage.record.until(have_asked).await;
    }

    /// Reads through every replica at the version that the API server has now.
    async fn read_the_newest(&self) -> anyhow::Result<()> {
        let newest = self.churn.version().await?;
        let at_newest =
            format!("/api/v1/pods?resourceVersionMatch=NotOlderThan&resourceVersion={newest}");
        for path in [&at_newest, "/api/v1/pods", &at_newest, "/api/v1/pods"] {
            // The connection before may be one that has just been cut.
            let read = async || raw_list(&self.reader, path).await;
            eventually_ok("the reader is answered", SOON, read).await?;
        }
        Ok(())
    }

    /// A backup comes back: versions go back, and all watches end.
    async fn restored(&mut self) -> anyhow::Result<Seen> {
        self.clients.end_the_slow(self.arm).await?;
        self.stage.reached(RESTORED);
        self.clients.expect_older_versions();
        for replica in &self.stage.replicas {
            // What is newer than anything a server has is silence, and is noticed after minutes.
            replica.upstream.expire_next_watch();
        }
        self.arm.restore(&self.backup).await?;
        let replicas = self.stage.replicas.len();
        let have_noticed =
            |notes: &[Note]| judge(notes).map_or(true, |seen| seen.changed_histories >= replicas);
        self.stage.record.until(have_noticed).await;
        self.churn.learn().await?;
        self.churn.writes(20).await?;
        self.clients.have_all(self.arm).await?;
        self.judge()
    }

    /// What was wrong on the wire, which may be why a client does not come to its end.
    fn faults(&self) -> String {
        self.judge().err().map_or_else(|| "all is well on the wire".to_owned(), |it| it.to_string())
    }

    fn judge(&self) -> anyhow::Result<Seen> {
        self.stage.record.read(judge).map_err(anyhow::Error::msg)
    }
}

/// A record in words.
fn shown(notes: &[Note]) -> String {
    let began = notes.first().map(|it| it.at);
    let lines = notes.iter().map(|Note { at, side, target, what }| {
        let at = began.map(|began| *at - began).unwrap_or_default();
        format!("{at:?} {side:?} {target} {what:?}\n")
    });
    lines.collect()
}
