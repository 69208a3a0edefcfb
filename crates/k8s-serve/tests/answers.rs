//! What is answered, and in which forms: of objects that are kept in JSON, and in protobuf.

mod support;

use std::io::Read;

use k8s_protobuf::Kind;
use k8s_serve::{Change, Miss, Resource};
use serde_json::{Value, json};
use support::{Fixed, Plain, get};

const PATH: &str = "/api/v1/namespaces/default/configmaps";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn resource() -> Resource {
    Resource { namespaced: true, ..Resource::new("", "v1", "configmaps", "ConfigMap") }
}

fn object(name: &str, version: u64, text: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": "u",
            "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "app": "<web>" },
        },
        "data": { "key": text },
    })
}

/// The ConfigMap as both backends keep it.
fn both(object: &Value) -> [Plain; 2] {
    let kind = Kind::of("v1", "ConfigMap").unwrap();
    let protobuf = Plain::protobuf(kind, object);
    // In Go's order, as an API server sends it.
    let mut json = Vec::new();
    k8s_protobuf::message_to_json(kind, &protobuf_bytes(&protobuf), &mut json).unwrap();
    [Plain::text(&json), protobuf]
}

fn protobuf_bytes(object: &Plain) -> Vec<u8> {
    k8s_serve::Object::wire(object).bytes.to_vec()
}

/// Two objects and three changes, kept in JSON, and the same kept in protobuf.
fn backends() -> [Fixed; 2] {
    let (a, b) = (both(&object("a", 3, "1")), both(&object("b", 5, "2")));
    let changed = both(&object("a", 8, "3"));
    [0, 1].map(|at| {
        let (a, b, changed) = (a[at].clone(), b[at].clone(), changed[at].clone());
        let changes = vec![
            Change { version: 8, before: Some(a.clone()), after: Some(changed.clone()) },
            Change { version: 9, before: None, after: Some(b.clone()) },
            Change { version: 1000, before: Some(changed), after: None },
        ];
        Fixed { changes, ..Fixed::new(resource(), vec![a, b]) }
    })
}

#[tokio::test]
async fn the_encoding_in_which_objects_are_kept_does_not_show() {
    let [json, protobuf] = backends().map(Fixed::read);
    let forms = [
        "",
        ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
    ];
    for media in ["application/json", PROTOBUF] {
        for form in forms {
            let list = form.replace("Metadata;", "MetadataList;");
            for (uri, form) in [
                (format!("{PATH}/a"), form),
                (PATH.to_owned(), &*list),
                (format!("{PATH}?limit=1"), &*list),
                (format!("{PATH}?labelSelector=app=none"), &*list),
                (format!("{PATH}?watch=1&resourceVersion=0&allowWatchBookmarks=1"), form),
                (format!("{PATH}?watch=1&resourceVersion=7"), form),
            ] {
                let accept = format!("{media}{form}");
                let answers = (
                    get(&json, &uri, &[("accept", &accept)]).await,
                    get(&protobuf, &uri, &[("accept", &accept)]).await,
                );
                assert_eq!((answers.0.code, answers.1.code), (200, 200), "{accept} {uri}");
                assert_eq!(answers.0.body, answers.1.body, "{accept} {uri}");
                assert_eq!(answers.0.headers, answers.1.headers);
            }
        }
    }
}

