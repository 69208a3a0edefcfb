//! The real cluster does what the other tests rely on.

use std::time::Duration;

use anyhow::{Context, ensure};
use informer::source::WireFormat;
use informer::{InformerOptions, Resource, SharedInformerFactory};
use informer_tests::fixtures::{Widget, install_widgets, pod, widget};
use informer_tests::helpers::{current_version, first_watch_frame, raw_list};
use informer_tests::real::RealCluster;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn objects_live_through_a_restart_and_users_have_their_rights() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let client = cluster.client().await?;
    assert_eq!(client.apiserver_version().await?.git_version, "v1.36.3");

    let created = pods(&client)
        .create(&PostParams::default(), &pod("default", "one", &[("app", "web")]))
        .await?;
    let uid = created.metadata.uid.context("a created Pod has a UID")?;
    let version = created.metadata.resource_version.context("a created Pod has a version")?;
    let expected = [("default/one".to_owned(), (uid, version))].into();
    assert_eq!(raw_list(&client, PODS).await?, expected);

    let viewer = cluster.client_as("viewer").await?;
    assert_eq!(raw_list(&viewer, PODS).await?, expected);
    assert_forbidden(
        pods(&viewer).create(&PostParams::default(), &pod("default", "two", &[])).await,
    );
    assert_forbidden(Api::<Pod>::all(viewer).list(&ListParams::default()).await);
    let nobody = cluster.client_as("nobody").await?;
    assert_forbidden(pods(&nobody).list(&ListParams::default()).await);

    for _ in 0..2 {
        cluster.kill_apiserver().await?;
        ensure!(raw_list(&client, PODS).await.is_err(), "a killed server answers");
        cluster.start_apiserver().await?;
        assert_eq!(raw_list(&client, PODS).await?, expected, "after a kill");
    }
    cluster.stop_apiserver().await?;
    cluster.start_apiserver().await?;
    assert_eq!(raw_list(&client, PODS).await?, expected, "after a stop");
    assert_eq!(cluster.kubectl(["get", "pods", "-l", "app=web", "-o", "name"]).await?, "pod/one\n");
    assert!(cluster.kubectl(["get", "unicorns"]).await.is_err());

    let folder = cluster.kubeconfig_path().parent().context("a file is in a folder")?.to_owned();
    drop(cluster);
    assert!(!folder.exists(), "{} is left", folder.display());
    Ok(())
}

#[tokio::test]
async fn after_forgotten_history_old_watches_are_gone() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let client = cluster.client().await?;
    pods(&client).create(&PostParams::default(), &pod("default", "one", &[])).await?;
    let old = current_version(&client, PODS).await?;
    for colour in ["red", "green"] {
        let patch = serde_json::json!({ "metadata": { "labels": { "colour": colour } } });
        pods(&client).patch("one", &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let frame = first_watch_frame(&client, PODS, &old).await?.context("there was a change")?;
    assert_eq!(frame["type"], "MODIFIED");

    // etcd has forgotten, the API server's watch cache has not.
    cluster.compact().await?;
    let frame = first_watch_frame(&client, PODS, &old).await?.context("there was a change")?;
    assert_eq!(frame["type"], "MODIFIED");

    cluster.forget_history().await?;
    let frame = first_watch_frame(&client, PODS, &old).await?.context("an error")?;
    assert_eq!(
        (&frame["type"], &frame["object"]["code"]),
        (&"ERROR".into(), &410.into()),
        "{frame}"
    );
    Ok(())
}

#[tokio::test]
async fn protobuf_is_the_same_as_json() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let client = cluster.client().await?;
    install_widgets(&client).await?;
    for name in ["one", "two", "three"] {
        pods(&client)
            .create(&PostParams::default(), &pod("default", name, &[("app", "web")]))
            .await?;
    }
    Api::namespaced(client.clone(), "default")
        .create(&PostParams::default(), &widget("default", "w", &[], "red", 1))
        .await?;
    // With WireFormat::Protobuf, an answer in JSON would be an error.
    for streaming in [true, false] {
        let factory =
            |format| SharedInformerFactory::builder(client.clone()).wire_format(format).build();
        let (protobuf, json) = (factory(WireFormat::Protobuf), factory(WireFormat::Json));
        let mut typed = Vec::new();
        let mut dynamic = Vec::new();
        let mut metadata = Vec::new();
        for factory in [&protobuf, &json] {
            let of_pods = InformerOptions::new().streaming_lists(streaming).page_size(Some(2));
            typed.push(factory.informer_with::<Pod>(of_pods)?);
            let of_any = InformerOptions::new().streaming_lists(streaming);
            dynamic.push(factory.dynamic(Resource::of::<Pod>(), of_any)?);
            let of_metadata = InformerOptions::new().streaming_lists(streaming);
            metadata.push(factory.metadata::<Widget>(of_metadata)?);
            factory.start();
            factory.wait_for_sync_within(Duration::from_secs(30)).await?;
        }
        let patch =
            serde_json::json!({ "metadata": { "labels": { "streaming": streaming.to_string() } } });
        let patched =
            pods(&client).patch("two", &PatchParams::default(), &Patch::Merge(patch)).await?;
        let version = patched.metadata.resource_version.context("a version")?;
        for pods in &typed {
            pods.wait_for(&*version).await?;
        }
        for pods in &dynamic {
            pods.wait_for(&*version).await?;
        }
        let [protobuf, json] = [&typed[0], &typed[1]].map(|pods| pods.unsynced_store().list());
        assert_eq!((protobuf.len(), protobuf), (3, json));
        let [protobuf, json] = [&dynamic[0], &dynamic[1]].map(|pods| pods.unsynced_store().list());
        for (protobuf, json) in protobuf.iter().zip(&json) {
            assert_eq!(serde_json::to_value(&**protobuf)?, serde_json::to_value(&**json)?);
        }
        let [protobuf, json] =
            [&metadata[0], &metadata[1]].map(|widgets| widgets.unsynced_store().list());
        assert_eq!((protobuf.len(), &protobuf[0].metadata), (1, &json[0].metadata));
    }
    Ok(())
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}

fn assert_forbidden<T: std::fmt::Debug>(result: kube::Result<T>) {
    match result {
        Err(kube::Error::Api(status)) if status.code == 403 => {}
        other => panic!("not forbidden: {other:?}"),
    }
}
