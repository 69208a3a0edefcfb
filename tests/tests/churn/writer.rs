//! The outside world: what creates, changes and deletes objects while everybody watches.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use futures_util::stream::{self, StreamExt};
use informer_tests::fixtures::{Widget, pod, widget};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

/// The label that is asked for, and its values.
pub(crate) const LABEL: &str = "example.com/tier";
const TIERS: [&str; 3] = ["gold", "silver", "bronze"];

/// Never touched by a round; its patch is the last write before a quiet point.
const MARKER: &str = "marker";

/// Requests that are under way at a time.
const PARALLEL: usize = 16;

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(20);

/// Which objects of a kind are changed more often than others, so that changes of one key meet.
const HOT: usize = 12;

/// What kind of object an operation is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Pod,
    Widget,
}

/// One operation on one object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    kind: Kind,
    slot: usize,
    verb: Verb,
    /// Makes the change one.
    nonce: u64,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Create,
    Label,
    Annotate,
    Status,
    Delete,
    /// Delete, and create under the same name.
    Replace,
}

/// What became of a round's operations.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) done: usize,
    /// Refused because of another operation on the same object (404, 409).
    pub(crate) moot: usize,
    /// What else went wrong: nothing, if the server lives.
    pub(crate) failed: Vec<String>,
}

/// Plans operations with a seeded randomness and carries them out with a client of its own.
pub(crate) struct Writer {
    namespaces: Vec<String>,
    pods: Objects,
    widgets: Objects,
    random: Random,
    /// Operations tried since the start.
    tried: watch::Sender<usize>,
}

/// The objects of a kind: as many as slots, each at a place of its own, or absent.
struct Objects {
    client: Client,
    resource: ApiResource,
    exists: Vec<bool>,
}

impl Writer {
    pub(crate) fn new(
        client: &Client,
        namespaces: Vec<String>,
        pods: usize,
        widgets: usize,
        seed: u64,
    ) -> Self {
        let objects = |resource, slots| Objects {
            client: client.clone(),
            resource,
            exists: vec![false; slots],
        };
        Self {
            namespaces,
            pods: objects(ApiResource::erase::<Pod>(&()), pods),
            widgets: objects(ApiResource::erase::<Widget>(&()), widgets),
            random: Random(seed),
            tried: watch::Sender::new(0),
        }
    }

    /// Creates of the slots from `first` to before `end`.
    pub(crate) fn creates(&mut self, kind: Kind, first: usize, end: usize) -> Vec<Operation> {
        let create = |slot| Operation { kind, slot, verb: Verb::Create, nonce: self.random.next() };
        (first..end).map(create).collect()
    }

    /// A round of random operations, one in five on a Widget.
    pub(crate) fn round(&mut self, operations: usize) -> Vec<Operation> {
        (0..operations)
            .map(|_| {
                let kind = if self.random.below(5) == 0 { Kind::Widget } else { Kind::Pod };
                let slots = self.objects(kind).exists.len();
                let slot = if self.random.below(10) < 3 {
                    self.random.below(HOT)
                } else {
                    self.random.below(slots)
                };
                let verb = match self.random.below(100) {
                    _ if !self.objects(kind).exists[slot] => Verb::Create,
                    0..35 => Verb::Label,
                    35..50 => Verb::Annotate,
                    50..65 => Verb::Status,
                    65..80 => Verb::Delete,
                    _ => Verb::Replace,
                };
                self.expect(kind, slot, !matches!(verb, Verb::Delete));
                Operation { kind, slot, verb, nonce: self.random.next() }
            })
            .collect()
    }

    /// Deletes and replacements of objects all over the place: what an outage hides best.
    pub(crate) fn losses(&mut self, operations: usize) -> Vec<Operation> {
        (0..operations)
            .map(|number| {
                let kind = if number % 5 == 0 { Kind::Widget } else { Kind::Pod };
                let slots = self.objects(kind).exists.len();
                let slot = self.random.below(slots);
                let verb = if number % 2 == 0 { Verb::Replace } else { Verb::Delete };
                self.expect(kind, slot, matches!(verb, Verb::Replace));
                Operation { kind, slot, verb, nonce: self.random.next() }
            })
            .collect()
    }

    /// Learns which objects there are.
    pub(crate) fn learn(&mut self, kind: Kind, collection: &BTreeMap<String, (String, String)>) {
        let slots = self.objects(kind).exists.len();
        for slot in 0..slots {
            let key = format!("{}/{}", self.namespace(slot), name(kind, slot));
            self.expect(kind, slot, collection.contains_key(&key));
        }
    }

