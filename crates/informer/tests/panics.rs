//! What is told of a panic in the user's code: by whom it was, never its text, which may quote an
//! object (G34).

#[macro_use]
mod common;

use std::fmt::Write as _;
use std::sync::{LazyLock, Mutex};

use common::{config_map, object, scripted, scripted_informer, soon, status_where, value_of};
use futures_util::StreamExt;
use informer::reflector::Phase;
use informer::source::{Failure, ListRequest, ListStream, ListWatch, WatchRequest, WatchStream};
use informer::workqueue::WorkQueue;
use informer::{Event, EventHandler, Filtered, HandlerOptions, Index, InformerOptions, Resource};
use informer::{SharedInformer, SharedInformerFactory, StopCause};
use informer_testkit::TestServer;
use k8s_openapi::api::core::v1::ConfigMap;
use tracing::field::{Field, Visit};
use tracing::{Metadata, Subscriber, span};

run_tests! {
    on_both_runtimes:
        g34_a_panic_of_a_handler_is_told_by_its_name_place_and_key,
        g34_a_panic_of_an_index_is_told_by_its_name_place_and_key,
        g34_a_panic_of_an_observer_is_told_by_its_place,
        g34_a_panic_of_a_transform_is_told_by_its_name_place_and_key,
        g34_a_panic_of_a_source_is_told_without_its_text,
        g34_a_panic_of_a_worker_is_told_by_its_queue_place_and_key;
}

/// What the objects hold, and every panic quotes.
const SECRET: &str = "hunter2";

/// All that is logged in this process, by any thread, at any level.
static LOG: LazyLock<&Mutex<String>> = LazyLock::new(|| {
    static TEXT: Mutex<String> = Mutex::new(String::new());
    tracing::subscriber::set_global_default(Everything(&TEXT)).unwrap();
    &TEXT
});

struct Everything(&'static Mutex<String>);

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                _ = write!(self.0, "{field}={value:?} ");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push_str(&text.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn logged(text: &str) -> bool {
    LOG.lock().unwrap().contains(text)
}

/// The place that a report names, for a call in `line` of this file.
fn at(line: u32) -> String {
    format!("{}:{line}:", file!())
}

/// Nothing that anybody can read of it quotes an object.
async fn tells_no_secret<T: Send + Sync + 'static>(informer: &SharedInformer<T>) {
    let status = informer.status();
    let mut told =
        format!("{status:?} {status:#?} {status} {informer:?} {:?}", informer.unsynced_store());
    for error in &status.recent_errors {
        told.push_str(&error.message);
    }
    if let Some(Err(error)) = futures_util::FutureExt::now_or_never(informer.synced()) {
        _ = write!(told, "{error} {error:?}");
    }
    assert!(!told.contains(SECRET), "{told}");
    assert!(!logged(SECRET), "{}", LOG.lock().unwrap());
}

/// The messages of a phase.
async fn messages<T: Send + Sync + 'static>(
    informer: &SharedInformer<T>,
    phase: Phase,
    count: usize,
) -> Vec<String> {
    let enough = |status: &informer::Status| {
        status.recent_errors.iter().filter(|error| error.phase == phase).count() >= count
    };
    let status = match enough(&informer.status()) {
        true => informer.status(),
        false => status_where(informer, enough).await,
    };
    let mut messages: Vec<_> =
        status.recent_errors.into_iter().map(|error| error.message).collect();
    messages.sort();
    messages
}

struct QuotesWhatItGets;

impl EventHandler<ConfigMap> for QuotesWhatItGets {
    fn on_event(&mut self, event: &Event<ConfigMap>) {
        panic!("cannot stand {}", value_of(event.object()));
    }
}

impl Drop for QuotesWhatItGets {
    fn drop(&mut self) {
        panic!("{}", SECRET);
    }
}

