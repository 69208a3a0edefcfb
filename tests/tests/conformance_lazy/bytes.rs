//! What informers do that keep the objects' bytes, and no others.

use anyhow::{Context, ensure};
use informer::decode::Encoding;
use informer::source::WireFormat;
use informer::{InformerOptions, Lazy, Resource};
use informer_tests::observe::{DEADLINE, Scene};
use informer_tests::on_both_arms;
use informer_tests::wire::asked_for;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;

use crate::common::reaches;
use crate::objects::Objects;

/// A ConfigMap whose value is a number.
#[derive(Debug, Deserialize)]
struct Numbered {
    data: Number,
}

#[derive(Debug, Deserialize)]
struct Number {
    #[serde(deserialize_with = "number")]
    value: u64,
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| serde::de::Error::custom("a number was expected"))
}

on_both_arms!(g01_the_bytes_are_those_that_came_and_decode_to_what_the_server_has, |arm| async {
    let objects = Objects::new(&arm, "bytes").await?;
    objects.create_labelled("a", "1", &[("app", "web"), ("app.kubernetes.io/name", "web")]).await?;
    objects.create_labelled("b", "2", &[]).await?;
    let scene = Scene::new(&arm).await?;
    let bare = objects.informer(&scene)?;
    let seen = scene.observe(&bare, "the handler", |h| h)?;
    scene.start();
    scene.settles(&bare, &objects.path(), &[&seen]).await?;
    objects.change("b", "3").await?;
    objects.label("b", "app", "db").await?;
    scene.settles(&bare, &objects.path(), &[&seen]).await?;
    for lazy in bare.unsynced_store().list() {
        let is_protobuf = lazy.wire().encoding != Encoding::Json;
        ensure!(is_protobuf == (asked_for()? != WireFormat::Json), "{:?}", lazy.wire());
        let mut held = objects.api.get(&lazy.name()).await?;
        let managed = held.metadata.managed_fields.take();
        ensure!(
            managed.is_some() || arm.test_server().is_some(),
            "there was something to leave out"
        );
        assert_eq!(*lazy.decode()?, held);
        let mut json = Vec::new();
        lazy.write_json(&mut json)?;
        assert_eq!(serde_json::from_slice::<ConfigMap>(&json)?, held);
        let typed = serde_json::from_slice::<serde_json::Value>(&json)?;
        assert_eq!((&typed["kind"], &typed["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
        assert_eq!(
            lazy.label("app"),
            held.metadata.labels.as_ref().and_then(|all| all.get("app")).map(|s| &**s)
        );
        let labels =
            lazy.labels().into_iter().map(|(key, value)| (key.into_owned(), value.into_owned()));
        assert_eq!(
            labels.collect::<std::collections::BTreeMap<_, _>>(),
            held.metadata.labels.unwrap_or_default()
        );
    }
    scene.end().await
});

on_both_arms!(g30_what_does_not_decode_is_kept_and_says_so_when_it_is_asked, |arm| async {
    let objects = Objects::new(&arm, "undecodable").await?;
    objects.create("good", "1").await?;
    objects.create("bad", "hunter2").await?;
    let scene = Scene::new(&arm).await?;
    let options = InformerOptions::<Lazy<Numbered>>::new().namespace(&objects.namespace);
    let maps = scene.enter(|| scene.factory().informer_as(Resource::of::<ConfigMap>(), options))?;
    scene.start();
    let lister = maps.synced_within(DEADLINE).await?;
    let find = |name: &str| lister.find(&objects.namespace, name).context("all are there");
    let value = |name: &str| anyhow::Ok(find(name)?.decode().map(|map| map.data.value));
    assert_eq!(value("good")?, Ok(1));
    let error = value("bad")?.err().context("a decode error")?;
    ensure!(
        error.to_string().contains("data.value") && !error.to_string().contains("hunter2"),
        "{error}"
    );
    reaches(&maps, &objects.change("bad", "2").await?).await?;
    assert_eq!(value("bad")?, Ok(2));
    let status = maps.status();
    assert_eq!(
        (status.undecodable, status.objects, status.counters.errors),
        (0, 2, 0),
        "{status:#?}"
    );
    drop(lister);
    scene.end().await
});
