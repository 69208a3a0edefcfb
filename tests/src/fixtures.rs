//! Objects that tests create: Pods, and a small custom resource with its definition.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::{Container, Namespace, Pod, PodSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client, CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

use crate::helpers::{eventually_ok, raw_list};

/// The specification of a [`Widget`], custom resource `widgets.example.com/v1`, namespaced.
#[derive(CustomResource, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    plural = "widgets",
    namespaced,
    schema = "disabled"
)]
#[kube(derive = "PartialEq")]
pub struct WidgetSpec {
    /// Any text.
    pub colour: String,
    /// Any number.
    pub size: i64,
}

/// A Pod that is as good as scheduled: it has a node, `node-1`, and one container.
#[must_use]
pub fn pod(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Pod {
    Pod {
        metadata: metadata(namespace, name, labels),
        spec: Some(PodSpec {
            node_name: Some("node-1".to_owned()),
            containers: vec![Container {
                name: "main".to_owned(),
                image: Some("example.com/main:1".to_owned()),
                ..Container::default()
            }],
            ..PodSpec::default()
        }),
        status: None,
    }
}

/// A [`Widget`] of the given colour and size.
#[must_use]
pub fn widget(
    namespace: &str,
    name: &str,
    labels: &[(&str, &str)],
    colour: &str,
    size: i64,
) -> Widget {
    Widget {
        metadata: metadata(namespace, name, labels),
        spec: WidgetSpec { colour: colour.to_owned(), size },
    }
}

/// The definition of [`Widget`], with short name `wd`.
#[must_use]
pub fn widget_definition() -> CustomResourceDefinition {
    let definition = serde_json::json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"] },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                    "type": "object",
                    "properties": { "colour": { "type": "string" }, "size": { "type": "integer", "format": "int64" } },
                } } } },
            }],
        },
    });
    serde_json::from_value(definition).expect("the definition above is complete")
}

/// Installs [`widget_definition`], if it is not, and returns once Widgets can be listed.
///
/// # Errors
///
/// When the definition is refused, or not served within 30 seconds.
pub async fn install_widgets(client: &Client) -> anyhow::Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    ignore(409, definitions.create(&PostParams::default(), &widget_definition()).await)?;
    let list = async || raw_list(client, "/apis/example.com/v1/widgets").await.map(drop);
    eventually_ok("widgets.example.com is served", Duration::from_secs(30), list).await
}

/// Removes the definition of [`Widget`], and with it every Widget. Returns once it is gone. Not for
/// a cluster that other tests share.
///
/// # Errors
///
/// When that is refused, or takes longer than 30 seconds.
pub async fn remove_widgets(client: &Client) -> anyhow::Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let name = widget_definition().name_any();
    ignore(404, definitions.delete(&name, &DeleteParams::default()).await)?;
    let gone = async || match definitions.get_opt(&name).await? {
        Some(_) => anyhow::bail!("it still exists"),
        None => Ok(()),
    };
    eventually_ok("widgets.example.com is gone", Duration::from_secs(30), gone).await
}

/// Creates a namespace, unless it exists.
///
/// # Errors
///
/// When that is refused.
pub async fn create_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let created =
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await;
    ignore(409, created).with_context(|| format!("namespace {name}"))
}

fn metadata(namespace: &str, name: &str, labels: &[(&str, &str)]) -> ObjectMeta {
    let labels: BTreeMap<_, _> =
        labels.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        labels: (!labels.is_empty()).then_some(labels),
        ..ObjectMeta::default()
    }
}

fn ignore<T>(code: u16, result: kube::Result<T>) -> anyhow::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == code => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
