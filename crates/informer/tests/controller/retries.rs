//! When an object is reconciled, and how often.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer::ObjectKey;
use informer::controller::{Action, Context};
use informer::workqueue::ExponentialLimiter;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::common::{LONG, soon, value_of};
use crate::world::{Ran, World, ms, next, nothing, start};

run_tests! {
    on_a_paused_clock:
        no_object_is_reconciled_twice_at_a_time_and_no_change_is_left,
        changes_come_before_the_first_list_which_comes_all_the_same,
        a_requeue_comes_on_time_and_once,
        failures_come_later_each_time_until_one_succeeds,
        a_requeue_without_delay_is_no_loop,
        panics_and_timeouts_are_counted_and_tried_again;
}

/// Random changes, and reconciles that take their time, fail and panic: in the end the newest state
/// of every object was seen by a reconcile that succeeded.
async fn no_object_is_reconciled_twice_at_a_time_and_no_change_is_left() {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    for seed in 0..20 {
        let world = World::new().await;
        let mut random = fastrand::Rng::with_seed(seed);
        let concurrency = random.usize(1..5);
        let in_work = Arc::new(Mutex::new(BTreeMap::<ObjectKey, usize>::new()));
        let seen = Arc::new(Mutex::new(BTreeMap::<String, String>::new()));
        let fate = Arc::new(Mutex::new(fastrand::Rng::with_seed(!seed)));
        let (entered, finished) = (Arc::clone(&in_work), Arc::clone(&seen));
        let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
            let (in_work, seen, fate) =
                (Arc::clone(&entered), Arc::clone(&finished), Arc::clone(&fate));
            async move {
                {
                    let mut in_work = in_work.lock().unwrap();
                    let now = in_work.entry(ctx.key().clone()).or_default();
                    *now += 1;
                    assert_eq!(*now, 1, "{} is with two workers", ctx.key());
                    let all: usize = in_work.values().sum();
                    assert!(all <= concurrency, "{all} reconciles at a time");
                }
                let (took, fate) = {
                    let mut random = fate.lock().unwrap();
                    (ms(random.u64(0..40)), random.u8(0..8))
                };
                sleep(took).await;
                *in_work.lock().unwrap().get_mut(ctx.key()).unwrap() -= 1;
                match fate {
                    0 => anyhow::bail!("it fails"),
                    1 => panic!("it panics"),
                    2 => sleep(LONG).await, // until the timeout
                    _ => {}
                }
                seen.lock().unwrap().insert(ctx.key().name().to_owned(), value_of(&map).to_owned());
                Ok(Action::await_change())
            }
        };
        let controller = world
            .controller()
            .concurrency(concurrency)
            .reconcile_timeout(ms(100))
            .rate_limiter(ExponentialLimiter::new(ms(5), ms(200)));
        let ran = start(controller, reconcile);
        let mut truth = BTreeMap::new();
        for round in 0..60 {
            let name = NAMES[random.usize(..NAMES.len())];
            if random.u8(0..6) == 0 && truth.remove(name).is_some() {
                world.delete("configmaps", name);
            } else {
                world.set(name, &round.to_string());
                truth.insert(name.to_owned(), round.to_string());
            }
            sleep(ms(random.u64(0..30))).await;
        }
        sleep(Duration::from_secs(60)).await;
        let mut seen = seen.lock().unwrap().clone();
        seen.retain(|name, _| truth.contains_key(name));
        assert_eq!(seen, truth, "seed {seed}");
        assert!(in_work.lock().unwrap().values().all(|&now| now == 0));
        ran.stop().await.unwrap();
        world.factory.shutdown().await;
    }
}

