//! Kubernetes' protobuf: what is served in it is what is served in JSON. Byte for byte it is
//! compared with a real server's in `tests/tests/protobuf_parity.rs`.

mod faults;
#[path = "../support/mod.rs"]
mod support;

use bytes::Bytes;
use http_body_util::BodyExt;
use informer_testkit::ProtobufSupport;
use informer_testkit::{ApiService, Cut, Fault, Status, TestServer, Verb, generate};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status as ApiStatus;
use k8s_protobuf::{Envelope, Kind, Metadata};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use support::*;

const PB: &str = "application/vnd.kubernetes.protobuf";
const EITHER: &str = "application/vnd.kubernetes.protobuf,application/json";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const PODS: &str = "/api/v1/pods";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

struct Answer {
    code: u16,
    content_type: String,
    body: Bytes,
    /// Whether the body came to its end.
    ended: bool,
}

impl Answer {
    fn envelope(&self) -> Envelope<'_> {
        assert_eq!(self.content_type, PB, "{:?}", self.body);
        Envelope::parse(&self.body).unwrap()
    }

    fn json(&self) -> Value {
        assert_eq!(self.content_type, "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The items of a list.
    fn items(&self) -> Vec<Bytes> {
        fields(self.envelope().raw)
            .into_iter()
            .filter(|(number, _)| *number == 2)
            .map(|(_, item)| item)
            .collect()
    }

    fn status(&self) -> ApiStatus {
        assert_eq!(self.content_type, PB);
        k8s_protobuf::from_slice(&self.body).unwrap()
    }
}

async fn ask(service: &ApiService, method: &str, path: &str, accept: &str, body: &Value) -> Answer {
    let content_type =
        if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let mut request = request(method, path, content_type, body);
    request.headers_mut().insert("accept", accept.parse().unwrap());
    let response = call(service, request).await.unwrap();
    let code = response.status().as_u16();
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let (mut body, mut bytes, mut ended) = (response.into_body(), Vec::new(), true);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(&frame.into_data().unwrap()),
            Err(_) => {
                ended = false;
                break;
            }
        }
    }
    Answer { code, content_type, body: bytes.into(), ended }
}

async fn get_in(service: &ApiService, path: &str, accept: &str) -> Answer {
    ask(service, "GET", path, accept, &Value::Null).await
}

/// The fields of a message that have a length.
fn fields(mut message: &[u8]) -> Vec<(u64, Bytes)> {
    fn varint(message: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = message[0];
            *message = &message[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let length = varint(&mut message);
        if tag & 7 == 2 {
            let (value, rest) = message.split_at(usize::try_from(length).unwrap());
            fields.push((tag >> 3, Bytes::copy_from_slice(value)));
            message = rest;
        }
    }
    fields
}

/// A watch in protobuf.
struct Frames {
    body: informer_testkit::Body,
    buffer: Vec<u8>,
}

impl Frames {
    async fn open(service: &ApiService, path: &str, accept: &str) -> Self {
        let mut request = request("GET", path, "", &Value::Null);
        request.headers_mut().insert("accept", accept.parse().unwrap());
        let response = call(service, request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(
            response.headers()["content-type"],
            "application/vnd.kubernetes.protobuf;stream=watch"
        );
        Self { body: response.into_body(), buffer: Vec::new() }
    }

    /// The next frame; `None` at a clean end, an error if the stream breaks.
    async fn frame(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            if let Some((length, rest)) = self.buffer.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                if rest.len() >= length {
                    let frame = rest[..length].to_vec();
                    self.buffer.drain(..4 + length);
                    return Ok(Some(frame));
                }
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffer.extend_from_slice(&frame.into_data().unwrap()),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Ok(None),
            }
        }
    }

    /// The next event: its type, and its object with the envelope.
    async fn event(&mut self) -> Option<(String, Bytes)> {
        let frame = self.frame().await.unwrap()?;
        let event = fields(&frame);
        assert_eq!(event.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);
        let object = fields(&event[1].1).remove(0).1;
        Some((String::from_utf8(event[0].1.to_vec()).unwrap(), object))
    }

    /// As `Lines::short`.
    async fn short(&mut self) -> Option<String> {
        let (kind, object) = self.event().await?;
        let envelope = Envelope::parse(&object).unwrap();
        let metadata = Metadata::of(envelope.raw).unwrap();
        Some(format!("{kind} {}@{}", metadata.name, metadata.resource_version))
    }
}

fn streaming(path: &str) -> String {
    format!(
        "{path}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    )
}

async fn with_widgets() -> (TestServer, ApiService) {
    let server = server().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    });
    server.cluster().create(&definition).unwrap();
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"size": 3},
    });
    server.cluster().create(&widget).unwrap();
    let service = server.service();
    (server, service)
}

