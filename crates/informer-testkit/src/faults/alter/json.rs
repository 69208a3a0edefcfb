//! What faults make of JSON.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Altered, half};
use crate::faults::fault::Alteration;
use crate::json::Fields;

pub(super) fn list(
    this: &Alteration,
    body: Vec<u8>,
    mut strikes: impl FnMut(&str) -> bool,
) -> Altered {
    let Some((head, items, tail)) = take_apart(&body) else { return Altered::whole(body) };
    if let Alteration::Instead(text) = this {
        let struck = items.iter().any(|item| strikes(&name_of(item))) || strikes("");
        return Altered::whole(if struck { text.as_bytes().to_vec() } else { body });
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
        match this {
            Alteration::Truncate => {
                out.extend_from_slice(half(item.as_bytes()));
                return Altered { bytes: out, ends: true };
            }
            Alteration::Duplicate => {
                out.extend_from_slice(item.as_bytes());
                again.push(item);
            }
            _ => out.extend_from_slice(&altered(this, item)),
        }
    }
    for item in again {
        out.push(b',');
        out.extend_from_slice(item.as_bytes());
    }
    out.extend_from_slice(tail);
    Altered::whole(out)
}

pub(super) fn events(
    this: &Alteration,
    lines: &[u8],
    mut strikes: impl FnMut(&str) -> bool,
) -> Altered {
    let mut out = Vec::new();
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        let event = Fields::parse(line.trim_ascii_end()).unwrap_or_default();
        let kind = event.text("type").unwrap_or_default();
        let object = event.raw("object").unwrap_or_default();
        let struck = match (&*kind, this) {
            ("ADDED" | "MODIFIED" | "DELETED", Alteration::WithoutEndBookmark) => false,
            ("ADDED" | "MODIFIED" | "DELETED", _) => strikes(&name_of(object)),
            ("BOOKMARK", Alteration::WithoutEndBookmark) => {
                ends_initial_events(object) && strikes("")
            }
            _ => false,
        };
        if !struck {
            out.extend_from_slice(line);
            continue;
        }
        match this {
            Alteration::Truncate => {
                out.extend_from_slice(half(line));
                return Altered { bytes: out, ends: true };
            }
            Alteration::Instead(text) => out.extend_from_slice(text.as_bytes()),
            Alteration::Duplicate => {
                out.extend_from_slice(line);
                out.extend_from_slice(line);
            }
            Alteration::WithoutEndBookmark => {}
            Alteration::Corrupt | Alteration::Oversized(_) | Alteration::Undecodable => {
                out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
                out.extend_from_slice(&altered(this, object));
                out.extend_from_slice(b"}\n");
            }
        }
    }
    Altered::whole(out)
}

/// Alters one object.
fn altered(this: &Alteration, json: &str) -> Vec<u8> {
    match this {
        // The braces still match, so that what comes behind it can be read.
        Alteration::Corrupt => json.replacen(':', "=", 1).into_bytes(),
        Alteration::Oversized(bytes) => {
            let padding = "x".repeat(bytes.saturating_sub(json.len()));
            format!("{{\"padding\":\"{padding}\",{}", &json[1..]).into_bytes()
        }
        Alteration::Undecodable => undecodable(json),
        _ => json.as_bytes().to_vec(),
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

fn name_of(object: &str) -> String {
    metadata(object).text("name").unwrap_or_default().into_owned()
}

fn ends_initial_events(object: &str) -> bool {
    metadata(object).object("annotations").text("k8s.io/initial-events-end").as_deref()
        == Some("true")
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
