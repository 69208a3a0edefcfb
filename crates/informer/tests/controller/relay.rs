//! A client that holds watches back and loses answers, and keeps account of what was written.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::world::ms;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

pub(crate) struct Relay {
    random: Mutex<fastrand::Rng>,
    account: Mutex<Account>,
}

/// What was written through the relay, whether the answers arrived or not.
#[derive(Default)]
struct Account {
    /// The version of each ConfigMap, by UID.
    owners: BTreeMap<String, u64>,
    /// By the UID of the owner, and the name.
    children: BTreeMap<String, BTreeMap<String, Child>>,
    created: usize,
    lost: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Child {
    Created,
    Deleted,
}

impl Relay {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Arc::new(Self { random, account: Mutex::default() })
    }

    pub(crate) fn client(self: &Arc<Self>, client: &Client) -> Client {
        let (relay, client) = (Arc::clone(self), client.clone());
        let serve = move |request: Request<Body>| {
            let (relay, client) = (Arc::clone(&relay), client.clone());
            async move { relay.serve(&client, request).await }
        };
        Client::new(tower::service_fn(serve), "default")
    }

    /// How many children were created, and how many answers were lost.
    pub(crate) fn totals(&self) -> (usize, usize) {
        let account = self.account.lock().unwrap();
        (account.created, account.lost)
    }

    /// Somebody else has deleted a child.
    pub(crate) fn forget(&self, child: &str) {
        for children in self.account.lock().unwrap().children.values_mut() {
            children.remove(child);
        }
    }

    /// What a reconcile is given that is older than a write of its key.
    pub(crate) fn stale(&self, map: &ConfigMap, shown: &BTreeSet<String>) -> Vec<String> {
        let account = self.account.lock().unwrap();
        let uid = map.metadata.uid.as_ref().unwrap();
        let version: u64 = map.metadata.resource_version.as_ref().unwrap().parse().unwrap();
        let written = account.owners.get(uid).filter(|written| **written > version);
        let of_owner = written.map(|it| format!("{uid} at {version}, which was written at {it}"));
        let children = account.children.get(uid).into_iter().flatten();
        let of_children = children.filter_map(|(name, written)| {
            let is_stale = shown.contains(name) != (*written == Child::Created);
            is_stale.then(|| format!("{name}, which was {written:?}"))
        });
        of_owner.into_iter().chain(of_children).collect()
    }

    async fn serve(&self, client: &Client, request: Request<Body>) -> Result<Answer, BoxError> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if method.is_safe() {
            let (parts, body) = client.send(request).await?.into_parts();
            let body = if is_watch { self.held_back(body) } else { boxed(body) };
            return Ok(Response::from_parts(parts, body));
        }
        sleep(self.up_to(ms(30))).await;
        let (parts, body) = client.send(request).await?.into_parts();
        let body = body.collect_bytes().await?;
        let is_lost = self.random.lock().unwrap().u8(0..20) == 0;
        if parts.status.is_success() {
            self.note(&method, &path, &body, is_lost);
        }
        sleep(self.up_to(ms(30))).await;
        if is_lost {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        Ok(Response::from_parts(parts, boxed(Full::new(body))))
    }

    fn note(&self, method: &Method, path: &str, body: &[u8], is_lost: bool) {
        let object: Value = serde_json::from_slice(body).unwrap();
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut account = self.account.lock().unwrap();
        account.lost += usize::from(is_lost);
        let name = path.rsplit('/').next().unwrap();
        match (method, path.contains("/secrets")) {
            (&Method::POST, true) => {
                let owner = text(&metadata["ownerReferences"][0]["uid"]);
                let children = account.children.entry(owner).or_default();
                children.insert(text(&metadata["name"]), Child::Created);
                account.created += 1;
            }
            (&Method::DELETE, true) => {
                for children in account.children.values_mut() {
                    children.entry(name.to_owned()).and_modify(|it| *it = Child::Deleted);
                }
            }
            _ => {
                let version = text(&metadata["resourceVersion"]).parse().unwrap();
                account.owners.insert(text(&metadata["uid"]), version);
            }
        }
    }

    /// Each piece comes up to three seconds late, and none overtakes another.
    fn held_back(&self, body: Body) -> UnsyncBoxBody<Bytes, BoxError> {
        let mut random = self.random.lock().unwrap().fork();
        let (send, receive) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut frames = BodyStream::new(body);
            loop {
                let frame = tokio::select! {
                    () = send.closed() => return,
                    frame = frames.next() => frame,
                };
                let Some(frame) = frame else { return };
                let late =
                    if random.u8(0..4) == 0 { random.u64(0..3000) } else { random.u64(0..20) };
                _ = send.send((Instant::now() + ms(late), frame));
            }
        });
        let late = stream::unfold(receive, async |mut receive| {
            let (at, frame) = receive.recv().await?;
            sleep_until(at).await;
            Some((frame, receive))
        });
        boxed(StreamBody::new(late))
    }

    fn up_to(&self, most: Duration) -> Duration {
        most.mul_f64(self.random.lock().unwrap().f64())
    }
}

fn boxed<B>(body: B) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}
