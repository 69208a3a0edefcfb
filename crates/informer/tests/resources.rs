//! Resources that come and go, transforms, status and secrets (G31 to G34).

#[macro_use]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{
    config_map, object, scripted, scripted_informer, soon, status_where, widget, widgets_crd,
};
use futures_util::StreamExt;
use informer::TransformError;
use informer::reflector::Phase;
use informer::source::{FailureKind, KubeSource};
use informer::{
    Error, Event, FinalState, InformerOptions, InformerState, Representation, Resource, Scope,
    SharedInformer, SharedInformerFactory,
};
use informer_testkit::{Fault, Status, TestServer, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde_json::json;

run_tests! {
    on_both_runtimes:
        g33_transforms_that_fail_panic_or_change_the_identity_lose_their_object_only,
        g33_the_identity_of_objects_is_checked_wherever_it_is_known,
        g33_the_factorys_metadata_transform_reaches_typed_dynamic_and_metadata_informers,
        g31_errors_say_what_to_do,
        g31_failures_of_a_streaming_list_are_failures_of_a_list,
        g31_an_unreachable_server_is_named_and_asked_about,
        g34_tokens_and_contents_never_show;
    on_one_thread:
        // Where whoever reads the stream has a turn between one state and the next.
        g31_the_status_tells_each_state_and_its_stream_ends_with_the_informer;
    on_a_paused_clock:
        g32_a_typed_informer_waits_for_its_resource_and_outlives_its_removal,
        g32_only_three_absences_over_30_s_empty_the_store,
        g32_an_outage_that_answers_404_to_everything_is_no_removal,
        g33_a_transform_runs_once_per_version_before_anything_sees_it;
}

fn factory(server: &TestServer) -> SharedInformerFactory {
    SharedInformerFactory::builder(kube::Client::new(server.service(), "default")).build()
}

#[derive(kube::CustomResource, Debug, Clone, serde::Deserialize, serde::Serialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    plural = "widgets",
    namespaced,
    schema = "disabled"
)]
struct WidgetSpec {
    size: u32,
}

async fn g32_a_typed_informer_waits_for_its_resource_and_outlives_its_removal() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let widgets = factory.informer::<Widget>().unwrap();
    let mut events = widgets.events().unwrap();
    factory.start();
    let status = status_where(&widgets, |status| {
        matches!(status.state, InformerState::Unavailable { absent: 1.., .. })
    })
    .await;
    assert!(!status.has_synced, "absence is not an empty cluster");
    let text = status.to_string();
    assert!(text.contains("widgets.v1.example.com") && text.contains("install its CRD"), "{text}");
    let error = widgets.synced_within(Duration::from_secs(1)).await.unwrap_err();
    assert!(error.to_string().contains("waiting for the resource"), "{error}");

    server.cluster().create(&widgets_crd()).unwrap();
    server.cluster().create(&widget("a", 1)).unwrap();
    let lister = soon(widgets.synced()).await.unwrap();
    assert_eq!(lister.find("default", "a").unwrap().spec.size, 1);
    assert!(matches!(soon(events.next()).await, Some(Event::Added { initial: true, .. })));

    server
        .cluster()
        .delete("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.com")
        .unwrap();
    server.faults().cut_watches(informer_testkit::Cut::Close, None);
    status_where(&widgets, |status| matches!(status.state, InformerState::Unavailable { .. }))
        .await;
    // A real server deletes the objects first and tells; here the watch may just end.
    let Some(Event::Deleted(gone)) = soon(events.next()).await else {
        panic!("a deletion was expected")
    };
    assert_eq!(gone.key.name(), "a");
    assert!(lister.is_empty());

    server.cluster().create(&widgets_crd()).unwrap();
    server.cluster().create(&widget("b", 2)).unwrap();
    let Some(Event::Added { object, .. }) = soon(events.next()).await else { panic!("it is back") };
    assert_eq!(object.spec.size, 2);
}

