//! Handlers and streams: what they see, and that none disturbs another.

#[macro_use]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{gate, note, notes, noting, object, scripted_informer, soon, status_where, value_of};
use futures_util::StreamExt;
use informer::{Event, InformerState, Lister};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc;

run_tests! {
    on_both_runtimes:
        g02_the_store_already_shows_what_a_handler_is_told,
        g03_g16_a_filter_hears_of_a_border_that_was_crossed_behind_a_backlog,
        g15_a_callback_that_blocks_for_ever_delays_nobody,
        g15_a_panicking_handler_is_reported_and_gets_the_next_event,
        g16_the_backlog_of_a_slow_handler_is_bounded_and_merges_by_key,
        g16_the_depth_of_a_handler_that_blocks_in_its_initial_set_counts_the_rest_of_it,
        g17_registering_during_churn_leaves_no_gap_and_no_duplicate;
    on_a_paused_clock:
        g03_g09_g17_every_registration_sees_a_legal_history_from_its_own_beginning,
        g08_resyncs_come_at_each_registrations_own_period_also_to_one_that_came_late,
        g08_a_resync_without_end_or_with_nothing_to_show_does_no_harm,
        g08_a_period_under_a_second_is_raised_to_one_and_the_status_says_so;
}

const BASE: u64 = 100;

