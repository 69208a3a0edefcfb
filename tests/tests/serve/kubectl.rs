//! kubectl prints through the endpoint what it prints at the API server itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use futures_util::stream::{self, StreamExt};
use informer_testkit::TestServer;
use informer_tests::fixtures::pod;
use informer_tests::harness::{Arm, Sharing};
use informer_tests::real::{RealCluster, kubectl_path};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tempfile::TempDir;

use crate::endpoint::Endpoint;
use crate::process::{Printed, Process};
use crate::scene::create_objects;
use crate::text::without_ages;

/// Commands that read.
const READS: &[&str] = &[
    "get pods -A",
    "get pods -A --chunk-size=2",
    "get pods -n team",
    "get pods -n team -o wide",
    "get pods -n team -o yaml",
    "get pods -n team -o json",
    "get pods -n team -o name",
    "get pods -n team --sort-by=.metadata.creationTimestamp",
    "get pods -A --sort-by=.status.podIP -o wide",
    "get pods -n team -l app=web",
    "get pods -n team -l app=web,size!=5 --show-labels",
    "get pods -A --field-selector=status.phase=Running,spec.nodeName=node-1",
    "get pods -A --field-selector=spec.unknown=1",
    "get pods -A -l (",
    "get pods -n team --no-headers -L app,tier",
    "get pods -n team -o jsonpath={.items[*].metadata.name}",
    "get pods -n team -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName",
    "get pods -n none",
    "get pods -n absent",
    "get pod -n team running",
    "get pod -n team running restarted -o wide",
    "get pod -n team running absent",
    "get pod/running service/balanced -n team",
    "get po.v1. -n team running -o yaml",
    "get all -n team",
    "get deploy,sts,ds,rs,job,cj,svc,endpointslices,pvc,hpa,ing,pdb,cm,sa,role -A",
    "get deployments.apps -n team web -o yaml",
    "get nodes -o wide",
    "get ns,pv,sc,clusterroles,priorityclasses,crd",
    "get events -n team",
    "get secrets -n team",
    "get cm -n odd",
    "get cm -n odd odd.values -o yaml",
    "get gauges -A",
    "get gg -n team -o wide",
    "get gauge.v1.differences.example.com -n team one -o yaml",
    "get gauges -A --field-selector=spec.colour=red",
    "get unicorns",
    "get --raw /version",
    "get --raw /api/v1/namespaces/team/pods/absent",
    "describe pod -n team running",
    "describe pods -n team -l app=web",
    "describe deployment -n team web",
    "describe node node-1",
    "describe service -n team balanced",
    "describe gauge -n team one",
    "describe namespace team",
    "describe pod -n team absent",
    "wait -n team --for=condition=Ready pod/running --timeout=30s",
    "wait -n team --for=jsonpath={.status.phase}=Running pod/running --timeout=30s",
    "wait -n team --for=condition=Ready pod -l tier=front --timeout=30s",
    "wait -n team --for=delete pod/absent --timeout=30s",
    "wait -n team --for=condition=Ready pod/crashing --timeout=1s",
    "api-resources",
    "api-resources -o wide --verbs=list --namespaced=true",
    "api-versions",
    "explain pods.spec.containers",
    "explain gauges.spec",
    "explain deployments --recursive",
    "version",
    "auth can-i list pods",
];

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_reads_the_same_through_the_endpoint() -> anyhow::Result<()> {
    // Its own: nothing changes between the two reads.
    let Some(arm) = Arm::real(Sharing::Own).await? else { return Ok(()) };
    create_objects(arm.direct()).await?;
    reads_are_the_same(&arm.kubeconfig(), READS).await
}

/// kubectl is built with the real API server.
#[tokio::test(flavor = "multi_thread")]
async fn kubectl_reads_the_same_through_an_endpoint_before_the_test_kit() -> anyhow::Result<()> {
    if !RealCluster::enabled() {
        return Ok(());
    }
    // Without users: kubectl sends no credentials over plain HTTP.
    let server = TestServer::start().await?;
    create_objects(&server.client()?).await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, server.kubeconfig())?;
    // The test kit has no OpenAPI, and keeps JSON as it was written, without defaults.
    let fits = |read: &&str| {
        let not = ["explain ", "-o yaml", "-o json ", "custom-columns"];
        !not.iter().any(|it| format!("{read} ").contains(it))
    };
    let reads: Vec<_> = READS.iter().copied().filter(fits).collect();
    reads_are_the_same(&kubeconfig, &reads).await
}

