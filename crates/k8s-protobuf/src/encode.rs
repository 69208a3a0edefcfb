//! Writing protobuf as an API server does, from the JSON of the same objects.
//!
//! Servers need this, such as one in memory for tests. Clients need not send protobuf: servers
//! accept JSON whatever they answer with. Objects are written as Kubernetes' own encoder writes
//! them: fields ascending, entries of maps sorted by key, and fields that are not pointers in Go
//! even if they are empty. Fields that the Go type lacks are left out, as is `null`.
//!
//! # Examples
//! ```
//! use k8s_protobuf::{Metadata, Envelope, encode};
//! use serde_json::json;
//!
//! let pod = json!({
//!     "apiVersion": "v1",
//!     "kind": "Pod",
//!     "metadata": { "name": "web-0", "namespace": "default" },
//!     "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
//! });
//! let mut body = Vec::new();
//! encode::object(&pod, &mut body)?;
//! let (kind, message) = Envelope::parse(&body)?.message()?;
//! assert_eq!(kind.to_string(), "v1 Pod");
//! assert_eq!(Metadata::of(message)?.name, "web-0");
//! # Ok::<(), k8s_protobuf::Error>(())
//! ```

mod message;
mod text;

use serde_json::Value;
#[cfg(test)]
pub(crate) use text::{bytes, duration, time};

use crate::envelope::MAGIC;
use crate::error::malformed;
use crate::wire::{put_bytes, put_varint};
use crate::{Envelope, Error, Kind};

/// The key of an object that stands for other JSON: it has no other key, and the text is the JSON.
/// This is how raw JSON within an object, such as managed fields, is given as a text, so that it may
/// be nested deeper than a [`Value`] should be. serde_json never reads an object with this key.
///
/// # Examples
/// ```
/// use k8s_protobuf::{encode, to_json};
/// use serde_json::json;
///
/// let revision = json!({
///     "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {}, "revision": 1,
///     "data": { "a": { encode::RAW_JSON: "[[1]]" } },
/// });
/// let (mut body, mut text) = (Vec::new(), Vec::new());
/// encode::object(&revision, &mut body)?;
/// to_json(&body, &mut text)?;
/// assert!(String::from_utf8_lossy(&text).contains(r#""data":{"a":[[1]]}"#));
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
pub const RAW_JSON: &str = "$serde_json::private::RawValue";

/// Appends an object to `out`, with the envelope, as in the body of an answer. The object names its
/// kind by `apiVersion` and `kind`.
///
/// # Errors
/// When the kind is not in the table, or the object does not fit its type. `out` is then as it was
/// before.
pub fn object(object: &Value, out: &mut Vec<u8>) -> Result<Kind, Error> {
    let text = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = Kind::find(text("apiVersion"), text("kind"))?;
    envelope(kind, object, out)?;
    Ok(kind)
}

/// Appends an object of this kind to `out`, with the envelope: for objects that do not name their
/// kind, such as the items of lists.
///
/// # Errors
/// When the object does not fit its type. `out` is then as it was before.
pub fn envelope(kind: Kind, object: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut raw = Vec::with_capacity(1024);
    message(kind, object, &mut raw)?;
    Envelope::write(kind.api_version(), kind.name(), &raw, out);
    Ok(())
}

/// Appends the message of an object of this kind to `out`, without an envelope, as within a list.
///
/// # Errors
/// When the object does not fit its type; the error has the path of the field. `out` is then as it
/// was before.
///
/// # Examples
/// ```
/// use k8s_protobuf::{Kind, encode};
/// use serde_json::json;
///
/// let pod = Kind::of("v1", "Pod").expect("it is built in");
/// let error = encode::message(pod, &json!({ "spec": { "nodeName": 7 } }), &mut Vec::new()).unwrap_err();
/// assert_eq!(error.to_string(), "spec.nodeName: expected a string, found a number");
/// ```
pub fn message(kind: Kind, object: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    let before = out.len();
    message::object(kind.message(), object, out).inspect_err(|_| out.truncate(before))
}

