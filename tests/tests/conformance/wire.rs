//! What objects come as: protobuf or JSON, as asked.

use anyhow::ensure;
use informer::InformerOptions;
use informer_tests::observe::{Scene, soon};
use informer_tests::on_both_arms;
use informer_tests::recorder::Sent;
use informer_tests::wire::came_as_asked_for;
use k8s_openapi::api::core::v1::Pod;

use crate::common::{is_watching, status_where};
use crate::form::{Form, metadata};
use crate::objects::Objects;

// Every scenario checks it at its end; this one that there was something to check.
on_both_arms!(objects_come_in_the_format_that_was_asked_for, |arm| async {
    let objects = Objects::new(&arm, "format").await?;
    objects.create_all(&["a", "b"]).await?;
    for streaming in [true, false] {
        let (scene, recorder) = Scene::recorded(&arm, None).await?;
        let maps = scene.informer(objects.options().streaming_lists(streaming))?;
        let pods = InformerOptions::<Form<Pod>>::new().namespace(&objects.namespace);
        let pods = scene.informer(pods.streaming_lists(streaming))?;
        let of_metadata =
            InformerOptions::new().namespace(&objects.namespace).streaming_lists(streaming);
        let of_metadata = scene.enter(|| metadata(scene.factory(), of_metadata))?;
        let seen = scene.observe(&maps, "the handler", |h| h)?;
        scene.start();
        soon("all", scene.factory().wait_for_sync()).await??;
        status_where(&pods, is_watching).await?;
        objects.change("a", if streaming { "2" } else { "3" }).await?;
        scene.settles(&maps, &objects.path(), &[&seen]).await?;
        status_where(&of_metadata, is_watching).await?;
        came_as_asked_for(&recorder)?;
        let came = |requests: Vec<Sent>| requests.iter().any(|sent| sent.status == Some(200));
        for plural in ["configmaps", "pods"] {
            ensure!(
                came(recorder.watches(plural)) && (streaming || came(recorder.lists(plural))),
                "{recorder:#?}"
            );
        }
        scene.end().await?;
    }
    Ok(())
});
