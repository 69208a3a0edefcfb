//! Objects that are kept as their bytes.

#[macro_use]
mod common;

use std::sync::Arc;

use common::{config_map, soon, widget, widgets_crd};
use informer::decode::Encoding;
use informer::source::WireFormat;
use informer::{FieldPath, InformerOptions, Lazy, Resource, SharedInformerFactory};
use informer_testkit::{Cut, TestServer};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_protobuf::encode;
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::{Value, json};

run_tests! {
    on_both_runtimes:
        bytes_are_read_through_indexes_selectors_and_handlers,
        g07_a_relist_keeps_the_bytes_of_what_did_not_change,
        custom_resources_are_kept_as_json,
        metadata_is_kept_as_bytes_too,
        managed_fields_are_cut_out_of_the_bytes_unless_asked_for,
        an_object_that_cannot_be_decoded_is_kept_and_says_why;
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-0",
            "namespace": "default",
            "uid": "6a1fe2b1-5b1c-4f4e-9c40-0f9f5f6a0001",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": { "app": "web", "app.kubernetes.io/name": "wéb" },
            "annotations": { "note": "say \"hi\"\n" },
        },
        "spec": {
            "nodeName": "node-1",
            "hostNetwork": true,
            "priority": 7,
            "containers": [{ "name": "a", "image": "one", "resources": {} }, { "name": "b", "image": "two", "resources": {} }],
        },
        "status": {},
    })
}

/// The same object in both forms, and in JSON with white space and needless escapes.
fn in_all_forms() -> [Lazy<Pod>; 3] {
    let pod = pod();
    let mut protobuf = Vec::new();
    encode::object(&pod, &mut protobuf).unwrap();
    let odd = serde_json::to_string_pretty(&pod)
        .unwrap()
        .replace("\"app\": \"web\"", "\"\\u0061pp\": \"w\\u0065b\"");
    [
        Lazy::from_protobuf(&protobuf).unwrap(),
        Lazy::from_json(pod.to_string().as_bytes()).unwrap(),
        Lazy::from_json(odd.as_bytes()).unwrap(),
    ]
}

#[test]
fn json_is_written_on_one_line_however_it_came() {
    let pretty = serde_json::to_string_pretty(&pod()).unwrap().replace('\n', "\r\n");
    let mut written = Vec::new();
    Lazy::<Pod>::from_json(pretty.as_bytes()).unwrap().write_json(&mut written).unwrap();
    assert!(!written.contains(&b'\n') && !written.contains(&b'\r'));
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), pod());
}

