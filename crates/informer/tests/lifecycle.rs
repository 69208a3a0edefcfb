//! One informer per collection; starting, stopping, and that nothing is left behind (G22 to G25).

#[macro_use]
mod common;

use std::time::Duration;

use common::{config_map, gate, nobody, notes, noting, object, scripted, scripted_informer, soon};
use futures_util::StreamExt;
use informer::source::{
    Failure, KubeSource, ListRequest, ListStream, ListWatch, WatchRequest, WatchStream,
};
use informer::{
    Error, InformerOptions, InformerState, Representation, Resource, Scope, SharedInformer,
    SharedInformerFactory, StopCause,
};
use informer_testkit::{TestServer, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::core::DynamicObject;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

run_tests! {
    on_both_runtimes:
        g23_the_same_collection_is_the_same_informer_with_one_watch,
        g23_contradictory_options_are_an_error_that_names_the_option,
        g28_watches_shorter_than_ten_seconds_are_an_error,
        g24_what_was_stopped_can_be_asked_for_again,
        g24_shutdown_comes_back_within_its_deadline_although_a_callback_blocks,
        g24_shutdown_lets_running_callbacks_return,
        g24_a_standalone_informer_lives_while_handle_lister_stream_or_callback_do,
        g24_a_factory_that_is_dropped_takes_its_informers_with_it,
        g24_an_informer_outlives_its_factory_while_somebody_holds_it,
        g24_a_handler_that_keeps_a_lister_keeps_its_informer_until_it_is_removed_or_stopped,
        g23_the_constructor_of_a_source_may_ask_the_factory_for_more,
        a_source_that_panics_stops_the_informer_and_wakes_who_waits,
        g30_a_decoder_that_panics_loses_its_object_only_and_tells_nothing_of_it;
}

fn options() -> InformerOptions<ConfigMap> {
    InformerOptions::new()
}

/// Waits until only this many tasks of the runtime live.
async fn only_tasks(count: usize) {
    soon(async {
        while Handle::current().metrics().num_alive_tasks() > count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn g23_the_same_collection_is_the_same_informer_with_one_watch() {
    let server = TestServer::start().await.unwrap();
    let factory =
        SharedInformerFactory::builder(server.client().unwrap()).namespace("default").build();
    let first = factory.informer::<ConfigMap>().unwrap();
    let same = [
        factory.informer_with(options().namespace("default")).unwrap(),
        factory.clone().informer_as(Resource::of::<ConfigMap>(), options()).unwrap(),
    ];
    let other = factory.informer_with(options().all_namespaces()).unwrap();
    let also_all = factory.informer_with(options().namespace("")).unwrap();
    let labels = |text: &str| factory.informer_with(options().labels(text).unwrap()).unwrap();
    let (ab, ba) = (labels("a=1,b in (x,y)"), labels("b in (y,x),a=1"));
    factory.start();
    soon(factory.wait_for_sync()).await.unwrap();
    server.cluster().create(&config_map("a", "1")).unwrap();
    for informer in same.iter().chain([&first, &other]) {
        let version = server.cluster().version().to_string();
        soon(informer.wait_for(version.as_str())).await.unwrap();
    }
    assert_eq!(factory.statuses().len(), 3);
    assert_eq!((ab.unsynced_store().len(), ba.unsynced_store().len()), (0, 0));
    assert_eq!(also_all.scope(), &Scope::all());
    assert_eq!(server.requests().verb(Verb::Watch).resource("configmaps").len(), 3);
    // A namespace means nothing to what has none.
    let namespaces = factory.informer::<Namespace>().unwrap();
    assert_eq!(namespaces.scope().namespace, None);
    factory.shutdown().await;
}

async fn g23_contradictory_options_are_an_error_that_names_the_option() {
    let server = TestServer::start().await.unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    factory.informer::<ConfigMap>().unwrap();
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    for (changed, name) in [
        (options().resync(second), "resync"),
        (options().page_size(Some(7)), "page_size"),
        (options().streaming_lists(false), "streaming_lists"),
        (options().watch_timeout(minute..=minute), "watch_timeout"),
        (options().degraded_list_age(minute), "degraded_list_age"),
        (options().silent_list_interval(minute), "silent_list_interval"),
        (options().keep_managed_fields(), "keep_managed_fields"),
        (options().strict(), "strict"),
        (options().max_object_bytes(1), "max_object_bytes"),
        (options().transform("slim", |_| Ok(())), "transform"),
        (
            InformerOptions::of(Representation::custom("own", |raw| raw.wire.decode())),
            "representation",
        ),
    ] {
        let error = factory.informer_with(changed).unwrap_err();
        assert!(
            matches!(error, Error::ConflictingOptions { option, .. } if option == name),
            "{error:?}"
        );
        assert!(error.to_string().contains(name), "{error}");
    }
    let (resource, dynamic) =
        (Resource::of::<ConfigMap>(), InformerOptions::<DynamicObject>::new());
    factory.dynamic(resource.clone(), dynamic.clone()).unwrap();
    let error = factory.dynamic(resource, dynamic.metadata_only()).unwrap_err();
    assert!(error.to_string().contains("metadata_only"), "{error}");
}

async fn g28_watches_shorter_than_ten_seconds_are_an_error() {
    let factory = nobody();
    let (most, ten, second) =
        (Duration::from_millis(9999), Duration::from_secs(10), Duration::from_secs(1));
    for range in [most..=ten, second..=second, ten..=second] {
        let error = factory.informer_with(options().watch_timeout(range)).unwrap_err();
        assert!(matches!(error, Error::InvalidOption { option: "watch_timeout", .. }), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("configmaps.v1 in")
                && text.contains("watch_timeout")
                && text.contains("10s"),
            "{text}"
        );
    }
    factory.informer_with(options().watch_timeout(ten..=ten)).unwrap();
}

async fn g24_what_was_stopped_can_be_asked_for_again() {
    let server = TestServer::start().await.unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    factory.start();
    let pods = factory.informer::<ConfigMap>().unwrap();
    soon(pods.synced()).await.unwrap();
    soon(factory.stop(&pods)).await;
    assert_eq!(pods.status().state, InformerState::Stopped { cause: StopCause::Asked });
    soon(factory.wait_for_sync()).await.unwrap();
    server.cluster().create(&config_map("a", "1")).unwrap();
    for stop in [false, true] {
        let again = factory.informer_with(options().strict()).unwrap();
        assert_eq!(soon(again.synced()).await.unwrap().len(), 1);
        if !stop {
            // By its own handle: the factory finds out.
            again.stop().await;
            soon(factory.wait_for_sync()).await.unwrap();
        }
    }
    soon(factory.shutdown()).await;
    assert_eq!(factory.informer::<Pod>().unwrap_err(), Error::ShutDown);
    assert_eq!(soon(factory.wait_for_sync()).await, Err(Error::ShutDown));
    soon(factory.shutdown()).await;
}

async fn g24_shutdown_comes_back_within_its_deadline_although_a_callback_blocks() {
    let server = TestServer::start().await.unwrap();
    server.cluster().create(&config_map("a", "1")).unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    let informer = factory.informer::<ConfigMap>().unwrap();
    let (mut blocked, mut wait) = gate();
    informer
        .add_handler(|h| {
            h.on_add(move |object, _| {
                if object.metadata.namespace.as_deref() == Some("default") {
                    wait()
                }
            })
        })
        .unwrap();
    factory.start();
    soon(blocked.arrived.recv()).await.unwrap();
    soon(factory.shutdown_within(Duration::from_millis(50))).await;
    assert_eq!(informer.status().state, InformerState::Stopped { cause: StopCause::Asked });
    blocked.open_once();
}

async fn g24_shutdown_lets_running_callbacks_return() {
    let (informer, mut script) = scripted_informer();
    let (mut running, mut wait) = gate();
    let (sender, mut heard) = mpsc::unbounded_channel();
    informer.add_handler(|h| noting(h.on_add(move |_, _| wait()), sender)).unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    soon(running.arrived.recv()).await.unwrap();
    let stopping = tokio::spawn({
        let informer = informer.clone();
        async move { informer.stop().await }
    });
    while !informer.is_stopped() {
        tokio::task::yield_now().await;
    }
    running.open_once();
    soon(stopping).await.unwrap();
    assert_eq!(notes(&mut heard, 1).await, ["add a=1 initial"]);
    assert_eq!(heard.recv().await, None, "the call was the last");
}

async fn g24_a_standalone_informer_lives_while_handle_lister_stream_or_callback_do() {
    // Never started.
    let (informer, mut script) = scripted_informer();
    informer.add_handler(|h| h.on_add(|_, _| ())).unwrap();
    drop(informer.events().unwrap());
    drop(informer);
    assert!(script.is_over().await, "its source is gone");

    // By its callback.
    let (informer, mut script) = scripted_informer();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let registration = informer.add_handler(|h| noting(h, sender)).unwrap();
    informer.start();
    drop(informer);
    script.list(9, &[object("a", 1, "1")]).await;
    assert_eq!(notes(&mut heard, 1).await, ["add a=1 initial"]);
    let (_, feed) = script.watch().await;
    feed.send("MODIFIED", &object("a", 10, "2"));
    assert_eq!(notes(&mut heard, 1).await, ["update a=1>2"]);
    soon(registration.remove()).await;
    assert!(script.is_over().await);
    only_tasks(0).await;

    // By a stream, then by a lister.
    let (informer, mut script) = scripted_informer();
    let mut stream = informer.events().unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    let lister = soon(informer.synced()).await.unwrap();
    let status = informer.status_changes();
    drop(informer);
    soon(stream.next()).await.unwrap();
    drop(stream);
    let (_, feed) = script.watch().await;
    feed.send("DELETED", &object("a", 10, "2"));
    soon(async {
        while !lister.is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(lister);
    assert!(script.is_over().await);
    // The source and its watch are dropped one after the other.
    soon(async {
        while !feed.is_closed() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let last = soon(status.collect::<Vec<_>>()).await.pop();
    assert!(
        last.is_none_or(|last| last.state == InformerState::Stopped { cause: StopCause::Asked }),
        "following the status keeps nothing"
    );
    only_tasks(0).await;
}

async fn g24_a_factory_that_is_dropped_takes_its_informers_with_it() {
    for start in [false, true] {
        let server = TestServer::start().await.unwrap();
        let before = Handle::current().metrics().num_alive_tasks();
        let client = kube::Client::new(server.service(), "default");
        let factory = SharedInformerFactory::builder(client).build();
        let informer = factory.informer::<ConfigMap>().unwrap();
        informer.add_handler(|h| h.resync(Duration::from_secs(1)).on_add(|_, _| ())).unwrap();
        let registration = informer.add_handler(|h| h).unwrap();
        if start {
            factory.start();
            soon(factory.wait_for_handlers()).await.unwrap();
        }
        drop(informer);
        drop(factory);
        only_tasks(before).await;
        if !start {
            assert!(matches!(soon(registration.synced()).await, Err(Error::Stopped { .. })));
        }
    }
}

async fn g24_an_informer_outlives_its_factory_while_somebody_holds_it() {
    let server = TestServer::start().await.unwrap();
    let before = Handle::current().metrics().num_alive_tasks();
    let factory =
        SharedInformerFactory::builder(kube::Client::new(server.service(), "default")).build();
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    drop(factory);
    let lister = soon(informer.synced()).await.unwrap();
    drop(informer);
    server.cluster().create(&config_map("a", "1")).unwrap();
    soon(async {
        while lister.find("default", "a").is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(lister);
    only_tasks(before).await;
    assert_eq!(server.faults().open_watches(None), 0, "the watch was given up");
}

async fn g24_a_handler_that_keeps_a_lister_keeps_its_informer_until_it_is_removed_or_stopped() {
    for remove in [true, false] {
        let factory = nobody();
        let (source, mut script) = scripted();
        let options = options().streaming_lists(false);
        let informer = factory
            .informer_for(Resource::of::<ConfigMap>(), options, move |_, _, _| source)
            .unwrap();
        let (kept, (sender, mut heard)) = (informer.unsynced_store(), mpsc::unbounded_channel());
        let registration = informer
            .add_handler(|h| {
                h.on_event(move |event| _ = sender.send(format!("{event:?} of {}", kept.len())))
            })
            .unwrap();
        factory.start();
        let factory = (!remove).then_some(factory);
        drop(informer);
        script.list(9, &[object("a", 1, "1")]).await;
        assert_eq!(notes(&mut heard, 1).await, ["Added(default/a, initial) of 1"]);
        // Nobody but its own handler has it any more, and the factory perhaps.
        let (_, feed) = script.watch().await;
        feed.send("MODIFIED", &object("a", 10, "2"));
        assert_eq!(notes(&mut heard, 1).await, ["Updated(default/a, Change) of 1"]);
        match factory {
            None => _ = soon(registration.remove()).await,
            Some(factory) => soon(factory.shutdown()).await,
        }
        assert!(script.is_over().await, "its source is gone");
        assert_eq!(soon(heard.recv()).await, None, "and so is its handler");
    }
}

async fn g23_the_constructor_of_a_source_may_ask_the_factory_for_more() {
    let server = TestServer::start().await.unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    let client = server.client().unwrap();
    let inner = factory.clone();
    let informer = factory
        .informer_for(Resource::of::<ConfigMap>(), options(), move |resource, scope, _| {
            inner.informer::<Pod>().unwrap();
            KubeSource::new(client, resource.clone(), scope.clone())
        })
        .unwrap();
    factory.start();
    soon(informer.synced()).await.unwrap();
    assert_eq!(factory.statuses().len(), 2);
    let again =
        factory.informer_for(Resource::of::<ConfigMap>(), options(), |_, _, _| -> KubeSource {
            panic!("there is one already")
        });
    assert!(again.is_ok());
}

struct Broken;

impl ListWatch for Broken {
    async fn list(&self, _: &ListRequest) -> Result<ListStream, Failure> {
        panic!("out of order")
    }

    async fn watch(&self, _: &WatchRequest) -> Result<WatchStream, Failure> {
        panic!("out of order")
    }
}

async fn a_source_that_panics_stops_the_informer_and_wakes_who_waits() {
    let informer = SharedInformer::<ConfigMap>::new(Broken, Resource::of::<ConfigMap>(), options());
    let registration = informer.add_handler(|h| h).unwrap();
    informer.start();
    assert!(matches!(soon(informer.synced()).await, Err(Error::Stopped { .. })));
    assert!(matches!(soon(registration.synced()).await, Err(Error::Stopped { .. })));
    let status = informer.status();
    assert_eq!(status.state, InformerState::Stopped { cause: StopCause::Panicked });
    assert!(status.recent_errors[0].message.ends_with("stops: its task panicked"), "{status:?}");
    only_tasks(0).await;
}

#[derive(Debug)]
struct Fragile;

impl<'de> serde::Deserialize<'de> for Fragile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        assert!(value["data"]["value"] != "hunter2", "cannot stand {value}");
        Ok(Self)
    }
}

async fn g30_a_decoder_that_panics_loses_its_object_only_and_tells_nothing_of_it() {
    let (source, mut script) = scripted();
    let options = InformerOptions::new().streaming_lists(false);
    let informer = SharedInformer::<Fragile>::new(source, Resource::of::<ConfigMap>(), options);
    informer.start();
    script.list(9, &[object("bad", 1, "hunter2"), object("good", 2, "1")]).await;
    assert_eq!(soon(informer.synced()).await.unwrap().len(), 1);
    let status = informer.status();
    assert_eq!(status.stale[0].cause, "the decoder panicked");
    assert!(!format!("{status:?}").contains("hunter2"));
}
