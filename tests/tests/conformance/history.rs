//! What registrations are given: order, identity, missed deletes (G2 to G6).

use informer_tests::observe::{DEADLINE, Scene};
use informer_tests::on_both_arms;

use crate::objects::Objects;

on_both_arms!(g03_an_objects_life_is_add_updates_and_delete, |arm| async {
    let objects = Objects::new(&arm, "life").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    maps.synced().await?;
    objects.create("a", "1").await?;
    objects.change("a", "2").await?;
    objects.delete("a").await?;
    seen.receives(3, DEADLINE).await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    assert_eq!(seen.text(), "+a#1 ~a#1 -a#1");
    scene.end().await
});
