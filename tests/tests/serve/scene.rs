//! A cluster with objects of every kind, and the endpoint before it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::Request;
use informer::discovery::Discovery;
use informer_tests::helpers::eventually_ok;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Mutex;

const SOON: Duration = Duration::from_secs(30);

/// Creates objects of every kind that the server lets one watch, those of [`own_objects`] among
/// them, with their status.
///
/// # Errors
///
/// When the server refuses one.
pub(crate) async fn create_objects(client: &Client) -> anyhow::Result<()> {
    // A shared cluster gets them once.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    let _guard = ONE_AT_A_TIME.lock().await;
    let of_every_kind = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all_kinds/objects.json");
    let of_every_kind: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(of_every_kind)?)?;
    create(client, own_objects()?).await?;
    create(client, of_every_kind).await
}

/// Objects in states that tables tell apart, with odd names and texts, and a custom resource.
fn own_objects() -> anyhow::Result<Vec<Value>> {
    // A list of more than 128 KiB is compressed.
    let text = include_str!("objects.json").replace("{large}", &"0123456789abcdef".repeat(10_000));
    Ok(serde_json::from_str(&text)?)
}

/// Creates the objects: first those that others need, then these.
async fn create(client: &Client, objects: Vec<Value>) -> anyhow::Result<()> {
    let needed = |object: &Value| ["Namespace", "CustomResourceDefinition"].contains(&kind(object));
    let (first, then): (Vec<_>, Vec<_>) = objects.into_iter().partition(needed);
    let discovery = Discovery::fetch(client).await?;
    for object in &first {
        create_one(client, &discovery, object).await?;
    }
    let custom = first.iter().filter(|object| kind(object) == "CustomResourceDefinition");
    for definition in custom {
        let version = &definition["spec"]["versions"][0];
        if version["served"] == json!(false) {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, version) = (text(&definition["spec"]["group"]), text(&version["name"]));
        let plural = text(&definition["spec"]["names"]["plural"]);
        eventually_ok("the custom resource is served", SOON, async || {
            Discovery::fetch_group_version(client, &group, &version).await?;
            let all = Discovery::fetch(client).await?;
            all.require(&group, &version, &plural)?;
            let path = format!("/apis/{group}/{version}/{plural}");
            client.request::<Value>(Request::get(path).body(Vec::new())?).await?;
            Ok(())
        })
        .await?;
    }
    let discovery = Discovery::fetch(client).await?;
    stream::iter(&then)
        .map(|object| create_one(client, &discovery, object))
        .buffered(8)
        .try_collect::<()>()
        .await
}

async fn create_one(client: &Client, discovery: &Discovery, object: &Value) -> anyhow::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let mut served = discovery.resources().iter().map(|info| &info.resource);
    let is_of = |it: &&informer::Resource| it.api_version() == api_version && it.kind == kind;
    // A real server serves no alphas, and not all betas.
    let Some(resource) = served.find(is_of) else {
        ensure!(api_version.contains("alpha") || api_version.contains("beta"), "no {kind}");
        return Ok(());
    };
    let path = resource.path(object["metadata"]["namespace"].as_str());
    let name = text(&object["metadata"]["name"]);
    if exists(client, &format!("{path}/{}", percent_encoded(&name))).await? {
        return Ok(());
    }
    let request = Request::post(&path).body(serde_json::to_vec(object)?)?;
    let created = client.request::<Value>(request).await;
    created.with_context(|| format!("{kind} {name} in {path}"))?;
    let Some(status) = object.get("status") else { return Ok(()) };
    let request = Request::patch(format!("{path}/{name}/status"))
        .header("content-type", "application/merge-patch+json")
        .body(serde_json::to_vec(&json!({ "status": status }))?)?;
    client.request::<Value>(request).await.with_context(|| format!("status of {path}/{name}"))?;
    Ok(())
}

async fn exists(client: &Client, path: &str) -> anyhow::Result<bool> {
    match client.request::<Value>(Request::get(path).body(Vec::new())?).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error).with_context(|| path.to_owned()),
    }
}

fn percent_encoded(name: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(encode).collect()
}

/// Makes the history that watches are asked for: an object comes, changes and goes, and another one
/// changes what selectors look at.
///
/// # Errors
///
/// When the server refuses.
pub(crate) async fn change_objects(client: &Client) -> anyhow::Result<()> {
    let pods = "/api/v1/namespaces/team/pods";
    let gauges = "/apis/differences.example.com/v1/namespaces/team/gauges";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "brief", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
    });
    let gauge = json!({
        "apiVersion": "differences.example.com/v1", "kind": "Gauge",
        "metadata": { "name": "brief" }, "spec": { "colour": "red" },
    });
    let running = json!({ "status": { "phase": "Running" } });
    let labelled = |app: &str| json!({ "metadata": { "labels": { "app": app } } });
    send(client, Request::post(pods), Some(&pod)).await?;
    send(client, Request::patch(format!("{pods}/brief/status")), Some(&running)).await?;
    send(client, Request::patch(format!("{pods}/brief")), Some(&labelled("db"))).await?;
    send(client, Request::patch(format!("{pods}/brief")), Some(&labelled("web"))).await?;
    send(client, Request::delete(format!("{pods}/brief?gracePeriodSeconds=0")), None).await?;
    send(client, Request::post(gauges), Some(&gauge)).await?;
    send(client, Request::patch(format!("{gauges}/brief")), Some(&labelled("web"))).await?;
    send(client, Request::delete(format!("{gauges}/brief")), None).await
}

async fn send(
    client: &Client,
    request: http::request::Builder,
    body: Option<&Value>,
) -> anyhow::Result<()> {
    let is_patch = request.method_ref() == Some(&http::Method::PATCH);
    let content_type = if is_patch { "application/merge-patch+json" } else { "application/json" };
    let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    client.request::<Value>(request.header("content-type", content_type).body(body)?).await?;
    Ok(())
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}
