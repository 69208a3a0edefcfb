//! Writes through the API: creates as many objects as it deletes, changes, replaces, and moves
//! objects in and out of selectors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::collection::LABEL;
use crate::objects::{Kind, Random, annotations, namespace, tier};

/// Requests that are under way at a time.
const PARALLEL: u64 = 40;

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(20);

/// How long a worker rests after a failure: the API server is most likely down.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

/// How many places there are for objects of each kind, and of how many of each hundred exist.
const PLACES: [usize; 3] = [1_700, 400, 200];
const FILLED: usize = 90;

/// Plans writes with a seeded randomness and carries them out.
pub(crate) struct Writer {
    client: Client,
    plan: Mutex<Plan>,
    /// Writes that the server accepted, of those that `write_until` made.
    done: AtomicU64,
    /// Refused because of another write to the same object (404, 409).
    moot: AtomicU64,
    /// What else went wrong, which the API server being killed explains.
    failed: AtomicU64,
    under_way: AtomicU64,
    /// How long was written through `write_until` before, in milliseconds.
    before: AtomicU64,
}

struct Plan {
    random: Random,
    /// For each kind, whether the object of each place is thought to exist.
    exists: [Vec<bool>; 3],
}

/// One operation on one object.
#[derive(Debug, Clone, Copy)]
struct Operation {
    kind: Kind,
    slot: usize,
    verb: Verb,
    /// Makes the change one.
    nonce: u64,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Create,
    Label,
    Annotate,
    /// What changes most in life: a Pod's status, a ConfigMap's data, a Widget's specification.
    Change,
    Delete,
    /// Delete, and create under the same name.
    Replace,
}

/// How many writes there were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) done: u64,
    pub(crate) moot: u64,
    pub(crate) failed: u64,
}

impl Writer {
    pub(crate) fn new(client: Client, seed: u64) -> Self {
        let plan = Plan { random: Random(seed), exists: PLACES.map(|places| vec![false; places]) };
        Self {
            client,
            plan: Mutex::new(plan),
            done: AtomicU64::new(0),
            moot: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            before: AtomicU64::new(0),
        }
    }

    /// Creates the objects that there are at first.
    pub(crate) async fn populate(&self) -> anyhow::Result<()> {
        let operations: Vec<Operation> = {
            let mut plan = self.plan();
            let places = Kind::ALL.into_iter().zip(PLACES);
            let slots = places.flat_map(|(kind, places)| (0..places).map(move |slot| (kind, slot)));
            let filled = slots.filter(|(_, slot)| slot % 100 < FILLED);
            let create = |(kind, slot)| Operation {
                kind,
                slot,
                verb: Verb::Create,
                nonce: plan.random.next(),
            };
            filled.map(create).collect()
        };
        let next = AtomicU64::new(0);
        let workers = (0..PARALLEL).map(async |_| {
            while let Some(operation) =
                operations.get(next.fetch_add(1, Ordering::Relaxed) as usize)
            {
                self.carry_out(*operation).await?;
                self.plan().expect(*operation);
            }
            kube::Result::Ok(())
        });
        join_all(workers).await.into_iter().collect::<kube::Result<()>>()?;
        Ok(())
    }

