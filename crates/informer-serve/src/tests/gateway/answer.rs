//! How the short paths write objects.

use std::sync::Arc;

use informer::decode::Encoding;
use informer::source::{Failure, FailureKind};
use informer_testkit::generate;

use super::*;
use crate::gateway::answer;

#[tokio::test]
async fn lists_and_objects_are_those_of_the_server() {
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster();
    cluster.load(generate::pods(30)).unwrap();
    cluster.load(generate::deployments(5)).unwrap();
    cluster.load(generate::nodes(3)).unwrap();
    create_widget(&server);
    let client = server.client().unwrap();
    let gateway = endpoint(&server, Options::default());
    for (path, own, in_protobuf) in [
        ("/api/v1/pods", "/core/v1/pods", true),
        ("/apis/apps/v1/deployments", "/apps/v1/deployments", true),
        ("/api/v1/nodes", "/core/v1/nodes", true),
        ("/apis/example.com/v1/widgets", "/example.com/v1/widgets", false),
    ] {
        let list: Value =
            client.request(Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
        let kind = list["kind"].as_str().unwrap().trim_end_matches("List").to_owned();
        let mut expected = list["items"].as_array().unwrap().clone();
        for item in &mut expected {
            item["apiVersion"] = list["apiVersion"].clone();
            item["kind"] = json!(kind);
            item["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        let answer = get(&gateway, own).await.json();
        assert!(answer["items"] == json!(expected), "{own}: {answer}");
        assert_eq!(answer["metadata"]["resourceVersion"], list["metadata"]["resourceVersion"]);
        let (metadata, namespace) =
            (&expected[0]["metadata"], expected[0]["metadata"]["namespace"].as_str());
        let namespace = namespace.map(|it| format!("/{it}")).unwrap_or_default();
        let object = format!("{own}{namespace}/{}", metadata["name"].as_str().unwrap());
        assert!(get(&gateway, &object).await.json() == expected[0], "{object}");
        let plural = own.rsplit('/').next().unwrap();
        let resource = gateway.inner.catalog.resource(|it| it.find_by_arg(plural)).await.unwrap();
        let lister = gateway.inner.collections.synced(&resource).await.unwrap().lister;
        let kept = lister.list();
        let wires = kept.iter().map(|it| it.wire().encoding != Encoding::Json);
        assert!(wires.clone().all(|it| it == in_protobuf) && wires.count() > 0, "{own}");
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_an_error_and_never_left_out() {
    let server = TestServer::start().await.unwrap();
    let gateway = endpoint(&server, Options::default());
    let metrics = &gateway.inner.metrics;
    let resource = informer::Resource::of::<k8s_openapi::api::core::v1::Pod>();
    let list = |items| {
        answer::List { resource: resource.clone(), version: "7".to_owned(), items, next: None }
            .into_response(metrics)
    };
    let fine: Vec<Arc<Object>> =
        generate::pods(40).map(|it| Arc::new(Object::from_json(it.as_bytes()).unwrap())).collect();
    let broken = Arc::new(broken());

    for refusal in [
        answer::object(&resource, &broken, metrics).unwrap_err(),
        list(vec![fine[0].clone(), broken.clone(), fine[1].clone()]).unwrap_err(),
    ] {
        assert_eq!(refusal.code, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(
            refusal.message.starts_with("pods \"x/broken\" cannot be written"),
            "{}",
            refusal.message
        );
        assert!(!refusal.message.contains("hunter2"), "G34: {}", refusal.message);
    }
    // Once the answer has begun, it ends with an error.
    let begun = list([&fine[..], &[broken][..]].concat()).unwrap();
    assert_eq!(begun.status(), StatusCode::OK);
    let error = begun.into_body().collect().await.unwrap_err().to_string();
    assert!(error.contains("x/broken"), "{error}");
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let text = crate::metrics::encode(&registry).unwrap();
    assert!(text.contains("gateway_unwritable_objects_total 3\n"));

    let whole = list(fine).unwrap().into_body().collect().await.unwrap().to_bytes();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(whole["items"].as_array().unwrap().len(), 40);
}

#[tokio::test]
async fn deep_objects_are_written_with_the_others() {
    let server = TestServer::start().await.unwrap();
    let gateway = endpoint(&server, Options::default());
    let metrics = &gateway.inner.metrics;
    let resource = informer::Resource::of::<k8s_openapi::api::apps::v1::ControllerRevision>();
    for levels in [200, 5_000, 9_990] {
        let text = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let revision = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
            "metadata": {"name": "deep", "namespace": "x", "resourceVersion": "3"},
            "data": {encode::RAW_JSON: text},
        });
        let mut bytes = Vec::new();
        encode::object(&revision, &mut bytes).unwrap();
        let items = vec![Arc::new(Object::from_protobuf(&bytes).unwrap())];
        let version = "7".to_owned();
        let list = answer::List { resource: resource.clone(), version, items, next: None };
        let list = list.into_response(metrics).unwrap().into_body();
        let list = list.collect().await.unwrap().to_bytes();
        assert!(list.windows(text.len()).any(|part| part == text.as_bytes()), "{levels}");
    }
}

#[test]
fn an_answer_from_a_cache_that_is_behind_says_so() {
    let answered = |state| {
        let mut response = axum::response::Response::new(Body::empty());
        answer::warn_if_behind(&mut response, &state);
        response.headers().get("warning").map(|it| it.to_str().unwrap().to_owned())
    };
    let failing = informer::InformerState::BackingOff {
        cause: Failure::new(FailureKind::Refused, "refused: \"x\"\r\nSet-Cookie: y"),
        attempt: 3,
        until: std::time::SystemTime::now(),
    };
    let warning = answered(failing).unwrap();
    assert!(warning.starts_with("299 - \"the cache may be behind: "), "{warning}");
    assert_eq!(warning.matches('"').count(), 2, "{warning}");
    assert_eq!(
        answered(informer::InformerState::Listing { streaming: false, items: 0, remaining: None }),
        None
    );
}
