//! An operator that exposes its own caches: a dashboard or a sidecar reads them with kubectl,
//! client-go or curl, and the API server has one watch for all.
//!
//! ```sh
//! cargo run -p informer-serve --example operator
//! kubectl --server http://127.0.0.1:8889 get pods -A --watch
//! ```

use informer::{InformerOptions, Resource, SharedInformerFactory};
use informer_serve::{Endpoint, Object, Options};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let factory = SharedInformerFactory::builder(Client::try_default().await?).build();
    let pods = factory.informer_as::<Object>(Resource::of::<Pod>(), InformerOptions::new())?;
    pods.add_handler(|handlers| {
        handlers.on_add(|pod, _| match pod.decode_as::<Pod>() {
            Ok(pod) => println!("reconciling {:?}", pod.metadata.name),
            Err(error) => eprintln!("{}: {error}", pod.name()),
        })
    })?;
    factory.start();

    // From here on it is the endpoint: the same informer, served.
    let options = Options { cache: vec!["pods".to_owned()], ..Options::default() };
    let listener = TcpListener::bind("127.0.0.1:8889").await?;
    let ctrl_c = async { drop(tokio::signal::ctrl_c().await) };
    Endpoint::over(factory, options).serve(listener, ctrl_c).await;
    Ok(())
}
