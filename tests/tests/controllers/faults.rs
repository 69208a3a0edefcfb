//! Controllers of the library, on both arms: whatever becomes of writes, answers and watches, the
//! next reconcile sees what the last one wrote.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::Method;
use informer::controller::{
    Action, Context, Controller, ControllerHandle, FinalizerEvent, RunError, finalizer,
};
use informer::leader_election::{LeaderElectionConfig, LeaderElector};
use informer::{InformerOptions, SharedInformer, SharedInformerFactory};
use informer_tests::harness::Arm;
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::meddler::{Fate, Meddler};

/// For what takes milliseconds or some attempts: long enough for a machine with other things to do.
const SOON: Duration = Duration::from_secs(60);

const AT_ONCE: Duration = Duration::from_millis(1);

/// A namespace with the ConfigMap `owner`, and a controller's way to it.
struct Bed {
    namespace: String,
    direct: Client,
    meddler: Arc<Meddler>,
    client: Client,
    factory: SharedInformerFactory,
    secrets: SharedInformer<Secret>,
}

impl Bed {
    async fn new(arm: &Arm, prefix: &str, late: Duration) -> anyhow::Result<Self> {
        let namespace = arm.namespace(prefix).await?;
        let meddler = Meddler::new(late);
        let client = meddler.client(&arm.client().await?);
        let factory = SharedInformerFactory::builder(client.clone()).namespace(&*namespace).build();
        let secrets = factory.informer()?;
        let direct = arm.direct().clone();
        let bed = Self { namespace, direct, meddler, client, factory, secrets };
        let owner = ConfigMap { metadata: named("owner"), ..ConfigMap::default() };
        bed.owners().create(&PostParams::default(), &owner).await?;
        Ok(bed)
    }

    fn owners(&self) -> Api<ConfigMap> {
        Api::namespaced(self.direct.clone(), &self.namespace)
    }

    /// Only the ConfigMap `owner`: an API server puts others into each namespace.
    fn only_owner(&self) -> anyhow::Result<SharedInformer<ConfigMap>> {
        let options = InformerOptions::new().fields("metadata.name=owner")?;
        Ok(self.factory.informer_with::<ConfigMap>(options)?)
    }

    async fn secrets(&self) -> anyhow::Result<usize> {
        let path = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        Ok(raw_list(&self.direct, &path).await?.len())
    }

    /// Makes so many Secrets, one with each reconcile.
    fn making(&self, wanted: usize) -> anyhow::Result<Ran> {
        let (owners, secrets) = (self.only_owner()?, self.secrets.clone());
        let controller = Controller::new(self.client.clone(), &owners).owns(&secrets);
        Ok(start(controller, move |map: Arc<ConfigMap>, ctx: Context<()>| {
            let secrets = secrets.clone();
            async move {
                if ctx.owned(&secrets)?.len() == wanted {
                    return Ok(Action::await_change());
                }
                ctx.create(&child(&map, ObjectMeta::default())).await?;
                Ok(Action::requeue_after(AT_ONCE))
            }
        }))
    }
}

/// A controller in a task of its own.
struct Ran {
    handle: ControllerHandle,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), RunError>>,
}

impl Ran {
    async fn stop(self) -> anyhow::Result<()> {
        _ = self.stop.send(());
        Ok(tokio::time::timeout(SOON, self.task).await???)
    }

    /// Waits until so many reconciles have ended without asking for another, and well.
    async fn has_succeeded(&self, times: u64) -> anyhow::Result<()> {
        let look = async || {
            let (metrics, status) = (self.handle.metrics(), self.handle.status());
            ensure!(metrics.reconcile_total.success >= times, "{status}");
            Ok(())
        };
        eventually_ok("the last reconcile ends", SOON, look).await
    }
}

