//! How a controller begins, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use informer::controller::{Action, Context, Controller, ControllerPhase, RunError};
use informer::{InformerOptions, ObjectKey};
use informer_testkit::{Cut, Fault, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::DynamicObject;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::common::{soon, value_of, widget, widgets_crd};
use crate::world::{World, ms, next, nothing, start, telling};

run_tests! {
    on_a_paused_clock:
        a_resource_that_is_installed_late_is_waited_for,
        a_controller_says_what_it_waits_for,
        a_shutdown_before_the_first_list_ends_the_controller,
        a_shutdown_lets_running_reconciles_end_and_begins_no_other,
        a_shutdown_during_an_outage_cancels_what_does_not_end_in_time,
        a_controller_whose_informer_stops_ends_with_an_error,
        a_controller_that_is_dropped_leaves_nothing_behind;
}

async fn a_resource_that_is_installed_late_is_waited_for() {
    let world = World::new().await;
    let resource = informer::Resource {
        group: "example.com".into(),
        version: "v1".into(),
        plural: "widgets".into(),
        kind: "Widget".into(),
        namespaced: true,
    };
    let widgets = world.factory.dynamic(resource, InformerOptions::new()).unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::new(world.client.clone(), &widgets).owns(&world.maps);
    let ran = start(controller, move |_: Arc<DynamicObject>, ctx: Context<()>| {
        tell.send(ctx.key().name().to_owned()).unwrap();
        async { Ok(Action::await_change()) }
    });
    nothing(&mut told).await;
    let ControllerPhase::WaitingForInformers { waiting_for } = ran.handle.status().phase else {
        panic!("{}", ran.handle.status())
    };
    assert_eq!(waiting_for.len(), 1);
    assert!(waiting_for[0].starts_with("widgets.v1.example.com"), "{waiting_for:?}");
    world.server.cluster().create(&widgets_crd()).unwrap();
    world.server.cluster().create(&widget("w", 1)).unwrap();
    assert_eq!(next(&mut told, 1).await, ["w"]);
    assert_eq!(ran.handle.status().name, "widget");
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn a_controller_says_what_it_waits_for() {
    let world = World::new().await;
    let forbidden = informer_testkit::Status::new(403, "Forbidden", "no list for you");
    let fault = world.server.faults().inject(Fault::answer(forbidden).resource("secrets"));
    let secrets = world.factory.informer::<Secret>().unwrap();
    let controller = world.controller().watches(&secrets, |_| None);
    let (ran, mut told) = telling(controller);
    assert_eq!(ran.handle.status().phase, ControllerPhase::NotStarted);
    world.set("a", "1");
    nothing(&mut told).await;
    let status = ran.handle.status();
    assert!(!status.is_ready && status.is_healthy);
    let text = serde_json::to_value(&status).unwrap();
    assert_eq!(text["phase"]["phase"], "waitingForInformers");
    let waiting_for = text["phase"]["waitingFor"].as_array().unwrap();
    assert!(
        waiting_for.len() == 1 && waiting_for[0].to_string().contains("no list for you"),
        "{text}"
    );
    fault.lift();
    assert!(soon(ran.handle.started()).await);
    assert_eq!(next(&mut told, 1).await, ["a=1"]);
    assert!(ran.handle.status().is_ready);
    let handle = ran.handle.clone();
    ran.stop().await.unwrap();
    let status = handle.status();
    assert_eq!(
        (status.phase, status.is_ready, status.informers.len()),
        (ControllerPhase::Ended, false, 0)
    );
    assert!(!handle.started().await);
    world.factory.shutdown().await;
}

async fn a_shutdown_before_the_first_list_ends_the_controller() {
    let world = World::new().await;
    world.server.faults().inject(Fault::stall().on(Verb::List));
    world.server.faults().inject(Fault::stall().on(Verb::Watch));
    let (ran, mut told) = telling(world.controller());
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    ran.stop().await.unwrap();
    assert!(begun.elapsed() < ms(500), "{:?}", begun.elapsed());
    assert!(told.recv().await.is_none());
    world.server.faults().lift_all();
    world.factory.shutdown().await;
}

async fn a_shutdown_lets_running_reconciles_end_and_begins_no_other() {
    let world = World::new().await;
    for name in ["a", "b", "c", "d"] {
        world.set(name, "1");
    }
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, ctx: Context<()>| {
        let (tell, name) = (tell.clone(), ctx.key().name().to_owned());
        async move {
            tell.send(format!("{name} begins")).unwrap();
            sleep(Duration::from_secs(20)).await;
            tell.send(format!("{name} ends")).unwrap();
            Ok(Action::requeue_after(ms(1)))
        }
    };
    let ran = start(world.controller().concurrency(2), reconcile);
    assert_eq!(next(&mut told, 2).await, ["a begins", "b begins"]);
    sleep(Duration::from_secs(1)).await;
    ran.stop().await.unwrap();
    assert_eq!(next(&mut told, 2).await, ["a ends", "b ends"]);
    assert_eq!(told.recv().await, None);
    world.factory.shutdown().await;
}

async fn a_shutdown_during_an_outage_cancels_what_does_not_end_in_time() {
    let world = World::new().await;
    world.set("a", "1");
    world.set("b", "1");
    let client = world.client.clone();
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        let api = kube::Api::<ConfigMap>::namespaced(client.clone(), "default");
        let tell = tell.clone();
        async move {
            tell.send(ctx.key().name().to_owned()).unwrap();
            if value_of(&map) == "2" {
                api.get("a").await?;
            }
            Ok(Action::await_change())
        }
    };
    let ran =
        start(world.controller().graceful_shutdown_deadline(Duration::from_secs(3)), reconcile);
    assert_eq!(next(&mut told, 2).await, ["a", "b"]);
    let fault = world.server.faults().inject(Fault::stall().on(Verb::Get));
    world.set("a", "2");
    assert_eq!(next(&mut told, 1).await, ["a"]);
    world.server.faults().refuse_connections();
    world.server.faults().cut_watches(Cut::Reset, None);
    sleep(Duration::from_secs(60)).await;
    let begun = Instant::now();
    let error = ran.stop().await.unwrap_err();
    assert!(
        matches!(&error, RunError::Cancelled { keys, .. } if keys[..] == [ObjectKey::namespaced("default", "a")]),
        "{error}"
    );
    assert!((3000..3100).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    fault.lift();
    world.factory.shutdown().await;
}

async fn a_controller_whose_informer_stops_ends_with_an_error() {
    let world = World::new().await;
    world.set("a", "1");
    let secrets = world.factory.informer::<Secret>().unwrap();
    let (ran, mut told) = telling(world.controller().watches(&secrets, |_| None));
    next(&mut told, 1).await;
    world.factory.stop(&secrets).await;
    let error = soon(ran.task).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("secrets.v1"), "{error}");
    // One that has stopped already is no beginning.
    let (ran, _told) = telling(world.controller().watches(&secrets, |_| None));
    assert!(matches!(soon(ran.task).await.unwrap(), Err(RunError::Informer { .. })));
    world.factory.shutdown().await;
}

async fn a_controller_that_is_dropped_leaves_nothing_behind() {
    let world = World::new().await;
    world.set("a", "1");
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, _| {
        begun.send(()).unwrap();
        std::future::pending()
    };
    let ran = start(world.controller(), reconcile);
    soon(has_begun.recv()).await.unwrap();
    ran.task.abort();
    assert!(soon(has_begun.recv()).await.is_none(), "the reconcile is dropped");
    assert_eq!(ran.handle.status().phase, ControllerPhase::Ended);
    world.factory.shutdown().await;
}
