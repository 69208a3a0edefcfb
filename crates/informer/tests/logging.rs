//! What is logged: only what nobody would hear of otherwise (G22, G31).

#[macro_use]
mod common;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{gate, hold_clock, nobody, object, scripted, scripted_informer, soon, status_where};
use futures_util::{FutureExt, StreamExt};
use informer::reflector::Controller;
use informer::reflector::Phase;
use informer::source::FailureKind;
use informer::{Delta, InformerOptions, InformerState, Resource};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::runtime::Handle;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber, span};

run_tests! {
    on_a_paused_clock:
        g22_a_wait_for_what_nobody_started_is_warned_of_after_5_s,
        g22_every_wait_for_what_nobody_started_is_warned_of,
        g31_failing_lists_are_warned_of_unless_somebody_follows_the_status,
        g31_a_callback_that_runs_for_30_s_is_warned_of_once,
        g24_a_stop_names_the_callbacks_that_it_leaves_behind,
        g31_a_line_of_the_log_names_its_collection_once,
        g31_a_controller_which_has_no_status_warns_of_failing_lists;
}

/// Keeps the warnings of this thread.
#[derive(Clone, Debug, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn listen() -> (Self, DefaultGuard) {
        let warnings = Self::default();
        let guard = tracing::subscriber::set_default(warnings.clone());
        (warnings, guard)
    }

    fn count(&self, text: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|warning| warning.contains(text)).count()
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target().starts_with("informer")
    }

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                _ = write!(self.0, "{field}={value:?} ");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

async fn g22_a_wait_for_what_nobody_started_is_warned_of_after_5_s() {
    let (warnings, _guard) = Warnings::listen();
    let (informer, _script) = scripted_informer();
    let wait = informer.synced_within(Duration::from_millis(4900)).await;
    assert!(wait.is_err());
    assert_eq!(warnings.count("nobody has started"), 0);
    informer.synced_within(Duration::from_millis(5100)).await.unwrap_err();
    assert_eq!(warnings.count("nobody has started"), 1);
    informer.start();
    informer.synced_within(Duration::from_secs(6)).await.unwrap_err();
    assert_eq!(warnings.count("nobody has started"), 1);
}

async fn g22_every_wait_for_what_nobody_started_is_warned_of() {
    let (warnings, _guard) = Warnings::listen();
    let factory = nobody();
    let informer = factory.informer::<ConfigMap>().unwrap();
    let registration = informer.add_handler(|h| h.name("printer")).unwrap();
    let stream = informer.events().unwrap();
    let six = Duration::from_secs(6);
    let mut expected = 0;
    let mut warned = |new: usize, who: &str| {
        expected += new;
        assert_eq!(warnings.count("nobody has started"), expected, "{who}");
    };
    let text = registration.synced_within(six).await.unwrap_err().to_string();
    assert!(
        text.contains("handler printer") && text.contains("not started: call `start()`"),
        "{text}"
    );
    warned(1, "a registration");
    tokio::time::timeout(six, stream.synced()).await.unwrap_err();
    warned(1, "a stream");
    tokio::time::timeout(six, informer.wait_for(7)).await.unwrap_err();
    warned(1, "a version");
    let text = factory.wait_for_sync_within(six).await.unwrap_err().to_string();
    assert!(
        text.contains("configmaps.v1 in the whole cluster (not started: call `start()`)"),
        "{text}"
    );
    warned(2, "a factory and its informer");
    let text = factory.wait_for_handlers_within(six).await.unwrap_err().to_string();
    assert!(text.contains("handler printer of configmaps.v1"), "{text}");
    warned(2, "a factory's handlers");
    let status = informer.status();
    assert_eq!(status.state, InformerState::NotStarted);
    assert!(status.to_string().contains("not started: call `start()`"), "{status}");

    // Started: whatever else is missing, it is not that.
    factory.start();
    informer.synced_within(six).await.unwrap_err();
    registration.synced_within(six).await.unwrap_err();
    tokio::time::timeout(six, informer.wait_for(7)).await.unwrap_err();
    factory.wait_for_handlers_within(six).await.unwrap_err();
    warned(0, "a started informer");
}

async fn g31_failing_lists_are_warned_of_unless_somebody_follows_the_status() {
    let (warnings, _guard) = Warnings::listen();
    let (informer, mut script) = scripted_informer();
    // Who waits for the list does not hear of failures by that.
    let waiting = tokio::spawn({
        let informer = informer.clone();
        async move { informer.synced().await.is_ok() }
    });
    informer.start();
    script.fail(FailureKind::Forbidden, "list: 403").await;
    script.fail(FailureKind::Forbidden, "list: 403").await;
    status_where(&informer, |status| status.counters.errors == 2).await;
    assert!(warnings.count("list: 403") >= 1);
    let before = warnings.count("list: 403");
    let follower = informer.status_changes();
    script.fail(FailureKind::Forbidden, "list: 403").await;
    script.list(9, &[]).await;
    assert!(soon(waiting).await.unwrap());
    assert_eq!(warnings.count("list: 403"), before);
    drop(follower);
    // Watches that break are everyday life.
    let (_, feed) = script.watch().await;
    feed.fail(FailureKind::Transport, "reset");
    let (_, feed) = script.watch().await;
    drop(feed);
    let (_, _feed) = script.watch().await;
    let status = informer.status();
    let phases: Vec<_> = status.recent_errors.iter().skip(3).map(|error| error.phase).collect();
    assert_eq!(phases, [Phase::Watch, Phase::Watch]);
    assert_eq!(warnings.count("watch"), 0);
}

