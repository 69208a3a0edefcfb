//! Finds the resource version in the body of a response while the body is streamed.

use std::io::Write;

use bytes::Bytes;
use flate2::write::GzDecoder;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// How many bytes of a protobuf message are searched. The metadata come first in the message, and
/// the version comes before labels and annotations, so this much is enough.
const MAX_PROTOBUF_PREFIX: usize = 16 * 1024;
/// How many bytes of a decompressed body are searched.
const MAX_DECOMPRESSED: usize = 64 * 1024;
/// Maximum length of a key or version that is kept for comparison.
const MAX_TOKEN: usize = 24;

/// Searches a body for `metadata.resourceVersion`, without buffering the body.
pub(super) struct VersionScan(State);

enum State {
    Json(JsonScan),
    Protobuf(Vec<u8>),
    Gzip(Box<GzDecoder<Decompressed>>),
    Found(u64),
    /// The body has no version, or the version cannot be read.
    Over,
}

impl VersionScan {
    /// Creates a scan for the body of a response with these headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
        let media_type = text(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
        let plain = match media_type {
            "application/json" => State::Json(JsonScan::default()),
            k8s_protobuf::CONTENT_TYPE => State::Protobuf(Vec::new()),
            _ => State::Over,
        };
        Self(match text(CONTENT_ENCODING) {
            "" | "identity" => plain,
            "gzip" => {
                State::Gzip(Box::new(GzDecoder::new(Decompressed { scan: Self(plain), seen: 0 })))
            }
            _ => State::Over,
        })
    }

    /// Searches the next part of the body. Returns the version once it is known.
    pub(super) fn push(&mut self, chunk: &Bytes) -> Option<u64> {
        self.scan(chunk);
        match self.0 {
            State::Found(version) => Some(version),
            _ => None,
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.0, State::Found(_) | State::Over)
    }

    fn scan(&mut self, chunk: &[u8]) {
        let next = match &mut self.0 {
            State::Json(scan) => scan.push(chunk),
            State::Protobuf(prefix) => {
                let room = MAX_PROTOBUF_PREFIX - prefix.len();
                prefix.extend_from_slice(&chunk[..chunk.len().min(room)]);
                match protobuf_version(prefix) {
                    None if prefix.len() == MAX_PROTOBUF_PREFIX => Some(State::Over),
                    found => found.map(State::Found),
                }
            }
            State::Gzip(decoder) => {
                let written = decoder.write_all(chunk).and_then(|()| decoder.flush());
                let inner = decoder.get_ref();
                match inner.scan.0 {
                    State::Found(version) => Some(State::Found(version)),
                    State::Over => Some(State::Over),
                    _ if written.is_err() || inner.seen > MAX_DECOMPRESSED => Some(State::Over),
                    _ => None,
                }
            }
            State::Found(_) | State::Over => None,
        };
        if let Some(next) = next {
            self.0 = next;
        }
    }
}

/// The output of the decoder. It searches the data and discards it.
struct Decompressed {
    scan: VersionScan,
    seen: usize,
}

