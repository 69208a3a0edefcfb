//! The body of a list, in chunks.

use std::vec;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use jiff::Timestamp;
use k8s_protobuf::Kind;
use k8s_protobuf::encode::ListParts;
use serde_json::json;

use super::{FormKind, Object, Page, Scan, Snapshot, WriteError, Writer};
use crate::answer::{Body, BodyError, stream_response};
use crate::form::Form;
use crate::writer::prefix;

/// How large a chunk is, but for its last object.
const CHUNK: usize = 64 * 1024;

/// After how many steps over a snapshot others are let run, though nothing was selected.
const STEPS: usize = 16;

/// The objects of a list.
pub(super) enum Items<S: Snapshot> {
    /// All that is selected of a snapshot.
    Scan(Scan<S>),
    Taken(Vec<S::Object>),
}

/// A list, written while it is read.
struct Writing<S: Snapshot> {
    writer: Writer,
    now: Timestamp,
    scan: Option<Scan<S>>,
    ready: vec::IntoIter<S::Object>,
    parts: Parts,
    /// What was written that is not sent yet.
    out: Vec<u8>,
    started: bool,
}

/// What stands around the items.
enum Parts {
    Json {
        tail: String,
        /// What stands instead of no items at all.
        none: &'static str,
    },
    Protobuf(ListParts),
}

/// Answers with a list.
pub(super) async fn respond<S: Snapshot>(
    writer: Writer,
    form: Form,
    mut items: Items<S>,
    page: &Page,
    now: Timestamp,
) -> Result<Response<Body>, WriteError> {
    let (out, parts) = match form.0 {
        FormKind::Json(_) => {
            sort(&writer, &mut items)?;
            let (head, tail) = around(&writer, page);
            // Go has arrays that are nil.
            let is_nil = match writer.table() {
                Some(table) => table.is_default(),
                None => writer.metadata().is_some(),
            };
            (head, Parts::Json { tail, none: if is_nil { "null" } else { "[]" } })
        }
        FormKind::Protobuf { list, .. } => {
            let mut parts = protobuf_parts(&writer, list, &items, page).await?;
            (std::mem::take(&mut parts.head), Parts::Protobuf(parts))
        }
    };
    let (scan, ready) = match items {
        Items::Scan(scan) => (Some(scan), Vec::new()),
        Items::Taken(items) => (None, items),
    };
    let ready = ready.into_iter();
    let mut writing = Writing { writer, now, scan, ready, parts, out, started: false };
    // Before the head is sent, a failure can still be told, or another server be asked.
    let first = writing.chunk().await?;
    Ok(stream_response(
        form.media().as_str(),
        stream::unfold(Some((Some(first), writing)), |state| async move {
            let (first, mut writing) = state?;
            let chunk = match first {
                Some(chunk) => Ok(chunk),
                None => writing.chunk().await,
            };
            match chunk {
                Ok((chunk, true)) => Some((Ok(chunk), None)),
                Ok((chunk, false)) => Some((Ok(chunk), Some((None, writing)))),
                // The answer has begun: all that is left is to break it off.
                Err(_) => Some((Err(BodyError), None)),
            }
        }),
    ))
}

