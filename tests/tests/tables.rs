//! Tables of a real API server, and kubectl's, compared with ours.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, ensure};
use clap::Parser;
use http::Request;
use http::header::ACCEPT;
use informer::Resource;
use informer::discovery::Discovery;
use informer_tests::real::RealCluster;
use k8s_serve::table::{Columns, Row};
use kube::Client;
use kubectl_informer::connect::Environment;
use kubectl_informer::{Args, Io, Output};
use serde_json::{Value, json};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// How often kubectl and we are asked, as ages pass between the two.
const ATTEMPTS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_has_the_table_of_a_real_server() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    create_objects(&cluster).await?;
    let client = cluster.client().await?;
    let discovery = Discovery::fetch(&client).await?;
    let (mut resources, mut rows) = (0, 0);
    for info in discovery.resources().iter().filter(|it| it.can_be_watched()) {
        let compared = compare(&client, &info.resource).await;
        rows += compared.with_context(|| info.resource.to_string())?;
        resources += 1;
    }
    ensure!(resources >= 60 && rows >= 100, "{rows} rows of {resources} resources");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_what_kubectl_prints() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    create_objects(&cluster).await?;
    for arguments in [
        "get pods",
        "get pods -o wide",
        "get pods -A --no-headers",
        "get deploy,rs,sts,ds,svc,ep -o wide",
        "get jobs,cronjobs,hpa,pdb,ing,netpol",
        "get pv,pvc,sc,csidrivers,csinodes",
        "get cm,secrets,sa,quota,limits -A",
        "get nodes,ns -o wide",
        "get roles,rolebindings,clusterrolebindings -o wide",
        "get events -o wide",
        "get flowschemas,prioritylevelconfigurations",
        "get crd,apiservices,priorityclasses,leases,endpointslices",
        "get columns -o wide",
        "get columns",
    ] {
        same_text(&cluster, arguments).await?;
    }
    Ok(())
}

/// Objects of every kind, and Pods and custom resources with something to show.
async fn create_objects(cluster: &RealCluster) -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all_kinds/objects.json");
    let objects: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    create(cluster, objects).await?;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "columns.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "columns", "singular": "column", "kind": "Column"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                }},
                "additionalPrinterColumns": [
                    {"name": "Ready", "type": "string",
                        "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
                    {"name": "N", "type": "string", "jsonPath": ".spec.size"},
                    {"name": "Share", "type": "number", "jsonPath": ".spec.share"},
                    {"name": "On", "type": "boolean", "jsonPath": ".spec.on", "description": "Is it?"},
                    {"name": "All", "type": "string", "jsonPath": ".spec"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }],
        },
    });
    create(cluster, vec![definition]).await?;
    let established = ["wait", "--for=condition=Established", "crd/columns.example.com"];
    cluster.kubectl(established).await?;
    let column = |name: &str, spec: Value, ready: Value| {
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Column",
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
            "status": {"conditions": ready},
        })
    };
    let ready = json!([{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]);
    create(
        cluster,
        vec![
            column("whole", json!({"size": 3, "share": 0.5, "on": true, "text": "<a>"}), ready),
            column("others", json!({"size": "3", "share": 2, "on": 1}), json!([])),
        ],
    )
    .await?;
    let status = json!({"status": {
        "phase": "Running",
        "podIPs": [{"ip": "10.1.2.3"}],
        "containerStatuses": [{
            "name": "main", "image": "i", "imageID": "i", "ready": true, "restartCount": 3,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"}},
        }],
    }});
    let patch = status.to_string();
    cluster
        .kubectl(["patch", "pod", "kinds", "--subresource=status", "--type=merge", "-p", &patch])
        .await?;
    Ok(())
}

async fn create(cluster: &RealCluster, items: Vec<Value>) -> anyhow::Result<()> {
    let client = cluster.client().await?;
    let discovery = Discovery::fetch(&client).await?;
    for object in items {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let resources = discovery.resources().iter().map(|it| &it.resource);
        // Not all betas are served.
        let is_it = |it: &&Resource| it.api_version() == api_version && it.kind == kind;
        let Some(resource) = resources.into_iter().find(is_it) else { continue };
        let path = resource.path(object["metadata"]["namespace"].as_str());
        let request = Request::post(&path).body(serde_json::to_vec(&object)?)?;
        client.request::<Value>(request).await.with_context(|| format!("creating {object}"))?;
    }
    Ok(())
}