#[test]
fn all_forms_of_an_object_read_the_same() {
    let typed: Pod = serde_json::from_value(pod()).unwrap();
    for lazy in in_all_forms() {
        assert_eq!((lazy.namespace(), lazy.name()), ("default".into(), "web-0".into()));
        assert_eq!(
            (lazy.uid(), lazy.resource_version()),
            ("6a1fe2b1-5b1c-4f4e-9c40-0f9f5f6a0001".into(), "7".into())
        );
        assert_eq!(
            (lazy.label("app"), lazy.label("app.kubernetes.io/name")),
            (Some("web"), Some("wéb"))
        );
        assert_eq!(lazy.label("note"), None);
        assert_eq!(lazy.annotation("note").as_deref(), Some("say \"hi\"\n"));
        let mut labels: Vec<_> =
            lazy.labels().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        labels.sort();
        assert_eq!(labels, ["app.kubernetes.io/name=wéb", "app=web"]);
        let field = |path| lazy.field(&FieldPath::of::<Pod>(path).unwrap());
        assert_eq!(field("spec.nodeName").as_deref(), Some("node-1"));
        assert_eq!(field("spec.hostNetwork").as_deref(), Some("true"));
        assert_eq!(field("spec.priority").as_deref(), Some("7"));
        assert_eq!(field("metadata.labels['app.kubernetes.io/name']").as_deref(), Some("wéb"));
        assert_eq!(field("metadata.creationTimestamp").as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(field("kind").as_deref(), Some("Pod"));
        assert_eq!(field("status.phase"), None);
        let anywhere = |path: &str| lazy.field(&path.parse().unwrap());
        assert_eq!((anywhere("spec"), anywhere("spec.nothing")), (None, None));
        let mut images = Vec::new();
        lazy.fields(&FieldPath::of::<Pod>("spec.containers[*].image").unwrap(), |image| {
            images.push(image)
        });
        assert_eq!(images, ["one", "two"]);
        assert_eq!(*lazy.decode().unwrap(), typed);
        let slim: PartialObjectMeta<Pod> = lazy.decode_as().unwrap();
        assert_eq!(slim.metadata, typed.metadata);
        let dynamic: DynamicObject = lazy.decode_as().unwrap();
        assert_eq!(dynamic.types.unwrap().kind, "Pod");

        let mut text = b"before ".to_vec();
        lazy.write_json(&mut text).unwrap();
        let written: Value =
            serde_json::from_slice(text.strip_prefix(b"before ").unwrap()).unwrap();
        // Go writes what has no omitempty, such as `status: {}`.
        assert_eq!(serde_json::from_value::<Pod>(written.clone()).unwrap(), typed);
        assert_eq!((&written["kind"], &written["apiVersion"]), (&json!("Pod"), &json!("v1")));
        assert_eq!(serde_json::to_value(&lazy).unwrap(), written);
        assert!(!format!("{lazy:?}").contains("node-1"), "G34: {lazy:?}");
    }
}

#[test]
fn what_is_no_object_is_refused() {
    for json in ["", "{}", "[]", "{\"metadata\":{}}", "{\"metadata\":{\"name\":\"a\"}} x"] {
        assert!(Lazy::<Pod>::from_json(json.as_bytes()).is_err(), "{json}");
    }
    for bytes in [&b""[..], b"{}", b"k8s\0", b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0a\x05"]
    {
        assert!(Lazy::<Pod>::from_protobuf(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn paths_that_lead_nowhere_name_what_there_is() {
    let error = FieldPath::of::<Pod>("spec.nodename").unwrap_err().to_string();
    assert!(error.contains("spec.nodename") && error.contains("nodeName"), "{error}");
}

fn factory(server: &TestServer, format: WireFormat) -> SharedInformerFactory {
    SharedInformerFactory::builder(server.client().unwrap()).wire_format(format).build()
}

fn maps(server: &TestServer, count: usize) {
    for number in 0..count {
        let mut map = config_map(&format!("map-{number}"), &format!("value {}", number % 2));
        map["metadata"]["labels"] = json!({ "half": if number % 2 == 0 { "even" } else { "odd" } });
        server.cluster().apply(&map).unwrap();
    }
}

async fn bytes_are_read_through_indexes_selectors_and_handlers() {
    for format in [WireFormat::Json, WireFormat::Auto] {
        let server = TestServer::start().await.unwrap();
        maps(&server, 4);
        let factory = factory(&server, format);
        let informer = factory.lazy::<ConfigMap>().unwrap();
        let path = FieldPath::of::<ConfigMap>("data.value").unwrap();
        let by_value = informer
            .add_index("value", move |map, values| values.extend(map.field(&path).as_deref()))
            .await
            .unwrap();
        let by_label = informer.add_label_index("half").await.unwrap();
        let (sent, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let handler = informer
            .add_handler(|h| {
                h.on_add(move |map, _| {
                    _ = sent.send((map.name().into_owned(), map.decode().unwrap().data.clone()))
                })
            })
            .unwrap();
        factory.start();
        let lister = soon(informer.synced()).await.unwrap();
        soon(handler.synced()).await.unwrap();
        let (name, data) = seen.recv().await.unwrap();
        assert_eq!((name.as_str(), data.unwrap()["value"].as_str()), ("map-0", "value 0"));
        let is_protobuf = matches!(lister.list()[0].wire().encoding, Encoding::Protobuf(_));
        assert_eq!(is_protobuf, format == WireFormat::Auto);
        assert_eq!(lister.by_index(&by_value, "value 1").unwrap().len(), 2);
        assert_eq!(lister.by_index(&by_label, "odd").unwrap().len(), 2);
        let odd = lister.select("half=odd").unwrap();
        let names: Vec<_> = odd.iter().map(|map| map.name().into_owned()).collect();
        assert_eq!(names, ["map-1", "map-3"]);
        soon(factory.shutdown()).await;
    }
}

async fn g07_a_relist_keeps_the_bytes_of_what_did_not_change() {
    let server = TestServer::start().await.unwrap();
    maps(&server, 3);
    let factory = factory(&server, WireFormat::Auto);
    let informer = factory.lazy::<ConfigMap>().unwrap();
    factory.start();
    let lister = soon(informer.synced()).await.unwrap();
    let before = lister.list();
    server.faults().cut_watches(Cut::Expired, None);
    server.cluster().apply(&config_map("map-1", "changed")).unwrap();
    let version = server.cluster().version().to_string();
    soon(informer.wait_for(version.as_str())).await.unwrap();
    let after = lister.list();
    let kept: Vec<_> = before.iter().zip(&after).map(|(old, new)| Arc::ptr_eq(old, new)).collect();
    assert_eq!(kept, [true, false, true]);
    soon(factory.shutdown()).await;
}

async fn custom_resources_are_kept_as_json() {
    let server = TestServer::start().await.unwrap();
    server.cluster().apply(&widgets_crd()).unwrap();
    server.cluster().apply(&widget("w", 3)).unwrap();
    let factory = factory(&server, WireFormat::Auto);
    let resource = Resource {
        group: "example.com".into(),
        version: "v1".into(),
        plural: "widgets".into(),
        kind: "Widget".into(),
        namespaced: true,
    };
    let informer =
        factory.informer_as::<Lazy<DynamicObject>>(resource, InformerOptions::new()).unwrap();
    factory.start();
    let lister = soon(informer.synced()).await.unwrap();
    let widget = &lister.list()[0];
    assert_eq!(widget.wire().encoding, Encoding::Json);
    assert_eq!(widget.field(&"spec.size".parse().unwrap()).as_deref(), Some("3"));
    assert_eq!(widget.decode().unwrap().data["spec"]["size"], 3);
    soon(factory.shutdown()).await;
}

async fn metadata_is_kept_as_bytes_too() {
    let server = TestServer::start().await.unwrap();
    maps(&server, 1);
    let factory = factory(&server, WireFormat::Auto);
    let informer = factory.lazy_metadata::<ConfigMap>(InformerOptions::new()).unwrap();
    factory.start();
    let lister = soon(informer.synced()).await.unwrap();
    let map = &lister.list()[0];
    assert_eq!(
        (map.label("half"), map.field(&"data.value".parse().unwrap())),
        (Some("even"), None)
    );
    assert_eq!(map.decode().unwrap().metadata.name.as_deref(), Some("map-0"));
    soon(factory.shutdown()).await;
}

async fn managed_fields_are_cut_out_of_the_bytes_unless_asked_for() {
    let server = TestServer::start().await.unwrap();
    let mut map = config_map("a", "1");
    map["metadata"]["managedFields"] =
        json!([{ "manager": "somebody", "operation": "Update", "apiVersion": "v1" }]);
    server.cluster().load([map.to_string()]).unwrap();
    for format in [WireFormat::Json, WireFormat::Auto] {
        for keep in [false, true] {
            let factory = factory(&server, format);
            let mut options = InformerOptions::new();
            if keep {
                options = options.keep_managed_fields();
            }
            let informer = factory.lazy_with::<ConfigMap>(options).unwrap();
            factory.start();
            let lister = soon(informer.synced()).await.unwrap();
            let map = lister.list().remove(0);
            assert_eq!(map.decode().unwrap().metadata.managed_fields.is_some(), keep, "{format:?}");
            let bytes = map.wire().bytes;
            assert_eq!(memchr::memmem::find(bytes, b"somebody").is_some(), keep, "{format:?}");
            soon(factory.shutdown()).await;
        }
    }
}

async fn an_object_that_cannot_be_decoded_is_kept_and_says_why() {
    #[derive(Debug, serde::Deserialize)]
    struct Numbered {
        #[expect(dead_code, reason = "only decoded")]
        data: std::collections::BTreeMap<String, u64>,
    }
    let server = TestServer::start().await.unwrap();
    maps(&server, 1);
    for format in [WireFormat::Json, WireFormat::Auto] {
        let factory = factory(&server, format);
        let informer = factory
            .informer_as::<Lazy<Numbered>>(Resource::of::<ConfigMap>(), InformerOptions::new())
            .unwrap();
        factory.start();
        let lister = soon(informer.synced()).await.unwrap();
        let error = lister.list()[0].decode().unwrap_err();
        assert_eq!(error.path, "data.value", "{error}");
        assert!(!error.to_string().contains("value 0"), "G34: {error}");
        soon(factory.shutdown()).await;
    }
}
