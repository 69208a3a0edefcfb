//! kubectl with a token over TLS does, says and is refused the same as at the API server itself.

use std::path::Path;

use anyhow::{Context, ensure};
use http::Request;
use informer_tests::fixtures::create_namespace;
use informer_tests::real::RealCluster;
use kube::Client;
use serde_json::{Value, json};

use crate::accounts::{Account, serve_as_reader};
use crate::kubectl::{Kubectl, difference};
use crate::process::Printed;

/// Those of the commands at the API server, and through the endpoint.
const NAMESPACES: [&str; 2] = ["direct", "through"];

/// Commands that an account may run, in this order, with files by their names: whether each
/// succeeds.
const ALLOWED: &[(&str, bool)] = &[
    ("apply -f {dir}/web.yaml", true),
    ("apply -f {dir}/web.yaml", true),
    ("apply -f {dir}/web-changed.yaml", true),
    ("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", true),
    ("apply -f {dir}/web.yaml --dry-run=server", true),
    ("apply --server-side --field-manager=one -f {dir}/settings.yaml", true),
    ("apply --server-side --field-manager=two -f {dir}/settings-changed.yaml", false),
    ("get configmap settings -o jsonpath={.data}", true),
    (
        "apply --server-side --field-manager=two --force-conflicts -f {dir}/settings-changed.yaml",
        true,
    ),
    ("get configmap settings -o jsonpath={.data}", true),
    ("create configmap made --from-literal=a=b", true),
    ("create configmap made --from-literal=a=b", false),
    ("get configmaps -o name", true),
    ("create configmap Wrong_Name", false),
    ("create -f {dir}/unknown-field.yaml", false),
    ("patch configmap made -p {\"data\":{\"a\":\"c\"}}", true),
    (
        "patch configmap made --type=json -p [{\"op\":\"test\",\"path\":\"/data/a\",\"value\":\"x\"}]",
        false,
    ),
    ("patch configmap made --type=merge -p {\"data\":{\"d\":\"e\"}} -o jsonpath={.data}", true),
    ("label configmap made colour=red", true),
    ("get configmaps -l colour=red -o name", true),
    ("annotate configmap made note=x", true),
    ("scale deployment web --replicas=5", true),
    ("get deployment web -o jsonpath={.spec.replicas}", true),
    ("scale deployment web --current-replicas=2 --replicas=1", false),
    ("scale deployment absent --replicas=1", false),
    ("get deployment web --subresource=scale -o jsonpath={.spec.replicas}", true),
    (
        "patch deployment web --subresource=status --type=merge -p {\"status\":{\"replicas\":4}}",
        true,
    ),
    ("get deployment web -o jsonpath={.status.replicas}", true),
    ("set image deployment/web main=example.com/main:3", true),
    ("run lone --image=example.com/lone:1 --restart=Never", true),
    ("logs lone", true),
    ("logs placed", false),
    ("logs absent", false),
    ("exec placed -- true", false),
    ("port-forward placed 1:1", false),
    ("wait --for=jsonpath={.status.phase}=Pending pod/lone --timeout=30s", true),
    ("delete pod lone --timeout=30s", true),
    ("get pod lone", false),
    ("delete configmap made --timeout=30s", true),
    ("delete configmap made --ignore-not-found", true),
    ("delete configmap made", false),
    ("delete deployments -l app=web --timeout=30s", true),
    ("get deployments -o name", true),
    ("create secret generic hidden --from-literal=a=b", false),
    ("get nodes", false),
    ("auth can-i create configmaps", true),
    ("auth can-i create secrets", false),
    ("auth can-i update deployments --subresource=scale", true),
    ("auth can-i --list", true),
    ("auth whoami", true),
    ("auth whoami -o jsonpath={.status}", true),
    ("get pods --as=system:serviceaccount:default:onlooker -o name", true),
    ("auth whoami --as=system:serviceaccount:default:onlooker", true),
    ("auth can-i create configmaps --as=system:serviceaccount:default:onlooker", false),
    ("create configmap theirs --as=system:serviceaccount:default:onlooker", false),
    ("get pods --as=admin", false),
    ("get pods --as=system:serviceaccount:default:onlooker --as-group=system:masters", false),
];

