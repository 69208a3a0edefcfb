//! Where callbacks run: on threads that belong neither to the runtime nor to anybody else (G15,
//! G18, G24).

#[macro_use]
mod common;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use common::{
    gate, many_threads, note, notes, noting, object, one_thread, scripted_informer, soon, value_of,
};
use informer::{Event, EventHandler};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

run_tests! {
    on_both_runtimes:
        g15_a_handler_that_was_quick_so_far_and_then_blocks_delays_no_other,
        g15_a_callback_may_use_the_runtime,
        g15_the_drop_of_a_handler_may_block,
        g18_a_handler_is_dropped_before_its_removal_is_over;
}

/// Longer than ending a runtime takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn g24_a_runtime_ends_although_a_callback_blocks_for_ever() {
    for mut builder in [one_thread(), many_threads()] {
        let runtime = builder.enable_all().build().unwrap();
        let (mut blocked, mut wait) = gate();
        let (informer, script) = runtime.block_on(async {
            let (informer, mut script) = scripted_informer();
            informer.add_handler(|h| h.on_event(move |_| wait())).unwrap();
            informer.start();
            script.list(9, &[object("a", 1, "1")]).await;
            soon(blocked.arrived.recv()).await.unwrap();
            (informer, script)
        });
        let (ending, ended) = channel::<()>();
        thread::spawn(move || {
            drop(runtime);
            drop(ending);
        });
        assert_eq!(
            ended.recv_timeout(PATIENCE),
            Err(RecvTimeoutError::Disconnected),
            "the runtime waits for a callback"
        );
        drop((informer, script, blocked));
    }
}

/// Says on which thread it is dropped.
struct TellsItsEnd(Sender<String>);

impl EventHandler<ConfigMap> for TellsItsEnd {}

impl Drop for TellsItsEnd {
    fn drop(&mut self) {
        _ = self.0.send(thread::current().name().unwrap_or_default().to_owned());
    }
}

#[test]
fn g24_a_handler_ends_with_its_runtime() {
    for (mut builder, is_called) in
        [(one_thread(), true), (many_threads(), true), (one_thread(), false)]
    {
        let runtime = builder.enable_all().build().unwrap();
        let (told, heard) = channel();
        let (informer, script) = runtime.block_on(async {
            let (informer, mut script) = scripted_informer();
            let registration = informer.add_event_handler(TellsItsEnd(told)).unwrap();
            informer.start();
            if is_called {
                script.list(9, &[object("a", 1, "1")]).await;
                soon(registration.synced()).await.unwrap();
            }
            (informer, script)
        });
        drop(runtime);
        // Although handles are left; and not where the runtime ends, for its drop may block.
        let on = heard.recv_timeout(PATIENCE).expect("it still rests");
        assert!(on.starts_with("informer-callback-"), "{on}");
        drop((informer, script));
    }
}

#[test]
fn g15_handlers_that_block_for_ever_take_no_thread_from_others() {
    let mut builder = one_thread();
    builder.max_blocking_threads(1);
    common::run(builder, async {
        let (informer, mut script) = scripted_informer();
        let mut gates = Vec::new();
        for _ in 0..3 {
            let (gate, mut wait) = gate();
            informer.add_handler(|h| h.on_event(move |_| wait())).unwrap();
            gates.push(gate);
        }
        informer.start();
        script.list(9, &[object("a", 1, "1")]).await;
        for gate in &mut gates {
            soon(gate.arrived.recv()).await.unwrap();
        }
        let (sender, mut heard) = mpsc::unbounded_channel();
        informer.add_handler(|h| noting(h, sender)).unwrap();
        assert_eq!(notes(&mut heard, 1).await, ["add a=1 initial"]);
        assert_eq!(soon(tokio::task::spawn_blocking(|| 7)).await.unwrap(), 7);
        informer.stop_within(Duration::ZERO).await;
    });
}