/// Appends one event of a watch to `out`: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`,
/// and an object with its envelope (see [`object`]), which for `ERROR` is a `Status`. These bytes
/// are the complete frame.
///
/// # Errors
/// When the object has 4 GiB or more, which the length prefix cannot express. `out` is then as it
/// was before.
pub fn watch_event(event: &str, envelope: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let mut raw = Vec::with_capacity(8);
    put_varint(1 << 3 | 2, &mut raw);
    put_varint(envelope.len() as u64, &mut raw);
    let mut head = Vec::with_capacity(event.len() + 16);
    put_bytes(1, event.as_bytes(), &mut head);
    put_varint(2 << 3 | 2, &mut head);
    put_varint((raw.len() + envelope.len()) as u64, &mut head);
    head.extend_from_slice(&raw);
    let length = u32::try_from(head.len() + envelope.len())
        .map_err(|_| malformed("an event longer than its length can say"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(envelope);
    Ok(())
}

/// Appends a list to `out`, with the envelope, given the messages of its items. The kind is that of
/// the list, such as `PodList`; `metadata` is its `ListMeta` as JSON.
///
/// To send a list in parts, use [`ListParts`], of which this is made.
///
/// # Errors
/// When the kind is not that of a list, or the metadata do not fit their type. `out` is then as it
/// was before.
///
/// # Examples
/// ```
/// use k8s_protobuf::{Kind, encode};
/// use serde_json::json;
///
/// let (pods, pod) = (Kind::of("v1", "PodList").unwrap(), Kind::of("v1", "Pod").unwrap());
/// let mut items = vec![Vec::new(); 2];
/// for (number, item) in items.iter_mut().enumerate() {
///     encode::message(pod, &json!({ "metadata": { "name": format!("web-{number}") } }), item)?;
/// }
/// let mut body = Vec::new();
/// encode::list(pods, &json!({ "resourceVersion": "7" }), &items, &mut body)?;
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
pub fn list(
    kind: Kind,
    metadata: &Value,
    items: &[impl AsRef<[u8]>],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let list = ListParts::new(kind, metadata, items.iter().map(|item| item.as_ref().len()))?;
    out.extend_from_slice(&list.head);
    items.iter().for_each(|item| list.item(item.as_ref(), out));
    out.extend_from_slice(&list.tail);
    Ok(())
}

/// What stands around the items of a list: for lists that are written while they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListParts {
    /// What comes before the first item.
    pub head: Vec<u8>,
    /// What comes after the last item.
    pub tail: Vec<u8>,
    /// The number of the field that holds the items.
    items: u32,
}

impl ListParts {
    /// The parts of a list of this kind whose items have these lengths: as many [items](Self::item)
    /// have to be written.
    ///
    /// # Errors
    /// When the kind is not that of a list, or the metadata do not fit their type.
    pub fn new(
        kind: Kind,
        metadata: &Value,
        lengths: impl IntoIterator<Item = usize>,
    ) -> Result<Self, Error> {
        let [first, second, ..] = kind.message().fields else {
            return Err(malformed("no kind of list"));
        };
        // Fields are written by their numbers, and not all kinds have the metadata first.
        let (before, items) = match (first.name, second.name) {
            ("metadata", "items") => (true, second),
            ("items", "metadata") => (false, first),
            _ => return Err(malformed("no kind of list")),
        };
        let items = u32::from(items.number);
        let mut own = Vec::with_capacity(64);
        message::field(if before { first } else { second }, Some(metadata), &mut own)?;
        let lengths = lengths.into_iter().map(|length| 1 + varint_length(length) + length);
        let mut types = Vec::with_capacity(64);
        put_bytes(1, kind.api_version().as_bytes(), &mut types);
        put_bytes(2, kind.name().as_bytes(), &mut types);
        let (mut head, mut tail) = (MAGIC.to_vec(), Vec::new());
        put_bytes(1, &types, &mut head);
        put_varint(2 << 3 | 2, &mut head);
        put_varint((own.len() + lengths.sum::<usize>()) as u64, &mut head);
        if before { &mut head } else { &mut tail }.extend_from_slice(&own);
        // Go writes these two fields of the envelope even if they are empty.
        put_bytes(3, b"", &mut tail);
        put_bytes(4, b"", &mut tail);
        Ok(Self { head, tail, items })
    }

    /// Appends one item: its message, see [`message`](fn@message).
    pub fn item(&self, message: &[u8], out: &mut Vec<u8>) {
        put_bytes(self.items, message, out);
    }
}

fn varint_length(value: usize) -> usize {
    let bits = (usize::BITS - value.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}
