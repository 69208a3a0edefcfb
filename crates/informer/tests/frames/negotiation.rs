//! Which encoding is asked for, and what is made of the answer.

use informer::source::{KubeSource, WireFormat};
use informer::{InformerOptions, Resource, Scope, SharedInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_protobuf::Envelope;
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::json;

use super::{Form, Server, server};
use crate::common::{object, soon, status_where, value_of};

run_tests! {
    on_a_paused_clock:
        protobuf_is_asked_for_where_there_is_some,
        a_factory_asks_for_dynamic_objects_in_json_unless_told_otherwise,
        the_answer_says_in_which_encoding_it_is,
        a_refusal_of_protobuf_is_taken_once_and_remembered,
        g30_protobuf_of_a_kind_that_is_not_built_in_is_asked_for_in_json,
        g30_an_answer_in_another_type_is_refused_by_its_name,
        g31_an_error_in_protobuf_is_understood,
        dynamic_objects_are_the_same_in_either_encoding,
        g01_text_that_is_not_utf8_is_the_same_in_either_encoding,
        metadata_is_the_same_in_either_encoding;
}

const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";

fn source(form: Form, resource: &Resource, format: WireFormat) -> (KubeSource, Server) {
    let (client, server) = server(form);
    (KubeSource::new(client, resource.clone(), Scope::all()).wire_format(format), server)
}

fn started(form: Form, format: WireFormat) -> (SharedInformer<ConfigMap>, Server) {
    let resource = Resource::of::<ConfigMap>();
    let (source, server) = source(form, &resource, format);
    let informer =
        SharedInformer::new(source, resource, InformerOptions::new().streaming_lists(false));
    informer.start();
    (informer, server)
}

fn widgets() -> Resource {
    Resource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        plural: "widgets".to_owned(),
        kind: "Widget".to_owned(),
        namespaced: true,
    }
}