    /// Carries out operations, many at a time, and waits for the answers.
    pub(crate) async fn carry_out(&self, operations: Vec<Operation>) -> Outcome {
        let answers = stream::iter(operations).map(async |operation| {
            let answer = timeout(ANSWER, self.carry_out_one(operation)).await;
            self.tried.send_modify(|tried| *tried += 1);
            (operation, answer)
        });
        let mut answers = std::pin::pin!(answers.buffer_unordered(PARALLEL));
        let mut outcome = Outcome::default();
        while let Some((operation, answer)) = answers.next().await {
            match answer {
                Ok(Ok(())) => outcome.done += 1,
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                    outcome.moot += 1
                }
                Ok(Err(error)) => outcome.failed.push(format!("{operation:?}: {error}")),
                Err(_) => {
                    outcome.failed.push(format!("{operation:?}: no answer within {ANSWER:?}"))
                }
            }
        }
        outcome
    }

    /// How many operations were tried since the start.
    pub(crate) fn tried(&self) -> usize {
        *self.tried.borrow()
    }

    /// Waits until so many operations were tried since the start.
    pub(crate) async fn has_tried(&self, operations: usize) {
        let mut tried = self.tried.subscribe();
        // The sender is `self`: it cannot be gone.
        _ = tried.wait_for(|tried| *tried >= operations).await;
    }

    /// Creates the markers.
    pub(crate) async fn create_markers(&self) -> anyhow::Result<()> {
        for kind in [Kind::Pod, Kind::Widget] {
            let object = self.object(kind, 0, MARKER, &[])?;
            self.api(kind, 0).create(&PostParams::default(), &object).await?;
        }
        Ok(())
    }

    /// Changes the marker of a kind and returns its version: the newest of the collection, if all
    /// other writes were answered before.
    pub(crate) async fn mark(&self, kind: Kind, round: usize) -> anyhow::Result<String> {
        let patch =
            Patch::Merge(json!({ "metadata": { "annotations": { "round": round.to_string() } } }));
        let marker = self.api(kind, 0).patch(MARKER, &PatchParams::default(), &patch).await;
        let marker = marker.with_context(|| format!("marking the {kind:?}s of round {round}"))?;
        marker.resource_version().context("the server gave no version")
    }

    async fn carry_out_one(&self, operation: Operation) -> kube::Result<()> {
        let Operation { kind, slot, verb, nonce } = operation;
        let (api, name) = (self.api(kind, slot), name(kind, slot));
        let tier = TIERS[(nonce % 3) as usize];
        let patch = |change: Value| Patch::Merge(change);
        let (create, change) = (PostParams::default(), PatchParams::default());
        // A Pod with a node waits for its kubelet otherwise, and there is none.
        let delete = DeleteParams::default().grace_period(0);
        let object = || self.object(kind, slot, &name, &[(LABEL, tier), ("app", "churn")]);
        match verb {
            Verb::Create => {
                api.create(&create, &object().map_err(kube::Error::SerdeError)?).await.map(drop)
            }
            Verb::Label => {
                let labels = json!({ "metadata": { "labels": { LABEL: tier, "nonce": nonce.to_string() } } });
                api.patch(&name, &change, &patch(labels)).await.map(drop)
            }
            Verb::Annotate => {
                let annotations =
                    json!({ "metadata": { "annotations": { "nonce": nonce.to_string() } } });
                api.patch(&name, &change, &patch(annotations)).await.map(drop)
            }
            Verb::Status if kind == Kind::Pod => {
                let status =
                    json!({ "status": { "phase": "Running", "message": nonce.to_string() } });
                api.patch_status(&name, &change, &patch(status)).await.map(drop)
            }
            // Widgets have no status.
            Verb::Status => {
                let size = json!({ "spec": { "size": nonce >> 12 } });
                api.patch(&name, &change, &patch(size)).await.map(drop)
            }
            Verb::Delete => api.delete(&name, &delete).await.map(drop),
            Verb::Replace => {
                api.delete(&name, &delete).await?;
                api.create(&create, &object().map_err(kube::Error::SerdeError)?).await.map(drop)
            }
        }
    }

    fn object(
        &self,
        kind: Kind,
        slot: usize,
        name: &str,
        labels: &[(&str, &str)],
    ) -> serde_json::Result<DynamicObject> {
        let namespace = self.namespace(slot);
        let object = match kind {
            Kind::Pod => serde_json::to_value(pod(namespace, name, labels)),
            Kind::Widget => serde_json::to_value(widget(namespace, name, labels, "red", 1)),
        };
        serde_json::from_value(object?)
    }

    fn api(&self, kind: Kind, slot: usize) -> Api<DynamicObject> {
        let Objects { client, resource, .. } = self.objects(kind);
        Api::namespaced_with(client.clone(), self.namespace(slot), resource)
    }

    fn namespace(&self, slot: usize) -> &str {
        &self.namespaces[slot % self.namespaces.len()]
    }

    fn objects(&self, kind: Kind) -> &Objects {
        match kind {
            Kind::Pod => &self.pods,
            Kind::Widget => &self.widgets,
        }
    }

    fn expect(&mut self, kind: Kind, slot: usize, exists: bool) {
        match kind {
            Kind::Pod => self.pods.exists[slot] = exists,
            Kind::Widget => self.widgets.exists[slot] = exists,
        }
    }
}

fn name(kind: Kind, slot: usize) -> String {
    match kind {
        Kind::Pod => format!("pod-{slot:04}"),
        Kind::Widget => format!("widget-{slot:03}"),
    }
}

/// SplitMix64: small, seeded, good enough to choose objects by.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