/// Lets some time pass while the clock is held.
async fn pass(time: Duration) {
    tokio::time::advance(time).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn g31_a_callback_that_runs_for_30_s_is_warned_of_once() {
    let (warnings, _guard) = Warnings::listen();
    let _held = hold_clock();
    let (informer, mut script) = scripted_informer();
    let (mut stuck, mut wait) = gate();
    let line = line!() + 2;
    let registration =
        informer.add_handler(|h| h.name("printer").on_event(move |_| wait())).unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    let (_, feed) = script.watch().await;
    for (step, warned) in [(10, 1), (11, 2)] {
        soon(stuck.arrived.recv()).await.unwrap();
        let mut changes = informer.status_changes();
        assert!(informer.status().registrations[0].running_since.is_some());
        pass(Duration::from_secs(29)).await;
        assert_eq!(warnings.count("has been running"), warned - 1, "not so soon");
        while changes.next().now_or_never().is_some() {}
        pass(Duration::from_secs(1)).await;
        let place = format!("a call of printer (added at {}:{line}:", file!());
        assert_eq!(warnings.count(&place), warned, "{warnings:?}");
        let told = changes
            .next()
            .now_or_never()
            .flatten()
            .expect("those who follow the status hear of it");
        let running = told.registrations[0].running_since.expect("it runs").elapsed().unwrap();
        assert_eq!(running.as_secs(), 30);
        pass(Duration::from_secs(35)).await;
        assert_eq!(warnings.count("has been running"), warned, "once is enough");
        feed.send("MODIFIED", &object("a", step, "2"));
        soon(informer.wait_for(step)).await.unwrap();
        stuck.open_once();
    }
    // The one that runs now has only begun.
    soon(stuck.arrived.recv()).await.unwrap();
    stuck.open_once();
    soon(registration.synced()).await.unwrap();
    soon(informer.stop()).await;
    assert_eq!(registration.status().running_since, None);
    assert_eq!(warnings.count("has been running"), 2);
}

async fn g24_a_stop_names_the_callbacks_that_it_leaves_behind() {
    let (warnings, _guard) = Warnings::listen();
    let _held = hold_clock();
    let (informer, mut script) = scripted_informer();
    let [(mut stuck, mut wait), (mut removed, mut wait_too)] = [gate(), gate()];
    let line = line!() + 1;
    informer.add_handler(|h| h.name("stuck").on_event(move |_| wait())).unwrap();
    let gone = informer.add_handler(|h| h.name("removed").on_event(move |_| wait_too())).unwrap();
    let quick = informer.add_handler(|h| h.name("quick").on_event(|_| ())).unwrap();
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    soon(quick.synced()).await.unwrap();
    soon(stuck.arrived.recv()).await.unwrap();
    soon(removed.arrived.recv()).await.unwrap();
    assert!(gone.remove().now_or_never().is_none(), "its callback runs");
    let names: Vec<_> = informer.status().registrations.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["stuck", "quick"]);
    let stopping = tokio::spawn(async move { informer.stop_within(Duration::from_secs(1)).await });
    // The third returns in time, and nothing but the stop waits for the others.
    while Handle::current().metrics().num_alive_tasks() > 1 {
        tokio::task::yield_now().await;
    }
    soon(quick.remove()).await;
    pass(Duration::from_secs(1)).await;
    stopping.await.unwrap();
    assert_eq!(warnings.count("are left behind"), 1);
    assert_eq!(warnings.count(&format!("stuck (added at {}:{line}:", file!())), 1, "{warnings:?}");
    assert_eq!(
        (warnings.count("removed (added at"), warnings.count("quick")),
        (1, 0),
        "{warnings:?}"
    );
    stuck.open_once();
    removed.open_once();
}

async fn g31_a_line_of_the_log_names_its_collection_once() {
    let (warnings, _guard) = Warnings::listen();
    let server = informer_testkit::TestServer::start().await.unwrap();
    server.faults().inject(informer_testkit::Fault::unavailable());
    let client = kube::Client::new(server.service(), "default");
    let factory = informer::SharedInformerFactory::builder(client).namespace("shop").build();
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    informer.synced_within(Duration::from_millis(1)).await.unwrap_err();
    let warning = warnings.0.lock().unwrap()[0].clone();
    assert_eq!(warning.matches("configmaps.v1 in namespace shop").count(), 1, "{warning}");
    assert!(warning.contains("watch: 503"), "{warning}");
    let error = &informer.status().recent_errors[0].message;
    assert!(
        error.contains("watch configmaps.v1 in namespace shop: 503"),
        "alone it is whole: {error}"
    );
}

async fn g31_a_controller_which_has_no_status_warns_of_failing_lists() {
    let (warnings, _guard) = Warnings::listen();
    let (source, mut script) = scripted();
    let options = InformerOptions::<ConfigMap>::new().streaming_lists(false);
    let controller = Controller::new(source, Resource::of::<ConfigMap>(), options);
    let task = tokio::spawn(controller.run(|_: Delta<ConfigMap>| ()));
    script.fail(FailureKind::Forbidden, "list: 403").await;
    script.list(9, &[]).await;
    assert_eq!(warnings.count("list: 403"), 1);
    task.abort();
}