#[tokio::test]
async fn json_is_as_an_api_server_writes_it() {
    for side in backends().map(Fixed::read) {
        let metadata = |name: &str, version: &str| {
            format!(
                r#"{{"name":"{name}","namespace":"default","uid":"u","resourceVersion":"{version}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"\u003cweb\u003e"}}}}"#
            )
        };
        let (a, b) = (metadata("a", "3"), metadata("b", "5"));
        let types = r#""kind":"ConfigMap","apiVersion":"v1""#;
        assert_eq!(
            get(&side, &format!("{PATH}/a"), &[]).await.text(),
            format!("{{{types},\"metadata\":{a},\"data\":{{\"key\":\"1\"}}}}\n")
        );
        assert_eq!(
            get(&side, PATH, &[]).await.text(),
            format!(
                r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{{"metadata":{a},"data":{{"key":"1"}}}},{{"metadata":{b},"data":{{"key":"2"}}}}]}}"#
            ) + "\n"
        );
        assert_eq!(
            get(&side, &format!("{PATH}?labelSelector=x"), &[]).await.text(),
            "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}\n"
        );
        let partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1";
        assert_eq!(
            get(&side, &format!("{PATH}?limit=1"), &[("accept", partial)]).await.text(),
            format!(
                r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1beta1","metadata":{{"resourceVersion":"7","continue":"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiIvYVx1MDAwMCJ9","remainingItemCount":1}},"items":[{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":{a}}}]}}"#
            ) + "\n"
        );
        // Where Go has an array that is nil.
        let none = get(&side, &format!("{PATH}?labelSelector=x"), &[("accept", partial)]).await;
        assert!(none.text().ends_with("\"items\":null}\n"), "{}", none.text());
        let changed = metadata("a", "8");
        let gone = metadata("a", "1000");
        assert_eq!(
            get(&side, &format!("{PATH}?watch=1&resourceVersion=7"), &[]).await.text(),
            [
                format!(r#"{{"type":"MODIFIED","object":{{{types},"metadata":{changed},"data":{{"key":"3"}}}}}}"#),
                format!(r#"{{"type":"ADDED","object":{{{types},"metadata":{b},"data":{{"key":"2"}}}}}}"#),
                format!(r#"{{"type":"DELETED","object":{{{types},"metadata":{gone},"data":{{"key":"3"}}}}}}"#),
                String::new(),
            ]
            .join("\n")
        );
    }
}

#[tokio::test]
async fn tables_have_a_row_for_each_object() {
    for side in backends().map(Fixed::read) {
        let rows = |table: &Value| {
            let rows = table["rows"].as_array().unwrap();
            rows.iter().map(|row| row["cells"].clone()).collect::<Vec<_>>()
        };
        let table = get(&side, &format!("{PATH}?limit=1"), &[("accept", TABLE)]).await;
        assert_eq!(table.headers["content-type"], "application/json");
        let table = table.json();
        assert_eq!(
            (&table["kind"], &table["apiVersion"]),
            (&json!("Table"), &json!("meta.k8s.io/v1"))
        );
        assert_eq!(table["metadata"]["remainingItemCount"], 1);
        assert_eq!(table["columnDefinitions"].as_array().unwrap().len(), 3);
        assert_eq!(rows(&table), [json!(["a", 1, "60m"])]);
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        let uri = format!("{PATH}/a?includeObject=Object");
        let table = get(&side, &uri, &[("accept", TABLE)]).await.json();
        assert_eq!(table["metadata"], json!({ "resourceVersion": "3" }));
        assert_eq!(table["rows"][0]["object"]["data"]["key"], "1");
        let uri = format!("{PATH}?includeObject=None");
        let table = get(&side, &uri, &[("accept", TABLE)]).await.json();
        assert_eq!(table["rows"][1], json!({ "cells": ["b", 1, "60m"], "object": null }));
        let none = get(&side, &format!("{PATH}?labelSelector=x"), &[("accept", TABLE)]).await;
        assert!(none.text().ends_with("\"rows\":[]}\n"));
    }
}

#[tokio::test]
async fn only_the_first_table_of_a_watch_has_columns() {
    for side in backends().map(Fixed::read) {
        let uri = format!("{PATH}?watch=1&allowWatchBookmarks=1&includeObject=None");
        let watch = get(&side, &uri, &[("accept", TABLE)]).await;
        let events: Vec<Value> =
            watch.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let short = |event: &Value| {
            let table = &event["object"];
            format!(
                "{} {} {} {}",
                event["type"].as_str().unwrap(),
                table["metadata"]["resourceVersion"].as_str().unwrap(),
                table["columnDefinitions"].is_array(),
                table["rows"][0]["cells"],
            )
        };
        assert_eq!(
            events.iter().map(short).collect::<Vec<_>>(),
            [
                r#"ADDED 3 true ["a",1,"60m"]"#,
                r#"ADDED 5 false ["b",1,"60m"]"#,
                r#"BOOKMARK 7 false ["",0,"<unknown>"]"#,
                r#"MODIFIED 8 false ["a",1,"60m"]"#,
                r#"ADDED 5 false ["b",1,"60m"]"#,
                r#"DELETED 1000 false ["a",1,"60m"]"#,
            ]
        );
        let end = &events[2]["object"]["rows"][0]["object"]["metadata"]["annotations"];
        assert_eq!(end["k8s.io/initial-events-end"], "true");
        assert!(watch.text().contains("\\u003cunknown\\u003e"));
    }
}

fn many(count: usize) -> Fixed {
    let kind = Kind::of("v1", "ConfigMap").unwrap();
    let text = "x".repeat(1000);
    let objects = (0..count)
        .map(|number| Plain::protobuf(kind, &object(&format!("cm-{number:05}"), 3, &text)));
    Fixed::new(resource(), objects.collect())
}

#[tokio::test]
async fn large_answers_are_compressed_for_who_accepts_it() {
    let (large, small) = (many(1000).read(), many(10).read());
    for accept in ["application/json", PROTOBUF, TABLE] {
        let uri = format!("{PATH}?includeObject=Object");
        let plain = get(&large, &uri, &[("accept", accept)]).await;
        assert!(!plain.headers.contains_key("content-encoding"));
        let coded = [("accept", accept), ("accept-encoding", "deflate, gzip")];
        let gzip = get(&large, &uri, &coded).await;
        assert_eq!(gzip.headers["content-encoding"], "gzip");
        assert_eq!(gzip.headers["vary"], "Accept-Encoding");
        assert!(gzip.body.len() < plain.body.len() / 2);
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut body).unwrap();
        assert!(body == plain.body, "{accept}");
        let small = get(&small, &uri, &coded).await;
        assert!(!small.headers.contains_key("content-encoding"));
        let watch = get(&large, &format!("{PATH}?watch=1"), &coded).await;
        assert!(!watch.headers.contains_key("content-encoding"));
    }
    let weighted = [("accept-encoding", "gzip;q=1")];
    assert!(!get(&large, PATH, &weighted).await.headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn an_object_that_cannot_be_written_is_no_answer() {
    let kind = Kind::of("v1", "ConfigMap").unwrap();
    let broken = Plain::protobuf(kind, &object("a", 3, "1")).broken();
    let mut backend = Fixed::new(resource(), vec![broken.clone()]);
    backend.changes = vec![Change { version: 9, before: None, after: Some(broken) }];
    let side = backend.read();
    let answer = get(&side, &format!("{PATH}/a"), &[]).await;
    assert_eq!((answer.code, &answer.json()["reason"]), (500, &json!("InternalError")));
    let watch = get(&side, &format!("{PATH}?watch=1&resourceVersion=7"), &[]).await;
    let event: Value = serde_json::from_slice(&watch.body).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(500)));
    // Nothing of a list was sent yet: another server can be asked instead.
    for accept in ["application/json", TABLE] {
        let list = get(&side, PATH, &[("accept", accept)]).await;
        assert_eq!((list.code, list.extensions.get()), (500, Some(&Miss::Unwritable)));
        let message = &list.json()["message"];
        assert!(message.as_str().unwrap().contains("default/a"), "{message}");
    }
}

