//! Resources that come and go.

use std::time::Duration;

use informer::source::WireFormat;
use informer::{InformerOptions, InformerState};
use informer_testkit::{Cut, Fault, TestServer};
use informer_tests::fixtures::{Widget, widget, widget_definition};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::time::sleep;

use crate::scene::{Scene, ways};

#[tokio::test(start_paused = true)]
async fn g32_a_resource_is_not_found_for_a_while() {
    for way in ways() {
        for times in [1, 3, 20] {
            let scene = Scene::watching(way.options()).await;
            let fault = Fault::not_found().resource("configmaps").times(times);
            let fault = scene.server.faults().inject(fault);
            scene.server.faults().cut_watches(Cut::Close, None);
            scene.write("d", "new");
            let status = scene.told("watch", "404").await;
            assert!(status.objects >= 3, "the store stays: {status}");
            scene.settles().await;
            assert_eq!(fault.hits(), times);
            for history in &scene.seen {
                assert_eq!(history.counts().deleted, 0, "{}", history.text());
            }
            scene.end().await;
        }
    }
}

fn create(server: &TestServer, object: impl serde::Serialize, api_version: &str, kind: &str) {
    let mut object = serde_json::to_value(object).unwrap();
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    server.cluster().create(&object).unwrap();
}

fn install(server: &TestServer) {
    let definition: Value = serde_json::to_value(widget_definition()).unwrap();
    create(server, definition, "apiextensions.k8s.io/v1", "CustomResourceDefinition");
}

fn create_widget(server: &TestServer, name: &str) {
    create(server, widget("default", name, &[], "blue", 1), "example.com/v1", "Widget");
}

#[tokio::test(start_paused = true)]
async fn g32_a_resource_is_removed_and_returns() {
    for way in ways() {
        let server = TestServer::start().await.unwrap();
        let client = Client::new(server.service(), "default");
        // There is no protobuf of custom resources.
        let format = if way.format == WireFormat::Protobuf { WireFormat::Auto } else { way.format };
        let options =
            InformerOptions::<Widget>::new().streaming_lists(way.streaming).wire_format(format);
        let scene = Scene::of(server, client, options);
        scene.factory.start();
        let status = scene.told("list", "404").await;
        assert!(!status.has_synced, "not installed is not empty: {status}");
        for round in 1..=3 {
            install(&scene.server);
            create_widget(&scene.server, "a");
            create_widget(&scene.server, "b");
            scene.settles().await;
            let name = widget_definition().name_any();
            let definitions = "customresourcedefinitions.apiextensions.k8s.io";
            scene.server.cluster().delete(definitions, "", &name).unwrap();
            scene.server.faults().cut_watches(Cut::Close, None);
            let gone = |status: &informer::Status| {
                matches!(status.state, InformerState::Unavailable { absent: 3.., .. })
            };
            let status = scene.status_where("unavailable", gone).await;
            assert!(status.to_string().contains("install its CRD"), "{status}");
            scene.status_where("emptied", |status| status.objects == 0).await;
            for history in &scene.seen {
                history.reaches(&scene.held(), Duration::from_secs(60)).await.unwrap();
                assert_eq!(history.counts().deleted, 2 * round, "{}", history.text());
            }
            sleep(Duration::from_secs(600)).await;
            scene.is_bounded();
        }
        scene.end().await;
    }
}