/// Commands of an account that may read Pods, and nothing else.
const REFUSED: &[(&str, bool)] = &[
    ("get pods -o name", true),
    ("apply -f {dir}/web.yaml", false),
    ("apply --server-side -f {dir}/settings.yaml", false),
    ("create configmap made --from-literal=a=b", false),
    ("patch configmap settings -p {\"data\":{\"a\":\"c\"}}", false),
    ("label pod placed colour=red", false),
    ("scale deployment web --replicas=5", false),
    ("delete pod placed --timeout=30s", false),
    ("delete pods --all --timeout=30s", false),
    ("logs placed", false),
    ("exec placed -- true", false),
    ("get configmaps", false),
    ("auth can-i delete pods", false),
    ("auth can-i list pods", true),
    ("auth whoami", true),
    ("get pods --as=system:serviceaccount:default:editor", false),
    ("get pods --as=viewer --as-group=system:masters", false),
];

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_writes_the_same_through_the_endpoint() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let admin = cluster.client().await?;
    for namespace in NAMESPACES {
        create_namespace(&admin, namespace).await?;
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        crate::accounts::create(&admin, &path, &placed()).await?;
    }
    let home = ["default", NAMESPACES[0], NAMESPACES[1]];
    let editor = Account::create(&cluster, "editor", &home, &edits()).await?;
    let onlooker = Account::create(&cluster, "onlooker", &NAMESPACES, &looks_on()).await?;
    // What is written must be in what is held.
    let held = ["--cache", "configmaps,pods,deployments.apps"];
    let endpoint = serve_as_reader(&cluster, &held).await?;
    let folder = tempfile::tempdir()?;
    for (name, text) in FILES {
        std::fs::write(folder.path().join(name), text)?;
    }
    let mut failures = Vec::new();
    for (account, commands) in [(&editor, ALLOWED), (&onlooker, REFUSED)] {
        let direct = Kubectl::new(account.kubeconfig(cluster.url())?)?;
        let through = Kubectl::new(account.kubeconfig(endpoint.url())?)?;
        for &(command, succeeds) in commands {
            let (wanted, got) = tokio::try_join!(
                run(&direct, command, NAMESPACES[0], folder.path()),
                run(&through, command, NAMESPACES[1], folder.path()),
            )?;
            if wanted != got {
                failures.push(format!("kubectl {command}\n{}", difference(&wanted, &got)));
            } else if wanted.success() != succeeds {
                failures.push(format!("kubectl {command}: {wanted:?}"));
            }
        }
    }
    ensure!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
    let [direct, through] = NAMESPACES.map(|namespace| objects(&admin, namespace));
    let (direct, through) = tokio::try_join!(direct, through)?;
    ensure!(direct == through, "{direct:#?}\nbut through the endpoint:\n{through:#?}");
    endpoint.stop().await
}

/// What a command prints in a namespace, whose name is left out.
async fn run(
    kubectl: &Kubectl,
    command: &str,
    namespace: &str,
    folder: &Path,
) -> anyhow::Result<Printed> {
    let command = command.replace("{dir}", &folder.to_string_lossy());
    // What follows `--` is not kubectl's.
    let (own, rest) = command.split_once(" -- ").unwrap_or((&command, ""));
    let rest = if rest.is_empty() { String::new() } else { format!(" -- {rest}") };
    let printed = kubectl.run(&format!("{own} -n {namespace}{rest}")).await?;
    let without_name = |text: &str| text.replace(namespace, "NAMESPACE");
    let mut stdout = without_name(&printed.stdout);
    if command.contains("--list") {
        // The rules of several roles have no order.
        let mut lines: Vec<_> = stdout.lines().collect();
        lines.sort_unstable();
        stdout = lines.join("\n");
    }
    Ok(Printed { stdout, stderr: without_name(&printed.stderr), ..printed })
}

/// What a namespace holds, without what differs from one object to the other.
async fn objects(admin: &Client, namespace: &str) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    for path in ["/api/v1/{}/pods", "/api/v1/{}/configmaps", "/apis/apps/v1/{}/deployments"] {
        let path = path.replace("{}", &format!("namespaces/{namespace}"));
        let mut list: Value = admin.request(Request::get(path).body(Vec::new())?).await?;
        for object in list["items"].as_array_mut().context("no list")? {
            let metadata = object["metadata"].as_object_mut().context("no metadata")?;
            for name in ["uid", "resourceVersion", "creationTimestamp", "namespace"] {
                metadata.remove(name);
            }
            for entry in metadata["managedFields"].as_array_mut().into_iter().flatten() {
                entry["time"] = Value::Null;
            }
            // Written by the API server's own controller.
            let is_own = metadata["name"] == "kube-root-ca.crt";
            if !is_own {
                all.push(object.take());
            }
        }
    }
    ensure!(all.len() >= 2, "{all:?}");
    Ok(all)
}

/// A Pod on a node that is not there.
fn placed() -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "placed" },
        "spec": { "nodeName": "absent",
            "containers": [{ "name": "main", "image": "example.com/main:1" }] } })
}

fn edits() -> Value {
    json!([
        { "apiGroups": [""], "resources": ["configmaps", "pods"], "verbs": ["*"] },
        { "apiGroups": [""], "resources": ["pods/log", "pods/exec", "pods/portforward"],
            "verbs": ["get", "create"] },
        { "apiGroups": ["apps"], "verbs": ["*"],
            "resources": ["deployments", "deployments/scale", "deployments/status"] },
        { "apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"],
            "resourceNames": ["onlooker"] },
    ])
}

fn looks_on() -> Value {
    json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"] }])
}

const FILES: [(&str, &str); 5] = [
    (
        "web.yaml",
        r#"{"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]}}}}"#,
    ),
    (
        "web-changed.yaml",
        r#"{"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main", "image": "example.com/main:2"}]}}}}"#,
    ),
    (
        "settings.yaml",
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
            "data": {"colour": "red"}}"#,
    ),
    (
        "settings-changed.yaml",
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
            "data": {"colour": "blue"}}"#,
    ),
    (
        "unknown-field.yaml",
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"},
            "data": {"colour": "red"}, "colour": "red"}"#,
    ),
];