/// A list in both forms, typed.
async fn both<T: DeserializeOwned + 'static>(
    service: &ApiService,
    path: &str,
    kind: Kind,
) -> (Vec<T>, Vec<T>) {
    let (json, protobuf) =
        (get_in(service, path, "*/*").await, get_in(service, path, EITHER).await);
    let items: Vec<T> = serde_json::from_value(json.json()["items"].clone()).unwrap();
    let messages = protobuf.items();
    (items, messages.iter().map(|item| k8s_protobuf::from_message(kind, item).unwrap()).collect())
}

#[tokio::test]
async fn lists_are_those_in_json() {
    let server = server().await;
    server.cluster().load(generate::pods(150)).unwrap();
    server.cluster().load(generate::nodes(3)).unwrap();
    server.cluster().load(generate::deployments(3)).unwrap();
    let service = server.service();
    let of = |api_version, kind| Kind::of(api_version, kind).unwrap();
    let (json, protobuf) = both::<Pod>(&service, PODS, of("v1", "Pod")).await;
    assert_eq!((json.len(), json), (150, protobuf));
    let (json, protobuf) = both::<Node>(&service, "/api/v1/nodes", of("v1", "Node")).await;
    assert_eq!((json.len(), json), (3, protobuf));
    let path = "/apis/apps/v1/deployments";
    let (json, protobuf) = both::<Deployment>(&service, path, of("apps/v1", "Deployment")).await;
    assert_eq!((json.len(), json), (3, protobuf));

    let list = get_in(&service, PODS, PB).await;
    let envelope = list.envelope();
    assert_eq!((envelope.api_version, envelope.kind), ("v1", "PodList"));
    let mut json = Vec::new();
    k8s_protobuf::to_json(&list.body, &mut json).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(
        json["metadata"],
        json!({ "resourceVersion": server.cluster().version().to_string() })
    );
}

#[tokio::test]
async fn pages_go_on_with_their_token() {
    let (_server, service) = with_pods().await;
    let mut path = format!("{PODS}?limit=2");
    let mut pages = Vec::new();
    loop {
        let page = get_in(&service, &path, PB).await;
        let mut json = Vec::new();
        k8s_protobuf::to_json(&page.body, &mut json).unwrap();
        let list: Value = serde_json::from_slice(&json).unwrap();
        let metadata = &list["metadata"];
        pages.push((
            list["items"].as_array().unwrap().len(),
            metadata["remainingItemCount"].as_u64(),
        ));
        let Some(token) = metadata["continue"].as_str() else { break };
        path = format!("{PODS}?limit=2&continue={token}");
    }
    assert_eq!(pages, [(2, Some(1)), (1, None)]);
}

#[tokio::test]
async fn watches_are_those_in_json() {
    let (server, service) = with_pods().await;
    let mut lines = watch(&service, &streaming(PODS)).await;
    let mut frames = Frames::open(&service, &streaming(PODS), EITHER).await;
    let patch = json!({ "metadata": { "labels": { "app": "db" } } });
    server.cluster().patch("pods", "default", "a", &patch).unwrap();
    server.cluster().delete("pods", "default", "b").unwrap();
    for _ in 0..6 {
        let (event, (kind, object)) = (lines.event().await.unwrap(), frames.event().await.unwrap());
        assert_eq!(event["type"], kind);
        // What is missing in JSON, and no pointer in Go, is empty in protobuf.
        let mut expected = Vec::new();
        k8s_protobuf::encode::object(&event["object"], &mut expected).unwrap();
        assert_eq!(object, expected, "{event}");
        let metadata = Metadata::of(Envelope::parse(&object).unwrap().raw).unwrap();
        match &*kind {
            "BOOKMARK" => {
                assert_eq!(metadata.annotation("k8s.io/initial-events-end"), Some("true"))
            }
            "DELETED" => {
                assert_eq!(metadata.resource_version, server.cluster().version().to_string())
            }
            _ => assert!(!metadata.name.is_empty()),
        }
    }
}

#[tokio::test]
async fn versions_of_a_resource_have_messages_of_their_own() {
    let server = server().await;
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "default"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3, "metrics": [{"type": "Pods"}]},
    });
    server.cluster().create(&scaler).unwrap();
    let service = server.service();
    for version in ["v2", "v1", "v2"] {
        let path =
            format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/h");
        let answer = get_in(&service, &path, PB).await;
        let value: Value = k8s_protobuf::from_slice(&answer.body).unwrap();
        assert_eq!(value["apiVersion"], format!("autoscaling/{version}"));
        // In v1 the number of this field is that of another one.
        assert_eq!(value["spec"]["metrics"].is_array(), version == "v2", "{value}");
    }
}

