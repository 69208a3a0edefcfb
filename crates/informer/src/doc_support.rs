//! What the examples of the documentation need; not part of the API.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use serde_json::json;

/// Creates `count` small Pods in the namespace `default`.
///
/// # Errors
/// Those of the client.
pub async fn create_pods(client: &Client, count: usize) -> Result<(), Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    for number in 0..count {
        let pod = json!({
            "metadata": { "name": format!("web-{number}"), "labels": { "app": "web" } },
            "spec": { "nodeName": "node-1", "containers": [{ "name": "web", "image": "web:1" }] },
        });
        let pod = serde_json::from_value(pod).map_err(Error::SerdeError)?;
        pods.create(&PostParams::default(), &pod).await?;
    }
    Ok(())
}
