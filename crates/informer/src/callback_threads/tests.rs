use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use super::hand_over::Start;
use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn threads(keep_alive: Duration) -> &'static CallbackThreads {
    Box::leak(Box::new(CallbackThreads::new(keep_alive, start_thread)))
}

#[test]
fn g15_jobs_that_block_hold_up_no_other() {
    let threads = threads(LONG);
    let (ran, runs) = mpsc::channel();
    let mut gates = Vec::new();
    for number in 0..40 {
        let (gate, opened) = mpsc::channel::<()>();
        gates.push(gate);
        let ran = ran.clone();
        let job = move || {
            _ = ran.send(number);
            _ = opened.recv();
            _ = ran.send(number);
        };
        assert!(threads.run(Box::new(job)).is_ok());
    }
    let mut running: Vec<_> = (0..40).map(|_| runs.recv_timeout(LONG).unwrap()).collect();
    running.sort_unstable();
    assert!(running.into_iter().eq(0..40));
    drop(gates);
    assert_eq!((0..40).map(|_| runs.recv_timeout(LONG).unwrap()).sum::<i32>(), 39 * 40 / 2);
}

#[test]
fn an_idle_thread_is_used_again_and_a_panic_does_it_no_harm() {
    let threads = threads(LONG);
    let (sender, named) = mpsc::channel();
    let mut names = Vec::new();
    for _ in 0..10 {
        let sender = sender.clone();
        let job = move || {
            _ = sender.send(thread::current().name().map(str::to_owned));
            panic!("a handler's drop, for example");
        };
        assert!(threads.run(Box::new(job)).is_ok());
        names.push(named.recv_timeout(LONG).unwrap().unwrap());
        while threads.state().idle == 0 {
            thread::yield_now();
        }
    }
    assert!(names.iter().all(|name| name == "informer-callback-1"), "{names:?}");
}

#[test]
fn an_idle_thread_ends_after_a_while() {
    let threads = threads(Duration::from_millis(1));
    let (sender, ran) = mpsc::channel();
    for round in 1..=3 {
        let sender = sender.clone();
        assert!(threads.run(Box::new(move || _ = sender.send(()))).is_ok());
        ran.recv_timeout(LONG).unwrap();
        // Idle for a moment, then gone; whoever comes then gets a new one.
        while threads.state().alive > 0 {
            thread::yield_now();
        }
        assert!(threads.state().started <= round);
    }
}

#[test]
fn a_job_comes_back_if_no_thread_can_be_started() {
    let refuse: Start = |_, _| Err(io::Error::other("no more threads"));
    let threads: &'static CallbackThreads = Box::leak(Box::new(CallbackThreads::new(LONG, refuse)));
    let (sender, ran) = mpsc::channel();
    let (job, error) = threads.run(Box::new(move || _ = sender.send(()))).err().unwrap();
    assert_eq!(error.to_string(), "no more threads");
    assert!(threads.state().orders.is_empty());
    job();
    ran.recv().unwrap();
}

#[test]
fn g15_a_thread_that_cannot_be_started_is_missed_by_its_own_job_only() {
    /// The first start takes its time, and fails; the others work.
    static STARTS: AtomicUsize = AtomicUsize::new(0);
    static FAIL: Mutex<Option<mpsc::Receiver<()>>> = Mutex::new(None);
    let start: Start = |builder, body| {
        if STARTS.fetch_add(1, Ordering::SeqCst) == 0 {
            let fail = FAIL.lock().unwrap().take().unwrap();
            _ = fail.recv_timeout(LONG);
            return Err(io::Error::other("no more threads"));
        }
        start_thread(builder, body)
    };
    let threads: &'static CallbackThreads = Box::leak(Box::new(CallbackThreads::new(LONG, start)));
    let (fail, failing) = mpsc::channel();
    *FAIL.lock().unwrap() = Some(failing);
    let (gate, opened) = mpsc::channel::<()>();
    let first = thread::spawn(move || threads.run(Box::new(move || _ = opened.recv())));
    while STARTS.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    let (sender, ran) = mpsc::channel();
    assert!(threads.run(Box::new(move || _ = sender.send(()))).is_ok());
    ran.recv_timeout(LONG).expect("it was given a thread, and waits for nobody");
    fail.send(()).unwrap();
    assert!(first.join().unwrap().is_err());
    drop(gate);
}

#[test]
fn quick_jobs_share_a_thread() {
    let threads = threads(LONG);
    let (sender, ran) = mpsc::channel();
    let mut gates = Vec::new();
    // One is being done, and the others wait.
    for _ in 0..20 {
        let (gate, opened) = mpsc::channel::<()>();
        gates.push(gate);
        let sender = sender.clone();
        let job = move || {
            _ = sender.send(());
            _ = opened.recv();
        };
        assert!(threads.run_quick(Box::new(job), Duration::from_micros(1)).is_ok());
    }
    drop(gates);
    for _ in 0..20 {
        ran.recv_timeout(LONG).unwrap();
    }
    // The first, who watches, and whom that one sent for if the first had not moved for long enough.
    assert!(threads.state().started < 20, "{} threads", threads.state().started);
}

#[test]
fn g15_quick_jobs_that_block_hold_up_no_other() {
    let threads = threads(LONG);
    let (ran, runs) = mpsc::channel();
    let mut gates = Vec::new();
    for number in 0..10 {
        let (gate, opened) = mpsc::channel::<()>();
        gates.push(gate);
        let ran = ran.clone();
        let job = move || {
            _ = ran.send(number);
            _ = opened.recv();
        };
        assert!(threads.run_quick(Box::new(job), Duration::from_micros(1)).is_ok());
    }
    let mut running: Vec<_> = (0..10).map(|_| runs.recv_timeout(LONG).unwrap()).collect();
    running.sort_unstable();
    assert!(running.into_iter().eq(0..10));
}

#[test]
fn g15_quick_jobs_wait_until_a_thread_can_be_started() {
    /// Whether threads can be started.
    static CAN_START: AtomicUsize = AtomicUsize::new(0);
    let start: Start = |name, body| match CAN_START.load(Ordering::SeqCst) {
        0 => Err(io::Error::other("no more threads")),
        _ => start_thread(name, body),
    };
    let threads: &'static CallbackThreads = Box::leak(Box::new(CallbackThreads::new(LONG, start)));
    let (sender, ran) = mpsc::channel();
    for number in 0..3 {
        let sender = sender.clone();
        let job = move || _ = sender.send(number);
        assert!(threads.run_quick(Box::new(job), Duration::ZERO).is_err());
    }
    assert!(threads.see_to_it().is_err());
    CAN_START.store(1, Ordering::SeqCst);
    assert!(threads.see_to_it().is_ok());
    for number in 0..3 {
        assert_eq!(ran.recv_timeout(LONG), Ok(number));
    }
    assert!(threads.see_to_it().is_ok(), "nothing is left");
}