#[tokio::test]
async fn custom_resources_are_json_but_for_their_metadata() {
    let (server, service) = with_widgets().await;
    let (one, all) = (format!("{WIDGETS}/w"), WIDGETS.to_owned());
    for path in [&one, &all, &streaming(WIDGETS)] {
        let refused = get_in(&service, path, PB).await;
        assert_eq!(
            (refused.code, refused.status().reason.as_deref()),
            (406, Some("NotAcceptable"))
        );
    }
    assert_eq!(get_in(&service, &one, EITHER).await.json()["spec"]["size"], 3);
    assert_eq!(get_in(&service, &all, EITHER).await.json()["items"][0]["spec"]["size"], 3);
    let mut lines = Lines::new({
        let mut request = request("GET", &streaming(WIDGETS), "", &Value::Null);
        request.headers_mut().insert("accept", EITHER.parse().unwrap());
        call(&service, request).await.unwrap().into_body()
    });
    assert!(lines.short().await.unwrap().starts_with("ADDED w@"));

    let object = get_in(&service, &one, METADATA).await;
    assert_eq!(object.envelope().kind, "PartialObjectMetadata");
    let metadata = Metadata::of(object.envelope().raw).unwrap();
    assert_eq!((metadata.name, metadata.label("app")), ("w", Some("web")));
    let list = get_in(&service, &all, METADATA_LIST).await;
    assert_eq!(
        (list.envelope().api_version, list.envelope().kind),
        ("meta.k8s.io/v1", "PartialObjectMetadataList")
    );
    assert_eq!(list.items(), [object.envelope().raw]);
    let mut frames = Frames::open(&service, &streaming(WIDGETS), METADATA).await;
    let (kind, event) = frames.event().await.unwrap();
    assert_eq!((kind.as_str(), &event), ("ADDED", &object.body));
    assert_eq!(frames.short().await, Some(format!("BOOKMARK @{}", server.cluster().version())));
}

#[tokio::test]
async fn failures_are_told_in_protobuf() {
    let (server, service) = with_pods().await;
    let version = server.cluster().version();
    server.auth().deny("system:anonymous", Verb::List, "secrets");
    server.cluster().compact();
    for (path, code, reason) in [
        ("/api/v1/namespaces/default/pods/zz", 404, "NotFound"),
        ("/api/v1/secrets", 403, "Forbidden"),
        ("/api/v1/pods?continue=garbage", 400, "BadRequest"),
        ("/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact", 410, "Expired"),
        ("/api/v1/pods?watch=1&sendInitialEvents=true", 422, "Invalid"),
    ] {
        for accept in [PB, EITHER] {
            let refused = get_in(&service, path, accept).await;
            let status = refused.status();
            assert_eq!((refused.code, status.reason.as_deref()), (code, Some(reason)), "{path}");
            assert_eq!(status.code, Some(code.into()));
        }
        // Who asks for something special is told in JSON.
        assert_eq!(get_in(&service, path, METADATA).await.content_type, "application/json");
    }
    server.faults().inject(Fault::too_many_requests().retry_after(7).times(1));
    assert_eq!(
        get_in(&service, PODS, PB).await.status().details.unwrap().retry_after_seconds,
        Some(7)
    );

    for path in ["resourceVersion=1".to_owned(), format!("resourceVersion={version}")] {
        let path = format!("{PODS}?watch=1&{path}");
        if !path.ends_with("=1") {
            server.faults().inject(Fault::expired().on(Verb::Watch).times(1));
        }
        let mut frames = Frames::open(&service, &path, EITHER).await;
        let (kind, status) = frames.event().await.unwrap();
        let status: ApiStatus = k8s_protobuf::from_slice(&status).unwrap();
        assert_eq!((kind.as_str(), status.code), ("ERROR", Some(410)));
        assert_eq!(frames.event().await, None);
    }
}

#[tokio::test]
async fn writes_are_answered_in_protobuf() {
    let (server, service) = with_pods().await;
    let pods = "/api/v1/namespaces/default/pods";
    let created = ask(&service, "POST", pods, PB, &pod("default", "d")).await;
    assert_eq!(created.code, 201);
    let typed: Pod = k8s_protobuf::from_slice(&created.body).unwrap();
    assert_eq!(typed.metadata.name.as_deref(), Some("d"));
    let patch = json!({ "metadata": { "labels": { "x": "y" } } });
    let patched = ask(&service, "PATCH", &format!("{pods}/d"), METADATA, &patch).await;
    assert_eq!(Metadata::of(patched.envelope().raw).unwrap().label("x"), Some("y"));
    assert_eq!(
        ask(&service, "POST", pods, PB, &pod("default", "d")).await.status().code,
        Some(409)
    );

    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m", "namespace": "default" } });
    server.cluster().create(&map).unwrap();
    let deleted =
        ask(&service, "DELETE", "/api/v1/namespaces/default/configmaps/m", PB, &Value::Null).await;
    let status = deleted.status();
    assert_eq!(
        (status.status.as_deref(), status.details.unwrap().name.as_deref()),
        (Some("Success"), Some("m"))
    );
    let deleted = ask(&service, "DELETE", pods, PB, &Value::Null).await;
    assert_eq!((deleted.envelope().kind, deleted.items().len()), ("PodList", 4));

    // A custom resource is refused before it is written.
    let (server, service) = with_widgets().await;
    let before = server.cluster().version();
    let widget =
        json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "v" } });
    assert_eq!(ask(&service, "POST", WIDGETS, PB, &widget).await.status().code, Some(406));
    assert_eq!(server.cluster().version(), before);
    assert_eq!(ask(&service, "POST", WIDGETS, EITHER, &widget).await.json()["kind"], "Widget");
}