async fn g03_g09_g17_every_registration_sees_a_legal_history_from_its_own_beginning() {
    let (informer, mut script) = scripted_informer();
    let (early, mut early_notes) = mpsc::unbounded_channel();
    informer.add_handler(|h| noting(h, early)).unwrap();
    informer.start();
    let request = script.list(BASE, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    assert_eq!(request.version, "0".into());
    let (request, feed) = script.watch().await;
    assert_eq!(request.version, BASE.into());
    assert_eq!(notes(&mut early_notes, 2).await, ["add a=1 initial", "add b=1 initial"]);

    feed.send("MODIFIED", &object("a", BASE + 1, "2"));
    assert_eq!(notes(&mut early_notes, 1).await, ["update a=1>2"]);
    let (late, mut late_notes) = mpsc::unbounded_channel();
    informer.add_handler(|h| noting(h, late)).unwrap();
    feed.send("DELETED", &object("b", BASE + 2, "3"));
    feed.send("ADDED", &object("c", BASE + 3, "1"));
    assert_eq!(notes(&mut early_notes, 2).await, ["delete b=3 Known", "add c=1"]);
    let mut late = notes(&mut late_notes, 2).await;
    if late.len() == 2 && late[1] == "add b=1 initial" {
        late.extend(notes(&mut late_notes, 2).await);
        assert_eq!(late, ["add a=2 initial", "add b=1 initial", "delete b=3 Known", "add c=1"]);
    } else {
        assert_eq!(late, ["add a=2 initial", "add c=1"]);
    }

    // A gap: the relist tells what was missed, as one step.
    feed.fail(informer::source::FailureKind::Expired, "gone");
    let request =
        script.list(BASE + 10, &[object("a", BASE + 1, "2"), object("d", BASE + 5, "1")]).await;
    assert_eq!(request.version, (BASE + 3).into(), "a relist is at the last version seen");
    assert_eq!(notes(&mut early_notes, 2).await, ["delete c=1 Unknown", "add d=1"]);
    assert_eq!(notes(&mut late_notes, 2).await, ["delete c=1 Unknown", "add d=1"]);
    informer.stop().await;
}

async fn g02_the_store_already_shows_what_a_handler_is_told() {
    let (informer, mut script) = scripted_informer();
    let store: Lister<ConfigMap> = informer.unsynced_store();
    let (verdicts, mut verdict) = mpsc::unbounded_channel();
    let in_handler = store.clone();
    informer
        .add_handler(move |h| {
            h.on_event(move |event: &Event<ConfigMap>| {
                let held = in_handler.get(event.key());
                let shows = match event {
                    Event::Deleted(_) => held.is_none(),
                    other => held.is_some_and(|held| Arc::ptr_eq(&held, other.object())),
                };
                _ = verdicts.send(shows);
            })
        })
        .unwrap();
    informer.start();
    script.list(BASE, &[object("a", 1, "1")]).await;
    let (_, feed) = script.watch().await;
    assert_eq!(soon(verdict.recv()).await, Some(true));
    for step in 1..=50 {
        feed.send(if step == 50 { "DELETED" } else { "MODIFIED" }, &object("a", BASE + step, "x"));
        assert_eq!(soon(verdict.recv()).await, Some(true), "at step {step}");
    }
    // The callback holds a lister of its own informer, so only a stop ends it.
    informer.stop().await;
}

async fn g15_a_callback_that_blocks_for_ever_delays_nobody() {
    let (informer, mut script) = scripted_informer();
    let (mut blocked, mut wait) = gate();
    informer.add_handler(|h| h.on_event(move |_| wait())).unwrap();
    let (other, mut other_notes) = mpsc::unbounded_channel();
    informer.add_handler(|h| noting(h, other)).unwrap();
    let mut stream = informer.events().unwrap();
    informer.start();
    script.list(BASE, &[object("a", 1, "0")]).await;
    let (_, feed) = script.watch().await;
    soon(blocked.arrived.recv()).await.unwrap();
    assert_eq!(notes(&mut other_notes, 1).await, ["add a=0 initial"]);
    assert_eq!(note(&soon(stream.next()).await.unwrap()), "add a=0 initial");
    for step in 1..=20 {
        feed.send("MODIFIED", &object("a", BASE + step, &step.to_string()));
        soon(informer.wait_for(BASE + step)).await.unwrap();
    }
    for step in 1..=20 {
        let update = format!("update a={}>{step}", step - 1);
        assert_eq!(note(&soon(stream.next()).await.unwrap()), update);
        assert_eq!(notes(&mut other_notes, 1).await, [update]);
    }
    let late = informer.add_handler(|h| h.on_add(|_, _| ())).unwrap();
    soon(late.synced()).await.unwrap();
    informer.stop_within(Duration::from_millis(50)).await;
    blocked.open_once();
}

async fn g15_a_panicking_handler_is_reported_and_gets_the_next_event() {
    let (informer, mut script) = scripted_informer();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let registration = informer
        .add_handler(|h| {
            h.name("fragile").on_event(move |event: &Event<ConfigMap>| {
                _ = sender.send(note(event));
                assert!(event.key().name() != "bad", "cannot stand this one");
            })
        })
        .unwrap();
    informer.start();
    script.list(BASE, &[object("bad", 1, "1"), object("good", 2, "1")]).await;
    assert_eq!(notes(&mut heard, 2).await, ["add bad=1 initial", "add good=1 initial"]);
    soon(registration.synced()).await.unwrap();
    let status = informer.status();
    assert_eq!((status.counters.handler_panics, status.registrations[0].panics), (1, 1));
    let error = status.recent_errors.last().unwrap();
    assert_eq!(error.phase, informer::reflector::Phase::Handler);
    assert!(error.message.contains("fragile panicked on default/bad"), "{}", error.message);
    informer.stop().await;
}

async fn g16_the_backlog_of_a_slow_handler_is_bounded_and_merges_by_key() {
    let (informer, mut script) = scripted_informer();
    let (mut slow, mut wait) = gate();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let mut first = true;
    let registration = informer
        .add_handler(|h| {
            h.capacity(4).on_event(move |event| {
                if std::mem::take(&mut first) {
                    wait();
                }
                _ = sender.send(note(event));
            })
        })
        .unwrap();
    informer.start();
    script.list(BASE, &[object("first", 1, "0")]).await;
    let (_, feed) = script.watch().await;
    soon(slow.arrived.recv()).await.unwrap();
    let mut version = BASE;
    for round in 0..200 {
        for name in ["a", "b", "c"] {
            version += 1;
            feed.send(
                if round == 0 { "ADDED" } else { "MODIFIED" },
                &object(name, version, &round.to_string()),
            );
        }
    }
    soon(informer.wait_for(version)).await.unwrap();
    let status = registration.status();
    // What it blocks on, its capacity, and one entry per key.
    assert!(status.depth <= 1 + 4 + 3, "{status:?}");
    assert!(status.merged >= 3 * 200 - 7, "{status:?}");
    slow.open_once();
    let mut last = std::collections::BTreeMap::new();
    while ["a", "b", "c"].iter().any(|name| last.get(*name).is_none_or(|value| value != "199")) {
        let text = soon(heard.recv()).await.unwrap();
        let (name, value) = text.split(' ').nth(1).unwrap().split_once('=').unwrap();
        let fresh =
            last.insert(name.to_owned(), value.rsplit('>').next().unwrap().to_owned()).is_none();
        assert_eq!(text.starts_with("add"), fresh, "{text}");
    }
    informer.stop().await;
}

async fn g03_g16_a_filter_hears_of_a_border_that_was_crossed_behind_a_backlog() {
    let (informer, mut script) = scripted_informer();
    let (mut slow, mut wait) = gate();
    let (sender, mut heard) = mpsc::unbounded_channel();
    informer
        .add_handler(|h| {
            h.capacity(1).filter(|map| value_of(map).starts_with("in")).on_event(move |event| {
                _ = sender.send(note(event));
                if event.key().name() == "first" {
                    wait();
                }
            })
        })
        .unwrap();
    informer.start();
    script.list(BASE, &[object("a", 1, "in 1")]).await;
    let (_, feed) = script.watch().await;
    assert_eq!(notes(&mut heard, 1).await, ["add a=in 1 initial"]);
    feed.send("ADDED", &object("first", BASE + 1, "in 1"));
    soon(slow.arrived.recv()).await.unwrap();
    // All of it behind its back: an object that passes ceases to and goes, and its successor
    // passes.
    feed.send("ADDED", &object("filler", BASE + 2, "in 1"));
    feed.send("MODIFIED", &object("a", BASE + 3, "out"));
    feed.send("DELETED", &object("a", BASE + 4, "out"));
    let mut successor = object("a", BASE + 5, "in 2");
    successor["metadata"]["uid"] = "another".into();
    feed.send("ADDED", &successor);
    soon(informer.wait_for(BASE + 5)).await.unwrap();
    slow.open_once();
    let expected = ["add first=in 1", "add filler=in 1", "delete a=in 1 Known", "add a=in 2"];
    assert_eq!(notes(&mut heard, 4).await, expected);
    informer.stop().await;
}

async fn g16_the_depth_of_a_handler_that_blocks_in_its_initial_set_counts_the_rest_of_it() {
    let (informer, mut script) = scripted_informer();
    let (mut slow, mut wait) = gate();
    let mut first = true;
    let registration = informer
        .add_handler(|h| {
            h.on_event(move |_| {
                if std::mem::take(&mut first) {
                    wait();
                }
            })
        })
        .unwrap();
    informer.start();
    let objects: Vec<_> =
        (1..=100).map(|number| object(&format!("o{number}"), number, "1")).collect();
    script.list(BASE, &objects).await;
    let (_, feed) = script.watch().await;
    soon(slow.arrived.recv()).await.unwrap();
    assert_eq!(registration.status().depth, 100, "{registration:?}");
    feed.send("ADDED", &object("new", BASE + 1, "1"));
    soon(informer.wait_for(BASE + 1)).await.unwrap();
    assert_eq!(registration.status().depth, 101, "{registration:?}");
    slow.open_once();
    soon(registration.synced()).await.unwrap();
    informer.stop().await;
}

async fn g08_a_period_under_a_second_is_raised_to_one_and_the_status_says_so() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(BASE, &[object("a", 1, "1")]).await;
    let (_, _feed) = script.watch().await;
    status_where(&informer, |status| matches!(status.state, InformerState::Watching { .. })).await;
    let options = informer::HandlerOptions::new().name("hasty").resync(Duration::from_nanos(1));
    let mut hasty = informer.events_with(&options).unwrap();
    let begun = tokio::time::Instant::now();
    for _ in 0..=10 {
        hasty.next().await.unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_secs(10), "ten resyncs in {:?}", begun.elapsed());
    let off = informer.add_handler(|h| h.resync(Duration::ZERO)).unwrap();
    let seldom = informer.add_handler(|h| h.resync(Duration::from_secs(600))).unwrap();
    let periods = [&hasty.registration(), &off, &seldom].map(|one| one.status().resync);
    assert_eq!(periods, [Some(Duration::from_secs(1)), None, Some(Duration::from_secs(600))]);
    informer.stop().await;
}

