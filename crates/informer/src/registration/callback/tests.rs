use std::panic::panic_any;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};

use informer_core::{Deleted, FinalState, ObjectKey, UpdateReason};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::runtime::Handle;

use super::*;

use crate::{HandlerOptions, Resource, Scope, StopCause};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Panics when it is dropped, if told to.
struct Object {
    drop_panics: bool,
}

impl Drop for Object {
    fn drop(&mut self) {
        assert!(!self.drop_panics, "an object cannot be dropped");
    }
}

fn good() -> Arc<Object> {
    Arc::new(Object { drop_panics: false })
}

fn bad() -> Arc<Object> {
    Arc::new(Object { drop_panics: true })
}

fn added(name: &str, object: Arc<Object>) -> Event<Object> {
    Event::Added { key: ObjectKey::cluster(name), object, initial: false }
}

/// Notes what it is called with, and its drop.
struct Notes(Sender<String>);

impl EventHandler<Object> for Notes {
    fn on_event(&mut self, event: &Event<Object>) {
        _ = self.0.send(event.key().name().to_owned());
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        _ = self.0.send("dropped".to_owned());
    }
}

/// An informer with one callback, whose queue the test fills itself.
struct Scene {
    shared: Arc<Shared<Object>>,
    registration: Registration,
    queue: RegistrationQueue<Object>,
}

impl Scene {
    fn new() -> Self {
        let shared = Shared::new(Resource::of::<ConfigMap>(), Scope::all(), Handle::current());
        let shared = Arc::new(shared);
        let reader = Reader::Callback(OnceLock::new());
        let (registration, queue) = shared.register(&HandlerOptions::new(), None, reader).unwrap();
        Self { shared, registration, queue }
    }

    fn push(&self, event: Event<Object>) {
        self.queue.lock().push(event);
        self.registration.inner().wake();
    }

    fn drive(&self, handler: impl EventHandler<Object>, start: Start) {
        let inner = Arc::clone(self.registration.inner());
        let callback = Callback {
            handler: Box::new(handler),
            queue: self.queue.clone(),
            shared: Arc::clone(&self.shared),
            _ending: Ending(Arc::clone(&inner)),
            inner,
            _owner: None,
        };
        drive(callback, start);
    }

    fn stop(&self) {
        self.shared.stopping.cancel(StopCause::Asked);
        self.registration.inner().wake();
    }

    fn errors(&self) -> Vec<String> {
        self.shared.status().recent_errors.into_iter().map(|error| error.message).collect()
    }
}

fn heard(from: &Receiver<String>) -> String {
    from.recv_timeout(LONG).expect("it should have happened long ago")
}

#[tokio::test]
async fn g15_objects_whose_drop_panics_are_reported_and_the_handler_goes_on() {
    let scene = Scene::new();
    let (sender, notes) = channel();
    let (old, new) = (bad(), bad());
    let last = Deleted {
        key: ObjectKey::cluster("c"),
        old: bad(),
        last: bad(),
        final_state: FinalState::Known,
    };
    // Five in one batch, of which these are the last references; and one that others read as well.
    let own = [
        added("a", bad()),
        Event::Updated { key: ObjectKey::cluster("b"), old, new, reason: UpdateReason::Change },
        Event::Deleted(last),
    ];
    for event in own {
        scene.push(event);
    }
    scene.drive(Notes(sender), start_thread);
    assert_eq!([(); 3].map(|()| heard(&notes)), ["a", "b", "c"]);
    scene.queue.lock().push_all(Arc::new(vec![added("d", bad()), added("e", good())]));
    scene.registration.inner().wake();
    assert_eq!([(); 2].map(|()| heard(&notes)), ["d", "e"]);
    scene.registration.remove().await;
    assert_eq!(heard(&notes), "dropped");
    assert_eq!(scene.registration.status().panics, 6);
    assert_eq!(scene.shared.status().counters.handler_panics, 6);
    let errors = scene.errors();
    for (error, key) in errors.iter().zip(["a", "b", "b", "c", "c", "d"]) {
        assert!(
            error.starts_with(&format!("handler 1 panicked when it dropped {key} (added at ")),
            "{error}"
        );
    }
}

