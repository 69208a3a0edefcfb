//! Everything at once, on several threads: nothing hangs, nothing is left, histories stay legal.

#[macro_use]
mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{object, scripted_informer, soon};
use futures_util::StreamExt;
use informer::{Event, HandlerOptions, ObjectKey, SharedInformer};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::runtime::Handle;

run_tests! {
    on_many_threads:
        g03_g17_g18_g24_registrations_come_and_go_during_churn_and_a_stop_ends_all,
        g24_a_stop_at_any_moment_ends_streams_and_waits_that_begin_just_then;
}

const ROUNDS: u64 = 2000;
const VERSION: u64 = 100;

/// Checks the history that one registration is told (G3).
#[derive(Default)]
struct History(HashMap<ObjectKey, Arc<ConfigMap>>);

impl History {
    fn note(&mut self, event: &Event<ConfigMap>) -> bool {
        let key = event.key().clone();
        match event {
            Event::Added { object, .. } => self.0.insert(key, Arc::clone(object)).is_none(),
            Event::Updated { old, new, .. } => {
                self.0.insert(key, Arc::clone(new)).is_some_and(|last| Arc::ptr_eq(&last, old))
            }
            Event::Deleted(_) => self.0.remove(&key).is_some(),
        }
    }
}

/// Registers and removes callbacks and streams until the informer stops.
async fn come_and_go(informer: SharedInformer<ConfigMap>, wrong: Arc<AtomicUsize>, number: usize) {
    loop {
        let options = HandlerOptions::new().capacity(1 + number * 3);
        let Ok(stream) = informer.events_with(&options) else { return };
        let mut history = History::default();
        let taken = stream.take(50 * (number + 1)).for_each(|event| {
            wrong.fetch_add(usize::from(!history.note(&event)), Ordering::Relaxed);
            std::future::ready(())
        });
        taken.await;
        let (mut history, wrong) = (History::default(), Arc::clone(&wrong));
        let check = move |event: &Event<ConfigMap>| {
            wrong.fetch_add(usize::from(!history.note(event)), Ordering::Relaxed);
        };
        let Ok(registration) = informer.add_handler(|h| h.capacity(1 + number).on_event(check))
        else {
            return;
        };
        if registration.synced().await.is_err() {
            return;
        }
        registration.remove().await;
    }
}

async fn g03_g17_g18_g24_registrations_come_and_go_during_churn_and_a_stop_ends_all() {
    let (informer, mut script) = scripted_informer();
    let wrong = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..6)
        .map(|number| tokio::spawn(come_and_go(informer.clone(), Arc::clone(&wrong), number)))
        .collect();
    informer.start();
    script.list(VERSION, &[object("o0", 1, ""), object("o1", 2, "")]).await;
    let (_, feed) = script.watch().await;
    let mut alive = [true, true, false, false, false, false, false];
    for round in 1..=ROUNDS {
        let at = usize::try_from(round * 5 % 7).unwrap();
        let kind = match (alive[at], round % 4) {
            (true, 0) => "DELETED",
            (true, _) => "MODIFIED",
            (false, _) => "ADDED",
        };
        alive[at] = kind != "DELETED";
        feed.send(kind, &object(&format!("o{at}"), VERSION + round, ""));
        if round % 100 == 0 {
            soon(informer.wait_for(VERSION + round)).await.unwrap();
        }
    }
    soon(informer.stop()).await;
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert_eq!(
        wrong.load(Ordering::Relaxed),
        0,
        "events that break the history of their registration"
    );
    drop(informer);
    soon(async {
        while Handle::current().metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn g24_a_stop_at_any_moment_ends_streams_and_waits_that_begin_just_then() {
    for _ in 0..300 {
        let (informer, _script) = scripted_informer();
        informer.start();
        let late = tokio::spawn({
            let informer = informer.clone();
            async move {
                if let Ok(stream) = informer.events() {
                    assert_eq!(stream.count().await, 0);
                }
                if let Ok(registration) = informer.add_handler(|h| h) {
                    assert!(registration.synced().await.is_err());
                    registration.remove().await;
                }
                assert!(informer.synced().await.is_err());
                assert!(informer.wait_for(1).await.is_err());
                informer.run().await;
            }
        });
        informer.stop().await;
        soon(late).await.unwrap();
    }
}
