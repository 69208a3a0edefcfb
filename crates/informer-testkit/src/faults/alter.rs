//! What faults make of the objects in a body: of the items of a list, and of the events of a watch.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fault::Alteration;
use crate::json::Fields;

/// The body of a list, or the events that a watch sends at once.
pub(super) struct Altered {
    pub(super) bytes: Vec<u8>,
    /// The body ends here.
    pub(super) ends: bool,
}

impl Alteration {
    /// Whether it strikes once in a body, as opposed to everywhere.
    pub(super) fn is_single(&self) -> bool {
        match self {
            Self::Truncate | Self::Corrupt | Self::Oversized(_) | Self::Instead(_) => true,
            Self::Undecodable | Self::Duplicate | Self::WithoutEndBookmark => false,
        }
    }

    /// Alters the whole body of a list. `strikes` tells for a name whether this object is meant, and counts it.
    pub(super) fn list(&self, body: Vec<u8>, mut strikes: impl FnMut(&str) -> bool) -> Altered {
        let whole = |bytes| Altered { bytes, ends: false };
        let Some((head, items, tail)) = take_apart(&body) else { return whole(body) };
        if let Self::Instead(text) = self {
            let struck = items.iter().any(|item| strikes(&name_of(item))) || strikes("");
            return whole(if struck { text.as_bytes().to_vec() } else { body });
        }
        let mut out = head.to_vec();
        let mut again = Vec::new();
        for item in &items {
            if !matches!(out.last(), Some(b'[')) {
                out.push(b',');
            }
            if !strikes(&name_of(item)) {
                out.extend_from_slice(item.as_bytes());
                continue;
            }
            match self {
                Self::Truncate => {
                    out.extend_from_slice(half(item.as_bytes()));
                    return Altered { bytes: out, ends: true };
                }
                Self::Duplicate => {
                    out.extend_from_slice(item.as_bytes());
                    again.push(item);
                }
                _ => out.extend_from_slice(&self.object(item)),
            }
        }
        for item in again {
            out.push(b',');
            out.extend_from_slice(item.as_bytes());
        }
        out.extend_from_slice(tail);
        whole(out)
    }

    /// Alters whole events, each with its line break; `strikes` as above.
    pub(super) fn events(&self, lines: &[u8], mut strikes: impl FnMut(&str) -> bool) -> Altered {
        let mut out = Vec::new();
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let event = Fields::parse(line.trim_ascii_end()).unwrap_or_default();
            let kind = event.text("type").unwrap_or_default();
            let object = event.raw("object").unwrap_or_default();
            let struck = match (&*kind, self) {
                ("ADDED" | "MODIFIED" | "DELETED", Self::WithoutEndBookmark) => false,
                ("ADDED" | "MODIFIED" | "DELETED", _) => strikes(&name_of(object)),
                ("BOOKMARK", Self::WithoutEndBookmark) => ends_initial_events(object) && strikes(""),
                _ => false,
            };
            if !struck {
                out.extend_from_slice(line);
                continue;
            }
            match self {
                Self::Truncate => {
                    out.extend_from_slice(half(line));
                    return Altered { bytes: out, ends: true };
                }
                Self::Instead(text) => out.extend_from_slice(text.as_bytes()),
                Self::Duplicate => {
                    out.extend_from_slice(line);
                    out.extend_from_slice(line);
                }
                Self::WithoutEndBookmark => {}
                Self::Corrupt | Self::Oversized(_) | Self::Undecodable => {
                    out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
                    out.extend_from_slice(&self.object(object));
                    out.extend_from_slice(b"}\n");
                }
            }
        }
        Altered { bytes: out, ends: false }
    }

    /// Alters one object.
    fn object(&self, json: &str) -> Vec<u8> {
        match self {
            // The braces still match, so that what comes behind it can be read.
            Self::Corrupt => json.replacen(':', "=", 1).into_bytes(),
            Self::Oversized(bytes) => {
                let padding = "x".repeat(bytes.saturating_sub(json.len()));
                format!("{{\"padding\":\"{padding}\",{}", &json[1..]).into_bytes()
            }
            Self::Undecodable => undecodable(json),
            _ => json.as_bytes().to_vec(),
        }
    }
}

/// What stands before, between and behind the brackets of a list's items.
fn take_apart(body: &[u8]) -> Option<(&[u8], Vec<String>, &[u8])> {
    const ITEMS: &[u8] = b"\"items\":[";
    let list = Fields::parse(body.trim_ascii_end()).ok()?;
    let items: Vec<Box<RawValue>> = list.read("items").ok()??;
    let start = body.windows(ITEMS.len()).position(|window| window == ITEMS)? + ITEMS.len();
    let end = start + list.raw("items")?.len() - 2;
    let items = items.iter().map(|item| item.get().to_owned()).collect();
    Some((body.get(..start)?, items, body.get(end..)?))
}

fn half(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() / 2]
}

fn name_of(object: &str) -> String {
    metadata(object).text("name").unwrap_or_default().into_owned()
}

fn ends_initial_events(object: &str) -> bool {
    metadata(object).object("annotations").text("k8s.io/initial-events-end").as_deref() == Some("true")
}

fn metadata(object: &str) -> Fields {
    Fields::parse(object.as_bytes()).unwrap_or_default().object("metadata")
}

/// The object with other types in all fields but those that every object has.
fn undecodable(json: &str) -> Vec<u8> {
    let mut object = Fields::parse(json.as_bytes()).unwrap_or_default();
    let others: Vec<String> = object
        .names()
        .filter(|name| !matches!(*name, "apiVersion" | "kind" | "metadata"))
        .map(str::to_owned)
        .collect();
    for name in &others {
        let other = match object.read(name) {
            Ok(Some(Value::Array(_) | Value::Object(_))) => json!("of another type"),
            _ => json!([[0]]),
        };
        object.set(name, &other);
    }
    if others.is_empty() {
        let mut metadata = object.object("metadata");
        metadata.set("labels", &json!("of another type"));
        object.set_object("metadata", &metadata);
    }
    let mut out = Vec::new();
    object.write_to(&mut out);
    out
}