/// Its drop panics, whoever catches it.
struct BadPayload;

impl Drop for BadPayload {
    fn drop(&mut self) {
        panic_any(Self);
    }
}

#[tokio::test]
async fn g15_what_a_handler_panics_with_may_panic_itself() {
    struct Panics(Sender<String>);
    impl EventHandler<Object> for Panics {
        fn on_event(&mut self, event: &Event<Object>) {
            _ = self.0.send(event.key().name().to_owned());
            panic_any(BadPayload);
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            panic_any(BadPayload);
        }
    }
    let scene = Scene::new();
    let (sender, notes) = channel();
    scene.drive(Panics(sender), start_thread);
    for name in ["a", "b"] {
        scene.push(added(name, good()));
        assert_eq!(heard(&notes), name);
    }
    scene.registration.remove().await;
    assert_eq!(scene.registration.status().panics, 3);
}

#[tokio::test]
async fn g15_a_handler_has_one_thread_from_its_first_event_on() {
    static STARTS: AtomicUsize = AtomicUsize::new(0);
    let start: Start = |name, body| {
        STARTS.fetch_add(1, Ordering::SeqCst);
        start_thread(name, body)
    };
    let scene = Scene::new();
    let (sender, notes) = channel();
    scene.drive(Notes(sender), start);
    scene.registration.inner().wake();
    assert_eq!(STARTS.load(Ordering::SeqCst), 0, "there is nothing to do");
    for number in 0..100 {
        let name = number.to_string();
        scene.push(added(&name, good()));
        if number % 2 == 0 {
            scene.registration.inner().wake();
        }
        assert_eq!(heard(&notes), name);
    }
    scene.stop();
    assert_eq!(heard(&notes), "dropped");
    assert_eq!(STARTS.load(Ordering::SeqCst), 1);
}

fn refuse(_: String, _: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
    Err(io::Error::other("no more threads"))
}

#[tokio::test(start_paused = true)]
async fn g15_a_thread_that_cannot_be_started_is_tried_again_and_missed_by_its_own_handler_only() {
    static STARTS: AtomicUsize = AtomicUsize::new(0);
    let third: Start = |name, body| match STARTS.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => refuse(name, body),
        _ => start_thread(name, body),
    };
    let (starved, other) = (Scene::new(), Scene::new());
    let ((sender, notes), (others, other_notes)) = (channel(), channel());
    starved.drive(Notes(sender), third);
    other.drive(Notes(others), start_thread);
    let mut status = starved.shared.live.subscribe();
    for name in ["a", "b"] {
        starved.push(added(name, good()));
        other.push(added(name, good()));
        assert_eq!(heard(&other_notes), name);
    }
    assert!(notes.try_recv().is_err());
    // Both tries are told of; the next is a second later.
    for _ in 0..2 {
        status.changed().await.unwrap();
    }
    let expected = "no thread can be started to call handlers: no more threads";
    assert_eq!(starved.errors(), [expected, expected]);
    tokio::time::sleep(2 * THREAD_RETRY).await;
    assert_eq!([(); 2].map(|()| heard(&notes)), ["a", "b"]);
    assert_eq!(STARTS.load(Ordering::SeqCst), 3, "events that come meanwhile try nothing");
    starved.stop();
    other.stop();
    assert_eq!(heard(&notes), "dropped");
}

#[tokio::test(start_paused = true)]
async fn g24_a_handler_that_never_got_a_thread_is_dropped_when_its_informer_stops() {
    let scene = Scene::new();
    let (sender, notes) = channel();
    scene.drive(Notes(sender), refuse);
    scene.push(added("a", good()));
    scene.stop();
    scene.registration.inner().returned(false).await;
    assert_eq!(heard(&notes), "dropped");
}