fn start<T, F, R>(controller: Controller<T>, reconcile: F) -> Ran
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

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn child(owner: &ConfigMap, metadata: ObjectMeta) -> Secret {
    let reference = owner.controller_owner_ref(&());
    let generate_name = metadata.name.is_none().then(|| "child-".to_owned());
    let owner_references = reference.map(|it| vec![it]);
    Secret {
        metadata: ObjectMeta { owner_references, generate_name, ..metadata },
        ..Secret::default()
    }
}

on_both_arms!(refused_and_lost_writes_are_tried_again_and_done_once, |arm| async {
    let bed = Bed::new(&arm, "refused", Duration::from_millis(50)).await?;
    let fates = [
        Fate::Refused(409, "Conflict"),
        Fate::Refused(429, "TooManyRequests"),
        Fate::Refused(503, "ServiceUnavailable"),
        Fate::Lost,
        Fate::Refused(500, "InternalError"),
        Fate::Lost,
    ];
    bed.meddler.expect(&Method::POST, &fates);
    let ran = bed.making(6)?;
    ran.has_succeeded(1).await?;
    assert_eq!((bed.secrets().await?, bed.meddler.expected()), (6, 0));
    let metrics = ran.handle.metrics();
    // What was refused with a 5xx, and what was lost, may have been created under any name.
    assert_eq!(metrics.own_writes.refreshes, 4, "{metrics:?}");
    assert_eq!((metrics.reconcile_total.error, metrics.conflicts_total), (5, 1), "{metrics:?}");
    ran.stop().await?;
    bed.factory.shutdown().await;
    Ok(())
});

on_both_arms!(a_watch_is_cut_between_the_write_and_its_event, |arm| async {
    let bed = Bed::new(&arm, "cut", Duration::ZERO).await?;
    let ran = bed.making(3)?;
    ran.has_succeeded(1).await?;
    let secrets = Api::<Secret>::namespaced(bed.direct.clone(), &bed.namespace);
    for round in 2..5 {
        bed.meddler.expect(&Method::POST, &[Fate::Unseen]);
        let name =
            bed.secrets.synced().await?.list().first().and_then(|it| it.metadata.name.clone());
        secrets.delete(&name.context("a Secret")?, &DeleteParams::default()).await?;
        let waits = async || {
            let status = ran.handle.status();
            ensure!(bed.meddler.expected() == 0, "nothing is created: {status}");
            ensure!(!status.waiting_for_own_writes.is_empty(), "it does not wait: {status}");
            Ok(())
        };
        eventually_ok("the event of the create is waited for", SOON, waits).await?;
        arm.cut_watches().await;
        bed.meddler.hold_watches(false);
        ran.has_succeeded(round).await?;
        assert_eq!(bed.secrets().await?, 3, "none too many");
    }
    assert_eq!(ran.handle.metrics().reconcile_total.error, 0);
    ran.stop().await?;
    bed.factory.shutdown().await;
    Ok(())
});

/// What informers of every representation show of the child.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    typed: bool,
    metadata: bool,
    labelled: bool,
    is_ending: bool,
}