#[tokio::test]
async fn a_list_that_has_begun_is_broken_off_at_an_object_that_cannot_be_written() {
    let kind = Kind::of("v1", "ConfigMap").unwrap();
    let large = Plain::protobuf(kind, &object("a", 3, &"x".repeat(100_000)));
    let broken = Plain::protobuf(kind, &object("b", 4, "1")).broken();
    let side = Fixed::new(resource(), vec![large, broken]).read();
    let route = k8s_serve::Route::parse(PATH);
    let list = side.respond(&route, "", &http::HeaderMap::new()).await;
    assert_eq!(list.status(), 200);
    assert!(http_body_util::BodyExt::collect(list.into_body()).await.is_err());
}

/// All of it as kube-apiserver 1.36 answers.
#[tokio::test]
async fn what_is_not_there_is_told_in_the_servers_words() {
    let [side, _] = backends().map(Fixed::read);
    let unknown = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"the server could not find the requested resource\",\"reason\":\"NotFound\",\"details\":{},\"code\":404}\n";
    let nothing = "404 page not found\n";
    for (uri, text) in [
        ("/api/v1/nope", unknown),
        ("/api/v9", unknown),
        ("/api/v1/configmaps/a", unknown),
        (&*format!("{PATH}/a/status"), unknown),
        ("/apis/nope", nothing),
        ("/apis/nope/v1", nothing),
        ("/apis/nope/v1/things", nothing),
        ("/nope", nothing),
    ] {
        let answer = get(&side, uri, &[]).await;
        assert_eq!((answer.code, answer.text()), (404, text), "{uri}");
    }
    let bad = get(&side, &format!("{PATH}/a?resourceVersion=x"), &[]).await;
    assert_eq!(
        (bad.code, bad.text()),
        (
            500,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"resourceVersion: Invalid value: \\\"x\\\": strconv.ParseUint: parsing \\\"x\\\": invalid syntax\",\"code\":500}\n"
        )
    );
    let raw = get(&side, PATH, &[("accept", "application/json;as=Foo")]).await;
    assert_eq!(raw.code, 406);
    assert!(raw.text().starts_with(
        "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n"
    ));
    assert!(raw.text().ends_with("\n  \"code\": 406\n}"));
}

#[tokio::test]
async fn people_get_indented_json() {
    let [side, _] = backends().map(Fixed::read);
    let curl = [("user-agent", "curl/8.0")];
    let pretty = get(&side, &format!("{PATH}?labelSelector=x"), &curl).await;
    assert_eq!(
        pretty.text(),
        "{\n  \"kind\": \"ConfigMapList\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    \"resourceVersion\": \"7\"\n  },\n  \"items\": []\n}"
    );
    let plain = get(&side, PATH, &[]).await;
    assert_eq!(get(&side, PATH, &curl).await.json(), plain.json());
    let watch = get(&side, &format!("{PATH}?watch=1&resourceVersion=7"), &curl).await;
    assert_eq!(watch.text().lines().count(), 3);
}
