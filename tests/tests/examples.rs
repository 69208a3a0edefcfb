//! Every example of the informer crate does what it says, as a process of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use http::Request;
use http_body_util::BodyExt;
use informer_tests::examples::{Example, sources};
use informer_tests::fixtures::{create_namespace, install_widgets, pod, widget};
use informer_tests::harness::Arm;
use informer_tests::helpers::eventually_ok;
use informer_tests::on_both_arms;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};

/// The namespace that `quickstart` and `pod_printer` look at.
const DEFAULT: &str = "default";

/// For what takes milliseconds: long enough for a machine with other things to do.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn every_example_is_run_here_and_fits_on_a_page() -> anyhow::Result<()> {
    let run = [
        "any_resource_gateway",
        "controller", // in `controllers/example.rs`
        "deploy_gateway",
        "list_after_sync",
        "pod_printer",
        "pods_by_node",
        "quickstart",
        "workqueue", // in `controllers/example.rs`
    ];
    let sources = sources()?;
    let names: Vec<_> = sources.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, run);
    for (name, source) in &sources {
        let lines = source.lines().count();
        let most = if name == "workqueue" { 260 } else { 80 };
        ensure!(lines <= most, "{name}.rs has {lines} lines");
    }
    Ok(())
}

on_both_arms!(quickstart, |arm| async {
    create_namespace(arm.direct(), DEFAULT).await?;
    let web = create_pod(&arm, DEFAULT, "quick-web", &[("app", "web")]).await?;
    let other = create_pod(&arm, DEFAULT, "quick-other", &[("app", "other")]).await?;
    create_deployment(&arm, DEFAULT, "quick", &[]).await?;
    let elsewhere = arm.namespace("elsewhere").await?;
    create_deployment(&arm, &elsewhere, "quick", &[]).await?;

    let ended = Example::run("quickstart", &arm.kubeconfig(), &[]).await?.end().await?;
    ensure!(ended.status.success(), "{ended:?}");
    let printed = |line: &str| ended.lines.iter().filter(|printed| *printed == line).count();
    for expected in [
        format!("add {web}"),
        format!("add {other}"),
        format!("web: {web}"),
        format!("on node-1: {web}"),
        format!("on node-1: {other}"),
        "1 deployments".to_owned(),
    ] {
        assert_eq!(printed(&expected), 1, "{expected} in {ended:?}");
    }
    assert_eq!(printed(&format!("web: {other}")), 0, "{ended:?}");
    Ok(())
});

on_both_arms!(pod_printer, |arm| async {
    create_namespace(arm.direct(), DEFAULT).await?;
    let elsewhere =
        create_pod(&arm, &arm.namespace("elsewhere").await?, "printed-elsewhere", &[]).await?;
    let before = create_pod(&arm, DEFAULT, "printed-before", &[]).await?;
    let example = Example::run("pod_printer", &arm.kubeconfig(), &[]).await?;
    line(&example, &format!("add a pod: {before}")).await?;

    let after = create_pod(&arm, DEFAULT, "printed-after", &[]).await?;
    line(&example, &format!("add a pod: {after}")).await?;
    label(&arm, &before, "red").await?;
    line(&example, &format!("update a pod: {before} {before}")).await?;
    // Nobody changes this one: the resync shows it.
    line(&example, &format!("update a pod: {after} {after}")).await?;
    delete_pod(&arm, &before).await?;
    line(&example, &format!("delete a pod: {before}")).await?;

    let ended = example.interrupt().await?;
    ensure!(ended.status.success(), "{ended:?}");
    ensure!(!ended.lines.iter().any(|line| line.contains(&elsewhere)), "{ended:?}");
    let verbs: Vec<_> = ended
        .lines
        .iter()
        .filter(|line| line.contains(&before))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let (first, rest) = verbs.split_first().context("there are lines")?;
    let (last, between) = rest.split_last().context("there are lines")?;
    assert_eq!((*first, *last), ("add", "delete"), "{ended:?}");
    ensure!(!between.is_empty() && between.iter().all(|verb| *verb == "update"), "{ended:?}");
    Ok(())
});

on_both_arms!(pod_printer_ends_by_itself_when_asked_to, |arm| async {
    create_namespace(arm.direct(), DEFAULT).await?;
    let ended = Example::run("pod_printer", &arm.kubeconfig(), &["1"]).await?.end().await?;
    ensure!(ended.status.success(), "{ended:?}");
    Ok(())
});

on_both_arms!(pods_by_node, |arm| async {
    let namespace = arm.namespace("by-node").await?;
    let name = create_pod(&arm, &namespace, "kept", &[]).await?;
    let ended = Example::run("pods_by_node", &arm.kubeconfig(), &["node-1"]).await?.end().await?;
    ensure!(ended.status.success(), "{ended:?}");
    let place =
        ended.lines.iter().position(|line| line.starts_with(&format!("{namespace}/{name} runs ")));
    let place = place.with_context(|| format!("{ended:?}"))?;
    assert_eq!(ended.lines[place + 1], "  restarted 0 times");
    ensure!(ended.lines.iter().any(|line| line.ends_with(" pods run on node-1")), "{ended:?}");

    let ended = Example::run("pods_by_node", &arm.kubeconfig(), &["node-0"]).await?.end().await?;
    ensure!(ended.lines.len() == 1 && ended.lines[0].starts_with("0 of "), "{ended:?}");
    Ok(())
});

