//! Lists from the cache once it has synced: the Deployments of all namespaces, by label and by
//! namespace.
//!
//! `cargo run --example list_after_sync -- app=web`

use std::time::Duration;

use informer::SharedInformerFactory;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let selector = std::env::args().nth(1).unwrap_or_default();
    let factory = SharedInformerFactory::builder(kube::Client::try_default().await?).build();
    let deployments = factory.informer::<Deployment>()?;
    factory.start();

    // There is no lister before the first list: nobody mistakes an empty cache for an empty
    // cluster.
    let lister = deployments.synced_within(Duration::from_secs(30)).await?;
    println!("{} deployments at version {}", lister.len(), lister.snapshot().version());
    for deployment in lister.select(&selector)?.iter() {
        let namespace = deployment.namespace().unwrap_or_default();
        println!("{namespace}/{}", deployment.name_any());
    }
    println!(
        "{} of them in kube-system",
        lister.namespace("kube-system").select(&selector)?.count()
    );

    factory.shutdown().await;
    Ok(())
}