impl<S: Snapshot> Writing<S> {
    /// The next chunk, and whether it is the last.
    async fn chunk(&mut self) -> Result<(Bytes, bool), WriteError> {
        let mut out = std::mem::take(&mut self.out);
        out.reserve(CHUNK + CHUNK / 8);
        let mut steps = 0;
        while out.len() < CHUNK {
            if let Some(object) = self.ready.next() {
                self.item(&mut out, &object)?;
                continue;
            }
            match self.scan.as_mut().and_then(Scan::step) {
                Some(objects) => self.ready = objects.into_iter(),
                None => {
                    match &self.parts {
                        Parts::Json { tail, none } => {
                            let end = if self.started { "]" } else { none };
                            out.extend_from_slice(end.as_bytes());
                            out.extend_from_slice(tail.as_bytes());
                        }
                        Parts::Protobuf(list) => out.extend_from_slice(&list.tail),
                    }
                    return Ok((out.into(), true));
                }
            }
            steps += 1;
            if steps % STEPS == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok((out.into(), false))
    }

    fn item(&mut self, out: &mut Vec<u8>, object: &S::Object) -> Result<(), WriteError> {
        let written = match &self.parts {
            Parts::Json { .. } => {
                out.push(if std::mem::replace(&mut self.started, true) { b',' } else { b'[' });
                self.writer.item(out, object, self.now)
            }
            Parts::Protobuf(list) => {
                self.writer.message(object).map(|message| list.item(&message, out))
            }
        };
        written.map_err(|error| error.about(object))
    }
}

/// Puts the rows of a table in order, if it has an order of its own. All objects are there then.
fn sort<S: Snapshot>(writer: &Writer, items: &mut Items<S>) -> Result<(), WriteError> {
    let (Some(table), Items::Taken(objects)) = (writer.table(), items) else { return Ok(()) };
    let Some(order) = table.order() else { return Ok(()) };
    let mut rows = objects
        .drain(..)
        .map(|object| {
            let value = table.value(object.wire()).map_err(|error| error.about(&object))?;
            Ok((value, object))
        })
        .collect::<Result<Vec<_>, WriteError>>()?;
    rows.sort_by(|(a, _), (b, _)| order(a, b));
    objects.extend(rows.into_iter().map(|(_, object)| object));
    Ok(())
}

/// What stands before and behind the items in JSON.
///
/// Built-in kinds, metadata and tables have the metadata first. Lists of custom resources have
/// their fields in alphabetical order, so there the version and the token come **behind** the
/// items.
fn around(writer: &Writer, page: &Page) -> (Vec<u8>, String) {
    let version = page.version;
    let token = page.token.iter().map(|token| format!("\"continue\":\"{token}\""));
    let remaining = page.remaining.iter().map(|count| format!("\"remainingItemCount\":{count}"));
    let rest: Vec<String> = token.chain(remaining).collect();
    let rest = rest.join(",");
    let comma = if rest.is_empty() { "" } else { "," };
    let metadata = format!("{{\"resourceVersion\":\"{version}\"{comma}{rest}}}");
    let tail = "}\n".to_owned();
    if let Some(table) = writer.table() {
        let mut head = Vec::new();
        table.head(&mut head, &metadata, true);
        return (head, tail);
    }
    let resource = writer.resource();
    let api_version = resource.api_version();
    let (api_version, kind) = match writer.metadata() {
        Some(version) => (version.api_version(), "PartialObjectMetadataList".to_owned()),
        None if resource.custom => {
            let head = format!("{{\"apiVersion\":\"{api_version}\",\"items\":");
            let kind = &resource.kind;
            // The token is there even if there is none.
            let rest = if rest.is_empty() { "\"continue\":\"\"" } else { &rest };
            let metadata = format!("{{{rest},\"resourceVersion\":\"{version}\"}}");
            let tail = format!(",\"kind\":\"{kind}List\",\"metadata\":{metadata}}}\n");
            return (head.into_bytes(), tail);
        }
        None => (&*api_version, format!("{}List", resource.kind)),
    };
    let head = format!("{}\"metadata\":{metadata},\"items\":", prefix(api_version, &kind, false));
    (head.into_bytes(), tail)
}

/// What stands around the items in protobuf: before them, the length of all of them, too.
async fn protobuf_parts<S: Snapshot>(
    writer: &Writer,
    list: Kind,
    items: &Items<S>,
    page: &Page,
) -> Result<ListParts, WriteError> {
    let mut lengths = Vec::new();
    let mut measure = |objects: &[S::Object]| {
        for object in objects {
            let message = writer.message(object).map_err(|error| error.about(object))?;
            lengths.push(message.len());
        }
        Ok::<_, WriteError>(())
    };
    match items {
        Items::Taken(objects) => measure(objects)?,
        Items::Scan(scan) => {
            let mut scan = scan.clone();
            while let Some(objects) = scan.step() {
                measure(&objects)?;
                // Others want to be served meanwhile: what was never sent in this form may have to
                // be written first.
                tokio::task::yield_now().await;
            }
        }
    }
    let metadata = json!({
        "resourceVersion": page.version.to_string(),
        "continue": page.token,
        "remainingItemCount": page.remaining,
    });
    Ok(ListParts::new(list, &metadata, lengths)?)
}
