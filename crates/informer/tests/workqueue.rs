//! Work queues: workers that wait, give up, fail, panic and go home.

#[macro_use]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::poll_immediate;
use informer::workqueue::{ExponentialLimiter, Item, WorkQueue};
use tokio::sync::mpsc;
use tokio::time::{Instant, advance};

use common::{LONG, soon};

run_tests! {
    on_both_runtimes:
        dropping_an_item_is_done,
        an_item_whose_worker_panics_or_is_cancelled_is_not_in_work_for_ever,
        a_second_worker_waits_until_the_first_is_done,
        shutdown_returns_at_once_and_what_was_added_is_still_handed_out,
        shutdown_ends_every_wait,
        a_drain_waits_for_items_in_work_and_for_those_to_come_again,
        a_plain_shutdown_ends_the_wait_for_a_drain,
        workers_that_are_dropped_let_go_of_their_keys,
        workers_that_never_find_the_queue_empty_let_others_run,
        a_queue_takes_no_room_once_all_is_done;
    on_many_threads:
        no_key_is_lost_and_none_is_with_two_workers;
    on_a_paused_clock:
        a_delayed_key_comes_when_its_time_has_come_and_once,
        delayed_keys_come_by_their_deadlines_also_when_nobody_waited,
        an_earlier_deadline_wakes_those_who_wait_for_a_later_one,
        a_next_that_is_dropped_takes_neither_key_nor_wake_up_nor_timer_along,
        a_wait_cut_short_again_and_again_gets_its_key_on_time,
        rate_limited_keys_come_later_with_each_failure_until_forgotten,
        failures_and_panics_are_tried_again_as_the_limiter_says,
        metrics_grow_while_a_worker_is_stuck_and_nothing_runs_for_it;
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn queue() -> WorkQueue<u32> {
    WorkQueue::with_limiter("test", ExponentialLimiter::new(ms(1), Duration::from_secs(1)))
}

/// An item that is there already.
async fn next_now(queue: &WorkQueue<u32>) -> Option<Item<u32>> {
    poll_immediate(queue.next()).await.flatten()
}

async fn dropping_an_item_is_done() {
    let queue = queue();
    queue.add(1);
    let item = soon(queue.next()).await.expect("an item");
    assert_eq!((*item, *item.key(), queue.len()), (1, 1, 0));
    queue.add(1);
    assert!(next_now(&queue).await.is_none(), "nobody gets it beside its worker");
    drop(item);
    let again = soon(queue.next()).await.expect("it was added again");
    again.done();
    assert!(queue.is_empty() && next_now(&queue).await.is_none());
}

async fn an_item_whose_worker_panics_or_is_cancelled_is_not_in_work_for_ever() {
    let queue = queue();
    queue.add(1);
    let item = soon(queue.next()).await.expect("an item");
    queue.add(1);
    catch_unwind(AssertUnwindSafe(|| {
        let _item = item;
        panic!("a bug of the worker");
    }))
    .expect_err("it panics");

    let (tell, mut told) = mpsc::channel(1);
    let there = queue.clone();
    let worker = tokio::spawn(async move {
        let _item = there.next().await;
        _ = tell.send(()).await;
        std::future::pending::<()>().await;
    });
    soon(told.recv()).await.expect("it has the item");
    queue.add(1);
    worker.abort();
    assert_eq!(soon(queue.next()).await.map(|item| *item), Some(1));
}

async fn a_second_worker_waits_until_the_first_is_done() {
    let queue = queue();
    queue.add(1);
    let first = soon(queue.next()).await.expect("an item");
    queue.add(1);
    queue.add(1);
    let second = queue.next();
    let mut second = std::pin::pin!(second);
    assert!(poll_immediate(&mut second).await.is_none());
    drop(first);
    let second = soon(second).await.expect("the item");
    assert_eq!(*second, 1);
    drop(second);
    assert!(next_now(&queue).await.is_none(), "once more, not twice");
}

async fn a_delayed_key_comes_when_its_time_has_come_and_once() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after(1, ms(50));
    assert!(queue.is_empty());
    let item = soon(queue.next()).await.expect("an item");
    assert_eq!((*item, start.elapsed()), (1, ms(50)));
    drop(item);
    advance(Duration::from_secs(10)).await;
    assert!(queue.is_empty());
}

async fn delayed_keys_come_by_their_deadlines_also_when_nobody_waited() {
    let queue = queue();
    queue.add_after(3, ms(30));
    queue.add_after(1, ms(10));
    queue.add_after(2, ms(20));
    advance(ms(40)).await;
    assert_eq!(queue.len(), 3);
    for expected in [1, 2, 3] {
        assert_eq!(next_now(&queue).await.map(|item| *item), Some(expected));
    }
}

