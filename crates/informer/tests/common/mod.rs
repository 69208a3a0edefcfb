//! What the tests of the shell share: a source that a test answers by hand, and handlers that take
//! notes.
#![expect(dead_code, reason = "each test file uses a part of it")]

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use informer::source::{
    Failure, FailureKind, ListChunk, ListHead, ListPart, ListRequest, ListStream, ListWatch,
    MediaType, WatchChunk, WatchRequest, WatchStream,
};
use informer::{
    Event, Handlers, InformerOptions, Resource, SharedInformer, SharedInformerFactory, Status,
};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc as channel, oneshot};

/// Makes tests of async functions: each on the runtimes that it is listed for, and each expects
/// that nothing runs any more when it is over ([`run`]).
macro_rules! run_tests {
    (@on_both_runtimes $name:ident) => {
        mod $name {
            #[test]
            fn on_one_thread() {
                crate::common::run(crate::common::one_thread(), super::$name());
            }

            #[test]
            fn on_many_threads() {
                crate::common::run(crate::common::many_threads(), super::$name());
            }
        }
    };
    (@on_one_thread $name:ident) => {
        mod $name {
            #[test]
            fn on_one_thread() {
                crate::common::run(crate::common::one_thread(), super::$name());
            }
        }
    };
    (@on_many_threads $name:ident) => {
        mod $name {
            #[test]
            fn on_many_threads() {
                crate::common::run(crate::common::many_threads(), super::$name());
            }
        }
    };
    (@on_a_paused_clock $name:ident) => {
        mod $name {
            #[test]
            fn on_a_paused_clock() {
                let mut runtime = crate::common::one_thread();
                runtime.start_paused(true);
                crate::common::run(runtime, super::$name());
            }
        }
    };
    ($($on:ident: $($name:ident),+;)+) => { $($( run_tests!(@$on $name); )+)+ };
}

pub(crate) fn one_thread() -> Builder {
    Builder::new_current_thread()
}

pub(crate) fn many_threads() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(4);
    builder
}

/// Runs a test, and then expects that no task of it is left: whoever owned something is gone (G24).
pub(crate) fn run(mut runtime: Builder, test: impl Future<Output = ()>) {
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        test.await;
        nothing_runs().await;
    });
}

/// Waits until no task of the runtime lives.
pub(crate) async fn nothing_runs() {
    // On the system's clock, for on a paused one time is cheap.
    let begun = std::time::Instant::now();
    loop {
        let alive = Handle::current().metrics().num_alive_tasks();
        if alive == 0 {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{alive} tasks still run, and nobody owns them"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How long anything may take that has to happen at all, on a paused clock too: longer than any
/// timeout.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// How long a paused clock stands still for what handlers' threads may have to do. They need less,
/// on a busy machine too; what only waits for the clock waits that much longer.
const THREADS: Duration = Duration::from_millis(250);

/// Fails instead of hanging.
pub(crate) async fn soon<O>(what: impl Future<Output = O>) -> O {
    let _held = hold_clock_for(THREADS);
    tokio::time::timeout(LONG, what).await.expect("it should have happened long ago")
}

/// [`soon`], for what a handler's thread does.
pub(crate) async fn really<O>(what: impl Future<Output = O>) -> O {
    let _held = hold_clock();
    soon(what).await
}

/// Keeps a paused clock from moving by itself while this lives. It would, as it does not wait for
/// handlers' threads, but for the runtime's blocking ones.
pub(crate) struct HeldClock(#[expect(dead_code, reason = "its drop tells")] mpsc::Sender<()>);

pub(crate) fn hold_clock() -> HeldClock {
    // Not for ever, so that a wait for what does not come times out.
    hold_clock_for(Duration::from_secs(60))
}

fn hold_clock_for(longest: Duration) -> HeldClock {
    let (held, is_held) = mpsc::channel();
    tokio::task::spawn_blocking(move || is_held.recv_timeout(longest));
    HeldClock(held)
}

/// The first status that fits.
pub(crate) async fn status_where<T: Send + Sync + 'static>(
    informer: &SharedInformer<T>,
    mut fits: impl FnMut(&Status) -> bool,
) -> Status {
    let mut changes = informer.status_changes();
    soon(async {
        loop {
            let status = changes.next().await.expect("the informer lives");
            if fits(&status) {
                return status;
            }
        }
    })
    .await
}

/// A small object: a ConfigMap with one datum.
pub(crate) fn object(name: &str, version: u64, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": version.to_string() },
        "data": { "value": value },
    })
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "value": value } })
}

