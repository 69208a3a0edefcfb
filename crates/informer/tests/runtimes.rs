//! A runtime that ends before those who use its informers do, and calls where there is none (G31).

#[macro_use]
mod common;

use std::cell::Cell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{
    Script, many_threads, nobody, note, object, one_thread, scripted, scripted_informer, soon,
};
use futures_util::StreamExt;
use informer::source::{Failure, ListRequest, ListStream, ListWatch, WatchRequest, WatchStream};
use informer::{
    Error, InformerOptions, InformerState, Removal, Representation, Resource, SharedInformer,
    SharedInformerFactory, StopCause,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

run_tests! {
    on_both_runtimes: g31_a_task_that_panicked_is_told_to_all_who_ask;
}

/// What a static holds that two tests use, each on a runtime of its own.
fn informer_of(factory: &SharedInformerFactory) -> (SharedInformer<ConfigMap>, Script) {
    let (source, script) = scripted();
    let options = InformerOptions::new().streaming_lists(false);
    let informer =
        factory.informer_for(Resource::of::<ConfigMap>(), options, move |_, _, _| source).unwrap();
    (informer, script)
}

fn is_runtime_ended(error: &Error) -> bool {
    let text = error.to_string();
    let says =
        text.contains("because its tokio runtime has ended; build client, factory and informers");
    assert!(says, "{text}");
    matches!(error, Error::Stopped { cause: StopCause::RuntimeEnded, .. })
}

const ENDED: InformerState = InformerState::Stopped { cause: StopCause::RuntimeEnded };

#[test]
fn g31_an_informer_whose_runtime_has_ended_is_stopped_and_says_why() {
    for mut builder in [one_thread(), many_threads()] {
        let first = builder.enable_all().build().unwrap();
        let (factory, informer, script) = first.block_on(async {
            let factory = nobody();
            let (informer, mut script) = informer_of(&factory);
            factory.start();
            script.list(9, &[object("a", 1, "1")]).await;
            soon(factory.wait_for_sync()).await.unwrap();
            (factory, informer, script)
        });
        let lister = informer.unsynced_store();
        let registration = informer.add_handler(|h| h).unwrap();
        let mut stream = informer.events().unwrap();
        drop(first);

        one_thread().enable_all().build().unwrap().block_on(async {
            assert_eq!((lister.state(), lister.len()), (ENDED, 1));
            let status = informer.status();
            assert_eq!(status.state, ENDED);
            assert!(
                status.to_string().contains("stopped, because its tokio runtime has ended"),
                "{status}"
            );
            assert_eq!(
                status.recent_errors.last().unwrap().phase,
                informer::reflector::Phase::Runtime
            );
            let last = soon(informer.status_changes().collect::<Vec<_>>()).await.pop();
            assert_eq!(last.unwrap().state, ENDED);
            // Although it was synced, when it ran.
            assert!(is_runtime_ended(&soon(informer.synced()).await.unwrap_err()));
            assert!(is_runtime_ended(&soon(informer.wait_for(10)).await.unwrap_err()));
            assert!(is_runtime_ended(&informer.add_handler(|h| h).unwrap_err()));
            assert!(is_runtime_ended(&soon(factory.wait_for_sync()).await.unwrap_err()));
            assert!(is_runtime_ended(&soon(factory.wait_for_handlers()).await.unwrap_err()));
            assert_eq!(note(&soon(stream.next()).await.unwrap()), "add a=1 initial");
            assert!(soon(stream.next()).await.is_none());
            soon(registration.remove()).await;
            // Nor is there another in its place.
            assert!(is_runtime_ended(&factory.informer::<Pod>().unwrap_err()));
            assert!(is_runtime_ended(&soon(factory.wait_for_sync()).await.unwrap_err()));
            assert!(is_runtime_ended(&factory.informer::<ConfigMap>().unwrap_err()));
            soon(factory.shutdown()).await;
        });
        drop(script);
    }
}

#[test]
fn g31_who_waits_when_the_runtime_ends_is_told() {
    let later = one_thread().enable_all().build().unwrap();
    for mut builder in [one_thread(), many_threads()] {
        let first = builder.enable_all().build().unwrap();
        let (informer, script) = first.block_on(async {
            let (informer, mut script) = scripted_informer();
            informer.start();
            // It is asked, and gets no answer.
            script.call().await;
            (informer, script)
        });
        let registration = informer.add_handler(|h| h).unwrap();
        later.block_on(async {
            let waiting = tokio::spawn(async move {
                tokio::join!(informer.synced(), informer.wait_for(7), registration.synced())
            });
            tokio::task::yield_now().await;
            // Where nobody may block.
            first.shutdown_background();
            let (synced, reached, handled) = soon(waiting).await.unwrap();
            assert!(is_runtime_ended(&synced.unwrap_err()));
            assert!(is_runtime_ended(&reached.unwrap_err()));
            assert!(is_runtime_ended(&handled.unwrap_err()));
        });
        drop(script);
    }
}

/// A source that never answers, and whose drop waits.
struct SlowToDrop(Mutex<Receiver<()>>);

impl ListWatch for SlowToDrop {
    async fn list(&self, _: &ListRequest) -> Result<ListStream, Failure> {
        pending().await
    }

    async fn watch(&self, _: &WatchRequest) -> Result<WatchStream, Failure> {
        pending().await
    }
}

impl Drop for SlowToDrop {
    fn drop(&mut self) {
        _ = self.0.lock().unwrap().recv_timeout(Duration::from_secs(60));
    }
}

#[test]
fn g31_a_source_whose_drop_blocks_keeps_the_end_from_nobody() {
    let first = many_threads().enable_all().build().unwrap();
    let (dropped, waits) = channel::<()>();
    let entered = first.enter();
    let source = SlowToDrop(Mutex::new(waits));
    let options = InformerOptions::<ConfigMap>::new().streaming_lists(false);
    let informer = SharedInformer::new(source, Resource::of::<ConfigMap>(), options);
    let registration = informer.add_handler(|h| h).unwrap();
    informer.start();
    first.block_on(common::status_where(&informer, |status| status.counters.lists == 1));
    drop(entered);
    // While one of its threads is kept by the drop of the source.
    first.shutdown_background();
    one_thread().enable_all().build().unwrap().block_on(async {
        assert!(is_runtime_ended(&soon(registration.synced()).await.unwrap_err()));
        assert!(is_runtime_ended(&soon(informer.synced()).await.unwrap_err()));
        assert_eq!(soon(registration.remove()).await, Removal::Removed, "the handler is dropped");
        drop(dropped);
    });
}

#[test]
fn g31_what_starts_after_its_runtime_has_ended_says_so() {
    let first = one_thread().enable_all().build().unwrap();
    let (factory, informer, script) = first.block_on(async {
        let factory = nobody();
        let (informer, script) = informer_of(&factory);
        (factory, informer, script)
    });
    let registration = informer.add_handler(|h| h).unwrap();
    drop(first);
    one_thread().enable_all().build().unwrap().block_on(async {
        assert!(is_runtime_ended(&factory.informer::<Secret>().unwrap_err()));
        assert_eq!(informer.status().state, InformerState::NotStarted);
        factory.start();
        assert_eq!(informer.status().state, ENDED);
        assert!(is_runtime_ended(&soon(informer.synced()).await.unwrap_err()));
        assert!(is_runtime_ended(&soon(registration.synced()).await.unwrap_err()));
        soon(informer.stop()).await;
    });
    drop(script);
}

async fn g31_a_task_that_panicked_is_told_to_all_who_ask() {
    struct Panics;
    let factory = nobody();
    let (source, mut script) = scripted();
    let options = || {
        InformerOptions::of(Representation::custom("panics", |_| Ok(Panics))).streaming_lists(false)
    };
    let resource = Resource::of::<ConfigMap>;
    let informer = factory.informer_for(resource(), options(), move |_, _, _| source).unwrap();
    factory.start();
    script.list(9, &[object("a", 1, "1")]).await;
    let lister = soon(informer.synced()).await.unwrap();
    // What comes next is a bug of its source.
    let common::Call::Watch(_, reply) = soon(script.call()).await else {
        unreachable!("a watch comes next")
    };
    let broken = futures_util::stream::poll_fn(|_| panic!("a bug"));
    _ = reply.send(Ok(WatchStream(broken.boxed())));
    assert!(script.is_over().await);
    common::status_where(&informer, |status| matches!(status.state, InformerState::Stopped { .. }))
        .await;
    assert_eq!(lister.state(), InformerState::Stopped { cause: StopCause::Panicked });
    let text = soon(informer.synced()).await.unwrap_err().to_string();
    assert!(
        text.contains("has stopped, because its task panicked") && !text.contains("a bug"),
        "{text}"
    );
    assert_eq!(soon(factory.wait_for_sync()).await.unwrap_err().to_string(), text);
    // Asked for again, it is another.
    let (source, mut script) = scripted();
    let again = factory.informer_for(resource(), options(), move |_, _, _| source).unwrap();
    script.list(9, &[]).await;
    soon(again.synced()).await.unwrap();
    soon(factory.wait_for_sync()).await.unwrap();
    soon(factory.shutdown()).await;
}

thread_local! {
    /// The line of the last panic on this thread.
    static PANICKED_AT: Cell<Option<(&'static str, u32)>> = const { Cell::new(None) };
}

/// Where this panics.
fn panics_at(call: impl FnOnce()) -> (&'static str, u32) {
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    PANICKED_AT.take().expect("the hook was called")
}

#[test]
fn what_needs_a_runtime_panics_at_the_line_of_its_caller() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        let place = panic.location().expect("there is always one");
        PANICKED_AT.set(Some((file!(), place.line())).filter(|_| place.file() == file!()));
        before(panic);
    }));
    let runtime = one_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async { nobody().client().clone() });
    let built = panics_at(|| drop(SharedInformerFactory::builder(client.clone()).build()));
    assert_eq!(built, (file!(), line!() - 1));
    let made = panics_at(|| drop(scripted_informer_here()));
    assert_eq!(made, (file!(), NEW_AT.get().unwrap()));
    let _entered = runtime.enter();
    drop(SharedInformerFactory::builder(client).build());
    let informer = scripted_informer_here();
    // From any thread.
    std::thread::spawn(move || informer.start()).join().unwrap();
    runtime.block_on(async { tokio::time::sleep(Duration::ZERO).await });
}

thread_local! {
    static NEW_AT: Cell<Option<u32>> = const { Cell::new(None) };
}

fn scripted_informer_here() -> SharedInformer<ConfigMap> {
    let (source, _) = scripted();
    NEW_AT.set(Some(line!() + 1));
    SharedInformer::new(source, Resource::of::<ConfigMap>(), InformerOptions::new())
}