async fn g34_a_panic_of_a_handler_is_told_by_its_name_place_and_key() {
    LazyLock::force(&LOG);
    let (informer, mut script) = scripted_informer();
    let first = line!() + 1;
    let printer = informer.add_handler(|h| h.name("printer").on_add(|it, _| panic!("{it:?}")));
    let unnamed = informer.add_event_handler(QuotesWhatItGets);
    let options = HandlerOptions::new().name("filtered");
    let filtered = Filtered::new(QuotesWhatItGets, |it: &ConfigMap| panic!("{it:?}"));
    let filtered = informer.add_event_handler_with(filtered, &options);
    let stream = informer.events().unwrap();
    informer.start();
    script.list(9, &[object("bad", 1, SECRET)]).await;
    let registrations = [printer, unnamed, filtered].map(Result::unwrap);
    for registration in &registrations {
        soon(registration.synced()).await.unwrap();
    }
    let told = messages(&informer, Phase::Handler, 3).await;
    let expected = [("filtered", first + 4), ("handler 2", first + 1), ("printer", first)];
    for (message, (name, line)) in told.iter().zip(expected) {
        let begin = format!("{name} panicked on default/bad (added at {}", at(line));
        assert!(message.starts_with(&begin), "{message} is not {begin}");
    }
    // The status has the places too, also of what has not panicked.
    let status = informer.status();
    let lines: Vec<u32> = status.registrations.iter().map(|it| it.added_at.line()).collect();
    assert_eq!(lines, [0, 1, 4, 5].map(|offset| first + offset));
    assert_eq!(status.registrations[3].added_at.file(), file!());
    drop(stream);
    // Those that panic when they are dropped do so once more.
    for registration in &registrations {
        soon(registration.remove()).await;
    }
    let told = messages(&informer, Phase::Handler, 5).await;
    let begin = format!("handler 2 panicked when it was dropped (added at {}", at(first + 1));
    assert!(told.iter().any(|message| message.starts_with(&begin)), "{told:?}");
    assert!(!format!("{registrations:?}").contains(SECRET));
    tells_no_secret(&informer).await;
    soon(informer.stop()).await;
}

async fn g34_a_panic_of_an_index_is_told_by_its_name_place_and_key() {
    LazyLock::force(&LOG);
    let (informer, mut script) = scripted_informer();
    let first = line!() + 1;
    let adding = informer.add_index("added", |it, _| panic!("cannot stand {}", value_of(it)));
    soon(adding).await.unwrap();
    let ready = Index::new("ready", |it: &ConfigMap, _| panic!("{it:?}"));
    soon(informer.add_ready_index(&ready)).await.unwrap();
    informer.start();
    script.list(9, &[object("bad", 1, SECRET)]).await;
    soon(informer.synced()).await.unwrap();
    let late = informer.add_index("late", |it, _| panic!("{it:?}"));
    let late = soon(late).await.unwrap();
    assert_eq!(informer.unsynced_store().by_index(&late, SECRET).unwrap().len(), 0);
    let expected = [("added", first), ("late", first + 7), ("ready", first + 2)];
    for (message, (name, line)) in messages(&informer, Phase::Index, 3).await.iter().zip(expected) {
        let begin = format!(
            "index {name} panicked on default/bad, which it leaves out (made at {}",
            at(line)
        );
        assert!(message.starts_with(&begin), "{message} is not {begin}");
    }
    tells_no_secret(&informer).await;
    soon(informer.stop()).await;
}

async fn g34_a_panic_of_an_observer_is_told_by_its_place() {
    LazyLock::force(&LOG);
    let (informer, mut script) = scripted_informer();
    let line = line!() + 1;
    let observation = informer.observe_publications(|publication| {
        let first = publication.snapshot().iter().next();
        panic!("cannot stand {:?}", first.map(|entry| value_of(entry.object())));
    });
    informer.start();
    script.list(9, &[object("bad", 1, SECRET)]).await;
    soon(informer.synced()).await.unwrap();
    let told = messages(&informer, Phase::Observer, 1).await;
    let begin =
        format!("an observer of publications panicked and was removed (added at {}", at(line));
    assert!(told[0].starts_with(&begin), "{told:?}");
    tells_no_secret(&informer).await;
    drop(observation);
    soon(informer.stop()).await;
}