async fn g08_resyncs_come_at_each_registrations_own_period_also_to_one_that_came_late() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(BASE, &[object("a", 1, "1")]).await;
    let (_, _feed) = script.watch().await;
    status_where(&informer, |status| matches!(status.state, InformerState::Watching { .. })).await;
    // The informer's task sleeps until its watch is due; a new resync must wake it.
    let options = informer::HandlerOptions::new().resync(Duration::from_secs(5));
    let mut stream = informer.events_with(&options).unwrap();
    let mut quiet = informer.events().unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(note(&stream.next().await.unwrap()), "add a=1 initial");
    for round in 1..=3u32 {
        assert_eq!(note(&stream.next().await.unwrap()), "resync a=1");
        let late = begun.elapsed().saturating_sub(Duration::from_secs(5) * round);
        assert!(late < Duration::from_millis(50), "round {round} came {late:?} late");
    }
    assert_eq!(note(&quiet.next().await.unwrap()), "add a=1 initial");
    assert!(tokio::time::timeout(Duration::from_secs(20), quiet.next()).await.is_err());
}

async fn g08_a_resync_without_end_or_with_nothing_to_show_does_no_harm() {
    let (informer, mut script) = scripted_informer();
    let never = informer.add_handler(|h| h.resync(Duration::MAX)).unwrap();
    informer.add_handler(|h| h.resync(Duration::from_secs(1))).unwrap();
    informer.start();
    script.list(BASE, &[]).await;
    let (_, feed) = script.watch().await;
    never.synced().await.unwrap();
    // Were a due resync of an empty store not put off, time would stand still here.
    tokio::time::timeout(Duration::from_secs(10), std::future::pending::<()>()).await.unwrap_err();
    feed.send("ADDED", &object("a", BASE + 1, "1"));
    informer.wait_for(BASE + 1).await.unwrap();
    informer.stop().await;
}

