//! A real API server accepts every object that the chart renders, with each option, and warns of
//! none.

use std::process::Command;

use anyhow::{Context, ensure};
use informer_tests::real::{RealCluster, kubectl_path};
use serde_json::{Value, json};

use crate::helm::{Case, Helm, NAME, Printed, definitions, deploy, objects, run};

/// The namespace of the example of an overlay.
const EXAMPLE: &str = "reads";

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_accepts_every_object_with_each_option() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    let Some(cluster) = RealCluster::shared().await? else { return Ok(()) };
    prepare(&cluster)?;
    for case in Case::all()? {
        let rendered = helm.template(&case.values(), &[])?.clean(&case.name)?;
        accepted(&cluster, &case.name, &rendered)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_accepts_the_kustomize_base_and_the_example() -> anyhow::Result<()> {
    let Some(_) = Helm::find() else { return Ok(()) };
    let Some(cluster) = RealCluster::shared().await? else { return Ok(()) };
    prepare(&cluster)?;
    for folder in ["base", "overlays/example"] {
        let mut command = Command::new(kubectl_path()?);
        let built = run(command.arg("kustomize").arg(deploy("kustomize").join(folder)), "")?;
        accepted(&cluster, folder, &built.clean(folder)?)?;
    }
    Ok(())
}

/// Applies it all without keeping it, and a Pod of the Deployment where only restricted ones may
/// run.
fn accepted(cluster: &RealCluster, what: &str, rendered: &str) -> anyhow::Result<()> {
    apply(cluster, rendered, &["--dry-run=server"])?.clean(what)?;
    let all = objects(rendered)?;
    for deployment in all.iter().filter(|it| it["kind"] == "Deployment") {
        let mut pod = deployment["spec"]["template"].clone();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = "one".into();
        pod["metadata"]["namespace"] = deployment["metadata"]["namespace"].clone();
        apply(cluster, &pod.to_string(), &["--dry-run=server"])?.clean(what)?;
    }
    Ok(())
}

/// `kubectl apply` of a text, strictly.
pub(crate) fn apply(cluster: &RealCluster, text: &str, more: &[&str]) -> anyhow::Result<Printed> {
    let mut command = Command::new(kubectl_path()?);
    command.arg("--kubeconfig").arg(cluster.kubeconfig_path());
    command.args(["apply", "--server-side", "--force-conflicts", "--validate=strict"]);
    run(command.args(more).args(["-f", "-"]), text)
}

/// The namespaces, where only restricted Pods may run, and the definitions of what others define.
pub(crate) fn prepare(cluster: &RealCluster) -> anyhow::Result<()> {
    let label =
        |what: &str| (format!("pod-security.kubernetes.io/{what}"), Value::from("restricted"));
    let labels = Value::Object([label("enforce"), label("warn")].into_iter().collect());
    for name in [NAME, EXAMPLE] {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels },
        });
        apply(cluster, &namespace.to_string(), &[])?.clean("the namespace")?;
    }
    for file in definitions()? {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        apply(cluster, &text, &[])?.clean("a definition")?;
    }
    let mut command = Command::new(kubectl_path()?);
    command.arg("--kubeconfig").arg(cluster.kubeconfig_path()).args(["wait", "crd", "--all"]);
    let waited = run(command.args(["--for=condition=Established", "--timeout=30s"]), "")?;
    ensure!(waited.success, "{}", waited.all());
    Ok(())
}
