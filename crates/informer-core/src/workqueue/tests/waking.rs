//! Nobody sleeps while there is something to do: random histories of workers that poll only when
//! they are woken, or when the time has come that they were told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use proptest::prelude::*;

use super::*;

/// One who waits for items, as a task would.
struct Worker {
    ticket: Ticket,
    flag: Arc<Flag>,
    sleeps_until: Option<Duration>,
    is_waiting: bool,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Worker {
    fn new() -> Self {
        Self {
            ticket: Ticket::default(),
            flag: Arc::default(),
            sleeps_until: None,
            is_waiting: false,
        }
    }

    fn poll(&mut self, queue: &SharedQueue<u8>, now: Duration) -> Polled<u8> {
        self.flag.0.store(false, Ordering::Relaxed);
        let polled = queue.poll_take(now, &mut self.ticket, &Waker::from(Arc::clone(&self.flag)));
        self.is_waiting = matches!(polled, Polled::Pending(_));
        self.sleeps_until = if let Polled::Pending(until) = polled { until } else { None };
        polled
    }

    fn cancel(&mut self, queue: &SharedQueue<u8>) {
        queue.leave(&mut self.ticket);
        (self.is_waiting, self.sleeps_until) = (false, None);
    }

    fn is_awake(&self, now: Duration) -> bool {
        let slept = self.sleeps_until.is_some_and(|until| until <= now);
        self.is_waiting && (slept || self.flag.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    AddAfter(u8, u64),
    Pass(u64),
    /// Worker begins to wait, or is polled without need.
    Poll(usize),
    /// Worker drops its future.
    Cancel(usize),
    Done(u8),
    /// All that are awake run.
    Run,
    ShutDown,
}

const WORKERS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0u8..4).prop_map(Step::Add),
        5 => (0u8..4, 1u64..20).prop_map(|(item, delay)| Step::AddAfter(item, delay)),
        4 => (0u64..12).prop_map(Step::Pass),
        8 => (0..WORKERS).prop_map(Step::Poll),
        5 => (0..WORKERS).prop_map(Step::Cancel),
        3 => (0u8..4).prop_map(Step::Done),
        3 => Just(Step::Run),
    ];
    (prop::collection::vec(step, 0..60), prop::option::weighted(0.3, Just(Step::ShutDown)))
        .prop_map(|(mut steps, shutdown)| {
            steps.extend(shutdown);
            steps
        })
}

/// Polls whoever is awake until all sleep. Items they get are kept in work.
fn run(queue: &SharedQueue<u8>, workers: &mut [Worker], now: Duration) {
    while let Some(worker) = workers.iter_mut().find(|worker| worker.is_awake(now)) {
        worker.poll(queue, now);
    }
}