async fn an_earlier_deadline_wakes_those_who_wait_for_a_later_one() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after(9, Duration::from_secs(3600));
    let wait = || {
        let queue = queue.clone();
        tokio::spawn(async move { queue.next().await.map(|item| (*item, start.elapsed())) })
    };
    let waiting = [wait(), wait()];
    tokio::task::yield_now().await;
    queue.add_after(2, ms(20));
    queue.add_after(1, ms(10));
    let mut got = Vec::new();
    for worker in waiting {
        got.push(soon(worker).await.expect("no panic").expect("an item"));
    }
    got.sort_unstable();
    assert_eq!(got, [(1, ms(10)), (2, ms(20))]);
    let (key, at) = wait().await.expect("no panic").expect("an item");
    assert_eq!((key, at), (9, Duration::from_secs(3600)));
}

async fn a_next_that_is_dropped_takes_neither_key_nor_wake_up_nor_timer_along() {
    let queue = queue();
    let other = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut got = Vec::new();
            while let Some(item) = queue.next().await {
                got.push(*item);
                if got.len() == 2 {
                    return got;
                }
            }
            got
        }
    });
    // Polled before the other one, so that it keeps the time, and is the first to be woken.
    let mut first = Box::pin(queue.next());
    assert!(poll_immediate(&mut first).await.is_none());
    queue.add_after(2, ms(10));
    tokio::task::yield_now().await;
    assert!(poll_immediate(&mut first).await.is_none());
    queue.add(1);
    drop(first);
    assert_eq!(soon(other).await.expect("no panic"), [1, 2]);
}

async fn a_wait_cut_short_again_and_again_gets_its_key_on_time() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after(1, ms(95));
    let item = loop {
        tokio::select! {
            item = queue.next() => break item.expect("an item"),
            () = tokio::time::sleep(ms(10)) => {}
        }
    };
    assert_eq!((*item, start.elapsed()), (1, ms(95)));
}

async fn rate_limited_keys_come_later_with_each_failure_until_forgotten() {
    let queue = queue();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let start = Instant::now();
        queue.add_rate_limited(1);
        drop(soon(queue.next()).await.expect("an item"));
        waits.push(start.elapsed());
    }
    assert_eq!(waits, [1, 2, 4, 8].map(ms));
    assert_eq!((queue.num_requeues(&1), queue.num_requeues(&2)), (4, 0));
    queue.forget(&1);
    assert_eq!(queue.num_requeues(&1), 0);
    assert_eq!(queue.metrics().retries, 4);
}

async fn shutdown_returns_at_once_and_what_was_added_is_still_handed_out() {
    let queue = queue();
    queue.add(1);
    queue.add(2);
    let first = soon(queue.next()).await.expect("an item");
    queue.add(1);
    queue.shutdown();
    assert!(queue.is_shutting_down());
    queue.add(3);
    queue.add_after(4, ms(0));
    assert_eq!(next_now(&queue).await.map(|item| *item), Some(2));
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.map(|item| *item) }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "the first key is still to come again");
    drop(first);
    assert_eq!(soon(waiting).await.expect("no panic"), Some(1));
    assert!(soon(queue.next()).await.is_none() && soon(queue.next()).await.is_none());
    assert_eq!(queue.len(), 0);
}

async fn shutdown_ends_every_wait() {
    let queue = queue();
    queue.add_after(1, LONG);
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shutdown();
    for worker in workers {
        assert!(soon(worker).await.expect("no panic"), "delayed keys are not delivered");
    }
}

async fn a_drain_waits_for_items_in_work_and_for_those_to_come_again() {
    let queue = queue();
    queue.add(1);
    let item = soon(queue.next()).await.expect("an item");
    queue.add(1);
    let drain = queue.shutdown_with_drain();
    let mut drain = std::pin::pin!(drain);
    assert!(poll_immediate(&mut drain).await.is_none());
    drop(item);
    assert!(poll_immediate(&mut drain).await.is_none(), "it was added again");
    let item = soon(queue.next()).await.expect("an item");
    assert!(poll_immediate(&mut drain).await.is_none());
    assert!(soon(queue.next()).await.is_none());
    drop(item);
    soon(drain).await;
    assert_eq!(queue.len(), 0);
}

async fn a_plain_shutdown_ends_the_wait_for_a_drain() {
    let queue = queue();
    queue.add(1);
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shutdown_with_drain().await }
    });
    while !queue.is_shutting_down() {
        tokio::task::yield_now().await;
    }
    assert!(!drain.is_finished());
    queue.shutdown();
    soon(drain).await.expect("no panic");
}

async fn failures_and_panics_are_tried_again_as_the_limiter_says() {
    let queue = queue();
    queue.add(1);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (start, noted, there) = (Instant::now(), Arc::clone(&calls), queue.clone());
    let work = move |key| {
        let (noted, queue) = (Arc::clone(&noted), there.clone());
        async move {
            let call = {
                let mut calls = noted.lock().unwrap();
                calls.push((key, start.elapsed()));
                calls.len()
            };
            match call {
                1 => Err("not yet"),
                2 => panic!("a bug"),
                // Succeeds, and wants to look again later: the failures before are forgotten.
                3 => {
                    queue.add_after(key, ms(100));
                    Ok(())
                }
                4 => Err("not yet"),
                _ => {
                    queue.shutdown();
                    Ok(())
                }
            }
        }
    };
    soon(queue.run_workers(2, work)).await;
    assert_eq!(
        *calls.lock().unwrap(),
        [0, 1, 1 + 2, 1 + 2 + 100, 1 + 2 + 100 + 1].map(|at| (1, ms(at)))
    );
}