async fn g34_a_panic_of_a_transform_is_told_by_its_name_place_and_key() {
    LazyLock::force(&LOG);
    let server = TestServer::start().await.unwrap();
    let mut bad = config_map("bad", SECRET);
    bad["metadata"]["annotations"] = serde_json::json!({ "value": SECRET });
    server.cluster().create(&bad).unwrap();
    server.cluster().create(&config_map("good", "1")).unwrap();
    let builder = SharedInformerFactory::builder(server.client().unwrap()).namespace("default");
    let of_metadata = line!() + 1;
    let builder = builder.transform_metadata("metadata", |it| {
        assert!(it.annotations.as_ref().is_none_or(|all| !all.contains_key("value")), "{it:?}");
        Ok(())
    });
    let factory = builder.build();
    let options = InformerOptions::<ConfigMap>::new();
    let in_options = line!() + 1;
    let options = options.transform("slim", |it| {
        assert!(value_of(it) != SECRET, "{it:?}");
        Ok(())
    });
    let typed = factory.informer_with(options).unwrap();
    let metadata = factory.metadata::<ConfigMap>(InformerOptions::new()).unwrap();
    factory.start();
    assert_eq!(soon(typed.synced()).await.unwrap().len(), 1);
    assert_eq!(soon(metadata.synced()).await.unwrap().len(), 1);
    for (status, name, line) in
        [(typed.status(), "slim", in_options), (metadata.status(), "metadata", of_metadata)]
    {
        let begin = format!("transform {name} panicked (added at {}", at(line));
        assert!(status.stale[0].cause.starts_with(&begin), "{status:?}");
        let last = status.recent_errors.last().unwrap();
        assert!(last.message.starts_with(&format!("default/bad: {begin}")), "{last:?}");
    }
    tells_no_secret(&typed).await;
    tells_no_secret(&metadata).await;
    soon(factory.shutdown()).await;
}

/// Quotes what came.
struct Quoting;

impl ListWatch for Quoting {
    async fn list(&self, _: &ListRequest) -> Result<ListStream, Failure> {
        let broken = futures_util::stream::poll_fn(|_| panic!("cannot stand {SECRET}"));
        Ok(ListStream(broken.boxed()))
    }

    async fn watch(&self, _: &WatchRequest) -> Result<WatchStream, Failure> {
        panic!("{SECRET}")
    }
}

async fn g34_a_panic_of_a_source_is_told_without_its_text() {
    LazyLock::force(&LOG);
    let informer = SharedInformer::<ConfigMap>::new(
        Quoting,
        Resource::of::<ConfigMap>(),
        InformerOptions::new(),
    );
    informer.start();
    let error = soon(informer.synced()).await.unwrap_err();
    assert!(
        matches!(error, informer::Error::Stopped { cause: StopCause::Panicked, .. }),
        "{error}"
    );
    assert!(!error.to_string().contains(SECRET));
    tells_no_secret(&informer).await;
    drop(scripted());
}

async fn g34_a_panic_of_a_worker_is_told_by_its_queue_place_and_key() {
    LazyLock::force(&LOG);
    let queue = WorkQueue::<String>::new("quoting");
    queue.add("default/bad".to_owned());
    let calls = std::sync::atomic::AtomicU32::new(0);
    let there = queue.clone();
    let work = move |_key: String| {
        let is_first = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        let queue = there.clone();
        async move {
            assert!(!is_first, "cannot stand {SECRET}");
            queue.shutdown();
            Ok::<(), String>(())
        }
    };
    let line = line!() + 1;
    soon(queue.run_workers(1, work)).await;
    assert!(logged(&format!("panicked (workers run at {}", at(line))), "{}", LOG.lock().unwrap());
    assert!(logged("default/bad") && !logged(SECRET), "{}", LOG.lock().unwrap());
}