on_both_arms!(every_write_is_shown_by_every_informer_before_the_next_reconcile, |arm| async {
    // Each event comes later than the answer to its write.
    let bed = Bed::new(&arm, "writes", Duration::from_millis(200)).await?;
    let owners = bed.only_owner()?;
    let metadata = bed.factory.metadata::<Secret>(InformerOptions::new())?;
    let labelled = InformerOptions::<Secret>::new().labels("l=yes")?;
    let labelled = bed.factory.informer_with(labelled)?;
    let stores = (bed.secrets.clone(), metadata.clone(), labelled.clone());
    let (step, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&seen);
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        let (stores, step, seen) = (stores.clone(), Arc::clone(&step), Arc::clone(&noted));
        async move {
            let (secrets, metadata, labelled) = &stores;
            let owned = ctx.owned(secrets)?;
            let shown = Shown {
                typed: !owned.is_empty(),
                metadata: !ctx.owned::<PartialObjectMeta<Secret>>(metadata)?.is_empty(),
                labelled: !ctx.owned(labelled)?.is_empty(),
                is_ending: owned.iter().any(|it| it.metadata.deletion_timestamp.is_some()),
            };
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(shown);
            let own = |metadata| child(&map, metadata);
            let plain = own(named("plain"));
            let last = owned.first();
            match step.fetch_add(1, Ordering::Relaxed) {
                0 => drop(ctx.create(&plain).await?),
                1 => drop(label(&ctx, &plain, json!({ "l": "yes" })).await?),
                // Nothing changes.
                2 => drop(label(&ctx, &plain, json!({ "l": "yes" })).await?),
                3 => drop(label(&ctx, &plain, json!({ "l": null })).await?),
                4 => ctx.delete(&**last.context("the Secret")?).await?,
                5 => {
                    let finalizers = Some(vec!["example.com/f".to_owned()]);
                    let kept = own(ObjectMeta { finalizers, ..named("kept") });
                    drop(ctx.create(&kept).await?);
                }
                6 => ctx.delete(&**last.context("the Secret")?).await?,
                7 => {
                    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
                    drop(ctx.patch(&own(named("kept")), &PatchParams::default(), &patch).await?);
                }
                _ => return Ok(Action::await_change()),
            }
            Ok(Action::requeue_after(AT_ONCE))
        }
    };
    let controller = Controller::new(bed.client.clone(), &owners)
        .owns_with(&bed.secrets, nothing_passes())
        .owns_with(&metadata, nothing_passes())
        .owns_with(&labelled, nothing_passes());
    let ran = start(controller, reconcile);
    ran.has_succeeded(1).await?;
    let shown = |typed, labelled, is_ending| Shown { typed, metadata: typed, labelled, is_ending };
    let expected = [
        shown(false, false, false),
        shown(true, false, false),
        shown(true, true, false),
        shown(true, true, false),
        shown(true, false, false),
        shown(false, false, false),
        shown(true, false, false),
        shown(true, false, true),
        shown(false, false, false),
    ];
    assert_eq!(*seen.lock().unwrap_or_else(PoisonError::into_inner), expected);
    let metrics = ran.handle.metrics();
    assert_eq!((metrics.own_writes.timeouts, metrics.reconcile_total.error), (0, 0), "{metrics:?}");
    ran.stop().await?;
    bed.factory.shutdown().await;
    Ok(())
});

/// The key comes by itself, not because of events.
fn nothing_passes<T: 'static>() -> informer::controller::Predicate<T> {
    informer::controller::Predicate::event(|_| false)
}

async fn label(
    ctx: &Context<()>,
    secret: &Secret,
    labels: serde_json::Value,
) -> anyhow::Result<Secret> {
    let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
    Ok(ctx.patch(secret, &PatchParams::default(), &patch).await?)
}

