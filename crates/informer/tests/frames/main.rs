//! Bodies that are not as they should be (G30), byte by byte through the real source, in JSON and
//! in protobuf.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
mod form;
mod items;
mod negotiation;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use common::{object, soon, status_where, value_of};
use form::{Form, bad};
use futures_util::stream::{self, BoxStream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use informer::source::KubeSource;
use informer::{Event, InformerOptions, InformerState, Resource, Scope, SharedInformer};
use items::*;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

run_tests! {
    on_a_paused_clock:
        g30_a_broken_frame_ends_the_connection_and_the_watch_goes_on_from_the_last_good_one,
        g30_an_undecodable_version_keeps_the_last_good_one_and_a_delete_is_a_delete,
        g30_an_undecodable_successor_ends_the_object_that_had_its_name,
        g09_what_comes_of_a_streaming_list_after_it_was_given_up_is_no_change,
        g30_strict_fails_loudly,
        g30_one_item_that_cannot_be_read_hides_no_collection,
        g30_a_list_of_which_nothing_can_be_read_is_none,
        g30_strict_leaves_nothing_out_of_a_list,
        g30_a_count_of_what_remains_never_makes_a_list_fail,
        g30_a_compressed_watch_is_refused_with_a_reason,
        g30_a_body_that_is_no_list_is_a_failure_and_never_an_empty_list,
        g29_a_silent_list_is_given_up_and_bytes_that_drip_are_a_sign_of_life,
        g29_a_watch_that_went_silent_is_dropped_and_resumed;
}

type Chunk = Result<Frame<Bytes>, Infallible>;
type Chunks = StreamBody<BoxStream<'static, Chunk>>;

/// A server whose answers the test writes.
struct Server {
    requests: mpsc::UnboundedReceiver<Asked>,
    form: Form,
}

/// A request as far as it matters, and where its answer goes.
struct Asked {
    uri: String,
    accept: String,
    reply: oneshot::Sender<Response<Chunks>>,
}

/// A body that is being written; it ends when dropped.
struct Answer {
    body: mpsc::UnboundedSender<Chunk>,
    form: Form,
}

impl Server {
    /// Begins to answer the next request; gives its path and query.
    async fn answer(&mut self, headers: &[(&str, &str)]) -> (String, Answer) {
        let Asked { uri, reply, .. } = self.asked().await;
        let (sender, chunks) = mpsc::unbounded_channel::<Chunk>();
        let chunks =
            stream::unfold(chunks, |mut chunks| async { Some((chunks.recv().await?, chunks)) });
        let mut response = Response::new(StreamBody::new(chunks.boxed()));
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().unwrap();
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
            .headers_mut()
            .entry("content-type")
            .or_insert(self.form.content_type().parse().unwrap());
        _ = reply.send(response);
        (uri, Answer { body: sender, form: self.form })
    }

    async fn asked(&mut self) -> Asked {
        soon(self.requests.recv()).await.expect("the informer lives")
    }

    async fn list(&mut self, version: u64, items: &[Value]) {
        let (asked, answer) = self.answer(&[]).await;
        assert!(!asked.contains("watch=true"), "a list was expected: {asked}");
        answer.bytes(self.form.list(version, items));
    }

    async fn watch(&mut self, version: u64) -> Answer {
        let (asked, answer) = self.answer(&[]).await;
        assert!(asked.contains("watch=true"), "a watch was expected: {asked}");
        assert!(asked.contains(&format!("resourceVersion={version}")), "{asked}");
        answer
    }
}

impl Asked {
    fn refuse(self, code: u16) {
        self.answer(code, Vec::new());
    }

    fn answer(self, code: u16, body: Vec<u8>) {
        let body = stream::iter([Ok(Frame::data(Bytes::from(body)))]).boxed();
        let mut response = Response::new(StreamBody::new(body));
        *response.status_mut() = code.try_into().unwrap();
        _ = self.reply.send(response);
    }
}

impl Answer {
    fn text(&self, text: &str) {
        self.bytes(text.to_owned());
    }

    fn bytes(&self, bytes: impl Into<Bytes>) {
        _ = self.body.send(Ok(Frame::data(bytes.into())));
    }

    fn frame(&self, kind: &str, object: &Value) {
        self.bytes(self.form.frame(kind, object));
    }
}

fn informer(
    form: Form,
    options: InformerOptions<ConfigMap>,
) -> (SharedInformer<ConfigMap>, Server) {
    started(form, options.streaming_lists(false))
}

fn started(form: Form, options: InformerOptions<ConfigMap>) -> (SharedInformer<ConfigMap>, Server) {
    let resource = Resource::of::<ConfigMap>();
    let (client, server) = server(form);
    let source = KubeSource::new(client, resource.clone(), Scope::all()).max_object_bytes(1000);
    let informer = SharedInformer::new(source, resource, options);
    informer.start();
    (informer, server)
}

fn server(form: Form) -> (kube::Client, Server) {
    let (asked, requests) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (reply, answer) = oneshot::channel();
        let accept =
            request.headers().get("accept").map(|accept| accept.to_str().unwrap().to_owned());
        let (uri, accept) = (request.uri().to_string(), accept.unwrap_or_default());
        _ = asked.send(Asked { uri, accept, reply });
        async move {
            match answer.await {
                Ok(response) => Ok::<_, Infallible>(response),
                Err(_) => std::future::pending().await,
            }
        }
    });
    (kube::Client::new(service, "default"), Server { requests, form })
}

