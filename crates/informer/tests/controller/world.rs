//! A server in the process, and controllers that tell what they do.

use std::sync::Arc;
use std::time::Duration;

use informer::controller::{Action, Context, Controller, ControllerHandle, RunError};
use informer::{SharedInformer, SharedInformerFactory};
use informer_testkit::TestServer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Resource;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::common::{LONG, config_map, soon, value_of};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A server with a factory in the process, so that the clock can be paused.
pub(crate) struct World {
    pub(crate) server: TestServer,
    pub(crate) client: kube::Client,
    pub(crate) factory: SharedInformerFactory,
    pub(crate) maps: SharedInformer<ConfigMap>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let server = TestServer::start().await.unwrap();
        let client = kube::Client::new(server.service(), "default");
        let factory = SharedInformerFactory::builder(client.clone()).build();
        let maps = factory.informer::<ConfigMap>().unwrap();
        Self { server, client, factory, maps }
    }

    pub(crate) fn controller(&self) -> Controller<ConfigMap> {
        Controller::new(self.client.clone(), &self.maps)
    }

    pub(crate) fn set(&self, name: &str, value: &str) {
        self.server.cluster().apply(&config_map(name, value)).unwrap();
    }

    pub(crate) fn delete(&self, resource: &str, name: &str) {
        self.server.cluster().delete(resource, "default", name).unwrap();
    }
}

/// A controller in a task of its own, with the end that stops it.
pub(crate) struct Ran {
    pub(crate) handle: ControllerHandle,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) task: JoinHandle<Result<(), RunError>>,
}

impl Ran {
    pub(crate) async fn stop(self) -> Result<(), RunError> {
        self.stop.send(()).unwrap();
        soon(self.task).await.unwrap()
    }
}

pub(crate) fn start<T, F, R>(controller: Controller<T>, reconcile: F) -> Ran
where
    T: Send + Sync + 'static,
    F: Fn(Arc<T>, Context<()>) -> R + Send + Sync + 'static,
    R: Future<Output = anyhow::Result<Action>> + Send + 'static,
{
    let (stop, stopped) = oneshot::channel();
    let controller = controller.graceful_shutdown_on(async { _ = stopped.await });
    let handle = controller.handle();
    let task = tokio::spawn(controller.run(reconcile, ()));
    Ran { handle, stop, task }
}

/// A controller that only tells what it reconciles.
pub(crate) fn telling(controller: Controller<ConfigMap>) -> (Ran, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        tell.send(format!("{}={}", ctx.key().name(), value_of(&map))).unwrap();
        async { Ok(Action::await_change()) }
    };
    (start(controller, reconcile), told)
}

/// The next, sorted, since the order across keys does not matter.
pub(crate) async fn next(told: &mut mpsc::UnboundedReceiver<String>, count: usize) -> Vec<String> {
    let mut next = Vec::new();
    for _ in 0..count {
        // No thread has a part in this, so the clock may go on.
        let told = tokio::time::timeout(LONG, told.recv()).await.expect("it comes");
        next.push(told.expect("the controller runs"));
    }
    next.sort();
    next
}

/// Nothing more comes, however long it is waited for.
pub(crate) async fn nothing(told: &mut mpsc::UnboundedReceiver<String>) {
    sleep(Duration::from_secs(60)).await;
    assert_eq!(told.try_recv().ok(), None);
}

/// A Secret of a ConfigMap, under a name or one that the server chooses.
pub(crate) fn secret(owner: &ConfigMap, name: Option<&str>) -> Secret {
    let metadata = ObjectMeta {
        name: name.map(str::to_owned),
        generate_name: name.is_none().then(|| "s-".to_owned()),
        owner_references: Some(vec![owner.controller_owner_ref(&()).unwrap()]),
        ..ObjectMeta::default()
    };
    Secret { metadata, ..Secret::default() }
}

pub(crate) fn owned(resource: &str, name: &str, owner: &ConfigMap, label: &str) -> Value {
    let metadata = &owner.metadata;
    let reference = json!({ "apiVersion": "v1", "kind": "ConfigMap", "controller": true,
        "name": metadata.name, "uid": metadata.uid });
    json!({
        "apiVersion": "v1", "kind": resource,
        "metadata": { "name": name, "namespace": "default", "labels": { "l": label }, "ownerReferences": [reference] },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    })
}
