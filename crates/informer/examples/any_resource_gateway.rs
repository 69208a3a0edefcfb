//! An HTTP gateway to any resource the server has, custom ones included: an informer starts at the
//! first request for a resource and is shared by all later ones.
//!
//! `cargo run --example any_resource_gateway`, then
//! `curl 'http://127.0.0.1:8888/apps/v1/deployments?labels[k8s-app]=kube-dns'` or, for the core
//! group, `curl http://127.0.0.1:8888/core/v1/pods`. The address may be given as an argument.

use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use informer::{Error, LabelSelector, SharedInformerFactory};
use kube::core::DynamicObject;
use serde_json::{Value, json};

type Failure = (StatusCode, String);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let factory = SharedInformerFactory::builder(kube::Client::try_default().await?).build();
    factory.start(); // informers asked for from now on start by themselves

    let app =
        Router::new().route("/{group}/{version}/{resource}", get(list)).with_state(factory.clone());
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
    State(factory): State<SharedInformerFactory>,
    Path((group, version, resource)): Path<(String, String, String)>,
    Query(query): Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Failure> {
    let informer = factory.for_resource(&group, &version, &resource).await.map_err(failure)?;
    let lister = informer.synced_within(Duration::from_secs(10)).await.map_err(failure)?;
    let selection = lister.select_with(selector(&query)?);
    let items: Vec<&DynamicObject> = selection.iter().map(AsRef::as_ref).collect();
    let version = selection.snapshot().version().to_string();
    let metadata = json!({ "resourceVersion": version });
    Ok(Json(json!({ "apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items })))
}

fn selector(query: &[(String, String)]) -> Result<LabelSelector, Failure> {
    let mut selector = LabelSelector::default();
    for (name, value) in query {
        let key = name
            .strip_prefix("labels[")
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or_default();
        let with = selector.with_equal(key, value);
        selector = with.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    }
    Ok(selector)
}

fn failure(error: Error) -> Failure {
    match error {
        Error::UnknownResource(unknown) => (StatusCode::NOT_FOUND, unknown.to_string()),
        Error::NotSynced(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing.to_string()),
        error => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}
