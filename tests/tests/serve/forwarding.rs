//! Writes and other requests that are passed on with the caller's own rights, and seen by the next
//! read.

use anyhow::ensure;
use http::Request;
use informer_tests::real::RealCluster;
use kube::Client;
use serde_json::{Value, json};

use crate::access::{client_of, serve};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How often a write is followed by a read.
const ROUNDS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn callers_write_with_their_own_rights_and_read_their_writes() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let endpoint = serve(&cluster, &[]).await?;
    let admin = client_of(&cluster, "admin", "", Some(endpoint.url())).await?;
    let direct = cluster.client().await?;
    ensure!(names(&admin).await? == names(&direct).await?);
    for round in 0..ROUNDS {
        let name = format!("map-{round}");
        let path = format!("{CONFIG_MAPS}/{name}");
        let created = write(&admin, "POST", CONFIG_MAPS, &config_map(&name, "a")).await?;
        ensure!(created["metadata"]["name"] == name.as_str(), "{created}");
        ensure!(names(&admin).await?.contains(&name), "{name} is missing");
        write(&admin, "PUT", &path, &config_map(&name, "b")).await?;
        ensure!(read(&admin, &path).await?["data"]["key"] == "b");
        let deleted = write(&admin, "DELETE", &path, &json!({})).await?;
        ensure!(deleted["kind"] == "Status", "{deleted}");
        ensure!(!names(&admin).await?.contains(&name), "{name} is still there");
    }
    delete_together(&admin, &direct).await?;
    // As large as the API server takes it.
    let large = "0123456789abcdef".repeat(60_000);
    write(&admin, "POST", CONFIG_MAPS, &config_map("large", &large)).await?;
    ensure!(read(&admin, &format!("{CONFIG_MAPS}/large")).await?["data"]["key"] == large.as_str());

    // Refused in the API server's words, as the caller.
    let viewer = client_of(&cluster, "viewer", "", Some(endpoint.url())).await?;
    let own = client_of(&cluster, "viewer", "", None).await?;
    let refused = [&viewer, &own];
    let mut words = Vec::new();
    for client in refused {
        match write(client, "POST", CONFIG_MAPS, &config_map("x", "")).await {
            Ok(created) => anyhow::bail!("created {created}"),
            Err(error) => words.push(format!("{error:#}")),
        }
    }
    ensure!(words[0] == words[1] && words[0].contains("\"viewer\""), "{words:?}");

    let certified = client_of(&cluster, "certified", "", Some(endpoint.url())).await?;
    let refused = write(&certified, "POST", CONFIG_MAPS, &config_map("x", "")).await;
    ensure!(refused.is_err_and(|it| format!("{it:#}").contains("forbidden")));
    endpoint.stop().await
}

/// The answer to the deletion of a collection names the version of the list before it, which the
/// cache has.
async fn delete_together(admin: &Client, direct: &Client) -> anyhow::Result<()> {
    let selected = format!("{CONFIG_MAPS}?labelSelector=together");
    let members = |names: &[String]| names.iter().filter(|it| it.starts_with("member")).count();
    for round in 0..ROUNDS {
        for member in 0..3 {
            let mut object = config_map(&format!("member-{round}-{member}"), "");
            object["metadata"]["labels"] = json!({ "together": "" });
            write(admin, "POST", CONFIG_MAPS, &object).await?;
        }
        ensure!(members(&names(admin).await?) == 3);
        let deleted = write(admin, "DELETE", &selected, &json!({})).await?;
        let left = names(admin).await?;
        ensure!(members(&left) == 0, "round {round}: {left:?}");
        let after = read(direct, CONFIG_MAPS).await?;
        ensure!(version(&deleted)? < version(&after)?, "{deleted}");
    }
    Ok(())
}

fn version(list: &Value) -> anyhow::Result<u64> {
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?)
}

fn config_map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "key": value } })
}

async fn names(client: &Client) -> anyhow::Result<Vec<String>> {
    let list = read(client, CONFIG_MAPS).await?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.filter_map(|it| it["metadata"]["name"].as_str()).map(str::to_owned).collect())
}

async fn read(client: &Client, path: &str) -> anyhow::Result<Value> {
    Ok(client.request(Request::get(path).body(Vec::new())?).await?)
}

async fn write(client: &Client, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    Ok(client.request(request.body(serde_json::to_vec(body)?)?).await?)
}
