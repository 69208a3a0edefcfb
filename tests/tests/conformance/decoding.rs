//! Objects that cannot be decoded (G20, G30): only where they are decoded when they come.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::ensure;
use informer::{Error, Event, InformerOptions, InformerState, Resource, Status};
use informer_tests::observe::{Scene, comes_true, soon};
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;

use crate::common::{is_watching, reaches, says, status_where};
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

on_both_arms!(
    g20_a_list_of_which_nothing_can_be_decoded_is_an_error_until_something_can,
    |arm| async {
        let objects = Objects::new(&arm, "undecodable").await?;
        objects.create("a", "hunter2").await?;
        objects.create("b", "hunter2").await?;
        let scene = Scene::new(&arm).await?;
        let options = InformerOptions::<Numbered>::new().namespace(&objects.namespace);
        let make = || scene.factory().informer_as::<Numbered>(Resource::of::<ConfigMap>(), options);
        let maps = scene.enter(make)?;
        scene.start();
        let error = soon("an error", maps.synced()).await?.err();
        ensure!(matches!(&error, Some(Error::NothingDecodes { objects: 2, .. })), "{error:?}");
        let text = error.map(|error| format!("{error} {error:?}")).unwrap_or_default();
        says(&text, &["configmaps.v1 in namespace", "data.value: invalid value"])?;
        ensure!(
            !text.contains("hunter2") && !maps.has_synced() && maps.unsynced_store().is_empty(),
            "{text}"
        );
        let all = soon("an error", scene.factory().wait_for_sync()).await?;
        ensure!(matches!(all, Err(Error::NothingDecodes { .. })), "{all:?}");
        status_where(&maps, |status| matches!(status.state, InformerState::Degraded { .. }))
            .await?;

        // It lists again, after a while; what can be decoded then is there, and the rest is told.
        objects.change("a", "7").await?;
        status_where(&maps, |status| status.has_synced).await?;
        let lister = soon("the store", maps.synced()).await??;
        assert_eq!(lister.find(&objects.namespace, "a").map(|map| map.data.value), Some(7));
        let status = maps.status();
        assert_eq!((status.objects, status.undecodable, status.stale.len()), (1, 1, 1));
        assert_eq!(status.stale[0].key.name(), "b");
        ensure!(!format!("{status:?}").contains("hunter2"), "{status:?}");
        scene.end().await
    }
);

on_both_arms!(
    g30_what_cannot_be_decoded_keeps_its_last_good_state_and_a_delete_is_a_delete,
    |arm| async {
        let objects = Objects::new(&arm, "stale").await?;
        objects.create("good", "1").await?;
        objects.create("bad", "hunter2").await?;
        let scene = Scene::new(&arm).await?;
        let options = InformerOptions::<Numbered>::new().namespace(&objects.namespace);
        let maps = scene.enter(|| {
            scene.factory().informer_as::<Numbered>(Resource::of::<ConfigMap>(), options)
        })?;
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&told);
        let handler = maps.add_handler(|h| {
            h.on_event(move |event| {
                let (name, value) = (event.key().name().to_owned(), event.object().data.value);
                let what = match event {
                    Event::Added { .. } => '+',
                    Event::Updated { .. } => '~',
                    Event::Deleted(_) => '-',
                };
                notes
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(format!("{what}{name}={value}"));
            })
        })?;
        let is_told = |expected: &'static [&'static str]| {
            let told = Arc::clone(&told);
            async move {
                let told = || told.lock().unwrap_or_else(PoisonError::into_inner).clone();
                comes_true("the handler is told", || told().len() >= expected.len()).await?;
                ensure!(told() == expected, "{:?}, not {expected:?}", told());
                Ok(())
            }
        };
        let stale = |names: &'static [&'static str]| {
            let maps = maps.clone();
            async move {
                let fits = |status: &Status| {
                    status.undecodable == names.len()
                        && status
                            .stale
                            .iter()
                            .map(|stale| stale.key.name())
                            .eq(names.iter().copied())
                };
                let status = status_where(&maps, fits).await?;
                let right =
                    status.stale.iter().all(|stale| stale.cause == "data.value: invalid value");
                ensure!(right && !format!("{status:?}").contains("hunter2"), "{status:#?}");
                Ok(())
            }
        };
        scene.start();
        soon("the handler", handler.synced()).await??;
        // In the list.
        stale(&["bad"]).await?;
        is_told(&["+good=1"]).await?;
        // In an ADDED, and in a MODIFIED.
        objects.create("worse", "hunter2").await?;
        stale(&["bad", "worse"]).await?;
        reaches(&maps, &objects.change("good", "hunter2").await?).await?;
        stale(&["bad", "good", "worse"]).await?;
        let held = maps.unsynced_store().find(&objects.namespace, "good").map(|map| map.data.value);
        assert_eq!((held, maps.unsynced_store().len()), (Some(1), 1));
        // In a DELETED: of what was never good, and of what was.
        objects.delete("worse").await?;
        stale(&["bad", "good"]).await?;
        objects.delete("good").await?;
        stale(&["bad"]).await?;
        is_told(&["+good=1", "-good=1"]).await?;
        objects.change("bad", "5").await?;
        stale(&[]).await?;
        is_told(&["+good=1", "-good=1", "+bad=5"]).await?;
        // The watch lived through it all.
        let status = maps.status();
        ensure!(is_watching(&status) && status.counters.watches == 1, "{status:#?}");
        drop(maps);
        scene.end().await
    }
);
