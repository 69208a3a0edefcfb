//! What is logged: only what nobody would hear of otherwise (G22, G31).

#[macro_use]
mod common;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{nobody, scripted, scripted_informer, soon, status_where};
use informer::source::FailureKind;
use informer::{Controller, Delta, InformerOptions, InformerState, Resource};
use k8s_openapi::api::core::v1::ConfigMap;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber, span};

run_tests! {
    on_a_paused_clock:
        g22_a_wait_for_what_nobody_started_is_warned_of_after_5_s,
        g22_every_wait_for_what_nobody_started_is_warned_of,
        g31_failing_lists_are_warned_of_unless_somebody_follows_the_status,
        g31_a_controller_which_has_no_status_warns_of_failing_lists;
}

/// Keeps the warnings of this thread.
#[derive(Clone, Default)]
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
    assert!(text.contains("handler printer") && text.contains("not started: call `start()`"), "{text}");
    warned(1, "a registration");
    tokio::time::timeout(six, stream.synced()).await.unwrap_err();
    warned(1, "a stream");
    tokio::time::timeout(six, informer.wait_for(7)).await.unwrap_err();
    warned(1, "a version");
    let text = factory.wait_for_sync_within(six).await.unwrap_err().to_string();
    assert!(text.contains("configmaps.v1 in the whole cluster (not started: call `start()`)"), "{text}");
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
    assert_eq!(phases, ["watch", "watch"]);
    assert_eq!(warnings.count("watch"), 0);
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
