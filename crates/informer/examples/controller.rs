//! A controller: a `PodSet` has as many Pods as it asks for (`-- crd | kubectl apply -f -` first).

use std::sync::Arc;

use informer::controller::{Action, Context, FinalizerEvent, finalizer, shutdown_signal};
use informer::{Controller, SharedInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use kube::{CustomResource, CustomResourceExt, Resource, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json, to_writer_pretty};

#[derive(CustomResource, Serialize, Deserialize, Debug, Clone)]
#[kube(group = "samples.example.com", version = "v1", kind = "PodSet", namespaced)]
#[kube(schema = "disabled", status = "PodSetStatus")]
struct PodSetSpec {
    replicas: usize,
    image: String,
}

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
struct PodSetStatus {
    replicas: usize,
    ready_replicas: usize,
    observed_generation: Option<i64>,
}

type Pods = Context<SharedInformer<Pod>>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("crd") {
        let mut crd = PodSet::crd();
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        crd.spec.versions[0].schema = from_value(json!({ "openAPIV3Schema": any }))?;
        return Ok(to_writer_pretty(std::io::stdout(), &crd)?);
    }
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).init();
    let factory = SharedInformerFactory::builder(kube::Client::try_default().await?).build();
    let (sets, pods) = (factory.informer::<PodSet>()?, factory.informer::<Pod>()?);
    let controller = Controller::new(factory.client().clone(), &sets).owns(&pods);
    Ok(controller.graceful_shutdown_on(shutdown_signal()).run(reconcile, pods).await?)
}

async fn reconcile(set: Arc<PodSet>, ctx: Pods) -> anyhow::Result<Action> {
    let within = async |event: FinalizerEvent<PodSet>| match event {
        FinalizerEvent::Apply(set) => have_pods(&set, set.spec.replicas, &ctx).await,
        FinalizerEvent::Cleanup(set) => have_pods(&set, 0, &ctx).await,
    };
    finalizer(&ctx, "samples.example.com/pods", set, within).await
}

/// The stores show what earlier reconciles of this set wrote, so nothing is done twice.
async fn have_pods(set: &PodSet, wanted: usize, ctx: &Pods) -> anyhow::Result<Action> {
    let mut own = ctx.owned(ctx.state())?;
    own.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    own.sort_by_key(|pod| (!is_ready(pod), pod.metadata.creation_timestamp.clone()));
    for _ in own.len()..wanted {
        let meta =
            json!({ "generateName": "pod-", "ownerReferences": [set.controller_owner_ref(&())] });
        let spec = json!({ "containers": [{ "name": "main", "image": set.spec.image }] });
        let pod: Pod = ctx.create(&from_value(json!({ "metadata": meta, "spec": spec }))?).await?;
        println!("created {} for PodSet {}", pod.name_any(), set.name_any());
    }
    for pod in own.iter().skip(wanted) {
        ctx.delete(&**pod).await?;
    }
    let (replicas, observed_generation) = (own.len(), set.metadata.generation);
    let ready_replicas = own.iter().filter(|pod| is_ready(pod)).count();
    let status = Some(PodSetStatus { replicas, ready_replicas, observed_generation });
    if set.status != status {
        ctx.replace_status(&PodSet { status, ..set.clone() }).await?;
    }
    Ok(Action::await_change())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
}