on_both_arms!(list_after_sync, |arm| async {
    let (first, second) = (arm.namespace("listed").await?, arm.namespace("listed").await?);
    create_namespace(arm.direct(), "kube-system").await?;
    let labels = [("listed-by", first.as_str())];
    create_deployment(&arm, &first, "one", &labels).await?;
    create_deployment(&arm, &second, "two", &labels).await?;
    create_deployment(&arm, &second, "other", &[]).await?;
    create_deployment(&arm, "kube-system", &format!("{first}-system"), &labels).await?;

    let selector = format!("listed-by={first}");
    let ended =
        Example::run("list_after_sync", &arm.kubeconfig(), &[&selector]).await?.end().await?;
    ensure!(ended.status.success(), "{ended:?}");
    let (head, rest) = ended.lines.split_first().context("it prints")?;
    let (count, version) =
        head.split_once(" deployments at version ").context("the count and version")?;
    ensure!(count.parse::<usize>()? >= 4 && version.parse::<u64>()? > 0, "{ended:?}");
    let expected = [
        format!("kube-system/{first}-system"),
        format!("{first}/one"),
        format!("{second}/two"),
        "1 of them in kube-system".to_owned(),
    ];
    assert_eq!(rest, expected);

    let ended =
        Example::run("list_after_sync", &arm.kubeconfig(), &["a in b"]).await?.end().await?;
    ensure!(!ended.status.success() && ended.lines.concat().contains("Error: "), "{ended:?}");
    Ok(())
});

on_both_arms!(deploy_gateway, |arm| async {
    let namespace = arm.namespace("gate").await?;
    let label = ("k8s-app", namespace.as_str());
    create_deployment(&arm, &namespace, "dns", &[label, ("tier", "a")]).await?;
    create_deployment(&arm, &namespace, "web", &[label]).await?;
    create_deployment(&arm, &namespace, "none", &[]).await?;
    let example = Example::run("deploy_gateway", &arm.kubeconfig(), &["127.0.0.1:0"]).await?;
    let gateway = Gateway::of(&example).await?;

    let both = format!("/deploy?labels[k8s-app]={namespace}");
    let one = format!("/deploy?labels%5Bk8s-app%5D={namespace}&labels%5Btier%5D=a");
    assert_eq!(gateway.names(&both).await?, names(["dns", "web"]));
    assert_eq!(gateway.names(&one).await?, names(["dns"]));
    assert_eq!(gateway.names("/deploy?labels[k8s-app]=nobody").await?, names([]));
    ensure!(gateway.names("/deploy").await?.contains("none"), "all of them");
    let (code, text) = gateway.get("/deploy?colour=red").await?;
    assert_eq!(
        (code, text.as_str()),
        (400, "unknown parameter \"colour\": write labels[key]=value")
    );
    let (code, text) = gateway.get("/deploy?labels[a%20b]=c").await?;
    ensure!(code == 400 && text.contains("a b"), "{code} {text}");

    // It answers from a cache, which follows.
    create_deployment(&arm, &namespace, "late", &[label]).await?;
    gateway.soon(&both, names(["dns", "late", "web"])).await?;
    let deployments = Api::<Deployment>::namespaced(arm.direct().clone(), &namespace);
    deployments.delete("dns", &DeleteParams::default()).await?;
    gateway.soon(&both, names(["late", "web"])).await?;

    let ended = example.interrupt().await?;
    ensure!(ended.status.success(), "{ended:?}");
    Ok(())
});

on_both_arms!(any_resource_gateway, |arm| async {
    let namespace = arm.namespace("any").await?;
    let label = ("app", namespace.as_str());
    install_widgets(arm.direct()).await?;
    create_deployment(&arm, &namespace, "deployment", &[label]).await?;
    create_pod(&arm, &namespace, "pod", &[label]).await?;
    create_pod(&arm, &namespace, "other", &[]).await?;
    create_widget(&arm, &namespace, "widget", &[label]).await?;
    let example = Example::run("any_resource_gateway", &arm.kubeconfig(), &["127.0.0.1:0"]).await?;
    let gateway = Gateway::of(&example).await?;

    let path = |resource: &str| format!("/{resource}?labels[app]={namespace}");
    let first = |prefix: &str| names([prefix]);
    let pods = gateway.names(&path("core/v1/pods")).await?;
    ensure!(pods.len() == 1 && pods.iter().all(|name| name.starts_with("pod-")), "{pods:?}");
    assert_eq!(gateway.names(&path("apps/v1/deployments")).await?, first("deployment"));
    assert_eq!(gateway.names(&path("example.com/v1/widgets")).await?, first("widget"));
    let list = gateway.list(&path("example.com/v1/widgets")).await?;
    assert_eq!(list["items"][0]["spec"], json!({ "colour": "red", "size": 1 }));
    assert_eq!(
        (&list["items"][0]["apiVersion"], &list["items"][0]["kind"]),
        (&"example.com/v1".into(), &"Widget".into())
    );
    // A custom resource comes and goes like any other.
    create_widget(&arm, &namespace, "late", &[label]).await?;
    gateway.soon(&path("example.com/v1/widgets"), names(["late", "widget"])).await?;

    let (code, text) = gateway.get("/apps/v1/deploymnets").await?;
    assert_eq!(code, 404, "{text}");
    assert_eq!(
        text,
        "the server has no resource \"deploymnets.v1.apps\"; did you mean deployments.v1.apps?"
    );
    let (code, text) = gateway.get("/core/v1/pods?labels[a%20b]=c").await?;
    ensure!(code == 400 && text.contains("a b"), "{code} {text}");
    let ended = example.interrupt().await?;
    ensure!(ended.status.success(), "{ended:?}");
    Ok(())
});

