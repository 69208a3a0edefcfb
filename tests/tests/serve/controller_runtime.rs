//! A controller-runtime manager that has nothing but the endpoint: its caches are filled from the
//! endpoint's, its writes are passed on with its own rights, and its next reads see them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use http::Request;
use http_body_util::BodyExt;
use informer_tests::fixtures::create_namespace;
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::real::RealCluster;
use kube::Client;
use serde_json::{Value, json};

use crate::access::{LONG, SOON, client_of};
use crate::accounts::{Account, create, lease_rule, serve_as_reader};
use crate::client_go::go_build;
use crate::process::Process;

const NAMESPACE: &str = "sets";
const SETS: &str = "/apis/compare.example.com/v1/namespaces/sets/sets";
const CHILDREN: &str = "/api/v1/namespaces/sets/configmaps";
const COUNT: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_runtime_manager_runs_on_the_endpoint() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let admin = cluster.client().await?;
    create_namespace(&admin, NAMESPACE).await?;
    install_sets(&admin).await?;
    let account = Account::create(&cluster, "manager", &[NAMESPACE], &rules()).await?;
    let endpoint = serve_as_reader(&cluster, &[]).await?;
    for number in 0..COUNT {
        create(&admin, SETS, &set(number)).await?;
    }
    let kubeconfig = account.kubeconfig(endpoint.url())?;
    let kubeconfig = kubeconfig.to_string_lossy();
    let flags = ["--kubeconfig", &kubeconfig, "--namespace", NAMESPACE];
    let how = ["--agent", "manager", "--lease", "sets", "--verify"];
    let manager = Process::start(&program().await?, flags.iter().chain(&how))?;
    manager.until(|lines| !lines.is_empty()).await?;
    reconciled(&admin, &|_| 3).await.with_context(|| printed(&manager))?;

    let wanted = |number: usize| if number.is_multiple_of(2) { 5 } else { 1 };
    for number in 0..COUNT {
        let spec = json!({ "spec": { "replicas": wanted(number) } });
        let request = Request::patch(format!("{SETS}/set-{number}"));
        let request = request.header("content-type", "application/merge-patch+json");
        admin.request::<Value>(request.body(serde_json::to_vec(&spec)?)?).await?;
    }
    reconciled(&admin, &wanted).await.with_context(|| printed(&manager))?;
    // What somebody else takes away comes back.
    let children = raw_list(&admin, CHILDREN).await?;
    let one = children.keys().find_map(|key| key.strip_prefix("sets/child-"));
    let path = format!("{CHILDREN}/child-{}", one.context("there are no children")?);
    admin.request::<Value>(Request::delete(path).body(Vec::new())?).await?;
    reconciled(&admin, &wanted).await.with_context(|| printed(&manager))?;

    let path = "/apis/coordination.k8s.io/v1/namespaces/sets/leases/sets";
    let lease = read(&admin, path).await?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    ensure!(!holder.is_empty(), "{lease}");
    answered_by_the_cache(&client_of(&cluster, "admin", "", Some(endpoint.url())).await?).await?;
    let printed = manager.kill().await?;
    let is_unseen = |line: &&str| line.contains("\"unseen\"");
    let unseen: Vec<_> = printed.stdout.lines().filter(is_unseen).collect();
    ensure!(unseen.is_empty(), "{unseen:#?}");
    for (verb, least) in [("create", 3 * COUNT), ("delete", COUNT), ("status", 2 * COUNT)] {
        let line = format!("{{\"line\":\"seen\",\"verb\":\"{verb}\"");
        let count = printed.stdout.lines().filter(|it| it.starts_with(&line)).count();
        ensure!(count >= least, "{count} of {verb} in {}", printed.stdout);
    }
    // Its cache may be behind, as at the API server.
    let is_failure =
        |line: &&str| line.contains("\"failed\"") && !line.contains("has been modified");
    let failures: Vec<_> = printed.stdout.lines().filter(is_failure).collect();
    ensure!(failures.is_empty(), "{failures:#?}");
    endpoint.stop().await
}