impl Write for Decompressed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.seen += bytes.len();
        if self.scan.is_done() || self.seen > MAX_DECOMPRESSED {
            // An error is the only way to stop the decoder; the rest is not needed.
            return Err(std::io::ErrorKind::Other.into());
        }
        self.scan.scan(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Tokenizes a JSON object just enough to find `resourceVersion` in its `metadata`.
#[derive(Default)]
struct JsonScan {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    /// The last string in the outer two levels. It counts as empty if it is too long.
    token: Vec<u8>,
    is_too_long: bool,
    is_metadata: bool,
    is_version: bool,
}

impl JsonScan {
    fn push(&mut self, chunk: &[u8]) -> Option<State> {
        for &byte in chunk {
            if self.in_string {
                if self.is_escaped {
                    self.is_escaped = false;
                    self.is_too_long = true;
                } else if byte == b'\\' {
                    self.is_escaped = true;
                } else if byte == b'"' {
                    self.in_string = false;
                    if self.is_version && self.depth == 2 {
                        let text = std::str::from_utf8(self.token()).ok();
                        let version = text.and_then(|it| it.parse().ok());
                        return Some(version.map_or(State::Over, State::Found));
                    }
                } else if self.depth <= 2 && !self.is_too_long {
                    self.token.push(byte);
                    self.is_too_long = self.token.len() > MAX_TOKEN;
                }
                continue;
            }
            match byte {
                b'"' => {
                    self.in_string = true;
                    self.token.clear();
                    self.is_too_long = false;
                }
                b':' if self.depth == 1 => self.is_metadata = self.token() == b"metadata",
                b':' if self.depth == 2 && self.is_metadata => {
                    self.is_version = self.token() == b"resourceVersion";
                }
                b',' if self.depth == 1 => self.is_metadata = false,
                b',' if self.depth == 2 => self.is_version = false,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 1 && self.is_metadata {
                        return Some(State::Over);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn token(&self) -> &[u8] {
        if self.is_too_long { &[] } else { &self.token }
    }
}

/// The version in the metadata of the object or list that begins with `prefix`.
fn protobuf_version(prefix: &[u8]) -> Option<u64> {
    let unknown = prefix.strip_prefix(&k8s_protobuf::MAGIC)?;
    let kind = whole(field(field(unknown, 1)?.0, 2)?)?;
    let metadata = field(field(unknown, 2)?.0, 1)?.0;
    // `resourceVersion` has these field numbers in `ListMeta` and in `ObjectMeta`.
    let number = if kind.ends_with(b"List") { 2 } else { 6 };
    std::str::from_utf8(whole(field(metadata, number)?)?).ok()?.parse().ok()
}

/// The available bytes of a field, and whether they are complete. Only length-delimited fields are
/// skipped: all fields before the wanted ones are strings or messages, in the order of their
/// numbers.
fn field(mut message: &[u8], wanted: u64) -> Option<(&[u8], bool)> {
    loop {
        let (tag, rest) = varint(message)?;
        let (length, rest) = varint(rest)?;
        if tag & 7 != 2 {
            return None;
        }
        let length = usize::try_from(length).ok()?;
        if tag >> 3 == wanted {
            return Some((&rest[..length.min(rest.len())], length <= rest.len()));
        }
        message = rest.get(length..)?;
    }
}

fn whole((bytes, is_whole): (&[u8], bool)) -> Option<&[u8]> {
    is_whole.then_some(bytes)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().take(10).position(|it| it & 0x80 == 0)?;
    let value = bytes[..=end].iter().rev().fold(0, |all, it| (all << 7) | u64::from(it & 0x7f));
    Some((value, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use k8s_protobuf::encode;
    use serde_json::json;

    use super::*;

    /// The version found in a body. It must not depend on how the body is split into chunks.
    fn version(body: &[u8], media_type: &'static str, coding: &'static str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        let found = [1, 7, body.len().max(1)].map(|size| {
            let mut scan = VersionScan::of(&headers);
            body.chunks(size).find_map(|it| scan.push(&Bytes::copy_from_slice(it)))
        });
        assert!(found.iter().all(|it| *it == found[0]), "{found:?}");
        found[0]
    }

    #[test]
    fn the_version_of_objects_lists_and_tables_is_found_in_json() {
        for (body, found) in [
            (r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"17","x":{}}}"#, Some(17)),
            (r#"{ "metadata" : { "resourceVersion" : "18" }, "items": [] }"#, Some(18)),
            (
                r#"{"data":{"metadata":{"resourceVersion":"1"}},"kind":"ConfigMap","metadata":{"annotations":{"resourceVersion":"2","a\"":"{"},"resourceVersion":"19"}}"#,
                Some(19),
            ),
            (r#"{"kind":"Status","metadata":{},"details":{"resourceVersion":"3"}}"#, None),
            (r#"{"items":[{"metadata":{"resourceVersion":"4"}}]}"#, None),
            (r#"{"metadata":"resourceVersion","resourceVersion":"5"}"#, None),
            (r#"{"metadata":{"name":"resourceVersion","uid":"6"}}"#, None),
            (r#"{"metadata":{"resourceVersion":"x"}}"#, None),
            (r#"{"metadata":{"resourceVersion":"99999999999999999999999"}}"#, None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(version(body.as_bytes(), "application/json", "identity"), found, "{body}");
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            packed.write_all(body.as_bytes()).unwrap();
            let packed = packed.finish().unwrap();
            assert_eq!(version(&packed, "application/json;g=x", "gzip"), found, "packed {body}");
        }
    }

    #[test]
    fn the_version_of_objects_and_lists_is_found_in_protobuf() {
        let object = |value: &serde_json::Value| {
            let mut bytes = Vec::new();
            encode::object(value, &mut bytes).unwrap();
            version(&bytes, "application/vnd.kubernetes.protobuf", "")
        };
        let long = "x".repeat(200);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": long}, "metadata":
            {"name": "a", "namespace": "b", "resourceVersion": "21", "labels": {"a": long}}});
        assert_eq!(object(&pod), Some(21));
        let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "code": 200});
        assert_eq!(object(&status), None);
        assert_eq!(version(&[0xff; 40_000], "application/vnd.kubernetes.protobuf", ""), None);

        // The list is encoded by hand. `ListMeta` has the version in another field.
        let list = b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07PodList\x12\x06\x0a\x04\x12\x0222";
        assert_eq!(version(list, "application/vnd.kubernetes.protobuf", ""), Some(22));
    }

    #[test]
    fn other_encodings_have_none_and_no_body_is_kept() {
        let body = br#"{"metadata":{"resourceVersion":"17"}}"#;
        for (media_type, coding) in
            [("application/yaml", ""), ("", ""), ("application/json", "br"), ("text/plain", "")]
        {
            assert_eq!(version(body, media_type, coding), None, "{media_type} {coding}");
        }
        let mut scan = JsonScan::default();
        scan.push(br#"{""#);
        scan.push(&[b'x'; 100_000]);
        assert!(scan.token.capacity() < 100);
    }
}
