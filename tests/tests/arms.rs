//! Both arms keep what the other tests rely on: cuts, outages, forgotten history.

use std::time::Duration;

use anyhow::{Context, ensure};
use http::Request;
use http_body_util::BodyExt;
use informer_tests::fixtures::{install_widgets, pod, remove_widgets, widget};
use informer_tests::helpers::{current_version, eventually_ok, first_watch_frame, raw_list};
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use tokio::time::timeout;

on_both_arms!(what_goes_around_the_proxy_is_seen_through_it, |arm| async {
    let namespace = arm.namespace("around").await?;
    ensure!(namespace != arm.namespace("around").await?, "each call makes a namespace");
    let client = arm.client().await?;
    let path = pods_path(&namespace);
    assert!(raw_list(&client, &path).await?.is_empty());
    create(arm.direct(), &namespace, "one").await?;
    let listed = raw_list(&client, &path).await?;
    assert_eq!(listed.keys().collect::<Vec<_>>(), [&format!("{namespace}/one")]);
    assert_eq!(listed, raw_list(arm.direct(), &path).await?);
    Ok(())
});

on_both_arms!(a_cut_ends_watches_and_the_next_request_works, |arm| async {
    let namespace = arm.namespace("cut").await?;
    let client = arm.client().await?;
    let path = pods_path(&namespace);
    let mut watch = open_watch(&client, &path).await?;
    let before = arm.proxy().accepted();
    arm.cut_watches().await;
    ends(&mut watch).await?;
    after_break(async || raw_list(&client, &path).await).await?;
    ensure!(arm.proxy().accepted() > before, "the proxy was not asked");
    Ok(())
});

on_both_arms!(during_an_outage_the_cluster_changes, |arm| async {
    let namespace = arm.namespace("outage").await?;
    let client = arm.client().await?;
    let path = pods_path(&namespace);
    let mut watch = open_watch(&client, &path).await?;
    arm.begin_outage().await;
    ends(&mut watch).await?;
    ensure!(raw_list(&client, &path).await.is_err(), "an outage lets a request pass");
    create(arm.direct(), &namespace, "meanwhile").await?;
    arm.end_outage().await;
    assert_eq!(after_break(async || raw_list(&client, &path).await).await?.len(), 1);
    Ok(())
});

on_both_arms!(own after_compaction_old_watches_are_gone, |arm| async {
    let namespace = arm.namespace("compact").await?;
    let client = arm.client().await?;
    let path = pods_path(&namespace);
    create(arm.direct(), &namespace, "one").await?;
    let old = current_version(&client, &path).await?;
    let patch = Patch::Merge(serde_json::json!({ "metadata": { "labels": { "colour": "red" } } }));
    Api::<Pod>::namespaced(client.clone(), &namespace).patch("one", &PatchParams::default(), &patch).await?;
    let frame = first_watch_frame(&client, &path, &old).await?.context("there was a change")?;
    assert_eq!(frame["type"], "MODIFIED");
    let listed = raw_list(&client, &path).await?;

    arm.compact().await?;
    let frame = after_break(async || first_watch_frame(&client, &path, &old).await).await?.context("an error")?;
    assert_eq!((&frame["type"], &frame["object"]["code"]), (&"ERROR".into(), &410.into()), "{frame}");
    assert_eq!(raw_list(&client, &path).await?, listed);
    Ok(())
});

on_both_arms!(own a_killed_server_comes_back_with_its_objects, |arm| async {
    let namespace = arm.namespace("kill").await?;
    let client = arm.client().await?;
    let path = pods_path(&namespace);
    create(arm.direct(), &namespace, "one").await?;
    let listed = raw_list(&client, &path).await?;
    let mut watch = open_watch(&client, &path).await?;
    arm.kill_server().await?;
    ends(&mut watch).await?;
    ensure!(raw_list(&client, &path).await.is_err(), "a killed server answers");
    arm.start_server().await?;
    assert_eq!(after_break(async || raw_list(&client, &path).await).await?, listed);
    Ok(())
});

on_both_arms!(users_have_their_rights, |arm| async {
    let viewer = arm.client_as("viewer").await?;
    raw_list(&viewer, "/api/v1/namespaces/default/pods").await?;
    assert_forbidden(create(&viewer, "default", "one").await)?;
    let nobody = arm.client_as("nobody").await?;
    assert_forbidden(raw_list(&nobody, "/api/v1/namespaces/default/pods").await)?;
    assert!(arm.client_as("a stranger").await.is_err());
    Ok(())
});

on_both_arms!(own custom_resources_come_and_go, |arm| async {
    let namespace = arm.namespace("custom").await?;
    let client = arm.client().await?;
    install_widgets(arm.direct()).await?;
    install_widgets(arm.direct()).await?;
    let widgets = Api::namespaced(client.clone(), &namespace);
    let created =
        widgets.create(&PostParams::default(), &widget(&namespace, "w", &[("a", "b")], "red", 3)).await?;
    assert_eq!((created.spec.colour.as_str(), created.spec.size), ("red", 3));
    assert_eq!(raw_list(&client, "/apis/example.com/v1/widgets?labelSelector=a%3Db").await?.len(), 1);
    remove_widgets(arm.direct()).await?;
    ensure!(raw_list(&client, "/apis/example.com/v1/widgets").await.is_err(), "a removed resource is listed");
    remove_widgets(arm.direct()).await
});

fn pods_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

async fn create(client: &Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let pods = Api::namespaced(client.clone(), namespace);
    pods.create(&PostParams::default(), &pod(namespace, name, &[])).await?;
    Ok(())
}

fn assert_forbidden<T>(result: anyhow::Result<T>) -> anyhow::Result<()> {
    let error = result.err().context("it was allowed")?;
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        _ => Err(error),
    }
}

/// A client may have dead connections in its pool.
async fn after_break<T>(request: impl AsyncFnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    eventually_ok("a request succeeds again", Duration::from_secs(10), request).await
}

async fn open_watch(client: &Client, path: &str) -> anyhow::Result<Body> {
    let version = current_version(client, path).await?;
    let path = format!("{path}?watch=1&resourceVersion={version}&timeoutSeconds=120");
    let answer = client.send(Request::get(path).body(Body::empty())?).await?;
    ensure!(answer.status() == 200, "{}", answer.status());
    Ok(answer.into_body())
}

/// The deadline is far below the watch's own timeout, and far above what a break takes.
async fn ends(watch: &mut Body) -> anyhow::Result<()> {
    let end = async { while let Some(Ok(_)) = watch.frame().await {} };
    timeout(Duration::from_secs(60), end).await.context("the watch lives on")
}
