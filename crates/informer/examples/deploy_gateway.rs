//! An HTTP gateway to one kind: Deployments by labels, answered from the cache.
//!
//! `cargo run --example deploy_gateway`, then
//! `curl 'http://127.0.0.1:8888/deploy?labels[k8s-app]=kube-dns'`. The address may be given as an
//! argument.

use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use informer::{LabelSelector, Lister, SharedInformerFactory};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

type Failure = (StatusCode, String);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let factory = SharedInformerFactory::builder(kube::Client::try_default().await?).build();
    let deployments = factory.informer::<Deployment>()?;
    factory.start();
    let lister = deployments.synced_within(Duration::from_secs(30)).await?;

    let app = Router::new().route("/deploy", get(list)).with_state(lister);
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8888".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async { _ = tokio::signal::ctrl_c().await })
        .await?;
    factory.shutdown().await;
    Ok(())
}

async fn list(
    State(lister): State<Lister<Deployment>>,
    Query(query): Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Failure> {
    let mut selector = LabelSelector::default();
    for (name, value) in &query {
        let Some(key) = name.strip_prefix("labels[").and_then(|rest| rest.strip_suffix(']')) else {
            return Err((
                StatusCode::BAD_REQUEST,
                format!("unknown parameter {name:?}: write labels[key]=value"),
            ));
        };
        let with = selector.with_equal(key, value);
        selector = with.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    }
    let selection = lister.select_with(selector);
    let items: Vec<&Deployment> = selection.iter().map(AsRef::as_ref).collect();
    let version = selection.snapshot().version().to_string();
    let metadata = json!({ "resourceVersion": version });
    Ok(Json(json!({ "apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items })))
}
