//! Being synced, and waiting for it (G19 to G22).

#[macro_use]
mod common;

use std::time::Duration;

use common::{LONG, Script, gate, nobody, object, scripted, scripted_informer, soon};
use futures_util::{FutureExt, StreamExt};
use informer::source::FailureKind;
use informer::{
    Error, InformerOptions, InformerState, Resource, SharedInformer, SharedInformerFactory,
    StopCause,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use tokio::time::Instant;

run_tests! {
    on_both_runtimes:
        g19_the_store_and_each_handler_have_a_sync_of_their_own,
        g19_every_waiter_is_woken_and_an_empty_list_syncs_everything,
        g19_the_deadline_of_handlers_names_the_handler,
        g20_a_list_of_which_nothing_can_be_decoded_is_an_error_not_a_sync,
        g20_a_partly_decodable_list_is_synced_with_the_rest_in_the_status,
        g21_a_lister_can_be_had_often_and_outlives_the_stop_and_says_so,
        g25_a_stop_ends_every_wait_at_once,
        g25_a_registration_of_an_informer_dropped_unstarted_does_not_wait_for_ever,
        g22_informers_asked_for_after_the_start_run_without_another,
        g20_one_hopeless_informer_ends_the_wait_for_all;
    on_a_paused_clock:
        g22_waiting_before_anyone_started_waits_for_that_and_says_so,
        g19_a_deadlines_error_names_what_is_missing_and_its_last_error;
}

const SECOND: Duration = Duration::from_secs(1);

fn scripted_in(
    factory: &SharedInformerFactory,
    namespace: &str,
) -> (SharedInformer<ConfigMap>, Script) {
    let (source, script) = scripted();
    let options = InformerOptions::new().streaming_lists(false).namespace(namespace);
    let informer =
        factory.informer_for(Resource::of::<ConfigMap>(), options, move |_, _, _| source).unwrap();
    (informer, script)
}

async fn g19_the_store_and_each_handler_have_a_sync_of_their_own() {
    let factory = nobody();
    let (informer, mut script) = scripted_in(&factory, "a");
    let (mut blocked, mut wait) = gate();
    let registration = informer.add_handler(|h| h.name("slow").on_add(move |_, _| wait())).unwrap();
    let mut stream = informer.events().unwrap();
    factory.start();
    assert!(!informer.has_synced() && !registration.has_synced());
    script.list(9, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    soon(factory.wait_for_sync()).await.unwrap();
    assert!(informer.has_synced());
    for _ in 0..2 {
        soon(blocked.arrived.recv()).await.unwrap();
        assert!(!registration.has_synced(), "it has not returned from its initial set");
        assert!(factory.wait_for_handlers().now_or_never().is_none());
        blocked.open_once();
    }
    // The stream, which nobody polls, does not count for the factory.
    soon(factory.wait_for_handlers()).await.unwrap();
    soon(registration.synced()).await.unwrap();
    assert!(!stream.has_synced());
    soon(stream.next()).await.unwrap();
    soon(stream.next()).await.unwrap();
    assert!(!stream.has_synced(), "the last object may still be in the reader's hands");
    assert!(stream.next().now_or_never().is_none());
    assert!(stream.has_synced());
    soon(stream.synced()).await.unwrap();
}

async fn g19_every_waiter_is_woken_and_an_empty_list_syncs_everything() {
    let (informer, mut script) = scripted_informer();
    let registration = informer.add_handler(|h| h).unwrap();
    let mut waiters = Vec::new();
    for _ in 0..10 {
        let (informer, registration) = (informer.clone(), registration.clone());
        waiters.push(tokio::spawn(async move {
            registration.synced().await.unwrap();
            informer.synced().await.unwrap().len()
        }));
    }
    informer.start();
    script.list(9, &[]).await;
    for waiter in waiters {
        assert_eq!(soon(waiter).await.unwrap(), 0);
    }
    let late = informer.add_handler(|h| h).unwrap();
    soon(late.synced()).await.unwrap();
    informer.stop().await;
}

async fn g22_waiting_before_anyone_started_waits_for_that_and_says_so() {
    let factory = nobody();
    let (informer, mut script) = scripted_in(&factory, "a");
    let waiting = tokio::spawn({
        let (factory, informer) = (factory.clone(), informer.clone());
        async move {
            factory.wait_for_sync().await.unwrap();
            informer.synced().await.unwrap().len()
        }
    });
    let error = factory.wait_for_sync_within(10 * SECOND).await.unwrap_err();
    assert!(
        error.to_string().contains("configmaps.v1 in namespace a (not started: call `start()`)"),
        "{error}"
    );
    let error = informer.synced_within(SECOND).await.unwrap_err();
    assert!(error.to_string().contains("not started: call `start()`"), "{error}");
    assert_eq!(informer.status().state, InformerState::NotStarted);

    let elsewhere = factory.clone();
    tokio::spawn(async move { elsewhere.start() }).await.unwrap();
    factory.start();
    script.list(9, &[object("a", 1, "1")]).await;
    assert_eq!(waiting.await.unwrap(), 1);
    script.watch().await;
    assert!(script.call_now().is_none(), "two starts, one informer");
}

async fn g19_a_deadlines_error_names_what_is_missing_and_its_last_error() {
    let factory = nobody();
    let (_first, mut first_script) = scripted_in(&factory, "fine");
    let (_second, mut second_script) = scripted_in(&factory, "broken");
    factory.start();
    first_script.list(9, &[]).await;
    second_script.fail(FailureKind::Forbidden, "list configmaps: 403 grant the verbs").await;
    // The next list stays unanswered.
    let error = factory.wait_for_sync_within(3 * SECOND).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("configmaps.v1 in namespace broken"), "{text}");
    assert!(text.contains("namespace broken: list configmaps: 403 grant the verbs"), "{text}");
    assert!(!text.contains("fine"), "{text}");
}

async fn g19_the_deadline_of_handlers_names_the_handler() {
    let factory = nobody();
    let (informer, mut script) = scripted_in(&factory, "a");
    let (mut blocked, mut wait) = gate();
    let printer = informer.add_handler(|h| h.name("printer").on_add(move |_, _| wait())).unwrap();
    factory.start();
    script.list(9, &[object("a", 1, "1")]).await;
    soon(blocked.arrived.recv()).await.unwrap();
    let own = printer.synced_within(Duration::from_millis(20)).await.unwrap_err();
    assert!(own.to_string().contains("handler printer of configmaps.v1 in namespace a"), "{own}");
    let error = factory.wait_for_handlers_within(Duration::from_millis(20)).await.unwrap_err();
    assert!(
        error.to_string().contains("handler printer of configmaps.v1 in namespace a"),
        "{error}"
    );
    blocked.open_once();
    soon(factory.wait_for_handlers()).await.unwrap();
    printer.synced_within(Duration::from_secs(30)).await.unwrap();
}

async fn g20_a_list_of_which_nothing_can_be_decoded_is_an_error_not_a_sync() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    let mut bad = object("a", 1, "1");
    bad["data"] = "hunter2".into();
    script.list(9, &[bad.clone()]).await;
    let error = soon(informer.synced()).await.unwrap_err();
    assert!(matches!(error, Error::NothingDecodes { objects: 1, .. }), "{error:?}");
    assert!(error.to_string().contains("data: invalid type: string, expected"), "{error}");
    assert!(!format!("{error} {error:?} {:?}", informer.status()).contains("hunter2"));
    assert!(!informer.has_synced());
    assert_eq!(informer.unsynced_store().len(), 0);
}