async fn reads_are_the_same(kubeconfig: &Path, reads: &[&str]) -> anyhow::Result<()> {
    let endpoint = Endpoint::start(kubeconfig, &[]).await?;
    let direct = Kubectl::new(kubeconfig.to_owned())?;
    let through = Kubectl::new(endpoint.kubeconfig())?;
    // Both know the resources then.
    direct.run("api-versions").await?;
    through.run("api-versions").await?;
    let compared = stream::iter(reads).map(async |command| {
        let (direct, through) = tokio::try_join!(direct.run(command), through.run(command))?;
        anyhow::Ok((command, direct, through))
    });
    let mut failures = Vec::new();
    for compared in compared.buffered(2).collect::<Vec<_>>().await {
        let (command, direct, through) = compared?;
        if direct != through {
            failures.push(format!("kubectl {command}\n{}", difference(&direct, &through)));
        }
    }
    ensure!(
        failures.is_empty(),
        "{} of {}:\n{}\n{}",
        failures.len(),
        reads.len(),
        failures.join("\n"),
        endpoint.said()
    );
    endpoint.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_watches_the_same_through_the_endpoint() -> anyhow::Result<()> {
    let Some(arm) = Arm::real(Sharing::Shared).await? else { return Ok(()) };
    let namespace = arm.namespace("watched").await?;
    let pods = Api::<Pod>::namespaced(arm.direct().clone(), &namespace);
    pods.create(&PostParams::default(), &pod(&namespace, "one", &[("app", "web")])).await?;
    pods.create(&PostParams::default(), &pod(&namespace, "two", &[])).await?;
    let endpoint = Endpoint::start(&arm.kubeconfig(), &[]).await?;
    let kubectls = [Kubectl::new(arm.kubeconfig())?, Kubectl::new(endpoint.kubeconfig())?];
    let commands = [
        (format!("get pods -n {namespace} -w --output-watch-events"), 3),
        (format!("get pods -n {namespace} -w -l app=web --output-watch-events -o wide"), 2),
        (format!("get pod one -n {namespace} -w --output-watch-events"), 2),
        (format!("get pod one -n {namespace} -w -o yaml"), 20),
    ];
    let mut running = Vec::new();
    for (command, _) in &commands {
        running.push(kubectls.each_ref().map(|kubectl| kubectl.start(command)));
    }
    // What there is has been printed: then the watches are open, or follow from there.
    for ([direct, through], (_, lines)) in running.iter().zip(&commands) {
        for process in [direct, through] {
            let process = process.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
            process.until(|printed| printed.len() >= *lines).await?;
        }
    }
    change(&pods, &namespace).await?;
    let last = |lines: &[String]| lines.iter().any(|line| line.contains("last"));
    for ([direct, through], (command, _)) in running.into_iter().zip(&commands) {
        let (direct, through) = (direct?, through?);
        if command.contains("pod one") {
            let is_deleted = |lines: &[String]| {
                lines.iter().any(|it| it.starts_with("DELETED") || it.contains("colour: blue"))
            };
            let (direct, through) =
                (direct.until(is_deleted).await?, through.until(is_deleted).await?);
            same_lines(command, &direct, &through)?;
            continue;
        }
        same_lines(command, &direct.until(last).await?, &through.until(last).await?)?;
    }
    endpoint.stop().await
}

/// Changes one Pod, creates others, and ends with one called `last`.
async fn change(pods: &Api<Pod>, namespace: &str) -> anyhow::Result<()> {
    let label = async |name: &str, colour: &str| {
        let patch = json!({ "metadata": { "labels": { "colour": colour, "app": "web" } } });
        pods.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    };
    label("one", "red").await?;
    label("two", "red").await?;
    label("one", "blue").await?;
    pods.delete("one", &DeleteParams::default().grace_period(0)).await?;
    let last = pod(namespace, "last", &[("app", "web")]);
    pods.create(&PostParams::default(), &last).await?;
    Ok(())
}

/// kubectl with a kubeconfig, and a cache of its own.
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache: TempDir,
}

impl Kubectl {
    pub(crate) fn new(kubeconfig: PathBuf) -> anyhow::Result<Self> {
        Ok(Self { program: kubectl_path()?, kubeconfig, cache: tempfile::tempdir()? })
    }

    fn start(&self, command: &str) -> anyhow::Result<Process> {
        let own = ["--kubeconfig".as_ref(), self.kubeconfig.as_os_str()];
        let cache = ["--cache-dir".as_ref(), self.cache.path().as_os_str()];
        let words = command.split(' ').map(AsRef::as_ref);
        Process::start(&self.program, own.into_iter().chain(cache).chain(words).collect::<Vec<_>>())
    }

    /// What it prints, without what depends on when and where.
    pub(crate) async fn run(&self, command: &str) -> anyhow::Result<Printed> {
        let printed = self.start(command)?.end().await.with_context(|| command.to_owned())?;
        Ok(Printed {
            stdout: comparable(&printed.stdout),
            stderr: comparable(&printed.stderr),
            ..printed
        })
    }
}

/// Ages differ from second to second, and with them the width of columns.
fn comparable(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let indent = line.len() - line.trim_start().len();
        format!("{}{}\n", " ".repeat(indent), without_ages(&words.join(" ")))
    };
    text.lines().map(line).collect()
}

fn same_lines(command: &str, direct: &[String], through: &[String]) -> anyhow::Result<()> {
    let [direct, through] = [direct, through].map(|lines| comparable(&lines.join("\n")));
    ensure!(direct == through, "kubectl {command}\n{direct}\nbut through the endpoint:\n{through}");
    Ok(())
}

/// The lines of one that are not in the other, and the other way round.
pub(crate) fn difference(direct: &Printed, through: &Printed) -> String {
    let lines = |printed: &Printed| -> Vec<String> {
        let text = format!("{}{}exit code: {:?}", printed.stdout, printed.stderr, printed.code);
        text.lines().map(ToOwned::to_owned).collect()
    };
    let (direct, through) = (lines(direct), lines(through));
    let without = direct.iter().filter(|line| !through.contains(line));
    let with = through.iter().filter(|line| !direct.contains(line));
    let shown = without.map(|it| format!("  - {it}")).take(20);
    shown.chain(with.map(|it| format!("  + {it}")).take(20)).collect::<Vec<_>>().join("\n")
}
