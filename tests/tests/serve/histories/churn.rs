//! What happens to the Pods meanwhile: created, labelled, deleted, replaced.

use std::time::Duration;

use anyhow::Context;
use informer_tests::fixtures::pod;
use informer_tests::harness::Arm;
use informer_tests::helpers::{eventually_ok, raw_list};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// Objects that there may be, half of them in each namespace.
const SLOTS: usize = 24;

/// How long the server may take to come back.
const SOON: Duration = Duration::from_secs(60);

/// The label that a selector asks for, and its values.
pub(crate) const LABEL: &str = "tier";
pub(crate) const TIERS: [&str; 2] = ["gold", "silver"];

/// The nodes of Pods; a selector asks for the first.
pub(crate) const NODES: [&str; 2] = ["node-1", "node-2"];

/// Writes to the API server, past everything that is tested.
pub(crate) struct Churn {
    client: Client,
    pub(crate) namespaces: [String; 2],
    exists: Vec<bool>,
    pub(crate) random: fastrand::Rng,
}

impl Churn {
    pub(crate) async fn new(arm: &Arm, seed: u64) -> anyhow::Result<Self> {
        let namespaces = [arm.namespace("history").await?, arm.namespace("history").await?];
        let random = fastrand::Rng::with_seed(seed);
        Ok(Self { client: arm.direct().clone(), namespaces, exists: vec![false; SLOTS], random })
    }

    /// So many random writes, one after the other.
    pub(crate) async fn writes(&mut self, count: usize) -> anyhow::Result<()> {
        for _ in 0..count {
            let slot = self.random.usize(..SLOTS);
            match self.random.u32(..10) {
                _ if !self.exists[slot] => self.create(slot).await?,
                0..4 => {
                    let labels = json!({ LABEL: TIERS[self.random.usize(..TIERS.len())] });
                    self.patch(slot, json!({ "labels": labels })).await?;
                }
                4 | 5 => {
                    let annotations = json!({ "nonce": self.random.u32(..).to_string() });
                    self.patch(slot, json!({ "annotations": annotations })).await?;
                }
                6 | 7 => self.delete(slot).await?,
                _ => {
                    self.delete(slot).await?;
                    self.create(slot).await?;
                }
            }
        }
        Ok(())
    }

    /// The version that the collection has now.
    pub(crate) async fn version(&self) -> anyhow::Result<u64> {
        let version =
            async || informer_tests::helpers::current_version(&self.client, "/api/v1/pods").await;
        Ok(eventually_ok("the server lists", SOON, version).await?.parse()?)
    }

    /// Looks which objects there are, after the server has lost some.
    pub(crate) async fn learn(&mut self) -> anyhow::Result<()> {
        let list = async || raw_list(&self.client, "/api/v1/pods").await;
        let there = eventually_ok("the server lists", SOON, list).await?;
        for slot in 0..SLOTS {
            let key = format!("{}/{}", self.namespace(slot), name(slot));
            self.exists[slot] = there.contains_key(&key);
        }
        Ok(())
    }

    async fn create(&mut self, slot: usize) -> anyhow::Result<()> {
        let tier = TIERS[self.random.usize(..TIERS.len())];
        let mut pod = pod(self.namespace(slot), &name(slot), &[(LABEL, tier)]);
        let node = NODES[self.random.usize(..NODES.len())];
        pod.spec.as_mut().context("a spec")?.node_name = Some(node.to_owned());
        let create = async || {
            let created = self.pods(slot).create(&PostParams::default(), &pod).await;
            // It was created, and the answer got lost.
            done(409, created.map(|pod| pod.uid()))
        };
        eventually_ok("a Pod is created", SOON, create).await?;
        self.exists[slot] = true;
        Ok(())
    }

    async fn patch(&self, slot: usize, metadata: Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let patch = async || {
            let parameters = PatchParams::default();
            Ok(self.pods(slot).patch(&name(slot), &parameters, &patch).await.map(drop)?)
        };
        eventually_ok("a Pod is changed", SOON, patch).await
    }

    async fn delete(&mut self, slot: usize) -> anyhow::Result<()> {
        // A Pod with a node waits for its kubelet otherwise, and there is none.
        let now = DeleteParams::default().grace_period(0);
        let delete = async || done(404, self.pods(slot).delete(&name(slot), &now).await);
        eventually_ok("a Pod is deleted", SOON, delete).await?;
        self.exists[slot] = false;
        Ok(())
    }

    fn pods(&self, slot: usize) -> Api<Pod> {
        Api::namespaced(self.client.clone(), self.namespace(slot))
    }

    fn namespace(&self, slot: usize) -> &str {
        &self.namespaces[slot % 2]
    }
}

fn name(slot: usize) -> String {
    format!("pod-{slot:02}")
}

fn done<T>(moot: u16, answer: kube::Result<T>) -> anyhow::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == moot => Ok(()),
        answer => Ok(answer.map(drop)?),
    }
}