pub(crate) fn widgets_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

pub(crate) fn widget(name: &str, size: u32) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name }, "spec": { "size": size } })
}

pub(crate) fn value_of(object: &ConfigMap) -> &str {
    object.data.as_ref().and_then(|data| data.get("value")).map_or("", String::as_str)
}

/// Notes every event as a short text: `add a=1 initial`, `update a=1>2`, `resync a=2`,
/// `delete a=2 Known`.
pub(crate) fn noting(
    handlers: Handlers<ConfigMap>,
    notes: channel::UnboundedSender<String>,
) -> Handlers<ConfigMap> {
    handlers.on_event(move |event| _ = notes.send(note(event)))
}

pub(crate) fn note(event: &Event<ConfigMap>) -> String {
    let name = event.key().name();
    match event {
        Event::Added { object, initial: true, .. } => {
            format!("add {name}={} initial", value_of(object))
        }
        Event::Added { object, .. } => format!("add {name}={}", value_of(object)),
        Event::Updated { old, new, reason: informer::UpdateReason::Change, .. } => {
            format!("update {name}={}>{}", value_of(old), value_of(new))
        }
        Event::Updated { new, .. } => format!("resync {name}={}", value_of(new)),
        Event::Deleted(gone) => {
            format!("delete {name}={} {:?}", value_of(&gone.last), gone.final_state)
        }
    }
}

/// The next notes, sorted within themselves if the order across keys does not matter.
pub(crate) async fn notes(
    from: &mut channel::UnboundedReceiver<String>,
    count: usize,
) -> Vec<String> {
    let mut notes = Vec::new();
    while notes.len() < count {
        notes.push(really(from.recv()).await.expect("the handler lives"));
    }
    notes
}

/// A callback that blocks until the gate is opened, and says when it is there.
pub(crate) struct Gate {
    pub(crate) arrived: channel::UnboundedReceiver<()>,
    open: mpsc::Sender<()>,
}

pub(crate) fn gate() -> (Gate, impl FnMut() + Send + 'static) {
    let (tell, arrived) = channel::unbounded_channel();
    let (open, opened) = mpsc::channel();
    let wait = move || {
        _ = tell.send(());
        _ = opened.recv();
    };
    (Gate { arrived, open }, wait)
}

impl Gate {
    pub(crate) fn open_once(&self) {
        _ = self.open.send(());
    }
}

/// The end of a [`ScriptedSource`] that a test holds.
pub(crate) struct Script(channel::UnboundedReceiver<Call>);

pub(crate) struct ScriptedSource(channel::UnboundedSender<Call>);

pub(crate) enum Call {
    List(ListRequest, oneshot::Sender<Result<ListStream, Failure>>),
    Watch(WatchRequest, oneshot::Sender<Result<WatchStream, Failure>>),
    Exists(oneshot::Sender<Result<bool, Failure>>),
}

/// An open watch, ended by dropping it.
pub(crate) struct Feed(channel::UnboundedSender<Result<WatchChunk, Failure>>);

pub(crate) fn scripted() -> (ScriptedSource, Script) {
    let (calls, script) = channel::unbounded_channel();
    (ScriptedSource(calls), Script(script))
}

/// A factory whose client nobody answers, for informers over scripts.
pub(crate) fn nobody() -> SharedInformerFactory {
    let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>(
        )
    });
    SharedInformerFactory::builder(kube::Client::new(nobody, "default")).build()
}

