//! client-go's informers hold through the endpoint what the API server has, and are told every
//! change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use informer_tests::fixtures::{install_widgets, pod, widget};
use informer_tests::harness::{Arm, Sharing};
use informer_tests::helpers::raw_list;
use informer_tests::real::RealCluster;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::endpoint::Endpoint;
use crate::process::Process;

/// The informers of the program, and the resources that they are of.
const INFORMERS: [(&str, &str); 5] = [
    ("typed pods", "pods"),
    ("dynamic pods", "pods"),
    ("metadata pods", "pods"),
    ("dynamic custom", "widgets"),
    ("metadata custom", "widgets"),
];

const LAST: &str = "last";

#[tokio::test(flavor = "multi_thread")]
async fn client_gos_informers_follow_the_endpoint() -> anyhow::Result<()> {
    let Some(arm) = Arm::real(Sharing::Shared).await? else { return Ok(()) };
    follows(&arm).await
}

/// With the real API server's tests only: they have Go.
#[tokio::test(flavor = "multi_thread")]
async fn client_gos_informers_follow_an_endpoint_before_the_test_kit() -> anyhow::Result<()> {
    if !RealCluster::enabled() {
        return Ok(());
    }
    follows(&Arm::testkit().await?).await
}

async fn follows(arm: &Arm) -> anyhow::Result<()> {
    let namespace = arm.namespace("client-go").await?;
    install_widgets(arm.direct()).await?;
    let pods = Api::<Pod>::namespaced(arm.direct().clone(), &namespace);
    let widgets = Api::namespaced(arm.direct().clone(), &namespace);
    for name in ["one", "two", LAST] {
        let pod = pod(&namespace, name, &[("app", "web")]);
        pods.create(&PostParams::default(), &pod).await?;
        let widget = widget(&namespace, name, &[], "red", 1);
        widgets.create(&PostParams::default(), &widget).await?;
    }
    let endpoint = Endpoint::start(&arm.kubeconfig(), &[]).await?;
    let program = program().await?;
    let mut running = Vec::new();
    for wire in ["protobuf", "json"] {
        for initial in ["stream", "list"] {
            let arguments = ["--server", endpoint.url(), "--namespace", &namespace, "--last", LAST];
            let custom = ["--custom", "example.com/v1/widgets"];
            let how = ["--wire", wire, "--initial", initial];
            let arguments = [&arguments[..], &custom, &how].concat();
            running.push((wire, initial, Process::start(&program, arguments)?));
        }
    }
    for (_, _, process) in &running {
        process.until(|lines| lines.iter().any(|line| line.contains("\"synced\""))).await?;
    }
    let patch = json!({ "metadata": { "labels": { "colour": "red" } } });
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
    pods.patch("one", &parameters, &patch).await?;
    widgets.patch("one", &parameters, &patch).await?;
    pods.create(&PostParams::default(), &pod(&namespace, "three", &[])).await?;
    widgets.create(&PostParams::default(), &widget(&namespace, "three", &[], "blue", 2)).await?;
    for name in ["two", LAST] {
        pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
        widgets.delete(name, &DeleteParams::default()).await?;
    }
    for (wire, initial, process) in running {
        let printed = process.end().await?;
        ensure!(printed.success(), "{wire} {initial}: {}", printed.stderr);
        let lines = printed.stdout.lines().map(serde_json::from_str::<Line>);
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        let check = Check { wire, initial, lines: &lines };
        check.objects(arm, &namespace).await.with_context(|| format!("{wire} {initial}"))?;
        check.history(&namespace).with_context(|| format!("{wire} {initial}"))?;
        check.answers().with_context(|| format!("{wire} {initial}"))?;
    }
    endpoint.stop().await
}

/// A line of the program.
#[derive(Debug, Deserialize)]
struct Line {
    line: String,
    #[serde(default)]
    informer: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    object: Value,
    #[serde(default, rename = "type")]
    answer: String,
}

/// What one run of the program printed, and how it was to ask.
struct Check<'a> {
    wire: &'a str,
    initial: &'a str,
    lines: &'a [Line],
}