async fn workers_that_are_dropped_let_go_of_their_keys() {
    let queue = queue();
    queue.add(1);
    let (tell, mut told) = mpsc::unbounded_channel();
    let work = move |_| {
        _ = tell.send(());
        std::future::pending::<Result<(), String>>()
    };
    let workers = queue.run_workers(1, work);
    tokio::select! {
        () = workers => panic!("nobody ended it"),
        _ = soon(told.recv()) => {}
    }
    queue.add(1);
    assert_eq!(soon(queue.next()).await.map(|item| *item), Some(1));
}

/// Four workers and two adders: every key is worked on after its last add, and never by two at
/// once.
async fn no_key_is_lost_and_none_is_with_two_workers() {
    const KEYS: u32 = 50;
    const ROUNDS: u32 = 200;
    let queue = queue();
    // What was asked for, what was done, and who is at it.
    let asked: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let in_work = Arc::new(Mutex::new(BTreeSet::new()));
    let work = {
        let (asked, seen) = (Arc::clone(&asked), Arc::clone(&seen));
        move |key: u32| {
            let (asked, seen, in_work) =
                (Arc::clone(&asked), Arc::clone(&seen), Arc::clone(&in_work));
            async move {
                assert!(in_work.lock().unwrap().insert(key), "two workers have {key}");
                let version = asked[key as usize].load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                seen.lock().unwrap().insert(key, version);
                in_work.lock().unwrap().remove(&key);
                if version % 7 == 3 { Err("again") } else { Ok(()) }
            }
        }
    };
    let adders = (0..2).map(|adder| {
        let (queue, asked) = (queue.clone(), Arc::clone(&asked));
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                for key in 0..KEYS {
                    asked[key as usize].fetch_add(1, Ordering::SeqCst);
                    if (key + round + adder) % 3 == 0 {
                        queue.add_after(key, ms(1))
                    } else {
                        queue.add(key)
                    }
                }
                tokio::task::yield_now().await;
            }
        })
    });
    let adders: Vec<_> = adders.collect();
    let workers = tokio::spawn({
        let queue = queue.clone();
        async move { queue.run_workers(4, work).await }
    });
    for adder in adders {
        adder.await.expect("no panic");
    }
    let expected: BTreeMap<_, _> = (0..KEYS).map(|key| (key, 2 * ROUNDS as usize)).collect();
    soon(async {
        while *seen.lock().unwrap() != expected {
            tokio::task::yield_now().await;
        }
    })
    .await;
    soon(queue.shutdown_with_drain()).await;
    soon(workers).await.expect("no panic");
    let metrics = queue.metrics();
    assert_eq!((metrics.depth, metrics.unfinished_work), (0, Duration::ZERO));
    assert_eq!(metrics.work_duration.count(), metrics.adds);
}

async fn workers_that_never_find_the_queue_empty_let_others_run() {
    let queue = queue();
    queue.add(1);
    let there = queue.clone();
    let busy = async {
        while let Some(item) = there.next().await {
            there.add(*item);
        }
    };
    let stop = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        queue.shutdown();
    };
    soon(async { tokio::join!(busy, stop) }).await;
}

async fn metrics_grow_while_a_worker_is_stuck_and_nothing_runs_for_it() {
    let queue = queue();
    queue.add(1);
    advance(ms(50)).await;
    let item = queue.next().now_or_never().flatten().expect("an item");
    advance(ms(25)).await;
    let metrics = queue.metrics();
    assert_eq!((metrics.adds, metrics.depth, metrics.queue_duration.sum()), (1, 0, ms(50)));
    assert_eq!((metrics.unfinished_work, metrics.longest_running_processor), (ms(25), ms(25)));
    queue.shutdown();
    advance(ms(25)).await;
    assert_eq!(queue.metrics().unfinished_work, ms(50));
    drop(item);
    let metrics = queue.metrics();
    assert_eq!((metrics.work_duration.sum(), metrics.unfinished_work), (ms(50), Duration::ZERO));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

async fn a_queue_takes_no_room_once_all_is_done() {
    let queue = WorkQueue::new("arcs");
    let key = Arc::new(1);
    queue.add(Arc::clone(&key));
    let item = soon(queue.next()).await.expect("an item");
    drop(item);
    assert_eq!(Arc::strong_count(&key), 1);
    assert_eq!((queue.name(), format!("{queue:?}").contains("arcs")), ("arcs", true));
}