async fn g20_a_partly_decodable_list_is_synced_with_the_rest_in_the_status() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    let mut bad = object("bad", 1, "1");
    bad["data"] = "hunter2".into();
    script.list(9, &[bad, object("good", 2, "1")]).await;
    assert_eq!(soon(informer.synced()).await.unwrap().len(), 1);
    let status = informer.status();
    assert_eq!((status.undecodable, status.stale.len(), status.counters.undecodable), (1, 1, 1));
    assert_eq!(status.stale[0].key.to_string(), "default/bad");
    assert!(!format!("{status:?}").contains("hunter2"));

    // It is gone in the next list, and with it the note.
    let (_, feed) = script.watch().await;
    feed.fail(FailureKind::Expired, "gone");
    script.list(20, &[object("good", 2, "1")]).await;
    script.watch().await;
    soon(informer.wait_for(20)).await.unwrap();
    assert_eq!(informer.status().stale, []);
}

async fn g21_a_lister_can_be_had_often_and_outlives_the_stop_and_says_so() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    let lister = soon(informer.synced()).await.unwrap();
    let again = soon(informer.synced_within(SECOND)).await.unwrap();
    assert!(!lister.state().to_string().contains("stopped"));
    informer.stop().await;
    assert_eq!((lister.len(), again.len()), (1, 1));
    assert_eq!(lister.state(), InformerState::Stopped { cause: StopCause::Asked });
    assert!(informer.is_stopped());
    assert!(matches!(informer.add_handler(|h| h), Err(Error::Stopped { .. })));
    assert!(matches!(informer.events(), Err(Error::Stopped { .. })));
    assert_eq!(
        soon(informer.synced()).await.unwrap().state(),
        InformerState::Stopped { cause: StopCause::Asked }
    );
}