/// A gateway that an example has opened.
struct Gateway(Client);

impl Gateway {
    async fn of(example: &Example) -> anyhow::Result<Self> {
        let line = example.line(|line| line.starts_with("listening on http://127.0.0.1:")).await?;
        let url = line.strip_prefix("listening on ").context("it starts so")?;
        let mut config = kube::Config::new(url.parse()?);
        config.proxy_url = None;
        Ok(Self(Client::try_from(config)?))
    }

    async fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        // Brackets must be escaped in a URI; people type them nevertheless, and curl sends them.
        let path = path.replace('[', "%5B").replace(']', "%5D");
        let answer = self.0.send(Request::get(path).body(Body::empty())?).await?;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((code, String::from_utf8(body.to_vec())?))
    }

    async fn list(&self, path: &str) -> anyhow::Result<Value> {
        let (code, text) = self.get(path).await?;
        ensure!(code == 200, "{path}: {code} {text}");
        let list: Value = serde_json::from_str(&text)?;
        assert_eq!((&list["apiVersion"], &list["kind"]), (&"v1".into(), &"List".into()));
        let version = list["metadata"]["resourceVersion"].as_str().context("a version")?;
        ensure!(version.parse::<u64>()? > 0, "version {version}");
        Ok(list)
    }

    async fn names(&self, path: &str) -> anyhow::Result<BTreeSet<String>> {
        let list = self.list(path).await?;
        let items = list["items"].as_array().context("items")?;
        let name = |item: &Value| Some(item["metadata"]["name"].as_str()?.to_owned());
        items.iter().map(|item| name(item).context("a name")).collect()
    }

    async fn soon(&self, path: &str, expected: BTreeSet<String>) -> anyhow::Result<()> {
        let compare = async || {
            let names = self.names(path).await?;
            ensure!(names == expected, "{names:?}, not {expected:?}");
            Ok(())
        };
        eventually_ok("the gateway follows", SOON, compare).await
    }
}

async fn line(example: &Example, expected: &str) -> anyhow::Result<()> {
    example.line(|line| line == expected).await.with_context(|| format!("{expected:?}"))?;
    Ok(())
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// Creates a Pod whose name begins with `prefix`, and returns it: others use the namespace as well.
async fn create_pod(
    arm: &Arm,
    namespace: &str,
    prefix: &str,
    labels: &[(&str, &str)],
) -> anyhow::Result<String> {
    let mut object = pod(namespace, "", labels);
    object.metadata.name = None;
    object.metadata.generate_name = Some(format!("{prefix}-"));
    let created = pods(arm, namespace).create(&PostParams::default(), &object).await?;
    created.metadata.name.context("a created Pod has a name")
}

async fn label(arm: &Arm, name: &str, colour: &str) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "colour": colour } } }));
    pods(arm, DEFAULT).patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// At once: there is no kubelet that would let it end gracefully.
async fn delete_pod(arm: &Arm, name: &str) -> anyhow::Result<()> {
    pods(arm, DEFAULT).delete(name, &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

fn pods(arm: &Arm, namespace: &str) -> Api<Pod> {
    Api::namespaced(arm.direct().clone(), namespace)
}

async fn create_widget(
    arm: &Arm,
    namespace: &str,
    name: &str,
    labels: &[(&str, &str)],
) -> anyhow::Result<()> {
    let widgets = Api::namespaced(arm.direct().clone(), namespace);
    widgets.create(&PostParams::default(), &widget(namespace, name, labels, "red", 1)).await?;
    Ok(())
}

async fn create_deployment(
    arm: &Arm,
    namespace: &str,
    name: &str,
    labels: &[(&str, &str)],
) -> anyhow::Result<()> {
    let labels: serde_json::Map<_, _> =
        labels.iter().map(|&(key, value)| (key.to_owned(), value.into())).collect();
    let deployment = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "selector": { "matchLabels": { "of": name } },
            "template": {
                "metadata": { "labels": { "of": name } },
                "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
            },
        },
    }))?;
    let deployments = Api::<Deployment>::namespaced(arm.direct().clone(), namespace);
    deployments.create(&PostParams::default(), &deployment).await?;
    Ok(())
}
