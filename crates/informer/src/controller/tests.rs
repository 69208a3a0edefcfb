//! Own writes, on the test kit under a paused clock: without a reconcile loop.

mod ends;
mod outcomes;
mod refused;
mod shown;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use informer_testkit::{Cut, Fault, FaultHandle, TestServer, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::ObjectMeta;
use kube::client::Body;

use super::error::{NotCaughtUp, NotShown};
use super::gate::Gate;
use super::own_writes::OwnWrites;
use super::writer::Writer;
use crate::{Lister, ObjectKey, SharedInformer, SharedInformerFactory};

/// The deadline of waits, as the loop has it.
const DEADLINE: Duration = Duration::from_secs(5);

/// A server, an informer of ConfigMaps, and a writer of the key `default/owner`.
struct Bed {
    server: TestServer,
    factory: SharedInformerFactory,
    maps: SharedInformer<ConfigMap>,
    own: Arc<OwnWrites>,
    writer: Writer,
}

impl Bed {
    async fn new() -> Self {
        let server = TestServer::start().await.expect("a free port");
        let client = Client::new(server.service(), "default");
        Self::over(server, client).await
    }

    /// One whose writes go through a client of their own.
    async fn over(server: TestServer, client: Client) -> Self {
        let factory =
            SharedInformerFactory::builder(Client::new(server.service(), "default")).build();
        let maps = factory.informer::<ConfigMap>().expect("ConfigMaps");
        let own = OwnWrites::new(client);
        own.follow(&maps);
        let writer = own.writer(owner(), Gate::new(None));
        factory.start();
        maps.synced().await.expect("a list");
        Self { server, factory, maps, own, writer }
    }

    /// Adds another informer, and waits for its first list.
    async fn follow<T: Send + Sync + 'static>(&self, informer: &SharedInformer<T>) {
        self.own.follow(informer);
        self.factory.start();
        informer.synced().await.expect("a list");
    }

    /// Holds back what watches have to say from now on.
    fn hold_watches(&self) -> FaultHandle {
        self.server.faults().inject(Fault::stall_after(0).on(Verb::Watch))
    }

    /// Ends the open watches, and refuses others from now on.
    fn break_watches(&self) -> FaultHandle {
        let broken = self.server.faults().inject(Fault::unavailable().on(Verb::Watch));
        self.server.faults().cut_watches(Cut::Close, None);
        broken
    }

    async fn caught_up(&self) -> Result<(), NotCaughtUp> {
        self.own.caught_up(&owner(), DEADLINE).await
    }

    /// The present writes are not shown while watches are held, and are once they go on.
    async fn is_waited_for(&self, held: FaultHandle) {
        let key = owner();
        let mut wait = pin!(self.own.caught_up(&key, DEADLINE));
        let early = tokio::time::timeout(Duration::from_secs(1), &mut wait).await;
        assert!(early.is_err(), "it returned before the store showed the write: {early:?}");
        held.lift();
        wait.await.expect("the watch goes on");
        assert_eq!(self.own.metrics().remembered, 0);
    }

    fn lister(&self) -> Lister<ConfigMap> {
        self.maps.unsynced_store()
    }

    fn value(&self, name: &str) -> Option<String> {
        self.lister().find("default", name).map(|map| value_of(&map))
    }

    /// What is missing at the deadline.
    async fn not_shown(&self) -> Vec<NotShown> {
        self.caught_up().await.expect_err("something is missing").missing
    }

    fn requests(&self, verb: Verb) -> usize {
        self.server.requests().verb(verb).resource("configmaps").len()
    }
}

/// The key whose reconciles write.
fn owner() -> ObjectKey {
    ObjectKey::namespaced("default", "owner")
}

fn map(name: &str, value: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let data = [("value".to_owned(), value.to_owned())].into();
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

fn labelled(mut map: ConfigMap, app: &str) -> ConfigMap {
    map.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
    map
}

fn value_of(map: &ConfigMap) -> String {
    map.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default()
}

/// A client of the server that answers some requests itself.
fn answering<F>(server: &TestServer, answer: F) -> Client
where
    F: Fn(&Request<Body>) -> Option<(u16, String)> + Clone + Send + 'static,
{
    let client = Client::new(server.service(), "default");
    let serve = move |request: Request<Body>| {
        let (client, answered) = (client.clone(), answer(&request));
        async move {
            let response = match answered {
                Some((code, body)) => {
                    let body = Body::from(body.into_bytes());
                    Response::builder().status(code).body(body).expect("a response")
                }
                None => client.send(request).await?,
            };
            Ok::<_, kube::Error>(response)
        }
    };
    Client::new(tower::service_fn(serve), "default")
}

/// A client whose creates wait for a connection.
fn delayed(server: &TestServer, delay: Duration) -> Client {
    let client = Client::new(server.service(), "default");
    let serve = move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if request.method() == http::Method::POST {
                tokio::time::sleep(delay).await;
            }
            client.send(request).await
        }
    };
    Client::new(tower::service_fn(serve), "default")
}

/// A client that is never answered.
fn unanswered() -> Client {
    let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>();
    Client::new(tower::service_fn(never), "default")
}
