//! An answer in the form in which two servers' are compared.
//!
//! What the servers cannot agree on is taken out: managedFields, which the endpoint drops; the
//! versions of lists and bookmarks, which are those of the whole API server in one and of the
//! collection in the other; ages in tables. The rest stays as the bytes that were sent.

use std::io::Read;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use flate2::read::GzDecoder;
use http::{HeaderMap, StatusCode};
use k8s_protobuf::{Envelope, MAGIC, Reader, is_protobuf, without_managed_fields};
use serde_json::Value;

use super::requests::Request;
use crate::text::{replace_first, replace_text, without_ages, without_managed_fields_json};

/// The headers that clients act upon.
const HEADERS: [&str; 10] = [
    "allow",
    "cache-control",
    "content-encoding",
    "content-type",
    "etag",
    "location",
    "retry-after",
    "vary",
    "warning",
    "x-content-type-options",
];

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `name: value`, sorted; of [`HEADERS`] only.
    pub(crate) headers: Vec<String>,
    /// The body in parts: the frames of a watch, a list without its items and each of them.
    pub(crate) body: Vec<String>,
}

impl Answer {
    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// When the body is not what its headers say.
    pub(crate) fn read(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        request: &Request,
    ) -> anyhow::Result<Self> {
        let text = |name: &str| {
            headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        let mut kept = Vec::new();
        for name in HEADERS {
            let values = headers.get_all(name).iter();
            kept.extend(values.map(|value| format!("{name}: {}", value.as_bytes().escape_ascii())));
        }
        let mut unzipped = Vec::new();
        let body = if text("content-encoding") == "gzip" {
            GzDecoder::new(body).read_to_end(&mut unzipped).context("gzip")?;
            &unzipped
        } else {
            body
        };
        let is_watch = request.is_watch() && status == StatusCode::OK;
        let mut parts = match text("content-type") {
            it if it.starts_with("application/vnd.kubernetes.protobuf") && is_watch => {
                protobuf_frames(body)?
            }
            it if it.starts_with("application/vnd.kubernetes.protobuf") => protobuf(body)?,
            it if it.starts_with("application/json") && is_watch => json_frames(body)?,
            it if it.starts_with("application/json") => json(body)?,
            _ => vec![without_ages(&String::from_utf8_lossy(body))],
        };
        if is_watch {
            drop_bookmarks(&mut parts, request.waits_for_bookmarks());
        }
        Ok(Self { status: status.as_u16(), headers: kept, body: parts })
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Sets a header, or removes it.
    pub(crate) fn set_header(&mut self, name: &str, value: Option<&str>) {
        self.headers.retain(|line| !line.starts_with(&format!("{name}: ")));
        self.headers.extend(value.map(|value| format!("{name}: {value}")));
        self.headers.sort();
    }

    /// Whether a bookmark is in it that may come at any time.
    pub(crate) fn has_bookmark(&self) -> bool {
        self.body.iter().any(|frame| is_bookmark(frame))
    }

    /// Leaves these bookmarks out.
    pub(crate) fn drop_bookmarks(&mut self) {
        drop_bookmarks(&mut self.body, false);
    }

    /// The same answer with all that is JSON in one order of fields and one way of escaping.
    pub(crate) fn parsed(&self) -> Self {
        let parse = |part: &String| match serde_json::from_str::<Value>(part) {
            Ok(value) => value.to_string(),
            Err(_) => part.clone(),
        };
        Self { body: self.body.iter().map(parse).collect(), ..self.clone() }
    }

    /// In which aspects the two differ, in words.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.status != other.status {
            differences.push(format!("status {} became {}", self.status, other.status));
        }
        for line in self.headers.iter().filter(|line| !other.headers.contains(line)) {
            differences.push(format!("without {line}"));
        }
        for line in other.headers.iter().filter(|line| !self.headers.contains(line)) {
            differences.push(format!("with {line}"));
        }
        if self.body.len() != other.body.len() {
            differences.push(format!(
                "{} parts of the body became {}:\n    {}\n    {}",
                self.body.len(),
                other.body.len(),
                self.body.iter().map(|it| cut(it, 0)).collect::<Vec<_>>().join("\n    "),
                other.body.iter().map(|it| cut(it, 0)).collect::<Vec<_>>().join("\n    "),
            ));
        }
        let pairs = self.body.iter().zip(&other.body);
        for (part, (left, right)) in pairs.enumerate().filter(|(_, (left, right))| left != right) {
            let same = left.bytes().zip(right.bytes()).take_while(|(a, b)| a == b).count();
            let from = same.saturating_sub(60);
            differences.push(format!(
                "part {part} of the body, from byte {from}:\n    {}\n    {}",
                cut(left, from),
                cut(right, from)
            ));
        }
        differences
    }
}

