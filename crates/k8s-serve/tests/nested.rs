//! Objects with JSON that is nested as deep as API servers accept it.

mod support;

use informer_core::wire::Encoding;
use k8s_protobuf::encode::RAW_JSON;
use k8s_protobuf::{Envelope, Kind};
use k8s_serve::table::Columns;
use k8s_serve::{Change, Miss, Object, Resource};
use serde_json::{Value, json};
use support::{Answer, Fixed, Plain, get};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// Depths around the limits that readers have.
const LEVELS: [usize; 6] = [90, 99, 128, 200, 5_000, 9_990];

/// Objects in one another.
fn nested(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

fn metadata(name: &str, text: &str) -> Value {
    json!({
        "name": name, "namespace": "default", "uid": "u", "resourceVersion": "3",
        "managedFields": [{
            "manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": { RAW_JSON: text },
        }],
    })
}

/// As a server keeps it in protobuf.
fn revision(name: &str, text: &str) -> Plain {
    let object =
        json!({ "metadata": metadata(name, text), "data": { RAW_JSON: text }, "revision": 2 });
    Plain::protobuf(Kind::of("apps/v1", "ControllerRevision").unwrap(), &object)
}

fn claim(name: &str, text: &str) -> Plain {
    let opaque = json!([{ "opaque": { "driver": "d", "parameters": { RAW_JSON: text } } }]);
    let object = json!({
        "metadata": metadata(name, text), "spec": { "devices": { "config": opaque } },
    });
    Plain::protobuf(Kind::of("resource.k8s.io/v1", "ResourceClaim").unwrap(), &object)
}

fn widget(name: &str, text: &str) -> Plain {
    let json = format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"managedFields":[{{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{text},"manager":"m","operation":"Update"}}],"name":"{name}","namespace":"default","resourceVersion":"3"}},"spec":{{"a":{text},"b":"x"}}}}"#
    );
    Plain::text(json.as_bytes())
}

/// A collection with an object of a usual depth and another one.
fn backend(make: fn(&str, &str) -> Plain, text: &str) -> (Fixed, String) {
    let encoding = Object::wire(&make("x", "1")).encoding;
    let (group, plural, kind) = match encoding {
        Encoding::Protobuf(kind) if kind.name() == "ResourceClaim" => {
            ("resource.k8s.io", "resourceclaims", "ResourceClaim")
        }
        Encoding::Protobuf(_) => ("apps", "controllerrevisions", "ControllerRevision"),
        Encoding::Json => ("example.com", "widgets", "Widget"),
    };
    let custom = encoding == Encoding::Json;
    let resource =
        Resource { namespaced: true, custom, ..Resource::new(group, "v1", plural, kind) };
    let mut backend = Fixed::new(resource, vec![make("a", "{}"), make("b", text)]);
    backend.changes = vec![Change { version: 8, before: None, after: Some(make("c", text)) }];
    if custom {
        let definition = json!({"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": [
            {"name": "A", "type": "string", "jsonPath": ".spec.a"},
            {"name": "B", "type": "string", "jsonPath": ".spec.b"},
            {"name": "N", "type": "integer", "jsonPath": ".spec.a"},
            {"name": "Any", "type": "string", "jsonPath": "..b"},
        ]}]}});
        backend.columns = Columns::of_definition(&definition, "v1");
    }
    (backend, format!("/apis/{group}/v1/namespaces/default/{plural}"))
}

async fn answer(backend: &Fixed, uri: &str, accept: &str) -> Answer {
    get(&backend.clone().read(), uri, &[("accept", accept)]).await
}

/// Whether the body has the text.
fn has(answer: &Answer, text: &str) -> bool {
    answer.code == 200 && answer.body.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn a_deep_object_is_part_of_all_answers() {
    for make in [revision as fn(&str, &str) -> Plain, claim, widget] {
        for levels in LEVELS {
            let text = nested(levels);
            let (backend, path) = backend(make, &text);
            let watch = format!("{path}?watch=1&resourceVersion=7");
            let name = format!("{path}/b");
            for uri in [&path, &name, &watch] {
                let whole = answer(&backend, uri, "application/json").await;
                assert!(has(&whole, &text), "{uri} {levels}");
                let form = match *uri == path {
                    true => METADATA.replace("Metadata;", "MetadataList;"),
                    false => METADATA.to_owned(),
                };
                for media in ["application/json", PROTOBUF] {
                    let metadata = answer(&backend, uri, &format!("{media};{form}")).await;
                    assert!(has(&metadata, &text), "{uri} {levels} {media}");
                }
                for include in ["None", "Metadata", "Object"] {
                    let sign = if uri.contains('?') { '&' } else { '?' };
                    let uri = format!("{uri}{sign}includeObject={include}");
                    let table = answer(&backend, &uri, TABLE).await;
                    let expected = if include == "None" { "\"cells\":[\"" } else { &text };
                    assert!(has(&table, expected), "{uri} {levels}");
                }
            }
            if path.contains("widgets") {
                let table = answer(&backend, &format!("{path}?includeObject=None"), TABLE).await;
                let cells = json!(["b", text, "x", null, "x"]).to_string();
                assert!(table.text().contains(&cells), "{levels}");
            } else {
                let whole = answer(&backend, &path, PROTOBUF).await;
                assert!(has(&whole, &text), "{path} {levels}");
                assert!(Envelope::parse(&whole.body).is_ok());
            }
        }
    }
}

/// A list without a word about an object would be worse.
#[tokio::test]
async fn an_object_that_is_too_deep_to_be_written_is_named_before_anything_is_sent() {
    for levels in [10_001, 100_000] {
        let (backend, path) = backend(revision, &nested(levels));
        for uri in [path.clone(), format!("{path}/b")] {
            let answer = answer(&backend, &uri, "application/json").await;
            assert_eq!((answer.code, answer.extensions.get()), (500, Some(&Miss::Unwritable)));
            let message = answer.json()["message"].to_string();
            assert!(message.contains("default/b") && message.contains("10000"), "{message}");
        }
        assert_eq!(answer(&backend, &path, TABLE).await.code, 500, "it includes metadata");
        let table = answer(&backend, &format!("{path}?includeObject=None"), TABLE).await;
        assert_eq!(table.code, 200);
    }
}

#[tokio::test]
async fn columns_read_no_json_of_clients() {
    // Numbers that only Go accepts, and halves of characters.
    for text in [r#"{"a":1e999}"#, r#"{"a":"\ud800"}"#] {
        for make in [revision as fn(&str, &str) -> Plain, claim] {
            let (backend, path) = backend(make, text);
            assert!(has(&answer(&backend, &path, TABLE).await, text), "{text}");
        }
    }
}

/// serde_json reads the text under a key of its own as JSON once more, so that depth has no limit.
#[tokio::test]
async fn the_key_of_serde_json_is_a_key() {
    let text = json!({ RAW_JSON: "[1" }).to_string();
    let (backend, path) = backend(widget, &text);
    let table = answer(&backend, &format!("{path}?includeObject=None"), TABLE).await.json();
    assert_eq!(table["rows"][1]["cells"][1], text);
    let metadata = format!("{PROTOBUF};{METADATA}").replace("Metadata;", "MetadataList;");
    assert!(has(&answer(&backend, &path, &metadata).await, &text));
}
