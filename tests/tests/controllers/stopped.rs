//! A process that is stopped beyond its Lease, and continued: it writes nothing any more.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use informer::controller::{Action, Context, Controller};
use informer::leader_election::{LeaderElectionConfig, LeaderElector};
use informer::{InformerOptions, SharedInformerFactory};
use informer_tests::on_both_arms;
use informer_tests::real::client_of;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(60);

/// What tells the process below what to do: a kubeconfig and a namespace.
const KUBECONFIG: &str = "STOPPED_PROCESS_KUBECONFIG";
const NAMESPACE: &str = "STOPPED_PROCESS_NAMESPACE";

fn config(namespace: &str, identity: &str) -> LeaderElectionConfig {
    LeaderElectionConfig::new(namespace, "elected", identity)
        .lease_duration(Duration::from_secs(4))
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(500))
}

/// Says when a reconcile is cancelled.
struct Cancelled;

impl Drop for Cancelled {
    fn drop(&mut self) {
        println!("the reconcile is cancelled");
    }
}

/// The process: not a test unless another one has started it. It leads, and writes once a second,
/// from a task that nothing cancels.
#[tokio::test]
async fn process() -> anyhow::Result<()> {
    let (Ok(kubeconfig), Ok(namespace)) = (std::env::var(KUBECONFIG), std::env::var(NAMESPACE))
    else {
        return Ok(());
    };
    let client = client_of(Path::new(&kubeconfig), None).await?;
    let factory = SharedInformerFactory::builder(client.clone()).namespace(&*namespace).build();
    let options = InformerOptions::new().fields("metadata.name=owner")?;
    let owners = factory.informer_with::<ConfigMap>(options)?;
    let elector = LeaderElector::new(client.clone(), config(&namespace, "process"))?;
    let controller = Controller::new(client, &owners).leader_election(elector.leadership());
    tokio::spawn(elector.run(std::future::pending()));
    let reconcile = |map: Arc<ConfigMap>, ctx: Context<()>| async move {
        let _cancelled = Cancelled;
        tokio::spawn(write(map, ctx));
        std::future::pending::<anyhow::Result<Action>>().await
    };
    Ok(controller.run(reconcile, ()).await?)
}

async fn write(map: Arc<ConfigMap>, ctx: Context<()>) {
    for count in 1.. {
        let patch = Patch::Merge(json!({ "data": { "count": format!("{count}") } }));
        match ctx.patch(&*map, &PatchParams::default(), &patch).await {
            Ok(_) => println!("wrote {count}"),
            Err(error) => println!("refused: {error}"),
        }
        sleep(Duration::from_secs(1)).await;
    }
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(kubeconfig: &Path, namespace: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--exact", "stopped::process", "--nocapture"])
            .env(KUBECONFIG, kubeconfig)
            .env(NAMESPACE, namespace)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        Ok(Self { child, lines: BufReader::new(stdout).lines() })
    }

    /// Waits until it prints such a line.
    async fn line(&mut self, part: &str) -> anyhow::Result<String> {
        let find = async {
            while let Some(line) = self.lines.next_line().await? {
                if line.contains(part) {
                    return Ok(line);
                }
            }
            bail!("the process has ended");
        };
        timeout(SOON, find).await.with_context(|| format!("it does not print {part:?}"))?
    }

    async fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let id = self.child.id().context("the process has ended")?;
        let kill = Command::new("kill").args([signal, &id.to_string()]).status().await?;
        ensure!(kill.success(), "no signal is sent");
        Ok(())
    }
}

on_both_arms!(a_process_stopped_beyond_its_lease_writes_nothing_when_it_goes_on, |arm| async {
    let namespace = arm.namespace("stopped").await?;
    let owners = Api::<ConfigMap>::namespaced(arm.direct().clone(), &namespace);
    let metadata = ObjectMeta { name: Some("owner".to_owned()), ..ObjectMeta::default() };
    let owner = ConfigMap { metadata, ..ConfigMap::default() };
    owners.create(&PostParams::default(), &owner).await?;
    let mut process = Process::start(&arm.kubeconfig(), &namespace)?;
    // It is stopped between two writes: of one that is on its way nobody can say whether it arrives.
    process.line("wrote 3").await?;
    process.signal("-STOP").await?;

    let elector = LeaderElector::new(arm.direct().clone(), config(&namespace, "other"))?;
    let leadership = elector.leadership();
    let electing = tokio::spawn(elector.run(std::future::pending()));
    timeout(SOON, leadership.wait_until_leading()).await??;
    let before = owners.get("owner").await?;
    assert_eq!(before.data.as_ref().and_then(|it| it.get("count")).map(String::as_str), Some("3"));

    process.signal("-CONT").await?;
    let (mut is_refused, mut is_cancelled) = (false, false);
    while !(is_refused && is_cancelled) {
        let line = process.line("e").await?; // any of them
        ensure!(!line.contains("wrote"), "{line}");
        is_refused |= line.contains("refused: ") && line.contains("elected");
        is_cancelled |= line.contains("the reconcile is cancelled");
    }
    process.line("refused: ").await?;
    assert_eq!(
        owners.get("owner").await?.metadata.resource_version,
        before.metadata.resource_version
    );
    leadership.check()?;
    electing.abort();
    Ok(())
});
