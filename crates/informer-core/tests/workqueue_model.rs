//! Every order in which workers, adders and those who give up can meet at the work queue, tried out
//! by loom: nobody sleeps for ever while there is an item, and no item is handed out twice.
//!
//! The module under test is the library's own source, compiled a second time with loom's lock in
//! the place of std's, so that this runs as any other test. A lost wake-up shows as a deadlock,
//! which loom reports before it ends the process.

use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;

#[expect(dead_code, unreachable_pub, reason = "used in the library")]
#[path = "../src/workqueue"]
mod workqueue {
    mod delays;
    mod limiter;
    mod metrics;
    mod queue;
    mod ready;
    mod shared;
    mod waiters;

    mod sync {
        pub(super) use loom::sync::Mutex;
    }

    pub(super) use limiter::ExponentialLimiter;
    pub(super) use queue::Queue;
    pub(super) use shared::{Polled, SharedQueue, Ticket};
    use waiters::{WaiterId, Waiters};
}

use workqueue::{ExponentialLimiter, Polled, Queue, SharedQueue, Ticket};

type Shared = Arc<SharedQueue<u8>>;

const NOW: Duration = Duration::ZERO;
const LATER: Duration = Duration::from_millis(10);

/// Tries every order with up to three switches between threads that need not have been.
fn model(body: impl Fn(Shared) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let limiter = ExponentialLimiter::new(LATER, LATER);
        body(Arc::new(SharedQueue::new(Queue::new(limiter))));
    });
}

/// Waits for an item, as the asynchronous queue's `next` does. A sleep is over at once.
fn next(queue: &Shared) -> Option<u8> {
    let (mut ticket, mut now) = (Ticket::default(), NOW);
    block_on(poll_fn(|context| {
        loop {
            match queue.poll_take(now, &mut ticket, context.waker()) {
                Polled::Item(item) => return Poll::Ready(Some(item)),
                Polled::Over => return Poll::Ready(None),
                Polled::Pending(Some(until)) => now = until,
                Polled::Pending(None) => return Poll::Pending,
            }
        }
    }))
}

/// Asks for an item once, and gives up if there is none.
fn give_up(queue: &Shared) -> Option<u8> {
    let mut ticket = Ticket::default();
    match queue.poll_take(NOW, &mut ticket, Waker::noop()) {
        Polled::Item(item) => Some(item),
        Polled::Over | Polled::Pending(_) => {
            queue.leave(&mut ticket);
            None
        }
    }
}

fn add(queue: &Shared, item: u8) {
    queue.with(NOW, |queue| queue.add(NOW, item));
}

fn done(queue: &Shared, item: u8) {
    queue.with(NOW, |queue| queue.done(NOW, &item));
}

/// Does it in a thread of its own.
fn beside<R: 'static>(
    queue: &Shared,
    what: impl FnOnce(&Shared) -> R + 'static,
) -> thread::JoinHandle<R> {
    let queue = Arc::clone(queue);
    thread::spawn(move || what(&queue))
}

#[test]
fn two_who_wait_get_an_item_each() {
    model(|queue| {
        let workers = [beside(&queue, next), beside(&queue, next)];
        add(&queue, 1);
        add(&queue, 2);
        let mut items = workers.map(|worker| worker.join().unwrap());
        items.sort_unstable();
        assert_eq!(items, [Some(1), Some(2)]);
    });
}

#[test]
fn one_who_gives_up_takes_no_item_and_no_wake_up_along() {
    model(|queue| {
        let (waits, gives_up) = (beside(&queue, next), beside(&queue, give_up));
        add(&queue, 1);
        if gives_up.join().unwrap().is_some() {
            done(&queue, 1);
            add(&queue, 1);
        }
        assert_eq!(waits.join().unwrap(), Some(1));
    });
}

#[test]
fn an_item_added_while_in_work_comes_again_after_done() {
    model(|queue| {
        add(&queue, 1);
        assert_eq!(next(&queue), Some(1));
        let adds = beside(&queue, |queue| add(queue, 1));
        let waits = beside(&queue, next);
        done(&queue, 1);
        assert_eq!(waits.join().unwrap(), Some(1));
        adds.join().unwrap();
    });
}

#[test]
fn the_time_is_kept_though_its_keeper_gives_up() {
    model(|queue| {
        let (waits, gives_up) = (beside(&queue, next), beside(&queue, give_up));
        queue.with(NOW, |queue| queue.add_after(NOW, 1, LATER));
        assert_eq!(gives_up.join().unwrap(), None);
        assert_eq!(waits.join().unwrap(), Some(1));
    });
}

#[test]
fn a_drain_waits_for_the_last_item_and_everybody_goes_home() {
    model(|queue| {
        add(&queue, 1);
        let worker = beside(&queue, |queue| {
            let mut count = 0;
            while let Some(item) = next(queue) {
                done(queue, item);
                count += 1;
            }
            count
        });
        queue.begin_drain();
        let mut gives_up = Ticket::default();
        queue.poll_drained(&mut gives_up, Waker::noop());
        queue.leave_drain(&mut gives_up);
        let mut ticket = Ticket::default();
        block_on(poll_fn(|context| match queue.poll_drained(&mut ticket, context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }));
        assert!(queue.with(NOW, |queue| queue.is_drained()));
        assert_eq!(worker.join().unwrap(), 1);
    });
}

#[test]
fn a_shutdown_reaches_all_who_wait() {
    model(|queue| {
        let workers = [beside(&queue, next), beside(&queue, next)];
        queue.shut_down();
        assert_eq!(workers.map(|worker| worker.join().unwrap()), [None, None]);
    });
}
