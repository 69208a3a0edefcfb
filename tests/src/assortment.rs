//! Objects of many kinds, with what is easily written wrong.

use anyhow::Context;
use http::Request;
use http::header::CONTENT_TYPE;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::fixtures::{install_widgets, pod, widget};

/// Creates the objects, and the definition of Widgets.
///
/// # Errors
/// If one cannot be created.
pub async fn create_assortment(client: &Client) -> anyhow::Result<()> {
    install_widgets(client).await?;
    for name in ["one", "two"] {
        let pods = Api::namespaced(client.clone(), "default");
        pods.create(&PostParams::default(), &pod("default", name, &[("app", "web")])).await?;
        let widgets = Api::namespaced(client.clone(), "default");
        widgets.create(&PostParams::default(), &widget("default", name, &[], "red", 1)).await?;
    }
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{
                "name": "main",
                "image": "example",
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                "readinessProbe": {"httpGet": {"port": "http"}},
                "livenessProbe": {"tcpSocket": {"port": 80}},
            }],
        },
    });
    let mut always = template.clone();
    always["spec"]["restartPolicy"] = "Always".into();
    for (path, object) in [
        (
            "/api/v1/namespaces/default/configmaps",
            json!({
                "data": {"b": "2", "a": "<1> & \u{fc}", "empty": ""},
                "binaryData": {"raw": "AAEC/w=="},
                "immutable": false,
            }),
        ),
        ("/api/v1/namespaces/default/configmaps", json!({})),
        ("/api/v1/namespaces/default/secrets", json!({"stringData": {"key": "value"}})),
        (
            "/api/v1/namespaces/default/services",
            json!({"spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"app": "web"}}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": always}}),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}}}),
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            json!({"spec": {"renewTime": "2026-01-02T03:04:05.678901Z", "leaseDurationSeconds": 15}}),
        ),
    ] {
        let mut object = object;
        object["metadata"] =
            json!({"generateName": "one-", "annotations": {"z": "", "a": "\u{1f980}"}});
        let request = Request::post(path)
            .header(CONTENT_TYPE, "application/json")
            .body(object.to_string().into_bytes())?;
        client.request::<Value>(request).await.context(path)?;
    }
    Ok(())
}
