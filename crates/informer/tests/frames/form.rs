//! The two forms in which a server answers.

use k8s_protobuf::{Kind, encode};
use serde_json::{Value, json};

use crate::common::object;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Protobuf,
}

/// An object whose data cannot be decoded; its metadata can.
pub(crate) fn bad(name: &str, version: u64) -> Value {
    let mut object = object(name, version, "");
    object["data"] = "hunter2".into();
    object
}

impl Form {
    pub(crate) const BOTH: [Self; 2] = [Self::Json, Self::Protobuf];

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => k8s_protobuf::CONTENT_TYPE,
        }
    }

    pub(crate) fn list(self, version: u64, items: &[Value]) -> Vec<u8> {
        let items: Vec<Vec<u8>> = items.iter().map(|item| raw(self, item)).collect();
        self.list_of(&json!({ "resourceVersion": version.to_string() }), &items)
    }

    /// A list of items as they stand on the wire.
    pub(crate) fn list_of(self, metadata: &Value, items: &[Vec<u8>]) -> Vec<u8> {
        match self {
            Self::Json => {
                let head = format!(
                    r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{metadata},"items":["#
                );
                [head.into_bytes(), items.join(&b','), b"]}".to_vec()].concat()
            }
            Self::Protobuf => {
                let (kind, mut body) = (Kind::of("v1", "ConfigMapList").unwrap(), Vec::new());
                encode::list(kind, metadata, items, &mut body).unwrap();
                body
            }
        }
    }

    /// Items that end where their list says, and cannot be read; words of the reason, and whether
    /// they say that they are `default/b`.
    pub(crate) fn unreadable_items(self) -> Vec<(Vec<u8>, &'static str, bool)> {
        let b = object("b", 12, "hunter2");
        let mut nameless = b.clone();
        nameless["metadata"]["name"] = Value::Null;
        let mut slash = b.clone();
        slash["metadata"]["namespace"] = "default/b".into();
        let mut items = vec![
            (raw(self, &nameless), "no metadata.name", false),
            (raw(self, &slash), "slash", false),
        ];
        match self {
            Self::Json => {
                let text = b.to_string();
                items.push((text.replace("\"b\"", "").into(), "not valid JSON", false));
                items.push((br#"{"hunter2":}"#.to_vec(), "not valid JSON", false));
                // Servers write the metadata before the rest.
                let (data, metadata) = ("hunter2".repeat(300), &b["metadata"]);
                let broken = format!(r#"{{"metadata":{metadata},"data":{{"value":}}}}"#);
                items.push((broken.into(), "not valid JSON", true));
                let big = format!(r#"{{"metadata":{metadata},"data":{{"value":"{data}"}}}}"#);
                items.push((big.into(), "1000 bytes", true));
                items.push((
                    format!(r#"{{"padding":"{}",{}"#, "x".repeat(2000), &text[1..]).into(),
                    "1000 bytes",
                    false,
                ));
            }
            Self::Protobuf => {
                let good = raw(self, &b);
                items.push((
                    raw(self, &object("b", 12, &"hunter2".repeat(300))),
                    "1000 bytes",
                    true,
                ));
                items.push(([&b"\x0f"[..], &good].concat(), "protobuf", false));
                items.push(([&good[..], b"\x0f"].concat(), "protobuf", true));
                items.push((good[..good.len() - 1].to_vec(), "protobuf", true));
            }
        }
        items
    }

    pub(crate) fn frame(self, event: &str, object: &Value) -> Vec<u8> {
        match self {
            Self::Json => format!("{}\n", json!({ "type": event, "object": object })).into(),
            Self::Protobuf => {
                let (mut envelope, mut frame) = (Vec::new(), Vec::new());
                match object["kind"].as_str() {
                    Some("ConfigMap") => {
                        k8s_protobuf::Envelope::write(
                            "v1",
                            "ConfigMap",
                            &message(object),
                            &mut envelope,
                        );
                    }
                    _ => _ = encode::object(object, &mut envelope).unwrap(),
                }
                encode::watch_event(event, &envelope, &mut frame).unwrap();
                frame
            }
        }
    }

    /// How the cause of [`bad`] objects begins.
    pub(crate) fn cause_of_bad(self) -> &'static str {
        match self {
            Self::Json => "data: invalid type: string, expected",
            Self::Protobuf => ".: malformed protobuf",
        }
    }

    /// What ends a watch, and words of the reason.
    pub(crate) fn broken_frames(self) -> Vec<(Vec<u8>, &'static str)> {
        let oversized = self.frame("MODIFIED", &object("big", 13, &"x".repeat(2000)));
        match self {
            Self::Json => vec![
                (b"{\"type\":\"ADDED\",\"object\":{\"kin".to_vec(), "ended"),
                (b"{\"type\":\"ADDED\",\"object\":nonsense}\n".to_vec(), ""),
                (b"<html>".to_vec(), ""),
                (half_json(), "watch event"),
                (oversized, "1000"),
            ],
            Self::Protobuf => {
                let good = self.frame("ADDED", &object("new", 13, "1"));
                let nameless =
                    json!({ "kind": "ConfigMap", "metadata": { "resourceVersion": "13" } });
                let nameless = self.frame("ADDED", &nameless);
                vec![
                    (good[..good.len() - 5].to_vec(), "ended"),
                    (good[..2].to_vec(), "ended"),
                    (b"\0\0\0\x05{\"a\":".to_vec(), "watch event"),
                    (b"\0\0\0\0".to_vec(), "watch event"),
                    (b"\0\0\0\x0d\x0a\x05ADDED\x12\x04\x0a\x02{}".to_vec(), "envelope"),
                    (nameless, "no metadata.name"),
                    (b"<html>".to_vec(), "1000"),
                    (oversized, "1000"),
                ]
            }
        }
    }

    /// What is answered instead of a list.
    pub(crate) fn bodies_that_are_no_list(self) -> Vec<Vec<u8>> {
        match self {
            Self::Json => {
                let bodies = [
                    "{}",
                    "",
                    "[]",
                    "{\"kind\":\"Status\",\"code\":500}",
                    "{\"kind\":\"ConfigMapList\",\"items\":[",
                ];
                bodies.map(|body| body.as_bytes().to_vec()).to_vec()
            }
            Self::Protobuf => {
                let mut status = Vec::new();
                let failure = json!({ "kind": "Status", "apiVersion": "v1", "code": 500 });
                encode::object(&failure, &mut status).unwrap();
                let list = self.list(10, &[object("a", 1, "1")]);
                let mut trailing = self.list(10, &[]);
                trailing.extend(self.list(10, &[]));
                vec![
                    Vec::new(),
                    b"k8s\0".to_vec(),
                    b"{}".to_vec(),
                    status,
                    list[..list.len() - 10].to_vec(),
                    trailing,
                ]
            }
        }
    }
}

/// An object as it stands on the wire.
pub(crate) fn raw(form: Form, object: &Value) -> Vec<u8> {
    match form {
        Form::Json => object.to_string().into(),
        Form::Protobuf => message(object),
    }
}

/// An object's message, whose data are no map where they are a text.
fn message(object: &Value) -> Vec<u8> {
    let mut object = object.clone();
    let data = object["data"].take();
    let (kind, mut message) = (Kind::of("v1", "ConfigMap").unwrap(), Vec::new());
    if let Value::String(text) = &data {
        encode::message(kind, &object, &mut message).unwrap();
        message.extend([0x12, u8::try_from(text.len()).unwrap()]);
        message.extend(text.bytes());
    } else {
        object["data"] = data;
        encode::message(kind, &object, &mut message).unwrap();
    }
    message
}

/// A frame whose object begins well: it is not another state that cannot be decoded.
fn half_json() -> Vec<u8> {
    br#"{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":"u-a","resourceVersion":"13"},"data":{]}}"#
        .to_vec()
}
