//! Model checks (loom) of what sleeps and is woken: every order in which the threads can come, up to a few preemptions.
//!
//! The sources are included, with loom's primitives under `sync` instead of the system's. A wake-up that is lost leaves
//! a thread asleep for ever, which loom reports as a deadlock. `LOOM_LOG=trace cargo test -p informer --test model NAME
//! -- --nocapture` tells what happened before a failure; `LOOM_MAX_PREEMPTIONS=n` looks further. `Arc`s are the system's:
//! loom's own panic when they are dropped by a test that fails.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use loom::sync::{Condvar, Mutex};
use loom::thread;

/// What `registration.rs` is to its signal, and to handlers that rest.
#[path = "../src/registration"]
mod registration {
    pub(super) mod resting;
    pub(super) mod signal;

    mod sync {
        use std::task::Waker;

        pub(super) use loom::sync::{Mutex, MutexGuard};

        /// What futures-util promises of its own, in the plainest way.
        pub(super) struct AtomicWaker(Mutex<Option<Waker>>);

        impl AtomicWaker {
            pub(super) fn new() -> Self {
                Self(Mutex::new(None))
            }

            pub(super) fn register(&self, waker: &Waker) {
                *self.0.lock().unwrap() = Some(waker.clone());
            }

            pub(super) fn wake(&self) {
                let waker = self.0.lock().unwrap().take();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
    }
}

/// What `callback_threads.rs` is to the hand-over of jobs.
#[path = "../src/callback_threads"]
mod callback_threads {
    use std::io;
    use std::time::Duration;

    mod hand_over;
    mod shared_work;

    pub(super) use hand_over::{CallbackThreads, Job};

    mod sync {
        use std::sync::LockResult;
        use std::time::Duration;

        use loom::sync::atomic::{AtomicBool, Ordering};
        pub(super) use loom::sync::{Mutex, MutexGuard};

        /// Time passes whenever it likes.
        pub(super) fn sleep(_: Duration) {
            loom::thread::yield_now();
        }

        /// Whose waits time out when the test says so.
        pub(super) struct Condvar {
            inner: loom::sync::Condvar,
            is_over: AtomicBool,
        }

        impl Condvar {
            pub(super) fn new() -> Self {
                Self { inner: loom::sync::Condvar::new(), is_over: AtomicBool::new(false) }
            }

            pub(super) fn notify_one(&self) {
                self.inner.notify_one();
            }

            pub(super) fn wait_timeout_while<'a, S>(
                &self,
                mut guard: MutexGuard<'a, S>,
                _: Duration,
                mut condition: impl FnMut(&mut S) -> bool,
            ) -> LockResult<(MutexGuard<'a, S>, bool)> {
                while condition(&mut guard) && !self.is_over.load(Ordering::Acquire) {
                    guard = self.inner.wait(guard).unwrap();
                }
                Ok((guard, false))
            }

            /// All waits are over, those of the future too.
            pub(super) fn let_time_pass(&self) {
                self.is_over.store(true, Ordering::Release);
                self.inner.notify_all();
            }
        }
    }

    /// For one model. They are left behind; loom minds that of its own `Arc`s only.
    pub(super) fn threads(start: fn(String, Job) -> io::Result<()>) -> &'static CallbackThreads {
        Box::leak(Box::new(CallbackThreads::new(Duration::MAX, start)))
    }

    /// Ends the wait of every idle thread, now and later.
    pub(super) fn let_time_pass(threads: &CallbackThreads) {
        let state = threads.state();
        threads.wake.let_time_pass();
        drop(state);
    }

    pub(super) fn start_thread(_: String, body: Job) -> io::Result<()> {
        drop(loom::thread::spawn(body));
        Ok(())
    }

    pub(super) fn refuse_the_second(name: String, body: Job) -> io::Result<()> {
        if name == "informer-callback-2" {
            return Err(io::Error::other("no more threads"));
        }
        start_thread(name, body)
    }

    pub(super) fn refuse_the_first(name: String, body: Job) -> io::Result<()> {
        if name == "informer-callback-1" {
            return Err(io::Error::other("no more threads"));
        }
        start_thread(name, body)
    }
}

use callback_threads::{let_time_pass, refuse_the_first, refuse_the_second, start_thread, threads};
use registration::resting::Resting;
use registration::signal::Signal;

/// In every order with so many preemptions, unless `LOOM_MAX_PREEMPTIONS` is set.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(model);
}