impl Check<'_> {
    /// Each informer holds at the end what the server has, in full.
    async fn objects(&self, arm: &Arm, namespace: &str) -> anyhow::Result<()> {
        for (informer, resource) in INFORMERS {
            let version = if resource == "pods" { "/api/v1" } else { "/apis/example.com/v1" };
            let path = format!("{version}/namespaces/{namespace}/{resource}");
            let expected = raw_list(arm.direct(), &path).await?;
            let held =
                self.lines.iter().filter(|it| it.line == "object" && it.informer == informer);
            let versions =
                held.clone().map(|it| (it.key.clone(), (it.uid.clone(), it.version.clone())));
            ensure!(
                versions.collect::<BTreeMap<_, _>>() == expected,
                "{informer} is not {expected:?}"
            );
            for line in held {
                let name = line.key.rsplit('/').next().unwrap_or_default();
                let request = http::Request::get(format!("{path}/{name}"));
                let mut object: Value = arm.direct().request(request.body(Vec::new())?).await?;
                object["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
                ensure!(
                    fits(&line.object, &object, informer.starts_with("metadata")),
                    "{informer}: {}\nis not\n{object}",
                    line.object
                );
            }
        }
        Ok(())
    }

    /// Each informer was told of every change once, in its order.
    fn history(&self, namespace: &str) -> anyhow::Result<()> {
        for (informer, _) in INFORMERS {
            let told = |line: &&Line| line.informer == informer && line.line != "object";
            let told: Vec<_> = self.lines.iter().filter(told).collect();
            let initial: BTreeSet<_> =
                told.iter().filter(|it| it.line == "initial").map(|it| it.key.as_str()).collect();
            let keys = ["one", "two", LAST].map(|name| format!("{namespace}/{name}"));
            ensure!(
                initial == keys.iter().map(String::as_str).collect(),
                "{informer}: {initial:?}"
            );
            let changes = told.iter().filter(|it| it.line != "initial");
            let mut changes: Vec<_> = changes
                .map(|it| (it.line.as_str(), it.key.rsplit('/').next().unwrap_or_default()))
                .collect();
            // A real API server marks a Pod as deleted first.
            changes.retain(|it| *it != ("update", "two") && *it != ("update", LAST));
            let expected =
                [("update", "one"), ("add", "three"), ("delete", "two"), ("delete", LAST)];
            ensure!(changes == expected, "{informer}: {changes:?}");
            let versions =
                told.iter().filter(|it| it.line != "initial").map(|it| it.version.parse());
            let versions = versions.collect::<Result<Vec<u64>, _>>()?;
            ensure!(versions.is_sorted(), "{informer}: {versions:?}");
        }
        Ok(())
    }

    /// The requests were those that this is a test of, and were all answered in kind.
    fn answers(&self) -> anyhow::Result<()> {
        let answers = self.lines.iter().filter(|it| it.line == "answers");
        let answers: Vec<_> = answers.map(|it| it.answer.as_str()).collect();
        let has = |start: &str, format: &str| {
            answers.iter().any(|it| it.starts_with(start) && it.contains(format))
        };
        let first = if self.initial == "stream" { "stream 200" } else { "list 200" };
        let other = if self.initial == "stream" { "list" } else { "stream" };
        ensure!(!has(other, ""), "{answers:?}");
        ensure!(answers.iter().all(|it| it.contains(" 200 ")), "{answers:?}");
        // Typed Pods and all metadata come as protobuf if asked for; the dynamic client wants JSON.
        let protobuf = "application/vnd.kubernetes.protobuf";
        ensure!(has(first, "application/json"), "{answers:?}");
        ensure!(has(first, protobuf) || self.wire == "json", "{answers:?}");
        Ok(())
    }
}

/// Whether a client's object is the server's: all of it, or its metadata.
fn fits(held: &Value, object: &Value, only_metadata: bool) -> bool {
    if only_metadata {
        return held["metadata"] == object["metadata"];
    }
    // A typed client does not keep the kind, and writes what is empty.
    let bare = |object: &Value| {
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|name, _| name != "kind" && name != "apiVersion");
        }
        without_empty(object)
    };
    bare(held) == bare(object)
}

fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().map(|(name, value)| (name, without_empty(value)));
            Value::Object(kept.filter(|(_, value)| *value != json!({})).collect())
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}

/// Builds the program, once for each test process.
pub(crate) async fn program() -> anyhow::Result<PathBuf> {
    static BUILT: OnceCell<PathBuf> = OnceCell::const_new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/client-go");
    BUILT.get_or_try_init(|| go_build(&folder, "client-go")).await.cloned()
}

/// Builds a program in Go.
pub(crate) async fn go_build(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new("go");
    command.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".");
    command.current_dir(folder).stdin(Stdio::null());
    let status = spawn_blocking(move || command.status()).await?;
    let status = status.context("the client needs Go (https://go.dev/dl)")?;
    ensure!(status.success(), "{} does not build, see above", folder.display());
    Ok(program)
}