on_both_arms!(a_cleanup_that_a_restart_cut_short_is_done_again, |arm| async {
    let bed = Bed::new(&arm, "cleanup", Duration::ZERO).await?;
    let owners = bed.only_owner()?;
    let cleanups = Arc::new(AtomicUsize::new(0));
    let run = || {
        let cleanups = Arc::clone(&cleanups);
        let controller = Controller::new(bed.client.clone(), &owners);
        start(controller, move |map: Arc<ConfigMap>, ctx: Context<()>| {
            let cleanups = Arc::clone(&cleanups);
            async move {
                finalizer(&ctx, "example.com/f", map, async |event| {
                    if let FinalizerEvent::Cleanup(_) = event {
                        cleanups.fetch_add(1, Ordering::Relaxed);
                    }
                    anyhow::Ok(Action::await_change())
                })
                .await
            }
        })
    };
    let ran = run();
    // The finalizer is added, and then the object is reconciled.
    ran.has_succeeded(2).await?;
    // The request that removes the finalizer is still unanswered when the process is killed.
    bed.meddler.expect(&Method::PATCH, &[Fate::Stuck]);
    bed.owners().delete("owner", &DeleteParams::default()).await?;
    let stuck = async || {
        ensure!(bed.meddler.expected() == 0, "{}", ran.handle.status());
        Ok(())
    };
    eventually_ok("the finalizer is being removed", SOON, stuck).await?;
    ran.task.abort();
    ensure!(ran.task.await.is_err_and(|ended| ended.is_cancelled()), "it has ended by itself");
    ensure!(bed.owners().get_opt("owner").await?.is_some(), "the finalizer is still there");
    let ran = run();
    let gone = async || {
        ensure!(bed.owners().get_opt("owner").await?.is_none(), "{}", ran.handle.status());
        Ok(())
    };
    eventually_ok("it is gone", SOON, gone).await?;
    assert_eq!(cleanups.load(Ordering::Relaxed), 2);
    ran.stop().await?;
    bed.factory.shutdown().await;
    Ok(())
});

on_both_arms!(own of_two_replicas_the_one_with_the_lease_writes, |arm| async {
    let bed = Bed::new(&arm, "replicas", Duration::ZERO).await?;
    let other = SharedInformerFactory::builder(arm.direct().clone()).namespace(&*bed.namespace).build();
    let one = replica(&bed.client, &bed.factory, &bed.namespace, "one")?;
    let signed = async |by: &str| {
        let signed = async || {
            let owner = bed.owners().get("owner").await?;
            let last = owner.data.as_ref().and_then(|it| it.get("by")).cloned();
            ensure!(last.as_deref() == Some(by), "the last one was {last:?}");
            Ok(())
        };
        eventually_ok(&format!("{by} has written"), SOON, signed).await
    };
    signed("one").await?;
    let two = replica(arm.direct(), &other, &bed.namespace, "two")?;
    // The first one is cut off in the middle of its work, and comes back.
    arm.begin_outage().await;
    signed("two").await?;
    let status = one.0.handle.status();
    ensure!(status.running.is_empty(), "its reconciles are cancelled: {status}");
    arm.end_outage().await;
    let before = bed.owners().get("owner").await?.metadata.resource_version;
    let patch = Patch::Merge(json!({ "data": { "by": "nobody" } }));
    bed.owners().patch("owner", &PatchParams::default(), &patch).await?;
    signed("two").await?;
    let after = bed.owners().get("owner").await?.metadata.resource_version;
    ensure!(before != after, "it was written again");
    for (ran, elector) in [one, two] {
        ran.stop().await?;
        elector.abort();
    }
    bed.factory.shutdown().await;
    other.shutdown().await;
    Ok(())
});

/// Signs the owner where somebody else has.
fn replica(
    client: &Client,
    factory: &SharedInformerFactory,
    namespace: &str,
    name: &'static str,
) -> anyhow::Result<(Ran, JoinHandle<()>)> {
    let config = LeaderElectionConfig::new(namespace, "elected", name)
        .lease_duration(Duration::from_secs(4))
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(500));
    let elector = LeaderElector::new(client.clone(), config)?;
    let options = InformerOptions::new().fields("metadata.name=owner")?;
    let owners = factory.informer_with::<ConfigMap>(options)?;
    let controller = Controller::new(client.clone(), &owners).leader_election(elector.leadership());
    let ran = start(controller, move |map: Arc<ConfigMap>, ctx: Context<()>| async move {
        if map.data.as_ref().and_then(|it| it.get("by")).is_none_or(|by| by != name) {
            let mut map = ConfigMap::clone(&map);
            map.data.get_or_insert_default().insert("by".to_owned(), name.to_owned());
            ctx.replace(&map).await?;
        }
        Ok(Action::await_change())
    });
    Ok((ran, tokio::spawn(elector.run(std::future::pending()))))
}