async fn g17_registering_during_churn_leaves_no_gap_and_no_duplicate() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(BASE, &[]).await;
    let (_, feed) = script.watch().await;
    informer.synced().await.unwrap();
    let mut streams = Vec::new();
    let mut alive = std::collections::BTreeSet::new();
    for step in 1..=400u64 {
        let name = format!("o{}", step * 7 % 13);
        let kind = match (alive.contains(&name), step % 3) {
            (true, 0) => "DELETED",
            (true, _) => "MODIFIED",
            (false, _) => "ADDED",
        };
        if kind == "DELETED" {
            alive.remove(&name);
        } else {
            alive.insert(name.clone());
        }
        feed.send(kind, &object(&name, BASE + step, &step.to_string()));
        if step % 40 == 0 {
            tokio::task::yield_now().await;
            streams.push(informer.events().unwrap());
        }
    }
    soon(informer.wait_for(BASE + 400)).await.unwrap();
    let store = informer.unsynced_store();
    informer.stop().await;
    for stream in streams {
        let mut known = std::collections::BTreeMap::new();
        for event in soon(stream.collect::<Vec<_>>()).await {
            let key = event.key().clone();
            match event {
                Event::Added { object, .. } => {
                    assert!(known.insert(key, object).is_none(), "an add of what is there")
                }
                Event::Updated { old, new, .. } => {
                    let last = known.insert(key, new).expect("an update of what is not there");
                    assert!(Arc::ptr_eq(&last, &old));
                }
                Event::Deleted(_) => {
                    assert!(known.remove(&key).is_some(), "a delete of what is not there")
                }
            }
        }
        let held: Vec<_> =
            store.snapshot().iter().map(|e| (e.key.clone(), Arc::clone(e.object()))).collect();
        assert_eq!(known.len(), held.len());
        assert!(held.iter().all(|(key, object)| Arc::ptr_eq(&known[key], object)));
    }
}