/// A queue as those see it who put events in and take them out.
struct Queue {
    signal: Signal,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    events: u32,
    is_over: bool,
}

impl Queue {
    fn new() -> Arc<Self> {
        Arc::new(Self { signal: Signal::new(), content: Mutex::default() })
    }

    /// As the fan-out does it: change, then wake.
    fn change(&self, change: impl FnOnce(&mut Content)) {
        change(&mut self.content.lock().unwrap());
        self.signal.notify();
    }

    fn push(&self) {
        self.change(|content| content.events += 1);
    }

    fn remove(&self) {
        self.change(|content| *content = Content { events: 0, is_over: true });
    }

    /// As a handler's task or a stream does it: the events that there are, or `None` at the end.
    fn poll(&self, context: &Context<'_>) -> Poll<Option<u32>> {
        self.signal.poll(context, || {
            let mut content = self.content.lock().unwrap();
            let events = std::mem::take(&mut content.events);
            if events > 0 { Some(Some(events)) } else { content.is_over.then_some(None) }
        })
    }

    fn next(&self) -> Option<u32> {
        sleep_until_ready(|context| self.poll(context))
    }
}

/// Sleeps unless and until it is woken.
#[derive(Default)]
struct Sleeper {
    is_woken: Mutex<bool>,
    wake: Condvar,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.wake.notify_one();
    }
}

fn sleep_until_ready<O>(mut poll: impl FnMut(&Context<'_>) -> Poll<O>) -> O {
    let sleeper = Arc::new(Sleeper::default());
    let waker = Waker::from(Arc::clone(&sleeper));
    loop {
        if let Poll::Ready(output) = poll(&Context::from_waker(&waker)) {
            return output;
        }
        let mut is_woken = sleeper.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = sleeper.wake.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

#[test]
fn g15_no_wake_up_is_lost_between_an_event_and_a_task_that_goes_to_sleep() {
    check(4, || {
        let queue = Queue::new();
        let producer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                queue.push();
                queue.push();
            }
        });
        let mut taken = 0;
        while taken < 2 {
            taken += queue.next().unwrap();
        }
        assert_eq!(taken, 2);
        producer.join().unwrap();
    });
}

#[test]
fn g18_a_removal_wakes_the_task_that_sleeps_while_events_come() {
    check(4, || {
        let queue = Queue::new();
        let by_another = |act: fn(&Queue)| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || act(&queue))
        };
        let producer =
            by_another(|queue| queue.change(|content| content.events += u32::from(!content.is_over)));
        let remover = by_another(Queue::remove);
        let mut taken = 0;
        while let Some(events) = queue.next() {
            taken += events;
        }
        assert!(taken <= 1);
        producer.join().unwrap();
        remover.join().unwrap();
    });
}

#[test]
fn g15_a_stream_that_moves_to_another_task_is_woken_there() {
    check(4, || {
        let queue = Queue::new();
        let producer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.push()
        });
        // Polled once by a task that then goes away.
        let first = queue.poll(&Context::from_waker(Waker::noop()));
        let taken = match first {
            Poll::Ready(events) => events,
            Poll::Pending => queue.next(),
        };
        assert_eq!(taken, Some(1));
        producer.join().unwrap();
    });
}

/// A registration whose handler is called by whoever wakes it.
struct Lane {
    queue: Arc<Queue>,
    resting: Resting<Handler>,
    handled: Mutex<u32>,
}

/// What there is one of.
struct Handler;

struct WakeLane(Weak<Lane>);

impl Lane {
    fn new() -> Arc<Self> {
        let lane = Self { queue: Queue::new(), resting: Resting::new(), handled: Mutex::default() };
        Arc::new(lane)
    }

    fn work(self: &Arc<Self>, handler: Handler) {
        let mut handler = handler;
        loop {
            let events = std::mem::take(&mut self.queue.content.lock().unwrap().events);
            *self.handled.lock().unwrap() += events;
            let is_work = || self.queue.content.lock().unwrap().events > 0;
            let waker = Waker::from(Arc::new(WakeLane(Arc::downgrade(self))));
            match self.resting.leave(handler, &self.queue.signal, &waker, is_work) {
                Some(back) => handler = back,
                None => return,
            }
        }
    }
}

impl Wake for WakeLane {
    fn wake(self: Arc<Self>) {
        let Some(lane) = self.0.upgrade() else { return };
        if let Some(handler) = lane.resting.take() {
            lane.work(handler);
        }
    }
}

