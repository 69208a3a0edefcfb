//! A small controller on a work queue by hand, as Kubernetes' sample-controller is one: a `PodSet`
//! asks for a number of Pods, and has them. The example `controller` leaves most of this to the
//! library.
//!
//! ```text
//! cargo run --example workqueue -- crd | kubectl apply -f -
//! cargo run --example workqueue
//! ```
//!
//! A PodSet's Pods are those that name it, by its UID, as their controller; whatever others own is
//! not touched. Deleting a PodSet is left to the garbage collector, which follows the same owner
//! references.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use informer::workqueue::{Enqueue, WorkQueue};
use informer::{
    Index, Lister, ObjectKey, Resource, SharedInformer, SharedInformerFactory, indexes,
};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::{Api, Client, CustomResource, Resource as _, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How long a look waits until the stores show what an earlier one wrote.
const OWN_WRITES: Duration = Duration::from_secs(5);

#[derive(CustomResource, Serialize, Deserialize, Debug, Clone)]
#[kube(
    group = "samples.example.com",
    version = "v1",
    kind = "PodSet",
    plural = "podsets",
    namespaced
)]
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
    // What fails is logged: the library says what it tries again.
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).init();
    let client = Client::try_default().await?;
    let factory =
        SharedInformerFactory::builder(client.clone()).resync(Duration::from_secs(600)).build();
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
    let (set_lister, pod_lister) = (sets.synced().await?, pods.synced().await?);
    let written = Mutex::default();
    let controller =
        Arc::new(Controller { client, sets, set_lister, pods, pod_lister, by_owner, written });
    println!("watching {} PodSets", controller.set_lister.len());

    // An error, such as a conflict, means: again, a little later each time.
    let work = move |key: ObjectKey| {
        let controller = Arc::clone(&controller);
        async move { controller.reconcile(&key).await }
    };
    let until_interrupted = async {
        _ = tokio::signal::ctrl_c().await;
        queue.shutdown(); // what was begun is finished,
        factory.shutdown().await; // but does not wait for stores any more
    };
    tokio::join!(queue.run_workers(4, work), until_interrupted);
    Ok(())
}

struct Controller {
    client: Client,
    sets: SharedInformer<PodSet>,
    set_lister: Lister<PodSet>,
    pods: SharedInformer<Pod>,
    pod_lister: Lister<Pod>,
    by_owner: Index<Pod>,
    /// The Pod that was written last for each PodSet, and in which epoch of the server's history,
    /// until the store is known to have reached it.
    written: Mutex<HashMap<ObjectKey, (u64, Pod)>>,
}

impl Controller {
    /// Makes the world as one PodSet wants it. Knows nothing of what has changed, only what is.
    async fn reconcile(&self, key: &ObjectKey) -> anyhow::Result<()> {
        // Also if the last look gave up waiting: from an older store it would all be done once
        // more.
        self.see_written(key).await?;
        let Some(set) = self.set_lister.get(key) else { return Ok(()) };
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let pods = Api::namespaced(self.client.clone(), key.namespace());
        let mut own = self.own_pods(&set)?;
        let wanted = set.spec.replicas;
        for _ in own.len()..wanted {
            let created = create_pod(&pods, &set).await?;
            self.wrote(key, created);
        }
        // Those that are ready stay, then the oldest.
        own.sort_by_key(|pod| {
            (!is_ready(pod), pod.metadata.creation_timestamp.clone(), pod.name_any())
        });
        for pod in own.iter().skip(wanted) {
            if let Some(ending) = delete_pod(&pods, pod).await? {
                self.wrote(key, ending);
            }
        }
        self.see_written(key).await?;
        self.update_status(&set).await
    }

    fn wrote(&self, key: &ObjectKey, pod: Pod) {
        let epoch = self.pod_lister.snapshot().epoch();
        self.written.lock().unwrap().insert(key.clone(), (epoch, pod));
    }

    /// Waits until the store shows what was written for a PodSet.
    async fn see_written(&self, key: &ObjectKey) -> anyhow::Result<()> {
        let Some((epoch, pod)) = self.written.lock().unwrap().get(key).cloned() else {
            return Ok(());
        };
        // A version of another history means nothing; the list that began this one is newer than
        // the write.
        if self.pod_lister.snapshot().epoch() == epoch {
            self.pods.wait_for_object_within(&pod, OWN_WRITES).await?;
        }
        self.written.lock().unwrap().remove(key); // no other worker has this key
        Ok(())
    }

    /// The Pods that `set` controls, without those that end or have ended.
    fn own_pods(&self, set: &PodSet) -> anyhow::Result<Vec<Arc<Pod>>> {
        let uid = set.uid().context("it has a UID")?;
        let mut pods = self.pod_lister.by_index(&self.by_owner, &uid)?;
        // The index knows all owners of a Pod; one of them controls it.
        pods.retain(|pod| {
            pod.owner_references()
                .iter()
                .any(|owner| owner.uid == uid && owner.controller == Some(true))
        });
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none() && !has_ended(pod));
        Ok(pods)
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
        // With the version of what was looked at: if somebody was faster this is a conflict, and
        // tried again.
        let mut set = set.clone();
        set.status = Some(status);
        let sets =
            Api::<PodSet>::namespaced(self.client.clone(), &set.namespace().unwrap_or_default());
        let written = sets.replace_status(&set.name_any(), &PostParams::default(), &set).await;
        let written = written.context("writing the status")?;
        // A key queued meanwhile would be written from the older copy, and that is a conflict.
        Ok(self.sets.wait_for_object_within(&written, OWN_WRITES).await?)
    }
}

async fn create_pod(pods: &Api<Pod>, set: &PodSet) -> anyhow::Result<Pod> {
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
    Ok(created)
}

/// Returns the Pod if it lives on for a while, to end in good order.
async fn delete_pod(pods: &Api<Pod>, pod: &Pod) -> anyhow::Result<Option<Pod>> {
    // This very one: by now another may have its name.
    let preconditions = Preconditions { uid: pod.uid(), resource_version: None };
    let parameters = DeleteParams::default().preconditions(preconditions);
    match pods.delete(&pod.name_any(), &parameters).await {
        Ok(answer) => {
            println!("deleted {}", pod.name_any());
            Ok(answer.left())
        }
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(None),
        Err(error) => Err(error).context("deleting a Pod"),
    }
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