/// How many rows were compared.
async fn compare(client: &Client, resource: &Resource) -> anyhow::Result<usize> {
    let columns = match Columns::built_in(&resource.group, &resource.kind) {
        Some(columns) => columns,
        None => of_definition(client, resource).await?,
    };
    let path = format!("{}?includeObject=Object", resource.path(None));
    let before = jiff::Timestamp::now();
    let request = Request::get(path).header(ACCEPT, TABLE).body(Vec::new())?;
    let table: Value = client.request(request).await?;
    let after = jiff::Timestamp::now();
    ensure!(
        table["columnDefinitions"] == json!(columns.definitions()),
        "the columns\n  theirs {}\n  ours   {}",
        table["columnDefinitions"],
        json!(columns.definitions()),
    );
    let rows = table["rows"].as_array().context("a table has rows")?;
    for row in rows {
        let ours = [before, after].map(|now| {
            let Row { mut cells, conditions } = columns.row(&row["object"], now);
            forget_unknowable(resource, &mut cells);
            (cells, if conditions.is_empty() { Value::Null } else { json!(conditions) })
        });
        let mut cells = row["cells"].as_array().cloned().context("a row has cells")?;
        forget_unknowable(resource, &mut cells);
        ensure!(
            ours.contains(&(cells, row["conditions"].clone())),
            "{row}\n  ours {}",
            json!(ours),
        );
    }
    if let Some(order) = columns.order() {
        let is_sorted = rows.is_sorted_by(|a, b| order(&a["object"], &b["object"]).is_le());
        ensure!(is_sorted, "the rows come in another order");
    }
    Ok(rows.len())
}

/// Takes out the cells that cannot be known from the object of that version.
fn forget_unknowable(resource: &Resource, cells: &mut [Value]) {
    // Version 1 has one metric in a field and the others in an annotation, and no order between.
    if resource.api_version() == "autoscaling/v1" {
        cells[2] = Value::Null;
    }
}

async fn of_definition(client: &Client, resource: &Resource) -> anyhow::Result<Columns> {
    let name = resource.group_resource();
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    match client.request::<Value>(Request::get(path).body(Vec::new())?).await {
        Ok(definition) => {
            Columns::of_definition(&definition, &resource.version).context("the version is served")
        }
        Err(_) => Ok(Columns::of_kind(&resource.group, &resource.kind)),
    }
}

async fn same_text(cluster: &RealCluster, arguments: &str) -> anyhow::Result<()> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let theirs = cluster.kubectl(arguments.split(' ')).await?;
        let ours = ours(cluster, arguments).await?;
        if theirs == ours {
            return Ok(());
        }
        last = Some((theirs, ours));
    }
    let (theirs, ours) = last.unwrap_or_default();
    anyhow::bail!("{arguments}\ntheirs\n{theirs}\nours\n{ours}")
}

async fn ours(cluster: &RealCluster, arguments: &str) -> anyhow::Result<String> {
    let caught = Caught::default();
    let io = Io {
        out: Output::new(caught.clone()),
        err: Output::new(std::io::sink()),
        terminal: false,
        stop: Default::default(),
        environment: Environment {
            kubeconfig: Some(cluster.kubeconfig_path().as_os_str().to_owned()),
            ..Environment::default()
        },
    };
    let words = std::iter::once("kubectl-informer").chain(arguments.split(' '));
    kubectl_informer::run(&Args::try_parse_from(words)?, &io).await?;
    let text = caught.0.lock().expect("nothing panics while it is held").clone();
    Ok(String::from_utf8(text)?)
}

#[derive(Clone, Default)]
struct Caught(Arc<Mutex<Vec<u8>>>);

impl Write for Caught {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nothing panics while it is held").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