async fn g32_only_three_absences_over_30_s_empty_the_store() {
    let (informer, mut script) = scripted_informer();
    let mut events = informer.events().unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    let (_, feed) = script.watch().await;
    soon(events.next()).await.unwrap();

    // A transient 404: discovery still has it.
    feed.fail(FailureKind::NotFound, "watch: 404");
    script.exists(true).await;
    script.list(9, &[object("a", 1, "1")]).await;
    let (_, feed) = script.watch().await;
    assert_eq!(informer.unsynced_store().len(), 1);

    let begun = tokio::time::Instant::now();
    feed.fail(FailureKind::NotFound, "watch: 404");
    let mut absences = 0;
    while !informer.unsynced_store().is_empty() {
        // A discovery that fails says nothing.
        script.fail(FailureKind::Server, "discover: 503").await;
        script.exists(false).await;
        absences += 1;
        tokio::task::yield_now().await;
        if informer.unsynced_store().is_empty() {
            break;
        }
        assert_eq!(informer.unsynced_store().len(), 1);
    }
    assert!(absences >= 3, "{absences}");
    assert!(begun.elapsed() >= Duration::from_secs(30), "{:?}", begun.elapsed());
    let Some(Event::Deleted(gone)) = soon(events.next()).await else { panic!("it is gone") };
    assert_eq!(gone.final_state, FinalState::Unknown);
    assert!(matches!(informer.status().state, InformerState::Unavailable { .. }));
}

async fn g32_an_outage_that_answers_404_to_everything_is_no_removal() {
    let server = TestServer::start().await.unwrap();
    server.cluster().create(&widgets_crd()).unwrap();
    server.cluster().create(&widget("a", 1)).unwrap();
    let factory = factory(&server);
    let widgets = factory.informer::<Widget>().unwrap();
    let mut events = widgets.events().unwrap();
    factory.start();
    let lister = soon(widgets.synced()).await.unwrap();
    assert!(matches!(soon(events.next()).await, Some(Event::Added { initial: true, .. })));

    // What a load balancer says that has lost the server behind it.
    let outage = server.faults().inject(Fault::not_found());
    server.faults().cut_watches(informer_testkit::Cut::Close, None);
    status_where(&widgets, |status| matches!(status.state, InformerState::Unavailable { .. }))
        .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(lister.len(), 1, "no discovery has succeeded");
    assert!(matches!(widgets.status().state, InformerState::Unavailable { absent: 0, .. }));

    outage.lift();
    status_where(&widgets, |status| matches!(status.state, InformerState::Watching { .. })).await;
    server.cluster().create(&widget("b", 2)).unwrap();
    let Some(Event::Added { key, .. }) = soon(events.next()).await else {
        panic!("nothing was deleted")
    };
    assert_eq!(key.name(), "b");
}

async fn g33_a_transform_runs_once_per_version_before_anything_sees_it() {
    let server = TestServer::start().await.unwrap();
    server.cluster().create(&config_map("a", "1")).unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let options = InformerOptions::<ConfigMap>::new().namespace("default").transform(
        "redact",
        move |object| {
            counter.fetch_add(1, Ordering::Relaxed);
            object.data = Some([("value".to_owned(), "redacted".to_owned())].into());
            Ok(())
        },
    );
    let factory = factory(&server);
    let informer = factory.informer_with(options).unwrap();
    let index = informer
        .add_index("value", |object: &ConfigMap, values| {
            values.extend(Some(common::value_of(object)))
        })
        .await
        .unwrap();
    let mut events = informer.events().unwrap();
    factory.start();
    let lister = soon(informer.synced()).await.unwrap();
    assert_eq!(lister.by_index(&index, "redacted").unwrap().len(), 1);
    server.cluster().apply(&config_map("a", "2")).unwrap();
    soon(informer.wait_for(server.cluster().version().to_string().as_str())).await.unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    // A relist decodes and transforms nothing that did not change.
    server.faults().inject(Fault::expired().on(Verb::Watch).times(1));
    server.faults().cut_watches(informer_testkit::Cut::Close, None);
    status_where(&informer, |status| status.counters.unchanged == 1).await;
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    let event = soon(events.next()).await.unwrap();
    assert_eq!(common::value_of(event.object()), "redacted");
}

async fn g33_transforms_that_fail_panic_or_change_the_identity_lose_their_object_only() {
    let server = TestServer::start().await.unwrap();
    for name in ["fine", "fails", "panics", "renames", "revisions"] {
        server.cluster().create(&config_map(name, "1")).unwrap();
    }
    let options =
        InformerOptions::<ConfigMap>::new().namespace("default").transform("picky", |object| {
            match object.metadata.name.as_deref() {
                Some("fails") => return Err(TransformError::new("not this one")),
                Some("panics") => panic!("cannot stand it"),
                Some("renames") => object.metadata.name = Some("other".to_owned()),
                Some("revisions") => object.metadata.resource_version = None,
                _ => {}
            }
            Ok(())
        });
    let factory = factory(&server);
    let informer = factory.informer_with(options).unwrap();
    factory.start();
    assert_eq!(soon(informer.synced()).await.unwrap().len(), 1);
    let status = informer.status();
    let causes: Vec<(&str, &str)> =
        status.stale.iter().map(|stale| (stale.key.name(), stale.cause.as_str())).collect();
    assert_eq!(causes[0], ("fails", "transform picky: not this one"));
    assert!(causes[1].1.contains("panicked"), "{causes:?}");
    assert!(
        causes[2].1.contains("changed name") && causes[3].1.contains("changed name"),
        "{causes:?}"
    );
    assert!(status.recent_errors.iter().all(|error| error.phase == Phase::Transform));
}

