//! The whole API in one screen: a factory, a handler, an index, a lister.
//!
//! Runs against the current context of your kubeconfig: `cargo run --example quickstart`

use std::time::Duration;

use informer::SharedInformerFactory;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = kube::Client::try_default().await?;
    let factory = SharedInformerFactory::builder(client)
        .namespace("default")
        .resync(Duration::from_secs(5))
        .build();

    // The same informer every time; a cheap handle to clone.
    let pods = factory.informer::<Pod>()?;
    // Closures, a trait impl (`add_event_handler`), or a stream (`events`).
    let printer = pods.add_handler(|h| {
        h.on_add(|pod, _initial| println!("add {}", pod.name_any()))
            .on_update(|_old, new, reason| println!("update {} ({reason:?})", new.name_any()))
            .on_delete(|gone| println!("delete {}", gone.last.name_any()))
    })?;
    let by_node = pods.add_index("node", |pod: &Pod, out| out.extend(node_name(pod))).await?;

    factory.start(); // returns at once; may be called again
    let lister = pods.synced_within(Duration::from_secs(30)).await?; // the lister comes out of waiting
    printer.synced().await?; // and this handler has seen them all

    for pod in lister.namespace("default").select("app=web")?.iter() {
        println!("web: {}", pod.name_any());
    }
    for pod in lister.by_index(&by_node, "node-1")? {
        println!("on node-1: {}", pod.name_any());
    }

    let deployments = factory.for_resource("apps", "v1", "deployments").await?; // dynamic; CRDs too
    println!("{} deployments", deployments.synced().await?.len());

    factory.shutdown().await;
    Ok(())
}

fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}