fn nobody_sleeps_for_nothing(
    queue: &SharedQueue<u8>,
    workers: &[Worker],
    now: Duration,
) -> Result<(), TestCaseError> {
    let waiting = workers.iter().filter(|worker| worker.is_waiting).count();
    let (items, deadline, is_over) =
        queue.with(now, |queue| (queue.len(), queue.next_deadline(), queue.is_over()));
    prop_assert!(waiting == 0 || items == 0, "{waiting} sleep beside {items} items");
    prop_assert!(waiting == 0 || !is_over, "{waiting} sleep though all is over");
    if let (Some(deadline), 1..) = (deadline, waiting) {
        let sleeps = workers.iter().filter_map(|worker| worker.sleeps_until);
        prop_assert!(
            sleeps.min().is_some_and(|until| until <= deadline),
            "nobody wakes up at {deadline:?}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_wake_up_is_lost_whoever_leaves(steps in steps()) {
        let queue = SharedQueue::new(queue::<u8>());
        let mut workers: Vec<Worker> = (0..WORKERS).map(|_| Worker::new()).collect();
        let mut now = Duration::ZERO;
        for step in steps {
            match step {
                Step::Add(item) => queue.with(now, |queue| queue.add(now, item)),
                Step::AddAfter(item, delay) => queue.with(now, |queue| queue.add_after(now, item, ms(delay))),
                Step::Pass(time) => {
                    // Timers fire one after the other, as time passes.
                    for _ in 0..time {
                        now += ms(1);
                        run(&queue, &mut workers, now);
                    }
                }
                Step::Poll(worker) => _ = workers[worker].poll(&queue, now),
                // Without a run before: it may have been woken already.
                Step::Cancel(worker) => workers[worker].cancel(&queue),
                Step::Done(item) => queue.with(now, |queue| queue.done(now, &item)),
                Step::Run => {
                    run(&queue, &mut workers, now);
                    nobody_sleeps_for_nothing(&queue, &workers, now)?;
                }
                Step::ShutDown => queue.shut_down(),
            }
        }
        run(&queue, &mut workers, now);
        nobody_sleeps_for_nothing(&queue, &workers, now)?;
    }
}

#[test]
fn a_wake_up_given_to_one_who_leaves_goes_to_the_next() {
    let queue = SharedQueue::new(queue::<u8>());
    let (mut first, mut second) = (Worker::new(), Worker::new());
    assert_eq!(first.poll(&queue, ms(0)), Polled::Pending(None));
    assert_eq!(second.poll(&queue, ms(0)), Polled::Pending(None));
    queue.with(ms(0), |queue| queue.add(ms(0), 1));
    assert!(first.is_awake(ms(0)) && !second.is_awake(ms(0)), "one item wakes one");
    first.cancel(&queue);
    assert!(second.is_awake(ms(0)));
    assert_eq!(second.poll(&queue, ms(0)), Polled::Item(1));
}

#[test]
fn the_time_is_kept_by_one_and_handed_on_when_it_leaves() {
    let queue = SharedQueue::new(queue::<u8>());
    let (mut first, mut second) = (Worker::new(), Worker::new());
    queue.with(ms(0), |queue| queue.add_after(ms(0), 1, ms(10)));
    assert_eq!(first.poll(&queue, ms(0)), Polled::Pending(Some(ms(10))));
    assert_eq!(second.poll(&queue, ms(0)), Polled::Pending(None));
    first.cancel(&queue);
    assert!(second.is_awake(ms(0)));
    assert_eq!(second.poll(&queue, ms(0)), Polled::Pending(Some(ms(10))));
    assert_eq!(second.poll(&queue, ms(10)), Polled::Item(1));
}

#[test]
fn an_earlier_deadline_wakes_one_who_sleeps_less_long_then() {
    let queue = SharedQueue::new(queue::<u8>());
    let mut worker = Worker::new();
    queue.with(ms(0), |queue| queue.add_after(ms(0), 1, ms(10)));
    assert_eq!(worker.poll(&queue, ms(0)), Polled::Pending(Some(ms(10))));
    queue.with(ms(1), |queue| queue.add_after(ms(1), 2, ms(30)));
    assert!(!worker.is_awake(ms(1)), "a later deadline concerns nobody");
    queue.with(ms(1), |queue| queue.add_after(ms(1), 3, ms(2)));
    assert!(worker.is_awake(ms(1)));
    assert_eq!(worker.poll(&queue, ms(1)), Polled::Pending(Some(ms(3))));
    assert_eq!(worker.poll(&queue, ms(3)), Polled::Item(3));
}

#[test]
fn one_who_has_no_time_to_keep_any_more_keeps_none_later() {
    let queue = SharedQueue::new(queue::<u8>());
    let (mut first, mut second) = (Worker::new(), Worker::new());
    queue.with(ms(0), |queue| queue.add_after(ms(0), 1, ms(10)));
    assert_eq!(first.poll(&queue, ms(0)), Polled::Pending(Some(ms(10))));
    assert_eq!(second.poll(&queue, ms(10)), Polled::Item(1));
    assert_eq!(first.poll(&queue, ms(10)), Polled::Pending(None));
    queue.with(ms(11), |queue| queue.add_after(ms(11), 2, ms(9)));
    assert!(first.is_awake(ms(11)), "its timer of before is gone");
}

#[test]
fn a_drain_ends_when_the_last_item_is_done_or_the_queue_is_shut_down_again() {
    let queue = SharedQueue::new(queue::<u8>());
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(Arc::clone(&flag));
    queue.with(ms(0), |queue| queue.add(ms(0), 1));
    queue.with(ms(0), |queue| queue.take(ms(0)));
    let mut ticket = Ticket::default();
    queue.begin_drain();
    assert!(!queue.poll_drained(&mut ticket, &waker));
    queue.with(ms(1), |queue| queue.done(ms(1), &1));
    assert!(flag.0.load(Ordering::Relaxed) && queue.poll_drained(&mut ticket, &waker));

    let queue = SharedQueue::new(super::queue::<u8>());
    queue.with(ms(0), |queue| queue.add(ms(0), 1));
    queue.begin_drain();
    assert!(!queue.poll_drained(&mut ticket, &waker));
    flag.0.store(false, Ordering::Relaxed);
    queue.shut_down();
    assert!(flag.0.load(Ordering::Relaxed) && queue.poll_drained(&mut ticket, &waker));
}
