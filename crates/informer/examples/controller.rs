//! A small controller, as Kubernetes' sample-controller is one: a `PodSet` asks for a number of Pods, and has them.
//!
//! ```text
//! cargo run --example controller -- crd | kubectl apply -f -
//! cargo run --example controller
//! ```
//!
//! A PodSet's Pods are those that name it, by its UID, as their controller; whatever others own is not touched. Deleting a
//! PodSet is left to the garbage collector, which follows the same owner references.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use informer::workqueue::{Enqueue, WorkQueue};
use informer::{Index, Lister, ObjectKey, Resource, SharedInformer, SharedInformerFactory, indexes};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::{Api, Client, CustomResource, Resource as _, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Serialize, Deserialize, Debug, Clone)]
#[kube(group = "samples.example.com", version = "v1", kind = "PodSet", plural = "podsets", namespaced)]
#[kube(schema = "disabled", status = "PodSetStatus")]
struct PodSetSpec {
    replicas: usize,
    image: String,
}

#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
struct PodSetStatus {
    replicas: usize,
    ready_replicas: usize,
    observed_generation: Option<i64>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("crd") {
        println!("{:#}", definition());
        return Ok(());
    }
    let client = Client::try_default().await?;
    let factory = SharedInformerFactory::builder(client.clone()).resync(Duration::from_secs(600)).build();
    let sets = factory.informer::<PodSet>()?;
    let pods = factory.informer::<Pod>()?;
    let by_owner = indexes::by_owner_uid();
    pods.add_ready_index(&by_owner).await?;

    // A PodSet is looked at when it changes, and when one of its Pods does.
    let queue = WorkQueue::new("podsets");
    sets.add_event_handler(Enqueue::object(&queue))?;
    pods.add_event_handler(Enqueue::owner(&queue, &Resource::of::<PodSet>()))?;
    factory.start();

    // Only workers that see everything may decide what is missing.
    factory.wait_for_sync().await?;
    let (sets, pod_lister) = (sets.synced().await?, pods.synced().await?);
    let controller = Arc::new(Controller { client, sets, pods, pod_lister, by_owner });
    println!("watching {} PodSets", controller.sets.len());

    let work = move |key: ObjectKey| {
        let controller = Arc::clone(&controller);
        // An error, such as a conflict, means: again, a little later each time.
        async move { controller.reconcile(&key).await.inspect_err(|error| eprintln!("PodSet {key}: {error:#}")) }
    };
    let until_interrupted = async {
        _ = tokio::signal::ctrl_c().await;
        queue.shutdown(); // what was begun is finished
    };
    tokio::join!(queue.run_workers(4, work), until_interrupted);
    factory.shutdown().await;
    Ok(())
}

struct Controller {
    client: Client,
    sets: Lister<PodSet>,
    pods: SharedInformer<Pod>,
    pod_lister: Lister<Pod>,
    by_owner: Index<Pod>,
}

impl Controller {
    /// Makes the world as one PodSet wants it. Knows nothing of what has changed, only what is.
    async fn reconcile(&self, key: &ObjectKey) -> anyhow::Result<()> {
        let Some(set) = self.sets.get(key) else { return Ok(()) };
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let pods = Api::namespaced(self.client.clone(), key.namespace());
        let mut own = self.own_pods(&set)?;
        let wanted = set.spec.replicas;
        for _ in own.len()..wanted {
            self.create_pod(&pods, &set).await?;
        }
        // Those that are ready stay, then the oldest.
        own.sort_by_key(|pod| (!is_ready(pod), pod.metadata.creation_timestamp.clone(), pod.name_any()));
        for pod in own.iter().skip(wanted) {
            delete_pod(&pods, pod).await?;
        }
        self.update_status(&set).await
    }

    /// The Pods that `set` controls, without those that end or have ended.
    fn own_pods(&self, set: &PodSet) -> anyhow::Result<Vec<Arc<Pod>>> {
        let uid = set.uid().context("it has a UID")?;
        let mut pods = self.pod_lister.by_index(&self.by_owner, &uid)?;
        // The index knows all owners of a Pod; one of them controls it.
        pods.retain(|pod| {
            pod.owner_references().iter().any(|owner| owner.uid == uid && owner.controller == Some(true))
        });
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none() && !has_ended(pod));
        Ok(pods)
    }

    async fn create_pod(&self, pods: &Api<Pod>, set: &PodSet) -> anyhow::Result<()> {
        let (name, image) = ("main".to_owned(), Some(set.spec.image.clone()));
        let container = Container { name, image, ..Container::default() };
        let pod = Pod {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}-", set.name_any())),
                owner_references: Some(vec![set.controller_owner_ref(&()).context("it has a UID")?]),
                labels: Some([("podset".to_owned(), set.name_any())].into()),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            status: None,
        };
        let created = pods.create(&PostParams::default(), &pod).await.context("creating a Pod")?;
        println!("created {} for PodSet {}", created.name_any(), set.name_any());
        // The next look must see it, or it would create one more.
        self.pods.wait_for(created.resource_version().unwrap_or_default().as_str()).await?;
        Ok(())
    }

    async fn update_status(&self, set: &PodSet) -> anyhow::Result<()> {
        let own = self.own_pods(set)?;
        let status = PodSetStatus {
            replicas: own.len(),
            ready_replicas: own.iter().filter(|pod| is_ready(pod)).count(),
            observed_generation: set.metadata.generation,
        };
        if set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        // With the version of what was looked at: if somebody was faster this is a conflict, and tried again.
        let mut set = set.clone();
        set.status = Some(status);
        let sets = Api::<PodSet>::namespaced(self.client.clone(), &set.namespace().unwrap_or_default());
        sets.replace_status(&set.name_any(), &PostParams::default(), &set)
            .await
            .context("writing the status")?;
        Ok(())
    }
}

async fn delete_pod(pods: &Api<Pod>, pod: &Pod) -> anyhow::Result<()> {
    // This very one: by now another may have its name.
    let preconditions = Preconditions { uid: pod.uid(), resource_version: None };
    let parameters = DeleteParams::default().preconditions(preconditions);
    match pods.delete(&pod.name_any(), &parameters).await {
        Ok(_) => println!("deleted {}", pod.name_any()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
        Err(error) => return Err(error).context("deleting a Pod"),
    }
    Ok(())
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn definition() -> serde_json::Value {
    let integer = json!({ "type": "integer" });
    let spec = json!({ "type": "object", "required": ["replicas", "image"],
        "properties": { "replicas": { "type": "integer", "minimum": 0 }, "image": { "type": "string" } } });
    let status = json!({ "type": "object",
        "properties": { "replicas": integer, "readyReplicas": integer, "observedGeneration": integer } });
    let schema = json!({ "type": "object", "properties": { "spec": spec, "status": status } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "podsets.samples.example.com" },
        "spec": { "group": "samples.example.com", "scope": "Namespaced",
            "names": { "plural": "podsets", "singular": "podset", "kind": "PodSet", "listKind": "PodSetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema } }] },
    })
}
