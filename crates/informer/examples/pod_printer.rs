//! Prints every add, update and delete of the Pods in the namespace `default`; a resync every 5 s
//! shows each of them again as an update.
//!
//! Runs until Ctrl-C, or for as many seconds as its argument says:
//! `cargo run --example pod_printer -- 20`

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
    let pods = factory.informer::<Pod>()?;
    pods.add_handler(|h| {
        h.on_add(|pod, _initial| println!("add a pod: {}", pod.name_any()))
            .on_update(|old, new, _reason| {
                println!("update a pod: {} {}", old.name_any(), new.name_any())
            })
            .on_delete(|gone| println!("delete a pod: {}", gone.last.name_any()))
    })?;
    factory.start();
    factory.wait_for_sync_within(Duration::from_secs(30)).await?;

    match std::env::args().nth(1) {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds.parse()?)).await,
        None => tokio::signal::ctrl_c().await?,
    }
    factory.shutdown().await;
    Ok(())
}
