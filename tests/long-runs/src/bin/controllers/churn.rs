//! Many changes, behind watches that are held back and with answers that are lost.

use std::collections::HashMap;
use std::result::Result as StdResult;
use std::time::Duration;

use anyhow::{Result, bail};
use http::Method;
use informer_peer_controllers::{Set, SetSpec};
use informer_tests::relay::{Counts, Trouble, Write, now_in_micros};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::Arguments;
use crate::judge::{Verdict, judge};
use crate::page::Table;
use crate::peer::Library;
use crate::stage::Stage;

/// How long watches are held back at most, and which part of the answers to writes is lost.
const TROUBLE: Trouble = Trouble { hold: Duration::from_secs(3), lost_answers: 0.01 };

/// How long controllers have for the first children, and for the last ones while trouble lasts.
const PATIENCE: Duration = Duration::from_secs(60);

/// What every library came to.
pub(crate) struct Churn(Vec<Run>);

#[derive(Debug)]
struct Run {
    library: Library,
    version: String,
    changes: usize,
    verdict: Verdict,
    failed: usize,
    counts: Counts,
    settled: StdResult<Duration, usize>,
}

pub(crate) async fn run(stage: &Stage, arguments: &Arguments) -> Result<Churn> {
    let mut runs = Vec::new();
    for &library in &arguments.library {
        let run = churn(stage, library, arguments).await?;
        eprintln!("controllers: {run:?}");
        runs.push(run);
    }
    Ok(Churn(runs))
}

async fn churn(stage: &Stage, library: Library, arguments: &Arguments) -> Result<Run> {
    let namespace = format!("churn-{}", library.agent());
    stage.sets(&namespace, arguments.sets, 2).await?;
    let peer = stage.controller(library, &namespace, &[]).await?;
    if let Err(wrong) = stage.settled(&namespace, PATIENCE).await? {
        bail!("{}: {wrong} Sets do not get their first children", library.title());
    }
    let counts_before = stage.relay.counts(library.agent());
    let before = peer.said().reconciles.len();
    stage.relay.set_trouble(TROUBLE);
    let mut changes = Changes {
        stage,
        library,
        sets: stage.api(&namespace),
        children: Api::namespaced(stage.direct.clone(), &namespace),
        random: fastrand::Rng::with_seed(arguments.seed),
        taken: HashMap::new(),
    };
    let mut ticks = interval(Duration::from_secs(1) / arguments.rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut made = 0;
    while Instant::now() < end {
        ticks.tick().await;
        changes.make(arguments.sets).await?;
        made += 1;
    }
    let settled = stage.settled(&namespace, PATIENCE).await?;
    stage.relay.set_trouble(Trouble::default());
    let version = peer.version.clone();
    let said = peer.stop().await?;
    let writes = stage.relay.writes(library.agent());
    let mut verdict = judge(&said.reconciles, &writes, &changes.taken);
    verdict.reconciles -= before;
    let counts = stage.relay.counts(library.agent());
    Ok(Run {
        library,
        version,
        changes: made,
        verdict,
        failed: said.failed.len(),
        counts: Counts {
            reads: counts.reads - counts_before.reads,
            watches: counts.watches,
            ..counts
        },
        settled,
    })
}

/// Makes changes around the relay.
struct Changes<'a> {
    stage: &'a Stage,
    library: Library,
    sets: Api<Set>,
    children: Api<ConfigMap>,
    random: fastrand::Rng,
    /// Children that were deleted, and when.
    taken: HashMap<String, u64>,
}

impl Changes<'_> {
    /// Of twenty changes seventeen are of the replicas, two delete a child, one deletes a Set and
    /// creates it again under its name.
    async fn make(&mut self, sets: usize) -> Result<()> {
        let name = format!("set-{}", self.random.usize(..sets));
        let replicas = self.random.usize(..=5);
        match self.random.u8(..20) {
            0 => {
                self.sets.delete(&name, &DeleteParams::default()).await?;
                let set = Set::new(&name, SetSpec { replicas });
                self.sets.create(&PostParams::default(), &set).await?;
            }
            1 | 2 => self.take().await?,
            _ => {
                let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
                self.sets.patch(&name, &PatchParams::default(), &patch).await?;
            }
        }
        Ok(())
    }

    /// Deletes some child.
    async fn take(&mut self) -> Result<()> {
        let writes = self.stage.relay.writes(self.library.agent());
        let is_create = |write: &&Write| {
            write.method == Method::POST
                && write.resource == "configmaps"
                && write.status.is_success()
        };
        let created: Vec<_> = writes.iter().filter(is_create).collect();
        for _ in 0..20 {
            let child = created[self.random.usize(..created.len())];
            let uid = Some(child.uid.clone());
            let preconditions = Preconditions { uid, resource_version: None };
            let params = DeleteParams::default().preconditions(preconditions);
            let sent = now_in_micros();
            match self.children.delete(&child.name, &params).await {
                Ok(_) => {
                    self.taken.insert(child.uid.clone(), sent);
                    return Ok(());
                }
                // It is gone, and another may have its name.
                Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Churn {
    /// Promises of ours that did not hold.
    pub(crate) fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for run in self.0.iter().filter(|run| run.library == Library::Informer) {
            let Verdict { stale, duplicates, .. } = run.verdict;
            if stale > 0 {
                broken.push(format!("{stale} reconciles acted on a stale copy"));
            }
            if duplicates > 0 {
                broken.push(format!("{duplicates} children were created twice"));
            }
            if let Err(wrong) = run.settled {
                broken.push(format!("{wrong} Sets were left with a wrong number of children"));
            }
        }
        broken
    }

    pub(crate) fn markdown(&self) -> String {
        let mut table = Table::new(self.0.iter().map(|run| run.library.title()));
        let mut row = |name: &str, of: &dyn Fn(&Run) -> String| {
            table.row(name, self.0.iter().map(of));
        };
        row("version", &|run| run.version.clone());
        row("changes", &|run| run.changes.to_string());
        row("reconciles", &|run| run.verdict.reconciles.to_string());
        row("reconciles per change", &|run| {
            format!("{:.2}", run.verdict.reconciles as f64 / run.changes.max(1) as f64)
        });
        row("**stale reconciles**", &|run| format!("**{}**", run.verdict.stale));
        row("… that lacked a child created before", &|run| run.verdict.lacks_created.to_string());
        row("… that had a child deleted before", &|run| run.verdict.has_deleted.to_string());
        row("… with a Set older than the status written before", &|run| {
            run.verdict.old_status.to_string()
        });
        row("children created", &|run| run.verdict.created.to_string());
        row("**children created twice**", &|run| format!("**{}**", run.verdict.duplicates));
        row("conflicts (409)", &|run| run.verdict.conflicts.to_string());
        row("deletes of what was gone (404)", &|run| run.verdict.not_found.to_string());
        row("writes", &|run| run.verdict.writes.to_string());
        row("answers lost", &|run| run.verdict.lost.to_string());
        row("failed reconciles", &|run| run.failed.to_string());
        row("watches opened", &|run| run.counts.watches.to_string());
        row("other reads (lists, objects by name)", &|run| run.counts.reads.to_string());
        row("until all children are right after the last change", &|run| match run.settled {
            Ok(after) => format!("{:.1} s", after.as_secs_f64()),
            Err(wrong) => format!("{wrong} Sets are wrong after {} s", PATIENCE.as_secs()),
        });
        table.markdown("Churn")
    }
}