/// Waits until each Set has as many children as it wants, and says so in its status.
async fn reconciled(admin: &Client, wanted: &dyn Fn(usize) -> usize) -> anyhow::Result<()> {
    eventually_ok("the Sets are reconciled", LONG, async || {
        let (sets, children) = (read(admin, SETS).await?, read(admin, CHILDREN).await?);
        let mut owned = BTreeMap::<_, usize>::new();
        for child in children["items"].as_array().into_iter().flatten() {
            if let Some(owner) = child["metadata"]["ownerReferences"][0]["uid"].as_str() {
                *owned.entry(owner).or_default() += 1;
            }
        }
        for set in sets["items"].as_array().context("no list")? {
            let name = set["metadata"]["name"].as_str().context("no name")?;
            let number = name.strip_prefix("set-").context("another name")?.parse()?;
            let count = set["metadata"]["uid"].as_str().and_then(|uid| owned.get(uid));
            ensure!(count == Some(&wanted(number)), "{name} has {count:?}");
            let status = &set["status"];
            let generation = &set["metadata"]["generation"];
            ensure!(status["replicas"] == wanted(number), "{set}");
            ensure!(status["observedGeneration"] == *generation, "{set}");
        }
        Ok(())
    })
    .await
}

/// The manager's lists and watches were, and what it wrote was passed on.
async fn answered_by_the_cache(client: &Client) -> anyhow::Result<()> {
    let request = Request::get("/metrics").body(kube::client::Body::empty())?;
    let body = client.send(request).await?.into_body().collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&body);
    let counted = text.lines().filter(|line| line.starts_with("serve_api_requests_total{"));
    let counted: Vec<_> = counted.collect();
    let has =
        |words: &[&str]| counted.iter().any(|line| words.iter().all(|word| line.contains(word)));
    for resource in ["\"configmaps.v1\"", "\"sets.v1.compare.example.com\""] {
        let of = format!("resource={resource}");
        for words in [
            [&of, "verb=\"watch\"", "from=\"cache\"", "code=\"200\""],
            [&of, "verb=\"get\"", "from=\"cache\"", "code=\"200\""],
        ] {
            ensure!(has(&words), "no {words:?} in {counted:#?}");
        }
        ensure!(!has(&[&of, "verb=\"watch\"", "from=\"upstream\""]), "{counted:#?}");
    }
    ensure!(
        has(&["resource=\"configmaps.v1\"", "verb=\"create\"", "from=\"upstream\""]),
        "{counted:#?}"
    );
    Ok(())
}

/// What a controller of Sets may do, and no more.
fn rules() -> Value {
    let sets = "compare.example.com";
    json!([
        { "apiGroups": [sets], "resources": ["sets"], "verbs": ["get", "list", "watch"] },
        { "apiGroups": [sets], "resources": ["sets/status"], "verbs": ["update"] },
        { "apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["get", "list", "watch", "create", "delete"] },
        { "apiGroups": ["", "events.k8s.io"], "resources": ["events"],
            "verbs": ["create", "patch"] },
        lease_rule(),
    ])
}

async fn install_sets(admin: &Client) -> anyhow::Result<()> {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "sets.compare.example.com" },
        "spec": {
            "group": "compare.example.com", "scope": "Namespaced",
            "names": { "plural": "sets", "singular": "set", "kind": "Set", "listKind": "SetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": any }, "subresources": { "status": {} } }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    create(admin, path, &definition).await?;
    let list = async || raw_list(admin, SETS).await.map(drop);
    eventually_ok("Sets are served", SOON, list).await
}

fn set(number: usize) -> Value {
    json!({ "apiVersion": "compare.example.com/v1", "kind": "Set",
        "metadata": { "name": format!("set-{number}") }, "spec": { "replicas": 3 } })
}

async fn program() -> anyhow::Result<PathBuf> {
    let peer = "../benches/peers/controller-runtime";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(peer);
    go_build(&folder, "controller-runtime").await
}

fn printed(manager: &Process) -> String {
    manager.lines().join("\n")
}

async fn read(client: &Client, path: &str) -> anyhow::Result<Value> {
    Ok(client.request(Request::get(path).body(Vec::new())?).await?)
}