fn options() -> InformerOptions<ConfigMap> {
    InformerOptions::new()
}

async fn g30_a_broken_frame_ends_the_connection_and_the_watch_goes_on_from_the_last_good_one() {
    for form in Form::BOTH {
        for (broken, words) in form.broken_frames() {
            let (informer, mut server) = informer(form, options());
            server.list(10, &[object("a", 1, "1")]).await;
            let watch = server.watch(10).await;
            // The good frame and the broken one arrive together.
            watch.bytes([form.frame("MODIFIED", &object("a", 12, "2")), broken.clone()].concat());
            drop(watch);
            let status = status_where(&informer, |status| status.counters.errors == 1).await;
            assert!(status.recent_errors[0].message.contains(words), "{broken:?}: {status:?}");
            assert_eq!(value_of(&informer.unsynced_store().list()[0]), "2", "the good one counts");
            let watch = server.watch(12).await;
            // The same again: a relist.
            watch.bytes(broken);
            drop(watch);
            server.list(20, &[object("a", 12, "2"), object("b", 13, "1")]).await;
            let _watch = server.watch(20).await;
            soon(informer.wait_for(20)).await.unwrap();
            assert_eq!(informer.unsynced_store().len(), 2);
        }
    }
}

async fn g30_an_undecodable_version_keeps_the_last_good_one_and_a_delete_is_a_delete() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options());
        let mut events = informer.events().unwrap();
        server.list(10, &[object("a", 1, "1"), bad("listed", 2)]).await;
        assert!(soon(events.next()).await.unwrap().is_initial());
        let watch = server.watch(10).await;
        watch.frame("MODIFIED", &bad("a", 11));
        watch.frame("ADDED", &bad("new", 12));
        soon(informer.wait_for(12)).await.unwrap();
        let lister = informer.unsynced_store();
        assert_eq!((lister.len(), value_of(&lister.list()[0])), (1, "1"));
        let stale: Vec<String> =
            informer.status().stale.iter().map(|stale| stale.key.name().to_owned()).collect();
        assert_eq!(stale, ["a", "listed", "new"]);
        assert!(informer.status().stale[0].cause.starts_with(form.cause_of_bad()));

        // In a relist it counts as present, as long as the server has it.
        let expired =
            json!({ "kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired" });
        watch.frame("ERROR", &expired);
        server.list(20, &[bad("a", 11)]).await;
        let watch = server.watch(20).await;
        soon(informer.wait_for(20)).await.unwrap();
        assert_eq!(lister.len(), 1);
        assert_eq!(informer.status().undecodable, 1);

        watch.frame("DELETED", &bad("a", 21));
        soon(informer.wait_for(21)).await.unwrap();
        assert!(lister.is_empty());
        assert_eq!(informer.status().undecodable, 0);
        let Some(Event::Deleted(gone)) = soon(events.next()).await else {
            panic!("it was deleted")
        };
        assert_eq!((value_of(&gone.last), gone.final_state), ("1", informer::FinalState::Unknown));
        assert!(!format!("{:?} {}", informer.status(), informer.status()).contains("hunter2"));
    }
}

