//! Several who stop, and stopping from inside (G24).

#[macro_use]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{
    Script, config_map, gate, nobody, notes, noting, object, scripted, scripted_informer, soon,
};
use futures_util::FutureExt;
use informer::{
    InformerOptions, InformerState, Resource, SharedInformer, SharedInformerFactory, StopCause,
};
use informer_testkit::{TestServer, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

run_tests! {
    on_both_runtimes:
        g24_nobody_who_stops_comes_back_before_everything_has_ended,
        g24_a_shutdown_waits_for_informers_that_were_stopped_alone,
        g24_a_stop_inside_a_callback_waits_for_everything_but_that_callback,
        g24_a_shutdown_inside_a_callback_waits_for_everything_but_that_callback,
        g24_two_callbacks_may_stop_at_once,
        g24_what_was_stopped_alone_comes_back_with_a_fresh_list_and_fresh_handlers;
}

/// So long that only who is abandoned comes back after it.
const DEADLINE: Duration = Duration::from_secs(5);

/// An informer with a callback that blocks.
async fn blocked_in(
    factory: &SharedInformerFactory,
) -> (SharedInformer<ConfigMap>, Script, common::Gate) {
    let (source, mut script) = scripted();
    let options = InformerOptions::new().streaming_lists(false);
    let informer =
        factory.informer_for(Resource::of::<ConfigMap>(), options, move |_, _, _| source).unwrap();
    let (mut blocked, mut wait) = gate();
    informer.add_handler(|h| h.on_event(move |_| wait())).unwrap();
    factory.start();
    script.list(9, &[object("a", 1, "1")]).await;
    soon(blocked.arrived.recv()).await.unwrap();
    (informer, script, blocked)
}

/// Asks often enough to be sure that it does not come by itself.
async fn assert_waits(mut what: impl Future<Output = ()> + Unpin, why: &str) {
    for _ in 0..100 {
        assert!((&mut what).now_or_never().is_none(), "{why}");
        tokio::task::yield_now().await;
    }
}

async fn g24_nobody_who_stops_comes_back_before_everything_has_ended() {
    let factory = nobody();
    let (informer, _script, blocked) = blocked_in(&factory).await;
    let mut first = Box::pin(factory.shutdown());
    assert_waits(&mut first, "a callback runs").await;
    let mut second = Box::pin(factory.shutdown());
    assert_waits(&mut second, "the first waits, so the second must").await;
    let mut alone = Box::pin(factory.stop(&informer));
    assert_waits(&mut alone, "a callback runs").await;
    // Who gives up waiting takes nothing with it.
    drop(first);
    assert_waits(&mut second, "a callback runs").await;
    blocked.open_once();
    soon(async { tokio::join!(second, alone) }).await;
    assert!(factory.shutdown().now_or_never().is_some(), "there is nothing left to wait for");
}

async fn g24_a_shutdown_waits_for_informers_that_were_stopped_alone() {
    for forget in [true, false] {
        let factory = nobody();
        let (informer, _script, blocked) = blocked_in(&factory).await;
        if forget {
            assert_waits(Box::pin(factory.stop(&informer)), "a callback runs").await;
        } else {
            assert_waits(Box::pin(informer.stop()), "a callback runs").await;
            // The factory finds out that it needs another.
            let (source, _) = scripted();
            let options = InformerOptions::<ConfigMap>::new().streaming_lists(false);
            factory
                .informer_for(Resource::of::<ConfigMap>(), options, move |_, _, _| source)
                .unwrap();
        }
        let mut shutdown = Box::pin(factory.shutdown());
        assert_waits(&mut shutdown, "a callback of the stopped informer runs").await;
        blocked.open_once();
        soon(shutdown).await;
    }
}

/// A callback stops, and then blocks. Had it waited for itself until the deadline, it would have
/// been abandoned then, and who stops from outside would not wait for it.
async fn stopped_inside<S>(
    stop: impl FnOnce(SharedInformer<ConfigMap>, SharedInformerFactory) -> S + Send + 'static,
) where
    S: Future<Output = ()>,
{
    let factory = nobody();
    let (source, mut script) = scripted();
    let options = InformerOptions::new().streaming_lists(false);
    let informer =
        factory.informer_for(Resource::of::<ConfigMap>(), options, move |_, _, _| source).unwrap();
    let (sender, mut told) = mpsc::unbounded_channel();
    let (mut stopped, mut wait) = gate();
    let (inner, outer, seen) = (informer.clone(), factory.clone(), informer.clone());
    let mut stop = Some(move || stop(inner, outer));
    let registration = informer
        .add_handler(|h| {
            h.on_event(move |_| {
                let stop = stop.take().expect("the current call is the last");
                Handle::current().block_on(stop());
                _ = sender.send(seen.status().state);
                wait();
            })
        })
        .unwrap();
    factory.start();
    script.list(9, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    assert_eq!(soon(told.recv()).await, Some(InformerState::Stopped { cause: StopCause::Asked }));
    soon(stopped.arrived.recv()).await.unwrap();
    let mut outside = Box::pin(informer.stop());
    assert_waits(&mut outside, "the callback that stopped still runs").await;
    stopped.open_once();
    soon(outside).await;
    assert_eq!(soon(told.recv()).await, None, "the handler is gone");
    soon(registration.remove()).await;
}

async fn g24_a_stop_inside_a_callback_waits_for_everything_but_that_callback() {
    stopped_inside(|informer, _| async move { informer.stop_within(DEADLINE).await }).await;
}

async fn g24_a_shutdown_inside_a_callback_waits_for_everything_but_that_callback() {
    stopped_inside(|_, factory| async move { factory.shutdown_within(DEADLINE).await }).await;
}

async fn g24_two_callbacks_may_stop_at_once() {
    let (informer, mut script) = scripted_informer();
    let together = Arc::new(std::sync::Barrier::new(2));
    let mut gates = Vec::new();
    for _ in 0..2 {
        let (gate, mut wait) = gate();
        let (together, inner) = (Arc::clone(&together), informer.clone());
        informer
            .add_handler(|h| {
                h.on_event(move |_| {
                    together.wait();
                    Handle::current().block_on(inner.stop_within(DEADLINE));
                    wait();
                })
            })
            .unwrap();
        gates.push(gate);
    }
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    for gate in &mut gates {
        soon(gate.arrived.recv()).await.unwrap();
    }
    let mut outside = Box::pin(informer.stop());
    assert_waits(&mut outside, "both callbacks still run, and neither was abandoned").await;
    drop(gates);
    soon(outside).await;
}

async fn g24_what_was_stopped_alone_comes_back_with_a_fresh_list_and_fresh_handlers() {
    let server = TestServer::start().await.unwrap();
    let factory =
        SharedInformerFactory::builder(kube::Client::new(server.service(), "default")).build();
    factory.start();
    server.cluster().create(&config_map("a", "1")).unwrap();
    let lists = || server.requests().verb(Verb::List).resource("configmaps").len();
    let options = || InformerOptions::<ConfigMap>::new().streaming_lists(false);
    for round in 1..=3 {
        let informer = factory.informer_with(options()).unwrap();
        assert!(informer.status().registrations.is_empty() && !informer.is_stopped());
        let (sender, mut heard) = mpsc::unbounded_channel();
        informer.add_handler(|h| noting(h, sender)).unwrap();
        assert_eq!(notes(&mut heard, 1).await, [format!("add a={round} initial")]);
        assert_eq!(lists(), round);
        match round {
            1 => soon(factory.stop(&informer)).await,
            _ => soon(informer.stop()).await,
        }
        // What changes now is for the next one.
        server.cluster().apply(&config_map("a", &(round + 1).to_string())).unwrap();
        assert_eq!(soon(heard.recv()).await, None, "the handler went with its informer");
        let last = informer.unsynced_store().find("default", "a").unwrap();
        assert_eq!(common::value_of(&last), round.to_string(), "the old store stays as it was");
    }
    soon(factory.shutdown()).await;
}
