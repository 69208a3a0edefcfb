//! Writes straight into etcd, past the API server, as fast as etcd takes it: one change in each
//! revision, as the API server would write it, of objects that nobody else writes.
//!
//! The API server reads JSON where it would have written Protobuf.

use std::time::Duration;

use anyhow::Context;
use futures_util::future::join_all;
use http::Request;
use k8s_openapi::ByteString;
use kube::{Client, Config};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use informer_testkit::generate::Generator;

use crate::collection::LABEL;
use crate::objects::{Kind, Random, annotations, namespace, tier};

/// Connections to etcd.
const CONNECTIONS: usize = 24;

/// How many objects of each kind there are places for; on average 87 of a hundred exist.
const PLACES: [usize; 3] = [600, 60, 60];

/// The writer of bursts.
pub(crate) struct Burst {
    etcd: Client,
    workers: Vec<Worker>,
}

/// What a burst came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Came {
    pub(crate) writes: u64,
    pub(crate) took: Duration,
}

/// One connection, and the objects that it alone writes.
struct Worker {
    random: Random,
    places: Vec<Place>,
}

struct Place {
    kind: Kind,
    slot: usize,
    name: String,
    /// The identity of the object, while there is one.
    uid: Option<String>,
    /// A Pod's specification and status, as they end its JSON.
    rest: String,
}

#[derive(Serialize)]
struct Put {
    key: ByteString,
    value: ByteString,
}

#[derive(Serialize)]
struct DeleteRange {
    key: ByteString,
}

impl Burst {
    /// A writer to the etcd at `url`.
    ///
    /// # Errors
    ///
    /// When `url` is none.
    pub(crate) fn new(url: &str, seed: u64) -> anyhow::Result<Self> {
        let etcd = Client::try_from(Config::new(url.parse()?))?;
        let places = Kind::ALL.into_iter().zip(PLACES);
        let mut places: Vec<Place> = places
            .flat_map(|(kind, places)| (0..places).map(move |slot| Place::new(kind, slot)))
            .collect();
        let share = places.len().div_ceil(CONNECTIONS);
        let mut workers = Vec::new();
        while !places.is_empty() {
            let rest = places.split_off(share.min(places.len()));
            let random = Random(seed ^ (0xb0_4257 + workers.len() as u64));
            workers.push(Worker { random, places: std::mem::replace(&mut places, rest) });
        }
        Ok(Self { etcd, workers })
    }

    /// Writes until `end`, or until each connection has made `most` changes.
    ///
    /// # Errors
    ///
    /// When etcd refuses.
    pub(crate) async fn write(&mut self, end: Instant, most: usize) -> anyhow::Result<Came> {
        let began = Instant::now();
        let etcd = &self.etcd;
        let work = async |worker: &mut Worker| {
            let mut writes = 0;
            for _ in 0..most {
                if Instant::now() >= end {
                    break;
                }
                writes += worker.change(etcd).await?;
            }
            anyhow::Ok(writes)
        };
        let written = join_all(self.workers.iter_mut().map(work)).await;
        let writes =
            written.into_iter().sum::<anyhow::Result<u64>>().context("a write into etcd")?;
        Ok(Came { writes, took: began.elapsed() })
    }
}

impl Worker {
    /// Creates an object, changes it, deletes it, or puts another one in its place.
    async fn change(&mut self, etcd: &Client) -> anyhow::Result<u64> {
        let place = self.random.below(self.places.len());
        let (what, nonce) = (self.random.below(100), self.random.next());
        let new_uid = uid(&mut self.random);
        let place = &mut self.places[place];
        match (&place.uid, what) {
            (Some(uid), 0..70) => {
                let uid = uid.clone();
                place.put(etcd, &uid, nonce).await?;
                Ok(1)
            }
            (Some(_), 70..85) => {
                place.delete(etcd).await?;
                Ok(1)
            }
            (Some(_), _) => {
                place.delete(etcd).await?;
                place.put(etcd, &new_uid, nonce).await?;
                Ok(2)
            }
            (None, _) => {
                place.put(etcd, &new_uid, nonce).await?;
                Ok(1)
            }
        }
    }
}

impl Place {
    fn new(kind: Kind, slot: usize) -> Self {
        let name = format!("burst-{slot:04}");
        let rest = match kind {
            Kind::Pod => {
                let text = Generator::default().pod(slot, 40);
                text.split_once(",\"spec\":")
                    .map(|(_, rest)| format!(",\"spec\":{rest}"))
                    .unwrap_or_default()
            }
            _ => String::new(),
        };
        Self { kind, slot, name, uid: None, rest }
    }

    async fn put(&mut self, etcd: &Client, uid: &str, nonce: u64) -> anyhow::Result<()> {
        let value = self.value(uid, nonce).into_bytes();
        let put = Put { key: self.key(), value: ByteString(value) };
        post(etcd, "/v3/kv/put", &put).await?;
        self.uid = Some(uid.to_owned());
        Ok(())
    }

    async fn delete(&mut self, etcd: &Client) -> anyhow::Result<()> {
        post(etcd, "/v3/kv/deleterange", &DeleteRange { key: self.key() }).await?;
        self.uid = None;
        Ok(())
    }

    fn key(&self) -> ByteString {
        ByteString(self.kind.stored_at(namespace(self.slot), &self.name).into_bytes())
    }

    fn value(&self, uid: &str, nonce: u64) -> String {
        if self.kind == Kind::Pod {
            let metadata = json!({
                "name": self.name,
                "namespace": namespace(self.slot),
                "uid": uid,
                "creationTimestamp": "2026-11-02T08:00:00Z",
                "labels": { LABEL: tier(nonce), "app": "burst" },
                "annotations": annotations(nonce),
            });
            return format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{metadata}{}"#,
                self.rest
            );
        }
        let mut object = self.kind.object(self.slot, &self.name, nonce);
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["creationTimestamp"] = json!("2026-11-02T08:00:00Z");
        object.to_string()
    }
}

async fn post(etcd: &Client, path: &str, body: &impl Serialize) -> anyhow::Result<()> {
    let request = Request::post(path).header("content-type", "application/json");
    let _: Value = etcd.request(request.body(serde_json::to_vec(body)?)?).await?;
    Ok(())
}

fn uid(random: &mut Random) -> String {
    let (left, right) = (random.next(), random.next());
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        left >> 32,
        left >> 16 & 0xffff,
        left & 0xfff,
        right >> 52,
        right & 0xffff_ffff_ffff
    )
}