async fn g33_the_identity_of_objects_is_checked_wherever_it_is_known() {
    fn rename(meta: &mut ObjectMeta) -> Result<(), TransformError> {
        meta.name = Some("other".to_owned());
        Ok(())
    }
    /// Whether an informer with these options keeps the one object of its list, and under which
    /// name.
    async fn keeps<T: Send + Sync + 'static>(options: InformerOptions<T>) -> bool {
        let (source, mut script) = scripted();
        let options = options.streaming_lists(false);
        let informer = SharedInformer::<T>::new(source, Resource::of::<ConfigMap>(), options);
        informer.start();
        script.list(9, &[object("a", 1, "1")]).await;
        match soon(informer.synced()).await {
            Ok(lister) => lister.find("default", "a").is_some(),
            Err(error) => {
                assert!(error.to_string().contains("changed name"), "{error}");
                false
            }
        }
    }
    let typed = || InformerOptions::<ConfigMap>::of(Representation::typed());
    assert!(!keeps(typed().transform("rename", |it| rename(&mut it.metadata))).await);
    assert!(keeps(typed().transform("nothing", |_| Ok(()))).await);
    let dynamic = InformerOptions::of(Representation::dynamic());
    assert!(!keeps(dynamic.transform("rename", |it| rename(&mut it.metadata))).await);

    // What has no metadata, or does not say that it has, can change it for nobody: keys are the
    // store's own.
    let any = InformerOptions::<ConfigMap>::new();
    assert!(keeps(any.transform("rename", |it| rename(&mut it.metadata))).await);
    let value = InformerOptions::<serde_json::Value>::new();
    let change = |it: &mut serde_json::Value| {
        it["metadata"]["name"] = "other".into();
        Ok(())
    };
    assert!(keeps(value.transform("rename", change)).await);
}

async fn g33_the_factorys_metadata_transform_reaches_typed_dynamic_and_metadata_informers() {
    let server = TestServer::start().await.unwrap();
    let mut annotated = config_map("a", "1");
    annotated["metadata"]["annotations"] = json!({ "big": "x" });
    server.cluster().create(&annotated).unwrap();
    let client = kube::Client::new(server.service(), "default");
    let factory = SharedInformerFactory::builder(client)
        .namespace("default")
        .transform_metadata("drop annotations", |metadata| {
            metadata.annotations = None;
            Ok(())
        })
        .build();
    let typed = factory.informer::<ConfigMap>().unwrap();
    let metadata = factory.metadata::<ConfigMap>(InformerOptions::new()).unwrap();
    let dynamic = factory.for_resource("core", "v1", "configmaps").await.unwrap();
    factory.start();
    let held = soon(typed.synced()).await.unwrap().find("default", "a").unwrap();
    assert_eq!(held.metadata.annotations, None);
    let held = soon(metadata.synced()).await.unwrap().find("default", "a").unwrap();
    assert_eq!(held.metadata.annotations, None);
    let held: Arc<DynamicObject> =
        soon(dynamic.synced()).await.unwrap().find("default", "a").unwrap();
    assert_eq!(held.metadata.annotations, None);
    assert_eq!(held.types.as_ref().map(|types| types.kind.as_str()), Some("ConfigMap"));
}

async fn g31_errors_say_what_to_do() {
    let refused = |code, reason| Fault::answer(Status::new(code, reason, "no")).on(Verb::List);
    for (fault, phrases) in [
        (
            refused(403, "Forbidden"),
            ["403", "grant the verbs list and watch on resource \"configmaps\"", "ClusterRole"],
        ),
        (refused(404, "NotFound"), ["404", "install its CRD", "configmaps.v1"]),
        (refused(401, "Unauthorized"), ["401", "credentials", "log in again"]),
        (refused(500, "InternalError"), ["list configmaps.v1 in the whole cluster", "500", "no"]),
    ] {
        let server = TestServer::start().await.unwrap();
        let factory = factory(&server);
        let informer = factory
            .informer_with(InformerOptions::<ConfigMap>::new().streaming_lists(false))
            .unwrap();
        server.faults().inject(fault);
        factory.start();
        let status = status_where(&informer, |status| !status.recent_errors.is_empty()).await;
        let error = &status.recent_errors[0];
        assert_eq!(error.phase, Phase::List);
        assert!(
            phrases.iter().all(|phrase| error.message.contains(phrase)),
            "{phrases:?}: {}",
            error.message
        );
        let waited = informer.synced_within(Duration::from_millis(1)).await.unwrap_err();
        assert!(waited.to_string().contains(phrases[1]), "{waited}");
        assert!(!informer.has_synced());
    }
}