    /// Makes `rate` writes a second until `end`; what an outage prevents is made up for after it,
    /// in later calls too. Returns once
    /// every write was answered.
    pub(crate) async fn write_until(&self, end: Instant, rate: u32) {
        let (began, before) = (Instant::now(), self.before.load(Ordering::Relaxed));
        let work = async |_| {
            while Instant::now() < end {
                let written_for = before + began.elapsed().as_millis() as u64;
                let due = written_for * u64::from(rate) / 1000;
                if self.done.load(Ordering::Relaxed) + self.under_way.load(Ordering::Relaxed) >= due
                {
                    sleep(Duration::from_millis(5)).await;
                    continue;
                }
                self.write_one().await;
            }
        };
        join_all((0..PARALLEL).map(work)).await;
        self.before.store(before + began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn written(&self) -> Written {
        let [done, moot, failed] =
            [&self.done, &self.moot, &self.failed].map(|count| count.load(Ordering::Relaxed));
        Written { done, moot, failed }
    }

    async fn write_one(&self) {
        let operation = self.plan().next();
        let writes = if matches!(operation.verb, Verb::Replace) { 2 } else { 1 };
        self.under_way.fetch_add(writes, Ordering::Relaxed);
        let answer = timeout(ANSWER, self.carry_out(operation)).await;
        self.under_way.fetch_sub(writes, Ordering::Relaxed);
        match answer {
            Ok(Ok(())) => {
                self.done.fetch_add(writes, Ordering::Relaxed);
                self.plan().expect(operation);
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                self.moot.fetch_add(1, Ordering::Relaxed);
                // What was believed of it is wrong: a write that failed had been carried out.
                let exists = status.code == 409;
                self.plan().exists[operation.kind as usize][operation.slot] = exists;
            }
            Ok(Err(_)) | Err(_) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                sleep(AFTER_A_FAILURE).await;
            }
        }
    }

    async fn carry_out(&self, operation: Operation) -> kube::Result<()> {
        let Operation { kind, slot, verb, nonce } = operation;
        let name = name(kind, slot);
        let resource: ApiResource = kind.resource();
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace(slot), &resource);
        let (create, change) = (PostParams::default(), PatchParams::default());
        // A Pod with a node waits for its kubelet otherwise, and there is none.
        let delete = DeleteParams::default().grace_period(0);
        let object = || {
            let object = kind.object(slot, &name, nonce);
            serde_json::from_value::<DynamicObject>(object).map_err(kube::Error::SerdeError)
        };
        let patch = |value: Value| Patch::Merge(value);
        match verb {
            Verb::Create => api.create(&create, &object()?).await.map(drop),
            Verb::Label => {
                let labels = json!({ "metadata": { "labels": { LABEL: tier(nonce), "nonce": nonce.to_string() } } });
                api.patch(&name, &change, &patch(labels)).await.map(drop)
            }
            Verb::Annotate => {
                let annotations = json!({ "metadata": { "annotations": annotations(nonce) } });
                api.patch(&name, &change, &patch(annotations)).await.map(drop)
            }
            Verb::Change => match kind {
                Kind::Pod => {
                    let status =
                        json!({ "status": { "phase": "Running", "message": nonce.to_string() } });
                    api.patch_status(&name, &change, &patch(status)).await.map(drop)
                }
                Kind::ConfigMap => {
                    let data = json!({ "data": { "nonce": nonce.to_string() } });
                    api.patch(&name, &change, &patch(data)).await.map(drop)
                }
                Kind::Widget => {
                    let size = json!({ "spec": { "size": nonce >> 12 } });
                    api.patch(&name, &change, &patch(size)).await.map(drop)
                }
            },
            Verb::Delete => api.delete(&name, &delete).await.map(drop),
            Verb::Replace => {
                api.delete(&name, &delete).await?;
                api.create(&create, &object()?).await.map(drop)
            }
        }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plan {
    fn next(&mut self) -> Operation {
        let kind = match self.random.below(100) {
            0..76 => Kind::Pod,
            76..90 => Kind::ConfigMap,
            _ => Kind::Widget,
        };
        let exists = &self.exists[kind as usize];
        let there = exists.iter().filter(|exists| **exists).count();
        let verb = match self.random.below(100) {
            // Keeps their number.
            0..26 if there * 100 < exists.len() * FILLED => Verb::Create,
            0..26 => Verb::Delete,
            26..34 => Verb::Replace,
            34..60 => Verb::Label,
            60..80 => Verb::Annotate,
            _ => Verb::Change,
        };
        let wanted = !matches!(verb, Verb::Create);
        let first = self.random.below(exists.len());
        let slots = (first..exists.len()).chain(0..first);
        let slot = slots.into_iter().find(|slot| exists[*slot] == wanted).unwrap_or(first);
        Operation { kind, slot, verb, nonce: self.random.next() }
    }

    fn expect(&mut self, operation: Operation) {
        self.exists[operation.kind as usize][operation.slot] =
            !matches!(operation.verb, Verb::Delete);
    }
}

fn name(kind: Kind, slot: usize) -> String {
    format!("{}-{slot:04}", kind.resource().kind.to_lowercase())
}