async fn g25_a_stop_ends_every_wait_at_once() {
    for start in [false, true] {
        let (informer, _script) = scripted_informer();
        let registration = informer.add_handler(|h| h).unwrap();
        let mut stream = informer.events().unwrap();
        let of_stream = stream.registration();
        if start {
            informer.start();
        }
        let begun = Instant::now();
        let written: ConfigMap = serde_json::from_value(object("a", 99, "1")).unwrap();
        let waits = async {
            tokio::join!(
                informer.synced(),
                informer.wait_for(99),
                informer.wait_for_within(99, LONG),
                informer.wait_for_object_within(&written, LONG),
                registration.synced(),
                of_stream.synced(),
                informer.run(),
                async {
                    while let Some(event) = stream.next().await {
                        drop(event);
                    }
                },
            )
        };
        let stopper = informer.clone();
        if !start {
            // `run` starts; the others are what this is about.
            stopper.stop().await;
        }
        let (synced, reached, within, of_object, handler, of_stream, (), ()) = soon(async {
            let (outcome, ()) = tokio::join!(waits, async {
                tokio::task::yield_now().await;
                stopper.stop().await;
            });
            outcome
        })
        .await;
        assert!(matches!(synced, Err(Error::Stopped { .. })));
        for reached in [reached, within, of_object] {
            assert!(matches!(reached, Err(Error::Stopped { .. })));
        }
        assert!(matches!(handler, Err(Error::Stopped { .. })));
        assert!(matches!(of_stream, Err(Error::Stopped { .. })));
        assert!(begun.elapsed() < 10 * SECOND);
    }
}

async fn g25_a_registration_of_an_informer_dropped_unstarted_does_not_wait_for_ever() {
    let (informer, _script) = scripted_informer();
    let registration = informer.add_handler(|h| h).unwrap();
    drop(informer);
    assert!(matches!(soon(registration.synced()).await, Err(Error::Stopped { .. })));
}

async fn g22_informers_asked_for_after_the_start_run_without_another() {
    let server = informer_testkit::TestServer::start().await.unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    factory.start();
    let pods = factory.informer::<Pod>().unwrap();
    assert!(soon(pods.synced()).await.unwrap().is_empty());
    factory.shutdown().await;
}

async fn g20_one_hopeless_informer_ends_the_wait_for_all() {
    let factory = nobody();
    let (_first, _unanswered) = scripted_in(&factory, "silent");
    let (_second, mut script) = scripted_in(&factory, "hopeless");
    factory.start();
    let mut bad = object("a", 1, "1");
    bad["data"] = 7.into();
    script.list(9, &[bad]).await;
    assert!(matches!(soon(factory.wait_for_sync()).await, Err(Error::NothingDecodes { .. })));
}