async fn g30_an_undecodable_successor_ends_the_object_that_had_its_name() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options());
        server.list(10, &[object("a", 1, "1"), object("b", 2, "1")]).await;
        let watch = server.watch(10).await;
        let mut successor = bad("a", 11);
        successor["metadata"]["uid"] = "another".into();
        watch.frame("MODIFIED", &successor);
        soon(informer.wait_for(11)).await.unwrap();
        let lister = informer.unsynced_store();
        assert_eq!(lister.len(), 1);
        assert!(lister.find("default", "a").is_none());

        // Also if both arrive at once.
        let mut successor = bad("c", 13);
        successor["metadata"]["uid"] = "another".into();
        let two = [form.frame("ADDED", &object("c", 12, "1")), form.frame("MODIFIED", &successor)];
        watch.bytes(two.concat());
        soon(informer.wait_for(13)).await.unwrap();
        assert!(lister.find("default", "c").is_none());
    }
}

async fn g09_what_comes_of_a_streaming_list_after_it_was_given_up_is_no_change() {
    for form in Form::BOTH {
        // Whether the bytes or the deadline are seen first is chance.
        for _ in 0..16 {
            let (informer, mut server) = started(form, options());
            let (asked, answer) = server.answer(&[]).await;
            assert!(asked.contains("sendInitialEvents=true"), "{asked}");
            tokio::task::yield_now().await;
            answer.frame("ADDED", &object("a", 1, "1"));
            tokio::time::advance(Duration::from_secs(1000)).await;
            status_where(&informer, |status| status.counters.errors > 0).await;
            assert!(informer.unsynced_store().is_empty() && !informer.has_synced());
        }
    }
}

async fn g30_strict_fails_loudly() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options().strict());
        server.list(10, &[object("a", 1, "1"), bad("b", 2)]).await;
        let status = status_where(&informer, |status| {
            matches!(status.state, InformerState::Degraded { .. })
        })
        .await;
        assert!(!status.has_synced);
        assert!(
            status.state.to_string().contains(&format!("default/b: {}", form.cause_of_bad())),
            "{}",
            status.state
        );
        server.list(11, &[object("a", 1, "1")]).await;
        let watch = server.watch(11).await;
        watch.frame("MODIFIED", &bad("a", 12));
        status_where(&informer, |status| matches!(status.state, InformerState::Degraded { .. }))
            .await;
        assert_eq!(informer.last_sync_resource_version(), 11.into());
    }
}

async fn g30_a_compressed_watch_is_refused_with_a_reason() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options());
        server.list(10, &[]).await;
        let (_, answer) = server.answer(&[("content-encoding", "gzip")]).await;
        answer.text("\u{1f}not for us");
        let status = status_where(&informer, |status| status.counters.errors == 1).await;
        assert!(status.recent_errors[0].message.contains("proxy"), "{status:?}");
    }
}

async fn g30_a_body_that_is_no_list_is_a_failure_and_never_an_empty_list() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options());
        let bodies = form.bodies_that_are_no_list();
        for body in &bodies {
            let (_, answer) = server.answer(&[]).await;
            answer.bytes(body.clone());
            drop(answer);
        }
        server.list(10, &[]).await;
        server.watch(10).await;
        soon(informer.synced()).await.unwrap();
        let status = informer.status();
        assert_eq!(status.counters.errors, bodies.len() as u64, "{:?}", status.recent_errors);
    }
}

async fn g29_a_silent_list_is_given_up_and_bytes_that_drip_are_a_sign_of_life() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options());
        let (_, silent) = server.answer(&[]).await;
        let (_, dripping) = server.answer(&[]).await;
        assert!(silent.body.is_closed(), "the silent one was given up");
        for byte in form.list(10, &[object("a", 1, "1")]) {
            dripping.bytes(vec![byte]);
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        drop(dripping);
        assert_eq!(soon(informer.synced()).await.unwrap().len(), 1);
        assert_eq!(informer.status().counters.errors, 1);
    }
}

async fn g29_a_watch_that_went_silent_is_dropped_and_resumed() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options());
        server.list(10, &[]).await;
        let watch = server.watch(10).await;
        let bookmark = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": { "resourceVersion": "15" } });
        watch.frame("BOOKMARK", &bookmark);
        soon(informer.wait_for(15)).await.unwrap();
        // The probe for a changed history, then three missed bookmarks.
        let (asked, _probe) = server.answer(&[]).await;
        assert!(asked.contains("limit=1") && asked.contains("resourceVersion=15"), "{asked}");
        let _again = server.watch(15).await;
        assert!(watch.body.is_closed());
    }
}