async fn g15_a_handler_that_was_quick_so_far_and_then_blocks_delays_no_other() {
    let (informer, mut script) = scripted_informer();
    let mut others = Vec::new();
    let (mut blocked, mut wait) = gate();
    let (quick, mut told) = mpsc::unbounded_channel();
    let blocking = move |event: &Event<ConfigMap>| match value_of(event.object()) {
        "block" => wait(),
        _ => _ = quick.send(note(event)),
    };
    informer.add_handler(|h| h.on_event(blocking)).unwrap();
    for _ in 0..5 {
        let (sender, heard) = mpsc::unbounded_channel();
        informer.add_handler(|h| noting(h, sender)).unwrap();
        others.push(heard);
    }
    informer.start();
    script.list(9, &[object("a", 10, "0")]).await;
    let (_, feed) = script.watch().await;
    // Often enough that all are known to be quick.
    for step in 0..=40 {
        if step > 0 {
            feed.send("MODIFIED", &object("a", 10 + step, &step.to_string()));
        }
        for heard in others.iter_mut().chain([&mut told]) {
            notes(heard, 1).await;
        }
    }
    feed.send("MODIFIED", &object("a", 60, "block"));
    soon(blocked.arrived.recv()).await.unwrap();
    for step in 61..=80 {
        feed.send("MODIFIED", &object("a", step, &step.to_string()));
    }
    for heard in &mut others {
        assert_eq!(notes(heard, 21).await.last().unwrap(), "update a=79>80");
    }
    blocked.open_once();
    assert_eq!(notes(&mut told, 20).await.last().unwrap(), "update a=79>80");
    informer.stop().await;
}

async fn g15_a_callback_may_use_the_runtime() {
    let (informer, mut script) = scripted_informer();
    let (sender, mut heard) = mpsc::unbounded_channel();
    informer
        .add_handler(|h| {
            h.on_event(move |event| {
                let (sender, text) = (sender.clone(), note(event));
                let name = thread::current().name().unwrap_or_default().to_owned();
                let spawned = tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    _ = sender.send((name, text));
                });
                Handle::current().block_on(spawned).unwrap();
            })
        })
        .unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    let (name, text) = soon(heard.recv()).await.unwrap();
    assert!(name.starts_with("informer-callback-"), "{name}");
    assert_eq!(text, "add a=1 initial");
    informer.stop().await;
}

/// As a handler that owns a runtime, or a file to flush: its drop waits for something, and says
/// whether that came.
struct SlowDrop {
    arrived: mpsc::UnboundedSender<()>,
    opened: Receiver<()>,
    waited: Sender<bool>,
}

impl EventHandler<ConfigMap> for SlowDrop {}

impl Drop for SlowDrop {
    fn drop(&mut self) {
        _ = self.arrived.send(());
        _ = self.waited.send(self.opened.recv_timeout(PATIENCE).is_ok());
    }
}

async fn g15_the_drop_of_a_handler_may_block() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    for removed in [true, false] {
        let ((arrived, mut arrives), (open, opened), (waited, waits)) =
            (mpsc::unbounded_channel(), channel(), channel());
        let registration =
            informer.add_event_handler(SlowDrop { arrived, opened, waited }).unwrap();
        soon(registration.synced()).await.unwrap();
        let informer = informer.clone();
        let ending = tokio::spawn(async move {
            match removed {
                true => _ = registration.remove().await,
                false => informer.stop().await,
            }
        });
        soon(arrives.recv()).await.unwrap();
        // The runtime goes on meanwhile.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!ending.is_finished(), "whoever ends it waits for the drop too");
        open.send(()).unwrap();
        soon(ending).await.unwrap();
        assert!(waits.recv().unwrap(), "the drop held up the runtime");
    }
}

async fn g18_a_handler_is_dropped_before_its_removal_is_over() {
    struct Dropped(mpsc::UnboundedSender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            _ = self.0.send("dropped");
        }
    }
    let (informer, mut script) = scripted_informer();
    let (mut running, mut wait) = gate();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let dropped = Dropped(sender);
    let registration = informer
        .add_handler(|h| {
            h.on_event(move |_| {
                wait();
                _ = dropped.0.send("called");
            })
        })
        .unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    soon(running.arrived.recv()).await.unwrap();
    // Nobody waits for the callback any more, so it ends alone.
    informer.stop_within(Duration::ZERO).await;
    running.open_once();
    soon(registration.remove()).await;
    assert_eq!((heard.try_recv(), heard.try_recv()), (Ok("called"), Ok("dropped")));
}
