//! Writes whose outcome is unknown, or that say no version.

use informer_testkit::Status;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::*;
use crate::InformerOptions;
use crate::controller::error::WriteError;

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_settled_by_a_read() {
    let faults: [fn() -> Fault; 3] = [Fault::hang_up, Fault::internal_error, Fault::unavailable];
    for lost in faults {
        let bed = Bed::new().await;
        bed.server.faults().inject(lost().after_serving().on(Verb::Create).times(1));
        let held = bed.hold_watches();
        let error = bed.writer.create(&map("a", "1")).await.unwrap_err();
        assert!(matches!(error, WriteError::Unknown { .. }), "{error}");
        let missing = bed.not_shown().await;
        assert!(matches!(&missing[..], [NotShown::Version { .. }]), "{missing:?}");
        assert_eq!((bed.requests(Verb::Get), bed.own.metrics().reads), (1, 1));
        bed.is_waited_for(held).await;
        assert_eq!(bed.value("a").as_deref(), Some("1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_is_settled_by_a_read_that_finds_nothing() {
    let bed = Bed::new().await;
    bed.server.faults().inject(Fault::hang_up().on(Verb::Create).times(1));
    let _held = bed.hold_watches();
    bed.writer.create(&map("a", "1")).await.unwrap_err();
    bed.caught_up().await.unwrap();
    assert_eq!(bed.own.metrics().refreshes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_delete_is_settled_by_a_read() {
    let bed = Bed::new().await;
    let created = bed.writer.create(&map("a", "1")).await.unwrap();
    bed.caught_up().await.unwrap();
    bed.server.faults().inject(Fault::hang_up().after_serving().on(Verb::Delete).times(1));
    let held = bed.hold_watches();
    bed.writer.delete(&created).await.unwrap_err();
    // Another takes its name.
    bed.server
        .cluster()
        .create(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" },
        }))
        .unwrap();
    let missing = bed.not_shown().await;
    assert!(missing.iter().any(|it| matches!(it, NotShown::Delete { .. })), "{missing:?}");
    bed.is_waited_for(held).await;
    let shown = bed.lister().find("default", "a").unwrap();
    assert_ne!(shown.metadata.uid, created.metadata.uid);
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_whose_name_the_server_chose_is_settled_by_a_refresh() {
    let bed = Bed::new().await;
    bed.server.faults().inject(Fault::hang_up().after_serving().on(Verb::Create).times(1));
    let mut child = map("", "1");
    child.metadata.name = None;
    child.metadata.generate_name = Some("a-".to_owned());
    bed.writer.create(&child).await.unwrap_err();
    bed.caught_up().await.unwrap();
    assert_eq!(bed.lister().len(), 1, "the refresh has found it");
    let metrics = bed.own.metrics();
    assert_eq!((metrics.refreshes, metrics.reads, metrics.remembered), (1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn where_reads_are_refused_a_refresh_settles() {
    let bed = Bed::new().await;
    let forbidden = Status::new(403, "Forbidden", "configmaps is forbidden");
    bed.server.faults().inject(Fault::answer(forbidden).on(Verb::Get));
    bed.server.faults().inject(Fault::hang_up().after_serving().on(Verb::Create).times(1));
    bed.writer.create(&map("a", "1")).await.unwrap_err();
    bed.caught_up().await.unwrap();
    assert_eq!(bed.value("a").as_deref(), Some("1"));
    assert_eq!(bed.own.metrics().refreshes, 1);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_settles_the_key_goes_back() {
    let bed = Bed::new().await;
    bed.server.faults().inject(Fault::hang_up().after_serving().on(Verb::Create).times(1));
    let broken = [Verb::Get, Verb::List, Verb::Watch]
        .map(|verb| bed.server.faults().inject(Fault::unavailable().on(verb)));
    bed.writer.create(&map("a", "1")).await.unwrap_err();
    let missing = bed.not_shown().await;
    assert!(
        matches!(&missing[..], [NotShown::Unsettled { name: Some(name), .. }] if name == "a"),
        "{missing:?}"
    );
    for fault in broken {
        fault.lift();
    }
    // The informer, too, tries again after a delay.
    bed.own.caught_up(&owner(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(bed.own.metrics().remembered, 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_reconcile_is_dropped_goes_on_and_is_answered() {
    let server = TestServer::start().await.unwrap();
    let client = delayed(&server, Duration::from_secs(3));
    let bed = Bed::over(server, client).await;
    let held = bed.hold_watches();
    let created = map("a", "1");
    let write = tokio::time::timeout(Duration::from_secs(1), bed.writer.create(&created));
    assert!(write.await.is_err(), "it is not answered");
    // A read of now would find nothing.
    let missing = bed.own.caught_up(&owner(), Duration::from_secs(1)).await.unwrap_err().missing;
    assert!(matches!(&missing[..], [NotShown::InFlight { .. }]), "{missing:?}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("a").as_deref(), Some("1"));
    assert_eq!(bed.own.metrics().reads, 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_reconcile_is_dropped_and_that_is_never_answered_is_settled_by_a_read() {
    let bed = Bed::new().await;
    bed.server.faults().inject(Fault::stall().after_serving().on(Verb::Create));
    let created = map("a", "1");
    let write = tokio::time::timeout(Duration::from_secs(1), bed.writer.create(&created));
    assert!(write.await.is_err(), "it is not answered");
    assert!(matches!(&bed.not_shown().await[..], [NotShown::InFlight { .. }]));
    bed.own.caught_up(&owner(), Duration::from_secs(120)).await.unwrap();
    assert_eq!(bed.value("a").as_deref(), Some("1"));
    assert_eq!(bed.own.metrics().reads, 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_reconcile_is_dropped_ends_with_the_controller() {
    let server = TestServer::start().await.unwrap();
    let client = delayed(&server, Duration::from_secs(3));
    let bed = Bed::over(server, client).await;
    let created = map("a", "1");
    let write = tokio::time::timeout(Duration::from_secs(1), bed.writer.create(&created));
    assert!(write.await.is_err(), "it is not answered");
    bed.own.ended().cancel();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bed.server.cluster().count("configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_in_flight_is_waited_for() {
    let server = TestServer::start().await.unwrap();
    let bed = Bed::over(server, unanswered()).await;
    let writer = bed.writer.clone();
    let writing = tokio::spawn(async move { writer.create(&map("a", "1")).await });
    while bed.own.metrics().remembered == 0 {
        tokio::task::yield_now().await;
    }
    let missing = bed.not_shown().await;
    assert!(matches!(&missing[..], [NotShown::InFlight { .. }]), "{missing:?}");
    writing.abort();
    _ = writing.await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_version_is_settled_by_a_read() {
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster().clone();
    let client = answering(&server, move |request| {
        request.uri().path().ends_with("/eviction").then(|| {
            cluster.delete("pods", "default", "web").unwrap();
            let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" });
            (201, body.to_string())
        })
    });
    let bed = Bed::over(server, client).await;
    let pods = bed.factory.informer::<Pod>().unwrap();
    bed.follow(&pods).await;
    let metadata = ObjectMeta { name: Some("web".to_owned()), ..ObjectMeta::default() };
    let pod = bed.writer.create(&Pod { metadata, ..Pod::default() }).await.unwrap();
    bed.caught_up().await.unwrap();
    let held = bed.hold_watches();
    bed.writer.evict(&pod, &DeleteParams::default()).await.unwrap();
    let missing = bed.not_shown().await;
    assert!(matches!(&missing[..], [NotShown::Delete { .. }]), "{missing:?}");
    bed.is_waited_for(held).await;
    assert!(pods.unsynced_store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn scale_counts_for_its_parent() {
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster().clone();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default", "labels": { "app": "web" } },
        "spec": { "replicas": 1, "selector": {}, "template": {} },
    });
    cluster.create(&deployment).unwrap();
    let scaled = cluster.clone();
    let client = answering(&server, move |request| {
        request.uri().path().ends_with("/scale").then(|| {
            let patch = json!({ "spec": { "replicas": 5 } });
            let parent = scaled.patch("deployments.apps", "default", "web", &patch).unwrap();
            let scale = json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": {
                    "name": "web", "namespace": "default",
                    "uid": parent.uid().to_string(), "resourceVersion": parent.version().to_string(),
                },
                "spec": { "replicas": 5 },
            });
            (200, scale.to_string())
        })
    });
    let bed = Bed::over(server, client).await;
    let web = InformerOptions::new().labels("app=web").unwrap();
    let deployments = bed.factory.informer_with::<Deployment>(web).unwrap();
    bed.follow(&deployments).await;
    let held = bed.hold_watches();
    let metadata = ObjectMeta { name: Some("web".to_owned()), ..ObjectMeta::default() };
    let web = Deployment { metadata, ..Deployment::default() };
    let patch = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
    let params = PatchParams::default();
    let scale: Scale = bed.writer.patch_subresource("scale", &web, &params, &patch).await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(5));
    bed.is_waited_for(held).await;
    let shown = deployments.unsynced_store().find("default", "web").unwrap();
    assert_eq!(shown.spec.as_ref().unwrap().replicas, Some(5));
}

#[tokio::test]
async fn a_write_is_not_repeated_by_the_client() {
    let server = TestServer::start().await.unwrap();
    let client = server.client().unwrap();
    let bed = Bed::over(server, client).await;
    bed.server.faults().inject(Fault::unavailable().after_serving().on(Verb::Create).times(1));
    let mut child = map("", "1");
    child.metadata.name = None;
    child.metadata.generate_name = Some("a-".to_owned());
    bed.writer.create(&child).await.unwrap_err();
    assert_eq!(bed.server.cluster().count("configmaps"), 1);
    assert_eq!(bed.requests(Verb::Create), 1);
}
