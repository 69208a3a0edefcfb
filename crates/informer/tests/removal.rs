//! Removing registrations (G18).

#[macro_use]
mod common;

use std::sync::{Arc, Mutex};

use common::{gate, note, notes, noting, object, scripted_informer, soon};
use futures_util::{FutureExt, StreamExt};
use informer::{Error, Registration, Removal};
use tokio::sync::mpsc;

run_tests! {
    on_both_runtimes:
        g18_remove_waits_for_the_running_callback_and_nothing_runs_after_it,
        g18_inside_its_own_callback_remove_returns_at_once_and_the_call_is_the_last,
        g18_one_callback_may_remove_another,
        g18_a_callback_left_behind_by_a_stop_is_still_waited_for,
        g18_a_registration_of_an_informer_that_was_never_started_is_removed_at_once,
        g18_dropping_the_handle_of_a_callback_detaches_it_and_dropping_a_stream_removes_it,
        g18_a_stream_removed_by_its_registration_yields_nothing_more,
        g18_a_removal_wakes_a_stream_that_waits,
        names_of_registrations_stay_different_after_removals,
        g15_a_stream_may_be_polled_from_one_task_after_another;
}

async fn g18_remove_waits_for_the_running_callback_and_nothing_runs_after_it() {
    let (informer, mut script) = scripted_informer();
    let (mut running, mut wait) = gate();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let registration = informer
        .add_handler(|h| {
            h.on_event(move |event| {
                wait();
                _ = sender.send(note(event));
            })
        })
        .unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    let (_, feed) = script.watch().await;
    soon(running.arrived.recv()).await.unwrap();

    let mut removal = Box::pin(registration.remove());
    for _ in 0..100 {
        assert!((&mut removal).now_or_never().is_none(), "the callback still runs");
        tokio::task::yield_now().await;
    }
    assert!(informer.status().registrations.is_empty(), "it is out of the informer at once");
    running.open_once();
    assert_eq!(soon(removal).await, Removal::Removed);
    assert_eq!(heard.try_recv().as_deref(), Ok("add a=1 initial"));
    feed.send("ADDED", &object("c", 10, "1"));
    soon(informer.wait_for(10)).await.unwrap();
    assert!(soon(heard.recv()).await.is_none(), "the handler is gone, and was not called again");
    assert!(running.arrived.try_recv().is_err());

    assert_eq!(soon(registration.remove()).await, Removal::Removed, "again: nothing happens");
    assert_eq!(soon(registration.synced()).await, Err(Error::Removed));
}

async fn g18_inside_its_own_callback_remove_returns_at_once_and_the_call_is_the_last() {
    let (informer, mut script) = scripted_informer();
    let own: Arc<Mutex<Option<Registration>>> = Arc::default();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let in_callback = Arc::clone(&own);
    let registration = informer
        .add_handler(|h| {
            h.on_add(move |_, _| {
                let registration = in_callback.lock().unwrap().clone().unwrap();
                let removal = registration.remove().now_or_never();
                _ = sender.send(removal);
            })
        })
        .unwrap();
    *own.lock().unwrap() = Some(registration.clone());
    informer.start();
    script.list(9, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    assert_eq!(soon(heard.recv()).await, Some(Some(Removal::Finishing)));
    assert_eq!(soon(registration.remove()).await, Removal::Removed);
    assert_eq!(soon(heard.recv()).await, None, "the second object was not delivered");
}

async fn g18_one_callback_may_remove_another() {
    let (informer, mut script) = scripted_informer();
    let (mut blocked, mut wait) = gate();
    let victim = informer.add_handler(|h| h.on_event(move |_| wait())).unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    soon(blocked.arrived.recv()).await.unwrap();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let other = victim.clone();
    informer
        .add_handler(|h| {
            h.on_event(move |_| {
                let removal = tokio::runtime::Handle::current().block_on(other.remove());
                _ = sender.send(removal);
            })
        })
        .unwrap();
    blocked.open_once();
    assert_eq!(soon(heard.recv()).await, Some(Removal::Removed));
    informer.stop().await;
}

async fn g18_a_callback_left_behind_by_a_stop_is_still_waited_for() {
    let (informer, mut script) = scripted_informer();
    let (mut blocked, mut wait) = gate();
    let registration = informer.add_handler(|h| h.on_event(move |_| wait())).unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    soon(blocked.arrived.recv()).await.unwrap();
    informer.stop_within(std::time::Duration::from_millis(1)).await;
    let mut removal = Box::pin(registration.remove());
    assert!((&mut removal).now_or_never().is_none(), "the callback runs, whatever was stopped");
    blocked.open_once();
    assert_eq!(soon(removal).await, Removal::Removed);
}

async fn g18_a_registration_of_an_informer_that_was_never_started_is_removed_at_once() {
    let (informer, mut script) = scripted_informer();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let registration = informer.add_handler(|h| noting(h, sender)).unwrap();
    assert_eq!(registration.remove().now_or_never(), Some(Removal::Removed));
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    soon(informer.synced()).await.unwrap();
    assert!(soon(heard.recv()).await.is_none());
}

async fn g18_dropping_the_handle_of_a_callback_detaches_it_and_dropping_a_stream_removes_it() {
    let (informer, mut script) = scripted_informer();
    let (sender, mut heard) = mpsc::unbounded_channel();
    drop(informer.add_handler(|h| noting(h, sender)).unwrap());
    let stream = informer.events().unwrap();
    let of_stream = stream.registration();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    assert_eq!(notes(&mut heard, 1).await, ["add a=1 initial"]);
    assert_eq!(informer.status().registrations.len(), 2);
    drop(stream);
    assert_eq!(informer.status().registrations.len(), 1);
    assert_eq!(soon(of_stream.synced()).await, Err(Error::Removed));
    informer.stop().await;
}

async fn g18_a_stream_removed_by_its_registration_yields_nothing_more() {
    let (informer, mut script) = scripted_informer();
    let mut stream = informer.events().unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    assert_eq!(note(&soon(stream.next()).await.unwrap()), "add a=1 initial");
    assert_eq!(soon(stream.registration().remove()).await, Removal::Removed);
    assert!(soon(stream.next()).await.is_none());
}

async fn g18_a_removal_wakes_a_stream_that_waits() {
    let (informer, mut script) = scripted_informer();
    let mut stream = informer.events().unwrap();
    informer.start();
    script.list(9, &[]).await;
    let registration = stream.registration();
    let waiting = tokio::spawn(async move { stream.next().await.is_none() });
    soon(registration.synced()).await.unwrap();
    registration.remove().await;
    assert!(soon(waiting).await.unwrap());
}

async fn names_of_registrations_stay_different_after_removals() {
    let (informer, _script) = scripted_informer();
    let first = informer.add_handler(|h| h).unwrap();
    let second = informer.add_handler(|h| h).unwrap();
    first.remove().await;
    let third = informer.add_handler(|h| h).unwrap();
    assert_ne!(second.status().name, third.status().name);
}

async fn g15_a_stream_may_be_polled_from_one_task_after_another() {
    let (informer, mut script) = scripted_informer();
    let mut stream = informer.events().unwrap();
    informer.start();
    script.list(9, &[]).await;
    let (_, feed) = script.watch().await;
    // Polled here, where nothing comes; then elsewhere: the wake-up must follow.
    assert!(stream.next().now_or_never().is_none());
    let elsewhere = tokio::spawn(async move { stream.next().await.map(|event| note(&event)) });
    tokio::task::yield_now().await;
    feed.send("ADDED", &object("a", 10, "1"));
    assert_eq!(soon(elsewhere).await.unwrap().as_deref(), Some("add a=1"));
}