#[tokio::test]
async fn discovery_is_served_in_protobuf() {
    let (_server, service) = with_widgets().await;
    for (path, api_version, kind) in [
        ("/api", "", "APIVersions"),
        ("/apis", "v1", "APIGroupList"),
        ("/apis/apps", "v1", "APIGroup"),
        ("/apis/apps/v1", "v1", "APIResourceList"),
        ("/apis/example.com/v1", "v1", "APIResourceList"),
    ] {
        let answer = get_in(&service, path, PB).await;
        assert_eq!((answer.envelope().api_version, answer.envelope().kind), (api_version, kind));
        assert!(!answer.envelope().raw.is_empty());
    }
    let aggregated = format!("{PB};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let answer = get_in(&service, "/apis", &format!("{aggregated},application/json")).await;
    assert_eq!(answer.content_type, aggregated);
    let in_protobuf: Value = k8s_protobuf::from_slice(&answer.body).unwrap();
    let json = get_in(&service, "/apis", &aggregated.replace(PB, "application/json")).await;
    let in_json: Value = serde_json::from_slice(&json.body).unwrap();
    let names = |list: &Value| -> Vec<String> {
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["metadata"]["name"].to_string())
            .collect()
    };
    assert_eq!(names(&in_protobuf), names(&in_json));
    let refused = get_in(&service, "/version", PB).await;
    assert_eq!(refused.status().code, Some(406));
}

#[tokio::test]
async fn servers_without_protobuf_answer_in_json_or_refuse() {
    for (support, alone) in [(ProtobufSupport::Unknown, 406), (ProtobufSupport::Ignored, 200)] {
        let server = TestServer::builder().protobuf(support).start().await.unwrap();
        let service = server.service();
        let answer = get_in(&service, PODS, PB).await;
        assert_eq!(
            (answer.code, answer.content_type.as_str()),
            (alone, "application/json"),
            "{support:?}"
        );
        assert_eq!(get_in(&service, PODS, EITHER).await.json()["kind"], "PodList");
        assert_eq!(get_in(&service, PODS, METADATA_LIST).await.content_type, "application/json");
    }
    let (server, service) = with_pods().await;
    let fault = server.faults().inject(Fault::without_protobuf().resource("pods"));
    assert_eq!(get_in(&service, PODS, EITHER).await.json()["kind"], "PodList");
    let refused = get_in(&service, PODS, PB).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (406, &json!("NotAcceptable")));
    assert_eq!(get_in(&service, "/api/v1/nodes", EITHER).await.content_type, PB);
    get_in(&service, PODS, "*/*").await;
    assert_eq!(fault.hits(), 2, "who wants JSON does not notice");
    fault.lift();
    let unsupported = Status::new(415, "UnsupportedMediaType", "no");
    server.faults().inject(Fault::answer(unsupported).accepting_protobuf());
    assert_eq!(get_in(&service, PODS, EITHER).await.code, 415);
    assert_eq!(get_in(&service, PODS, "application/json").await.code, 200);
    let answered: Vec<String> =
        server.requests().resource("pods").into_iter().map(|request| request.answered_in).collect();
    assert_eq!(answered.last().unwrap(), "application/json");
}

/// What no real server would keep.
#[tokio::test]
async fn what_does_not_fit_its_kind_cannot_be_decoded() {
    let server = server().await;
    let mut broken = pod("default", "broken");
    broken["spec"]["containers"] = "none".into();
    server.cluster().create(&broken).unwrap();
    let service = server.service();
    let answer = get_in(&service, "/api/v1/namespaces/default/pods/broken", PB).await;
    let metadata = Metadata::of(answer.envelope().raw).unwrap();
    assert_eq!((metadata.name, metadata.label("app")), ("broken", Some("web")));
    assert!(k8s_protobuf::from_slice::<Pod>(&answer.body).is_err());
    let answer = get_in(&service, "/api/v1/namespaces/default/pods/broken", METADATA).await;
    assert_eq!(Metadata::of(answer.envelope().raw).unwrap().name, "broken");
}