#[test]
fn g15_no_event_is_left_behind_when_a_handler_goes_to_rest() {
    check(3, || {
        let lane = Lane::new();
        let by_another = || {
            let queue = Arc::clone(&lane.queue);
            thread::spawn(move || queue.push())
        };
        let producers = [by_another(), by_another()];
        lane.work(Handler);
        for producer in producers {
            producer.join().unwrap();
        }
        // Whoever was woken last has handled what there was, and left the handler where the next finds it.
        assert_eq!(*lane.handled.lock().unwrap(), 2);
        assert!(lane.resting.take().is_some());
    });
}

/// How many jobs ran, for those who wait for them.
#[derive(Clone, Default)]
struct Ran(Arc<(Mutex<u32>, Condvar)>);

impl Ran {
    fn one_more(&self) {
        *self.0.0.lock().unwrap() += 1;
        self.0.1.notify_all();
    }

    fn wait_for(&self, jobs: u32) {
        let mut ran = self.0.0.lock().unwrap();
        while *ran < jobs {
            ran = self.0.1.wait(ran).unwrap();
        }
    }

    /// A job that blocks until as many others have run.
    fn after(&self, others: u32) -> callback_threads::Job {
        let ran = self.clone();
        Box::new(move || {
            ran.wait_for(others);
            ran.one_more();
        })
    }
}

#[test]
fn g15_no_job_is_left_behind_one_that_blocks() {
    check(1, || {
        let (threads, ran) = (threads(start_thread), Ran::default());
        assert!(threads.run(ran.after(0)).is_ok());
        // Its thread is busy, or idle again.
        assert!(threads.run(ran.after(2)).is_ok());
        assert!(threads.run(ran.after(0)).is_ok());
        ran.wait_for(3);
        let_time_pass(threads);
    });
}

/// No time at all.
const QUICK: Duration = Duration::ZERO;

#[test]
fn g15_a_quick_job_is_not_left_behind_when_its_thread_goes_away() {
    check(2, || {
        let (threads, ran) = (threads(start_thread), Ran::default());
        assert!(threads.run_quick(ran.after(0), QUICK).is_ok());
        assert!(threads.run_quick(ran.after(0), QUICK).is_ok());
        ran.wait_for(2);
        let_time_pass(threads);
    });
}

#[test]
fn g15_somebody_takes_over_behind_a_quick_job_that_blocks() {
    check(1, || {
        let (threads, ran) = (threads(start_thread), Ran::default());
        assert!(threads.run_quick(ran.after(1), QUICK).is_ok());
        assert!(threads.run_quick(ran.after(0), QUICK).is_ok());
        ran.wait_for(2);
        let_time_pass(threads);
    });
}

#[test]
fn g15_a_quick_job_whose_thread_does_not_start_is_seen_to_later() {
    check(1, || {
        let (threads, ran) = (threads(refuse_the_second), Ran::default());
        assert!(threads.run_quick(ran.after(1), QUICK).is_ok());
        // Behind the first, with nobody to watch; or the first has a thread of its own, if this one is quicker.
        if threads.run_quick(ran.after(0), QUICK).is_err() {
            assert!(threads.see_to_it().is_ok());
        }
        ran.wait_for(2);
        let_time_pass(threads);
    });
}

#[test]
fn g15_a_job_that_comes_as_its_thread_gives_up_waiting_is_done() {
    check(2, || {
        let (threads, ran) = (threads(start_thread), Ran::default());
        assert!(threads.run(ran.after(0)).is_ok());
        let clock = thread::spawn(move || let_time_pass(threads));
        assert!(threads.run(ran.after(0)).is_ok());
        ran.wait_for(2);
        clock.join().unwrap();
    });
}

#[test]
fn g15_a_job_whose_thread_does_not_start_comes_back_and_takes_nobodys_thread() {
    check(4, || {
        let (threads, ran) = (threads(refuse_the_first), Ran::default());
        let other = thread::spawn({
            let ran = ran.clone();
            move || threads.run(ran.after(0))
        });
        let mine = threads.run(ran.after(1));
        let others = other.join().unwrap();
        // Whichever was first.
        assert!(mine.is_err() != others.is_err());
        for (job, _) in [others, mine].into_iter().filter_map(Result::err) {
            job();
        }
        ran.wait_for(2);
        let_time_pass(threads);
    });
}
