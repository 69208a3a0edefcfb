//! Controllers of several replicas: one reconciles.

use std::sync::Arc;
use std::time::Duration;

use informer::controller::{Action, Context, Controller, ControllerPhase, RunError};
use informer::leader_election::{LeaderElectionConfig, LeaderElector};
use informer::{SharedInformerFactory, leader_election::Leadership};
use informer_testkit::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::common::{soon, value_of};
use crate::world::{Ran, World, next, nothing, start};

run_tests! {
    on_a_paused_clock:
        only_the_leader_reconciles_and_the_next_one_sees_all_that_was_written,
        a_leader_that_cannot_renew_has_its_reconciles_cancelled_and_writes_nothing;
}

/// A candidate, until it is told to release the Lease.
fn candidate(world: &World, name: &str) -> (Leadership, oneshot::Sender<()>, JoinHandle<()>) {
    let config = LeaderElectionConfig::new("default", "lease", name);
    let elector = LeaderElector::new(world.client.clone(), config).unwrap();
    let (release, released) = oneshot::channel();
    let leadership = elector.leadership();
    (leadership, release, tokio::spawn(elector.run(async { _ = released.await })))
}

/// Tells of each reconcile, and writes the reconciler's name into the object's annotations.
fn signing(
    world: &World,
    factory: &SharedInformerFactory,
    name: &'static str,
    leadership: Leadership,
) -> (Ran, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let maps = factory.informer::<ConfigMap>().unwrap();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        let tell = tell.clone();
        async move {
            let signed = Some([("by".to_owned(), name.to_owned())].into());
            _ = tell.send(format!("{name} {}={}", ctx.key().name(), value_of(&map)));
            if map.metadata.annotations != signed {
                let mut map = ConfigMap::clone(&map);
                map.metadata.annotations = signed;
                ctx.replace(&map).await?;
            }
            Ok(Action::await_change())
        }
    };
    let controller = Controller::new(world.client.clone(), &maps).leader_election(leadership);
    (start(controller, reconcile), told)
}

async fn only_the_leader_reconciles_and_the_next_one_sees_all_that_was_written() {
    let world = World::new().await;
    let other = SharedInformerFactory::builder(world.client.clone()).build();
    world.set("a", "1");
    let (leadership, release, elector) = candidate(&world, "one");
    let (one, mut told_one) = signing(&world, &world.factory, "one", leadership);
    assert_eq!(next(&mut told_one, 2).await, ["one a=1", "one a=1"], "it sees its own write");

    let (leadership, release_two, elector_two) = candidate(&world, "two");
    let (two, mut told_two) = signing(&world, &other, "two", leadership);
    nothing(&mut told_two).await;
    let status = two.handle.status();
    assert!(status.phase == ControllerPhase::Standby && status.is_ready, "{status}");

    release.send(()).unwrap();
    soon(elector).await.unwrap();
    let ended = soon(one.task).await.unwrap();
    assert!(matches!(ended, Err(RunError::NotLeader { .. })), "{ended:?}");
    assert_eq!(next(&mut told_two, 2).await, ["two a=1", "two a=1"]);
    assert_eq!(two.handle.metrics().conflicts_total, 0, "it was refreshed before");
    two.stop().await.unwrap();
    release_two.send(()).unwrap();
    soon(elector_two).await.unwrap();
    other.shutdown().await;
    world.factory.shutdown().await;
}

async fn a_leader_that_cannot_renew_has_its_reconciles_cancelled_and_writes_nothing() {
    let world = World::new().await;
    let (leadership, release, elector) = candidate(&world, "one");
    let (one, mut told) = signing(&world, &world.factory, "one", leadership);
    assert!(soon(one.handle.started()).await);
    let stalled = world.server.faults().inject(Fault::stall().resource("leases"));
    let write =
        world.server.faults().inject(Fault::stall().resource("configmaps").on(Verb::Update));
    world.set("a", "1");
    assert_eq!(next(&mut told, 1).await, ["one a=1"]);
    sleep(Duration::from_secs(30)).await;
    let status = one.handle.status();
    assert!(status.phase == ControllerPhase::Standby && status.running.is_empty(), "{status}");
    nothing(&mut told).await;

    write.lift();
    stalled.lift();
    let again = next(&mut told, 1).await;
    assert_eq!(again, ["one a=1"], "every object, in the next term");
    one.stop().await.unwrap();
    release.send(()).unwrap();
    soon(elector).await.unwrap();
    world.factory.shutdown().await;
}