/// A piece of a text for a failure's message.
fn cut(text: &str, from: usize) -> String {
    let bytes = text.as_bytes();
    let from = from.min(bytes.len());
    let end = (from + 400).min(bytes.len());
    let more = if end < bytes.len() { "…" } else { "" };
    format!("{}{more}", String::from_utf8_lossy(&bytes[from..end]))
}

/// Keeps the bookmark at the end of the initial events. How many others come is a matter of time:
/// one of several is kept, of a request that is long enough for one to come.
fn drop_bookmarks(frames: &mut Vec<String>, keep_one: bool) {
    if keep_one {
        frames.dedup_by(|next, frame| is_bookmark(next) && next == frame);
    } else {
        frames.retain(|frame| !is_bookmark(frame));
    }
}

/// Whether a frame is a bookmark that may come at any time.
fn is_bookmark(frame: &str) -> bool {
    let start = ["{\"type\":\"BOOKMARK\"", "BOOKMARK "].iter().any(|it| frame.starts_with(it));
    start && !frame.contains("k8s.io/initial-events-end")
}

fn json_frames(body: &[u8]) -> anyhow::Result<Vec<String>> {
    let text = std::str::from_utf8(body)?;
    ensure!(text.is_empty() || text.ends_with('\n'), "the last frame is not ended");
    let mut frames = Vec::new();
    for frame in text.lines() {
        let parsed: Value = serde_json::from_str(frame).context(frame.to_owned())?;
        let frame = without_managed_fields_json(frame);
        let frame = if parsed["type"] == "BOOKMARK" {
            replace_text(&frame, "resourceVersion", |_| "…".to_owned())
        } else if is_table(&parsed["object"]) {
            table(parsed.clone(), "/object")
        } else {
            frame
        };
        frames.push(frame);
    }
    Ok(frames)
}

fn json(body: &[u8]) -> anyhow::Result<Vec<String>> {
    let text = std::str::from_utf8(body)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let parsed: Value = match serde_json::from_str(text) {
        Ok(parsed) => parsed,
        // Not everything that is called JSON is.
        Err(_) => return Ok(vec![text.to_owned()]),
    };
    if is_table(&parsed) {
        return Ok(vec![table(parsed, "")]);
    }
    if parsed["kind"] == "Status" {
        // The current version is in the message.
        let message = parsed["message"].as_str().unwrap_or_default();
        let text = match message.split_once(", current: ") {
            Some((before, _)) => text.replace(message, &format!("{before}, current: …")),
            None => text.to_owned(),
        };
        return Ok(vec![text]);
    }
    let text = without_managed_fields_json(text);
    let Some(items) = parsed["items"].as_array().filter(|_| parsed["metadata"].is_object()) else {
        return Ok(vec![text]);
    };
    list_version(&parsed["metadata"], items)?;
    // Custom resources' lists have their fields in the order of the alphabet.
    let is_last = text.trim_start_matches(['{', ' ', '\n']).starts_with("\"apiVersion\"");
    let mut text = text;
    for (name, replace) in [
        ("resourceVersion", (|_| "…".to_owned()) as fn(&str) -> String),
        ("continue", token as fn(&str) -> String),
    ] {
        if parsed["metadata"][name].as_str().is_none_or(str::is_empty) {
            continue;
        }
        let key = format!("\"{name}\":");
        let at = if is_last { text.rfind(&key) } else { text.find(&key) };
        let (before, from) = text.split_at(at.context("it is there")?);
        text = format!("{before}{}", replace_first(from, replace));
    }
    Ok(vec![text])
}

/// A list's version is a number, and none of its objects is newer.
fn list_version(metadata: &Value, items: &[Value]) -> anyhow::Result<()> {
    let number = |value: &Value| value.as_str().and_then(|it| it.parse::<u64>().ok());
    let Some(version) = metadata["resourceVersion"].as_str().filter(|it| !it.is_empty()) else {
        return Ok(());
    };
    let version: u64 = version.parse().context("the version of a list")?;
    let newest = items.iter().filter_map(|item| number(&item["metadata"]["resourceVersion"])).max();
    ensure!(newest.unwrap_or(0) <= version, "a list of version {version} holds {newest:?}");
    Ok(())
}

/// A continue token without the version in it.
fn token(token: &str) -> String {
    let read = || -> anyhow::Result<String> {
        let mut fields: Value = serde_json::from_slice(&BASE64_STANDARD_NO_PAD.decode(token)?)?;
        ensure!(fields["rv"].is_number() || fields["rv"].is_null(), "{fields}");
        fields["rv"] = "…".into();
        Ok(fields.to_string().replace('"', "'"))
    };
    read().unwrap_or_else(|_| token.to_owned())
}

