//! The objects of a scenario: ConfigMaps in a namespace of its own. Unlike Pods they change only as
//! they are told to, so histories are exact on both arms.

use anyhow::Context;
use informer::{InformerOptions, SharedInformer};
use informer_tests::harness::Arm;
use informer_tests::observe::{DEADLINE, Scene};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::form::Form;

/// A ConfigMap as it is kept.
pub(crate) type Map = Form<ConfigMap>;

/// A namespace, changed around the proxy.
pub(crate) struct Objects {
    pub(crate) api: Api<ConfigMap>,
    pub(crate) namespace: String,
}

impl Objects {
    pub(crate) async fn new(arm: &Arm, prefix: &str) -> anyhow::Result<Self> {
        let namespace = arm.namespace(prefix).await?;
        Ok(Self { api: Api::namespaced(arm.direct().clone(), &namespace), namespace })
    }

    /// The path of the collection.
    pub(crate) fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// Options of an informer of this namespace.
    pub(crate) fn options(&self) -> InformerOptions<Map> {
        InformerOptions::new().namespace(&self.namespace)
    }

    /// An informer of this namespace, not started.
    pub(crate) fn informer(&self, scene: &Scene<'_>) -> anyhow::Result<SharedInformer<Map>> {
        scene.informer(self.options())
    }

    /// Creates an object and returns its version.
    pub(crate) async fn create(&self, name: &str, value: &str) -> anyhow::Result<String> {
        self.create_labelled(name, value, &[]).await
    }

    pub(crate) async fn create_labelled(
        &self,
        name: &str,
        value: &str,
        labels: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        let labels: serde_json::Map<_, _> =
            labels.iter().map(|&(key, value)| (key.to_owned(), value.into())).collect();
        let object = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": labels },
            "data": { "value": value },
        }))?;
        let created = self.api.create(&PostParams::default(), &object).await;
        version_of(&created.with_context(|| format!("create {name}"))?)
    }

    /// Creates many objects, in order.
    pub(crate) async fn create_all(&self, names: &[&str]) -> anyhow::Result<()> {
        for name in names {
            self.create(name, "1").await?;
        }
        Ok(())
    }

    /// Changes an object and returns its version.
    pub(crate) async fn change(&self, name: &str, value: &str) -> anyhow::Result<String> {
        self.patch(name, &json!({ "data": { "value": value } })).await
    }

    /// Gives an object a label.
    pub(crate) async fn label(&self, name: &str, key: &str, value: &str) -> anyhow::Result<String> {
        self.patch(name, &json!({ "metadata": { "labels": { key: value } } })).await
    }

    async fn patch(&self, name: &str, change: &serde_json::Value) -> anyhow::Result<String> {
        let patched = self.api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
        version_of(&patched.with_context(|| format!("change {name}"))?)
    }

    pub(crate) async fn delete(&self, name: &str) -> anyhow::Result<()> {
        let deleted = self.api.delete(name, &DeleteParams::default()).await;
        deleted.map(drop).with_context(|| format!("delete {name}"))
    }

    /// Deletes an object and creates another one of its name.
    pub(crate) async fn replace(&self, name: &str) -> anyhow::Result<String> {
        self.delete(name).await?;
        self.create(name, "another").await
    }

    /// Writes the object `marker`, and waits until the informer's store has reached that.
    pub(crate) async fn catch_up(&self, informer: &SharedInformer<Map>) -> anyhow::Result<()> {
        let version = match self.api.get_opt("marker").await? {
            None => self.create("marker", "").await?,
            Some(marker) => {
                let value = marker.data.unwrap_or_default().remove("value").unwrap_or_default();
                self.change("marker", &format!("{value}+")).await?
            }
        };
        let reached = tokio::time::timeout(DEADLINE, informer.wait_for(version.as_str())).await;
        Ok(reached
            .with_context(|| format!("{version} is not reached: {}", informer.status()))??)
    }
}

fn version_of(object: &ConfigMap) -> anyhow::Result<String> {
    object.resource_version().context("the server gives versions")
}
