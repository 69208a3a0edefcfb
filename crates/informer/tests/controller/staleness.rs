//! Random histories behind a [`Relay`]: what reconciles see is never older than what they wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer::controller::{Action, Context, Controller};
use informer::workqueue::ExponentialLimiter;
use informer::{HasMetadata, InformerOptions, SharedInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use tokio::time::{Instant, sleep};

use crate::common::value_of;
use crate::relay::Relay;
use crate::world::{Ran, World, ms, secret, start};

run_tests! {
    on_a_paused_clock: nothing_is_reconciled_from_a_state_older_than_own_writes;
}

const OWNERS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// How long after a change its reconcile begins at the latest: watches that are three seconds late,
/// and some attempts.
const SOON: Duration = Duration::from_secs(60);

/// What the reconciles of one history have noted.
#[derive(Default)]
struct Notes {
    in_work: BTreeSet<String>,
    began: Vec<(Instant, String)>,
    /// When keys that wait for nothing else are to come again.
    due: BTreeMap<String, Instant>,
    failures: Vec<String>,
}

/// A reconcile that runs, and is cancelled or panics perhaps.
struct InWork(Arc<Mutex<Notes>>, String);

impl InWork {
    fn begin(notes: &Arc<Mutex<Notes>>, name: &str) -> Self {
        let mut noted = notes.lock().unwrap();
        let now = Instant::now();
        if !noted.in_work.insert(name.to_owned()) {
            noted.failures.push(format!("{name} is with two workers"));
        }
        noted.began.push((now, name.to_owned()));
        if let Some(due) = noted.due.remove(name)
            && now > due + Duration::from_secs(1)
        {
            noted.failures.push(format!("{name} comes {:?} late", now - due));
        }
        Self(Arc::clone(notes), name.to_owned())
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.lock().unwrap().in_work.remove(&self.1);
    }
}

type Metadata = SharedInformer<PartialObjectMeta<Secret>>;

fn names(objects: &[Arc<impl HasMetadata>]) -> BTreeSet<String> {
    objects.iter().filter_map(|it| it.metadata().name.clone()).collect()
}

/// Makes as many Secrets of each ConfigMap as its value says, and says so in an annotation.
async fn reconcile(
    map: Arc<ConfigMap>,
    ctx: Context<()>,
    relay: Arc<Relay>,
    notes: Arc<Mutex<Notes>>,
    (secrets, metadata): (SharedInformer<Secret>, Metadata),
    fate: u8,
) -> anyhow::Result<Action> {
    let name = ctx.key().name();
    let _in_work = InWork::begin(&notes, name);
    let owned = ctx.owned(&secrets)?;
    let mut stale = relay.stale(&map, &names(&owned));
    // It has a watch of its own, which is late by itself.
    stale.extend(relay.stale(&map, &names(&ctx.owned(&metadata)?)));
    notes.lock().unwrap().failures.extend(stale.into_iter().map(|it| format!("{name} sees {it}")));
    let wanted: usize = value_of(&map).parse()?;
    sleep(ms(u64::from(fate))).await;
    for _ in owned.len()..wanted {
        ctx.create(&secret(&map, None)).await?;
    }
    for surplus in owned.iter().skip(wanted) {
        match ctx.delete(&**surplus).await {
            Err(error) if error.is_not_found() => {}
            deleted => deleted?,
        }
    }
    match fate {
        0..3 => anyhow::bail!("it fails"),
        3..6 => panic!("it panics"),
        6..9 => sleep(Duration::from_secs(3600)).await, // until the timeout
        _ => {}
    }
    let done = Some([("done".to_owned(), wanted.to_string())].into());
    if map.metadata.annotations != done {
        let mut map = ConfigMap::clone(&map);
        map.metadata.annotations = done;
        ctx.replace(&map).await?;
    } else if owned.len() == wanted {
        let after = Duration::from_secs(7);
        notes.lock().unwrap().due.insert(name.to_owned(), Instant::now() + after);
        return Ok(Action::requeue_after(after));
    }
    Ok(Action::await_change())
}

/// A world whose informers and writes go through a relay.
struct Relayed {
    world: World,
    relay: Arc<Relay>,
    client: kube::Client,
    factory: SharedInformerFactory,
    maps: SharedInformer<ConfigMap>,
    secrets: SharedInformer<Secret>,
    metadata: Metadata,
    notes: Arc<Mutex<Notes>>,
}

impl Relayed {
    async fn new(seed: u64) -> Self {
        let (world, relay) = (World::new().await, Relay::new(seed));
        let client = relay.client(&world.client);
        let factory = SharedInformerFactory::builder(client.clone()).build();
        let (maps, secrets) = (factory.informer().unwrap(), factory.informer().unwrap());
        let metadata = factory.metadata::<Secret>(InformerOptions::new()).unwrap();
        Self { world, relay, client, factory, maps, secrets, metadata, notes: Arc::default() }
    }

    fn start(&self, concurrency: usize, seed: u64) -> Ran {
        let (relay, notes) = (Arc::clone(&self.relay), Arc::clone(&self.notes));
        let informers = (self.secrets.clone(), self.metadata.clone());
        let fates = Mutex::new(fastrand::Rng::with_seed(seed));
        let controller = Controller::new(self.client.clone(), &self.maps)
            .owns(&self.secrets)
            .owns(&self.metadata)
            .concurrency(concurrency)
            .reconcile_timeout(ms(500))
            .rate_limiter(ExponentialLimiter::new(ms(5), ms(200)));
        start(controller, move |map: Arc<ConfigMap>, ctx: Context<()>| {
            let (relay, notes) = (Arc::clone(&relay), Arc::clone(&notes));
            let fate = fates.lock().unwrap().u8(0..50);
            reconcile(map, ctx, relay, notes, informers.clone(), fate)
        })
    }

    /// The names of the Secrets, by the UID of their owner.
    fn children(&self) -> BTreeMap<String, Vec<String>> {
        let mut children = BTreeMap::<String, Vec<String>>::new();
        for object in self.world.server.cluster().list("secrets") {
            let secret: Secret = serde_json::from_slice(object.json()).unwrap();
            let owner = secret.metadata.owner_references.unwrap().remove(0).uid;
            children.entry(owner).or_default().push(secret.metadata.name.unwrap());
        }
        children
    }

    fn uid(&self, owner: &str) -> String {
        let map = self.world.server.cluster().get("configmaps", "default", owner).unwrap();
        map.uid().to_string()
    }
}

async fn nothing_is_reconciled_from_a_state_older_than_own_writes() {
    let (mut created, mut lost) = (0, 0);
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let concurrency = random.usize(1..5);
        let relayed = Relayed::new(seed).await;
        let mut ran = relayed.start(concurrency, seed);
        let mut truth = BTreeMap::<&str, usize>::new();
        let mut changes = Vec::new();
        for round in 0..60 {
            let owner = OWNERS[random.usize(..OWNERS.len())];
            match random.u8(0..12) {
                0 if truth.remove(owner).is_some() => {
                    relayed.world.delete("configmaps", owner);
                    relayed.notes.lock().unwrap().due.remove(owner);
                    changes.retain(|(_, changed)| *changed != owner);
                }
                1 => {
                    let children = relayed.children();
                    let all: Vec<&String> = children.values().flatten().collect();
                    if let Some(child) = random.choice(all) {
                        relayed.relay.forget(child);
                        relayed.world.delete("secrets", child);
                    }
                }
                _ => {
                    let wanted = random.usize(0..4);
                    let is_change = truth.insert(owner, wanted) != Some(wanted);
                    relayed.world.set(owner, &wanted.to_string());
                    if is_change {
                        changes.push((Instant::now(), owner));
                    }
                }
            }
            sleep(ms(random.u64(0..300))).await;
            if round == 40 {
                // What the next one is given is not older than what this one wrote.
                _ = ran.stop().await;
                relayed.notes.lock().unwrap().due.clear();
                ran = relayed.start(concurrency, !seed);
            }
        }
        sleep(2 * SOON).await;
        let children = relayed.children();
        for (owner, wanted) in &truth {
            let count = children.get(&relayed.uid(owner)).map_or(0, Vec::len);
            assert_eq!(count, *wanted, "seed {seed}: the Secrets of {owner}");
        }
        let notes = std::mem::take(&mut *relayed.notes.lock().unwrap());
        assert!(notes.failures.is_empty(), "seed {seed}: {:#?}", notes.failures);
        for (at, owner) in changes {
            let in_time = at..at + SOON;
            let mut began = notes.began.iter();
            let is_seen = began.any(|(began, it)| it == owner && in_time.contains(began));
            assert!(is_seen, "seed {seed}: {owner} was changed and not reconciled for {SOON:?}");
        }
        let totals = relayed.relay.totals();
        (created, lost) = (created + totals.0, lost + totals.1);
        _ = ran.stop().await;
        relayed.factory.shutdown().await;
        relayed.world.factory.shutdown().await;
    }
    assert!(created > 200 && lost > 20, "{created} were created and {lost} answers lost");
}