async fn protobuf_is_asked_for_where_there_is_some() {
    let json = "application/json";
    let metadata = |media: &str| format!("{media};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let both_metadata =
        format!("{},{},{json}", metadata("application/vnd.kubernetes.protobuf"), metadata(json));
    for (resource, format, only_metadata, expected) in [
        (Resource::of::<ConfigMap>(), WireFormat::Auto, false, BOTH.to_owned()),
        (Resource::of::<ConfigMap>(), WireFormat::Json, false, json.to_owned()),
        (
            Resource::of::<ConfigMap>(),
            WireFormat::Protobuf,
            false,
            k8s_protobuf::CONTENT_TYPE.to_owned(),
        ),
        (widgets(), WireFormat::Auto, false, json.to_owned()),
        (widgets(), WireFormat::Auto, true, both_metadata),
        (widgets(), WireFormat::Json, true, format!("{},{json}", metadata(json))),
        (widgets(), WireFormat::Protobuf, true, metadata(k8s_protobuf::CONTENT_TYPE)),
    ] {
        let (mut source, mut server) = source(Form::Json, &resource, format);
        if only_metadata {
            source = source.projection(informer::source::Projection::Metadata);
        }
        let options = InformerOptions::<DynamicObject>::new().streaming_lists(false);
        let informer = SharedInformer::new(source, resource, options);
        informer.start();
        assert_eq!(server.asked().await.accept, expected);
    }

    let (source, _server) = source(Form::Json, &widgets(), WireFormat::Protobuf);
    let informer = SharedInformer::<DynamicObject>::new(source, widgets(), InformerOptions::new());
    informer.start();
    let status = status_where(&informer, |status| status.counters.errors > 0).await;
    let message = &status.recent_errors[0].message;
    assert!(
        message.contains("example.com/v1 Widget") && message.contains("WireFormat::Auto"),
        "{message}"
    );
}

async fn a_factory_asks_for_dynamic_objects_in_json_unless_told_otherwise() {
    for (format, expected) in
        [(None, "application/json"), (Some(WireFormat::Protobuf), k8s_protobuf::CONTENT_TYPE)]
    {
        let (client, mut server) = server(Form::Json);
        let mut builder = SharedInformerFactory::builder(client);
        if let Some(format) = format {
            builder = builder.wire_format(format);
        }
        let factory = builder.build();
        factory.dynamic(Resource::of::<ConfigMap>(), InformerOptions::new()).unwrap();
        factory.start();
        assert_eq!(server.asked().await.accept, expected);
        factory.informer::<ConfigMap>().unwrap();
        let typed = if format.is_none() { BOTH } else { expected };
        assert_eq!(server.asked().await.accept, typed);
        factory.shutdown().await;
    }
}

async fn the_answer_says_in_which_encoding_it_is() {
    for form in Form::BOTH {
        for format in [WireFormat::Auto, WireFormat::Json] {
            let (informer, mut server) = started(form, format);
            server.list(10, &[object("a", 1, "1")]).await;
            let watch = server.watch(10).await;
            watch.frame("MODIFIED", &object("a", 11, "2"));
            soon(informer.wait_for(11)).await.unwrap();
            assert_eq!(value_of(&informer.unsynced_store().list()[0]), "2");
        }
    }
    // The list in one, the watch in the other.
    let (informer, mut server) = started(Form::Protobuf, WireFormat::Auto);
    server.list(10, &[object("a", 1, "1")]).await;
    server.form = Form::Json;
    let watch = server.watch(10).await;
    watch.frame("MODIFIED", &object("a", 11, "2"));
    soon(informer.wait_for(11)).await.unwrap();

    // Who wants protobuf alone is told that the server has none.
    let (informer, mut server) = started(Form::Json, WireFormat::Protobuf);
    server.list(10, &[object("a", 1, "1")]).await;
    let status = status_where(&informer, |status| status.counters.errors > 0).await;
    assert!(status.recent_errors[0].message.contains("WireFormat::Auto"), "{status:?}");
    assert!(!status.has_synced);
}

async fn a_refusal_of_protobuf_is_taken_once_and_remembered() {
    for code in [406, 415] {
        let (informer, mut server) = started(Form::Json, WireFormat::Auto);
        let asked = server.asked().await;
        assert_eq!(asked.accept, BOTH);
        let begun = tokio::time::Instant::now();
        asked.refuse(code);
        let asked = server.asked().await;
        assert_eq!(asked.accept, "application/json");
        assert_eq!(begun.elapsed(), std::time::Duration::ZERO, "at once");
        // The same answer again is a failure like any other.
        asked.refuse(code);
        status_where(&informer, |status| status.counters.errors == 1).await;
        let asked = server.asked().await;
        assert_eq!(asked.accept, "application/json");
        asked.refuse(500);
        server.list(10, &[]).await;
        let asked = server.asked().await;
        assert_eq!(asked.accept, "application/json", "for watches too");
    }
}

async fn g30_protobuf_of_a_kind_that_is_not_built_in_is_asked_for_in_json() {
    let unknown = |kind: &str| {
        let mut body = Vec::new();
        Envelope::write("example.com/v1", kind, b"", &mut body);
        body
    };
    let (informer, mut server) = started(Form::Protobuf, WireFormat::Auto);
    let (_, answer) = server.answer(&[]).await;
    answer.bytes(unknown("WidgetList"));
    drop(answer);
    let status = status_where(&informer, |status| status.counters.errors == 1).await;
    let message = &status.recent_errors[0].message;
    assert!(
        message.contains("example.com/v1 WidgetList") && message.contains("JSON from now on"),
        "{message}"
    );
    let asked = server.asked().await;
    assert_eq!(asked.accept, "application/json");

    // In a watch.
    let (informer, mut server) = started(Form::Protobuf, WireFormat::Auto);
    server.list(10, &[]).await;
    let watch = server.watch(10).await;
    let mut frame = Vec::new();
    k8s_protobuf::encode::watch_event("ADDED", &unknown("Widget"), &mut frame).unwrap();
    watch.bytes(frame);
    status_where(&informer, |status| status.counters.errors == 1).await;
    assert_eq!(server.asked().await.accept, "application/json");
}

async fn g30_an_answer_in_another_type_is_refused_by_its_name() {
    let (informer, mut server) = started(Form::Json, WireFormat::Auto);
    let (_, answer) = server.answer(&[("content-type", "text/html; charset=utf-8")]).await;
    answer.text("<html>");
    let status = status_where(&informer, |status| status.counters.errors == 1).await;
    assert!(status.recent_errors[0].message.contains("\"text/html\""), "{status:?}");
    for content_type in ["application/json;charset=utf-8", "Application/JSON"] {
        let (informer, mut server) = started(Form::Json, WireFormat::Auto);
        let (_, answer) = server.answer(&[("content-type", content_type)]).await;
        answer.bytes(Form::Json.list(10, &[]));
        drop(answer);
        soon(informer.synced()).await.unwrap();
    }
}

async fn g31_an_error_in_protobuf_is_understood() {
    for form in Form::BOTH {
        let (informer, mut server) = started(form, WireFormat::Auto);
        let status = json!({ "kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden",
            "message": "no configmaps for you" });
        let mut body = status.to_string().into_bytes();
        if form == Form::Protobuf {
            body.clear();
            k8s_protobuf::encode::object(&status, &mut body).unwrap();
        }
        server.asked().await.answer(403, body);
        let status = status_where(&informer, |status| status.counters.errors == 1).await;
        assert!(status.recent_errors[0].message.contains("no configmaps for you"), "{status:?}");
        // And in the middle of a watch.
        server.list(10, &[]).await;
        let watch = server.watch(10).await;
        watch.frame(
            "ERROR",
            &json!({ "kind": "Status", "apiVersion": "v1", "code": 410, "message": "long ago" }),
        );
        let status = status_where(&informer, |status| status.counters.errors == 2).await;
        assert!(
            status.recent_errors.iter().any(|error| error.message.contains("long ago")),
            "{status:?}"
        );
    }
}

async fn dynamic_objects_are_the_same_in_either_encoding() {
    let mut found = Vec::new();
    for form in Form::BOTH {
        let resource = Resource::of::<ConfigMap>();
        let (source, mut server) = source(form, &resource, WireFormat::Auto);
        let options = InformerOptions::<DynamicObject>::new().streaming_lists(false);
        let informer = SharedInformer::new(source, resource, options);
        informer.start();
        server.list(10, &[object("a", 1, "1")]).await;
        let lister = soon(informer.synced()).await.unwrap();
        let object = lister.list()[0].clone();
        assert_eq!(
            object.types.as_ref().map(|types| (&*types.api_version, &*types.kind)),
            Some(("v1", "ConfigMap"))
        );
        found.push(serde_json::to_value(&*object).unwrap());
    }
    assert_eq!(found[0], found[1]);
}

async fn g01_text_that_is_not_utf8_is_the_same_in_either_encoding() {
    // Whoever writes protobuf may write this, for servers check neither; in JSON they replace it,
    // byte by byte.
    for (form, sent) in [(Form::Json, "\u{fffd}\u{fffd}".as_bytes()), (Form::Protobuf, b"\xe2\x82")]
    {
        let (informer, mut server) = started(form, WireFormat::Auto);
        let mut odd = object("a", 1, "~~");
        odd["metadata"]["annotations"] = json!({ "note": "~~" });
        let mut body = form.list(10, &[odd, object("b", 2, "1")]);
        while let Some(at) = body.windows(2).position(|bytes| bytes == b"~~") {
            body.splice(at..at + 2, sent.iter().copied());
        }
        let (_, answer) = server.answer(&[]).await;
        answer.bytes(body);
        drop(answer);
        let lister = soon(informer.synced()).await.unwrap();
        let objects = lister.list();
        assert_eq!((objects.len(), value_of(&objects[0])), (2, "\u{fffd}\u{fffd}"), "{form:?}");
        assert_eq!(objects[0].metadata.annotations.as_ref().unwrap()["note"], "\u{fffd}\u{fffd}");
    }
}

async fn metadata_is_the_same_in_either_encoding() {
    let mut found = Vec::new();
    for form in Form::BOTH {
        let resource = widgets();
        let (source, mut server) = source(form, &resource, WireFormat::Auto);
        let options =
            InformerOptions::<PartialObjectMeta<DynamicObject>>::new().streaming_lists(false);
        let source = source.projection(informer::source::Projection::Metadata);
        let informer = SharedInformer::new(source, resource, options);
        informer.start();
        let list = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
            "metadata": { "resourceVersion": "10" },
            "items": [{ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": { "name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1", "labels": { "d": "e" } } }] });
        let mut body = list.to_string().into_bytes();
        if form == Form::Protobuf {
            body.clear();
            k8s_protobuf::encode::object(&list, &mut body).unwrap();
        }
        let (_, answer) = server.answer(&[]).await;
        answer.bytes(body);
        drop(answer);
        let lister = soon(informer.synced()).await.unwrap();
        found.push(lister.list()[0].metadata.clone());
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].labels.as_ref().unwrap()["d"], "e");
}