async fn changes_come_before_the_first_list_which_comes_all_the_same() {
    let world = World::new().await;
    for at in 0..30 {
        world.set(&format!("m{at:02}"), "1");
    }
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        tell.send(format!("{}={}", ctx.key().name(), value_of(&map))).unwrap();
        async {
            sleep(Duration::from_secs(1)).await;
            Ok(Action::await_change())
        }
    };
    let ran = start(world.controller(), reconcile);
    assert_eq!(next(&mut told, 1).await, ["m00=1"]);
    world.set("m25", "2");
    assert_eq!(next(&mut told, 1).await, ["m25=2"], "promoted");
    world.set("new", "1");
    assert_eq!(next(&mut told, 1).await, ["new=1"]);
    // With one change for each reconcile, every tenth is of the list.
    let mut of_the_list = 0;
    for round in 0..300 {
        world.set("new", &format!("{round}"));
        world.set("new2", &format!("{round}"));
        of_the_list += usize::from(next(&mut told, 1).await[0].starts_with('m'));
    }
    assert_eq!(of_the_list, 28, "all the others");
    assert_eq!(ran.handle.status().queued_low, 0);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn a_requeue_comes_on_time_and_once() {
    let world = World::new().await;
    world.set("a", "1");
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, _| {
        tell.send(Instant::now()).unwrap();
        async { Ok(Action::requeue_after(Duration::from_secs(600))) }
    };
    let ran = start(world.controller(), reconcile);
    let mut at = Vec::new();
    for _ in 0..4 {
        at.push(
            tokio::time::timeout(Duration::from_secs(3600), told.recv()).await.unwrap().unwrap(),
        );
    }
    for pair in at.windows(2) {
        let waited = pair[1] - pair[0];
        assert!((600_000..600_010).contains(&waited.as_millis()), "{waited:?}");
    }
    assert_eq!(ran.handle.metrics().reconcile_total.requeue_after, 4);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

/// When a reconcile that fails so often is called.
async fn waits(
    world: &World,
    outcome: impl Fn(usize) -> anyhow::Result<Action> + Send + Sync + 'static,
    calls: usize,
) -> (Ran, Vec<u128>) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let called = AtomicUsize::new(0);
    let reconcile = move |_: Arc<ConfigMap>, _| {
        tell.send(Instant::now()).unwrap();
        std::future::ready(outcome(called.fetch_add(1, Ordering::Relaxed)))
    };
    let limiter = ExponentialLimiter::new(ms(100), Duration::from_secs(10));
    let ran = start(world.controller().rate_limiter(limiter), reconcile);
    let mut at = Vec::new();
    for _ in 0..calls {
        at.push(soon(told.recv()).await.unwrap());
    }
    let waits = at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis() / 10 * 10).collect();
    (ran, waits)
}

async fn failures_come_later_each_time_until_one_succeeds() {
    let world = World::new().await;
    world.set("a", "1");
    let outcome = |call| match call {
        3 => Ok(Action::requeue_after(ms(50))),
        _ => anyhow::bail!("Failure\nof two lines"),
    };
    let (ran, waits) = waits(&world, outcome, 7).await;
    assert_eq!(waits, [100, 200, 400, 50, 100, 200]);
    let status = ran.handle.status();
    let last = status.recent_errors.last().unwrap();
    assert_eq!((last.key.name(), last.message.as_str()), ("a", "Failure"));
    let metrics = ran.handle.metrics();
    assert_eq!(metrics.reconcile_errors_total, metrics.reconcile_total.error);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn a_requeue_without_delay_is_no_loop() {
    let world = World::new().await;
    world.set("a", "1");
    let (ran, waits) = waits(&world, |_| Ok(Action::requeue_after(Duration::ZERO)), 4).await;
    assert_eq!(waits, [100, 200, 400]);
    assert_eq!(ran.handle.metrics().reconcile_total.requeue, 4);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn panics_and_timeouts_are_counted_and_tried_again() {
    let world = World::new().await;
    world.set("a", "1");
    let calls = Arc::new(AtomicUsize::new(0));
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, _| {
        let (call, tell) = (calls.fetch_add(1, Ordering::Relaxed), tell.clone());
        async move {
            match call {
                0 => panic!("hunter2"),
                1 => std::future::pending().await,
                _ => tell.send("done".to_owned()).unwrap(),
            }
            Ok(Action::await_change())
        }
    };
    let ran = start(world.controller().reconcile_timeout(Duration::from_secs(30)), reconcile);
    assert_eq!(next(&mut told, 1).await, ["done"]);
    nothing(&mut told).await;
    let metrics = ran.handle.metrics();
    assert_eq!((metrics.reconcile_panics_total, metrics.reconcile_timeouts_total), (1, 1));
    assert_eq!((metrics.reconcile_total.error, metrics.reconcile_total.success), (2, 1));
    let errors: Vec<_> =
        ran.handle.status().recent_errors.into_iter().map(|it| it.message).collect();
    assert!(errors[0].contains("panicked") && errors[0].contains("world.rs"), "{errors:?}");
    assert!(!errors[0].contains("hunter2") && errors[1].contains("30s"), "{errors:?}");
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}