/// A standalone informer of ConfigMaps over a script, with LIST and WATCH.
pub(crate) fn scripted_informer() -> (SharedInformer<ConfigMap>, Script) {
    let (source, script) = scripted();
    let options = InformerOptions::new().streaming_lists(false);
    (SharedInformer::new(source, Resource::of::<ConfigMap>(), options), script)
}

impl Script {
    pub(crate) async fn call(&mut self) -> Call {
        self.0.recv().await.expect("the informer lives")
    }

    /// Whether the source is dropped before it is asked for anything more.
    pub(crate) async fn is_over(&mut self) -> bool {
        soon(self.0.recv()).await.is_none()
    }

    /// The next call if there is one already.
    pub(crate) fn call_now(&mut self) -> Option<Call> {
        self.0.try_recv().ok()
    }

    pub(crate) async fn list(&mut self, version: u64, items: &[Value]) -> ListRequest {
        let Call::List(request, reply) = self.call().await else { panic!("a list was expected") };
        _ = reply.send(Ok(list_of(version, items)));
        request
    }

    pub(crate) async fn watch(&mut self) -> (WatchRequest, Feed) {
        let Call::Watch(request, reply) = self.call().await else { panic!("a watch was expected") };
        let (feed, frames) = channel::unbounded_channel();
        let frames =
            stream::unfold(frames, |mut frames| async { Some((frames.recv().await?, frames)) });
        _ = reply.send(Ok(WatchStream(frames.boxed())));
        (request, Feed(feed))
    }

    pub(crate) async fn fail(&mut self, kind: FailureKind, message: &str) {
        let failure = Failure::new(kind, message);
        match self.call().await {
            Call::List(_, reply) => _ = reply.send(Err(failure)),
            Call::Watch(_, reply) => _ = reply.send(Err(failure)),
            Call::Exists(reply) => _ = reply.send(Err(failure)),
        }
    }

    pub(crate) async fn exists(&mut self, answer: bool) {
        let Call::Exists(reply) = self.call().await else { panic!("a discovery was expected") };
        _ = reply.send(Ok(answer));
    }
}

pub(crate) fn list_of(version: u64, items: &[Value]) -> ListStream {
    let items =
        items.iter().map(|item| ListPart::Item(Bytes::from(item.to_string()).into())).collect();
    let head = ListHead {
        kind: "ConfigMapList".into(),
        resource_version: version.into(),
        ..ListHead::default()
    };
    ListStream(stream::iter([Ok(ListChunk::Parts(items)), Ok(ListChunk::End(head))]).boxed())
}

impl Feed {
    pub(crate) fn send(&self, kind: &str, object: &Value) {
        self.send_text(&json!({ "type": kind, "object": object }).to_string());
    }

    pub(crate) fn send_text(&self, text: &str) {
        let mut frames = Vec::new();
        let split =
            MediaType::Json.watch_splitter(1 << 20).push(Bytes::from(text.to_owned()), &mut frames);
        split.expect("a frame");
        _ = self.0.send(Ok(WatchChunk(frames)));
    }

    pub(crate) fn fail(&self, kind: FailureKind, message: &str) {
        _ = self.0.send(Err(Failure::new(kind, message)));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl ListWatch for ScriptedSource {
    async fn list(&self, request: &ListRequest) -> Result<ListStream, Failure> {
        let (reply, answer) = oneshot::channel();
        _ = self.0.send(Call::List(request.clone(), reply));
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream, Failure> {
        let (reply, answer) = oneshot::channel();
        _ = self.0.send(Call::Watch(request.clone(), reply));
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    async fn exists(&self) -> Result<bool, Failure> {
        let (reply, answer) = oneshot::channel();
        _ = self.0.send(Call::Exists(reply));
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }
}

fn unanswered() -> Failure {
    Failure::new(FailureKind::Transport, "the script is over")
}