async fn g31_failures_of_a_streaming_list_are_failures_of_a_list() {
    let server = TestServer::start().await.unwrap();
    server.auth().deny_all("system:anonymous", "configmaps");
    let factory = factory(&server);
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    let status = status_where(&informer, |status| !status.recent_errors.is_empty()).await;
    assert_eq!(status.recent_errors[0].phase, Phase::List, "{status:?}");
    assert!(!status.has_synced);
}

async fn g31_an_unreachable_server_is_named_and_asked_about() {
    let server = TestServer::start().await.unwrap();
    let client = server.client().unwrap();
    server.shutdown().await;
    let factory = SharedInformerFactory::builder(client).build();
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    let status =
        status_where(&informer, |status| matches!(status.state, InformerState::BackingOff { .. }))
            .await;
    assert!(status.recent_errors[0].message.contains("API server running"), "{status:?}");
    assert!(status.to_string().contains("attempt 1 failed"), "{status}");
}

async fn g31_the_status_tells_each_state_and_its_stream_ends_with_the_informer() {
    let (informer, mut script) = scripted_informer();
    let changes = informer.status_changes();
    let states = tokio::spawn(changes.map(|status| status.state.to_string()).collect::<Vec<_>>());
    tokio::task::yield_now().await;
    informer.start();
    tokio::task::yield_now().await;
    script.fail(FailureKind::Server, "list: 500 on fire").await;
    let waiting =
        status_where(&informer, |status| matches!(status.state, InformerState::BackingOff { .. }))
            .await;
    assert!(
        waiting
            .to_string()
            .contains("configmaps.v1 in the whole cluster: attempt 1 failed, next in 0."),
        "{waiting}"
    );
    script.list(9, &[]).await;
    let (_, _feed) = script.watch().await;
    let watching =
        status_where(&informer, |status| matches!(status.state, InformerState::Watching { .. }))
            .await;
    assert!(watching.to_string().contains("watching at version 9, 0 objects"), "{watching}");
    assert_eq!((watching.counters.lists, watching.counters.watches), (2, 1));
    informer.stop().await;
    let states = soon(states).await.unwrap();
    assert_eq!(states.first().map(String::as_str), Some("not started: call `start()`"));
    assert_eq!(states.last().map(String::as_str), Some("stopped"));
    assert!(states.iter().any(|state| state.contains("list: 500 on fire")));
}

async fn g34_tokens_and_contents_never_show() {
    let server = TestServer::start().await.unwrap();
    server.auth().add_token("tok3n-hunter2", "alice");
    let mut bad = config_map("bad", "hunter2");
    bad["data"] = json!({ "value": "hunter2" });
    server.cluster().create(&bad).unwrap();
    let factory =
        SharedInformerFactory::builder(server.client_for("tok3n-hunter2").unwrap()).build();
    let informer = factory.informer::<ConfigMap>().unwrap();
    let registration = informer.add_handler(|h| h.on_add(|_, _| ())).unwrap();
    let mut stream = informer.events().unwrap();
    factory.start();
    let lister = soon(informer.synced()).await.unwrap();
    let event = soon(stream.next()).await.unwrap();
    server.auth().revoke_token("tok3n-hunter2");
    server.faults().inject(Fault::expired().on(Verb::Watch).times(1));
    server.faults().cut_watches(informer_testkit::Cut::Reset, None);
    let status =
        status_where(&informer, |status| matches!(status.state, InformerState::BackingOff { .. }))
            .await;
    let error = factory.for_resource("", "v1", "nonsense").await.unwrap_err();
    let source =
        KubeSource::new(server.client().unwrap(), Resource::of::<ConfigMap>(), Scope::all());
    let alone = SharedInformer::<ConfigMap>::new(
        source,
        Resource::of::<ConfigMap>(),
        InformerOptions::new(),
    );
    let shown = format!(
        "{informer:?} {factory:?} {lister:?} {event:?} {registration:?} {stream:?} {status:?} {status} {error:?} {error} {alone:?} {:?}",
        lister.snapshot(),
    );
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(matches!(error, Error::Discovery { .. }), "{error:?}");
    assert!(error.to_string().contains("401"), "{error}");
}