fn is_table(value: &Value) -> bool {
    value["kind"] == "Table" && value["rows"].is_array() || value["columnDefinitions"].is_array()
}

/// A table without what changes with time. The server's own order of fields is not kept: the
/// objects in rows are compared byte for byte elsewhere.
fn table(mut whole: Value, at: &str) -> String {
    let table = whole.pointer_mut(at).expect("the caller found it there");
    if let Some(metadata) = table["metadata"].as_object_mut() {
        if let Some(version) = metadata.get_mut("resourceVersion") {
            *version = "…".into();
        }
        if let Some(Value::String(it)) = metadata.get_mut("continue") {
            *it = token(it);
        }
    }
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        for cell in row["cells"].as_array_mut().into_iter().flatten() {
            if let Value::String(text) = cell {
                *text = without_ages(text);
            }
        }
        if let Some(metadata) = row["object"]["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
    }
    whole.to_string()
}

/// The envelope and the message, lists item by item.
fn protobuf(body: &[u8]) -> anyhow::Result<Vec<String>> {
    if !is_protobuf(body) {
        bail!("no protobuf: {}", body.escape_ascii());
    }
    let envelope = Envelope::parse(body)?;
    let mut parts = vec![format!("{} {}", envelope.api_version, envelope.kind)];
    // All of the envelope but the message, byte for byte.
    let mut fields = Reader::new(&body[MAGIC.len()..]);
    while let Some((number, value)) = fields.next()? {
        if number != 2 {
            parts.push(format!("{number}: {}", value.bytes()?.escape_ascii()));
        }
    }
    if envelope.kind == "Status" {
        let mut text = Vec::new();
        k8s_protobuf::to_json(body, &mut text)?;
        parts.extend(json(&text)?);
    } else if is_discovery(envelope.kind) {
        parts.push(envelope.raw.escape_ascii().to_string());
    } else if envelope.kind.ends_with("List") {
        parts.extend(list_parts(envelope.raw)?);
    } else {
        parts.push(object(envelope.raw)?);
    }
    Ok(parts)
}

/// Kinds without metadata.
fn is_discovery(kind: &str) -> bool {
    ["APIVersions", "APIGroup", "APIGroupList", "APIResourceList"].contains(&kind)
}

/// The parts of a list's message: all have `1: metadata, 2: items`.
fn list_parts(message: &[u8]) -> anyhow::Result<Vec<String>> {
    let mut parts = Vec::new();
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => {
                let mut metadata = Reader::new(value.bytes()?);
                while let Some((number, value)) = metadata.next()? {
                    parts.push(match (number, value) {
                        (2, value) => {
                            let version = value.text()?;
                            ensure!(
                                version.parse::<u64>().is_ok() || version.is_empty(),
                                "{version}"
                            );
                            format!(
                                "resourceVersion: {}",
                                if version.is_empty() { "" } else { "…" }
                            )
                        }
                        (3, value) => format!("continue: {}", token(value.text()?)),
                        (number, value) => format!("metadata {number}: {value:?}"),
                    });
                }
            }
            2 => parts.push(object(value.bytes()?)?),
            number => bail!("field {number} of a list"),
        }
    }
    Ok(parts)
}

fn object(message: &[u8]) -> anyhow::Result<String> {
    let mut scratch = Vec::new();
    Ok(without_managed_fields(message, &mut scratch)?.escape_ascii().to_string())
}

fn protobuf_frames(mut body: &[u8]) -> anyhow::Result<Vec<String>> {
    let mut frames = Vec::new();
    while !body.is_empty() {
        let (length, rest) = body.split_first_chunk().context("a length")?;
        let length = usize::try_from(u32::from_be_bytes(*length))?;
        let frame = rest.get(..length).context("a whole frame")?;
        body = &rest[length..];
        let (mut kind, mut object) = (String::new(), Vec::new());
        let mut fields = Reader::new(frame);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => value.text()?.clone_into(&mut kind),
                2 => {
                    let mut raw = Reader::new(value.bytes()?);
                    while let Some((number, value)) = raw.next()? {
                        ensure!(number == 1, "field {number} of a raw extension");
                        object = value.bytes()?.to_vec();
                    }
                }
                number => bail!("field {number} of an event"),
            }
        }
        let shown = if kind == "BOOKMARK" {
            let mut text = Vec::new();
            k8s_protobuf::to_json(&object, &mut text)?;
            replace_text(std::str::from_utf8(&text)?, "resourceVersion", |_| "…".to_owned())
        } else {
            protobuf(&object)?.join(" ")
        };
        frames.push(format!("{kind} {shown}"));
    }
    Ok(frames)
}
