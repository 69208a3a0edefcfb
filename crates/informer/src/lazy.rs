//! Objects kept as the bytes that the server sent.

mod json;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::wire::{HeadError, ObjectHead};
use k8s_protobuf::{Entries, Kind};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::decode::{Decode, DecodeError, RawObject, Wire};
use crate::field_path::FieldPath;
use crate::labels::HasLabels;

/// An object of type `K` that is kept as its bytes, and decoded when somebody asks.
///
/// The bytes are the server's, without managedFields unless they were asked for: protobuf for built-in kinds, JSON for
/// the rest. A Pod takes what its protobuf takes, 2.6 kB where a decoded one takes 28 kB, and arrives in the store in a
/// tenth of the time. Name, namespace, UID, version, [labels](Self::label) and [fields](Self::field) are read from the
/// bytes, so indexes and selectors work without decoding; [`write_json`](Self::write_json) serves the object to others.
///
/// Each [`decode`](Self::decode) decodes again: keep the `Arc` while you work with it. An object that cannot be decoded
/// into `K` is in the store all the same, and `decode` says why it cannot: with a decoded representation it would have
/// been reported when it came (G30).
///
/// # Examples
/// ```
/// use informer::{FieldPath, SharedInformerFactory};
/// use k8s_openapi::api::core::v1::Pod;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// # let server = informer_testkit::TestServer::start().await?;
/// # let client = server.client()?;
/// # server.cluster().load(informer_testkit::generate::pods(3))?;
/// let factory = SharedInformerFactory::builder(client).build();
/// let pods = factory.lazy::<Pod>()?;
/// let node = FieldPath::of::<Pod>("spec.nodeName")?;
/// let by_node = pods.add_index("node", move |pod, values| values.extend(pod.field(&node).as_deref())).await?;
/// factory.start();
/// let lister = pods.synced().await?;
/// for pod in lister.list() {
///     println!("{} on {:?}", pod.name(), pod.decode()?.spec.as_ref().and_then(|spec| spec.node_name.clone()));
/// }
/// # factory.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct Lazy<K> {
    bytes: Box<[u8]>,
    /// What the bytes are the message of; `None` for JSON.
    message_of: Option<Kind>,
    decoded: PhantomData<fn() -> K>,
}

impl<K: Decode> Lazy<K> {
    /// Decodes the object: 10 to 19 µs for a Pod, each time.
    ///
    /// # Errors
    /// When the object does not have the shape of `K`.
    pub fn decode(&self) -> Result<Arc<K>, DecodeError> {
        self.decode_as().map(Arc::new)
    }
}

impl<K> Lazy<K> {
    /// Decodes the object into another type, such as a struct of your own with the few fields that are needed here.
    ///
    /// # Errors
    /// When the object does not have the shape of `T`.
    pub fn decode_as<T: Decode>(&self) -> Result<T, DecodeError> {
        match self.message_of {
            Some(kind) => T::decode(RawObject::protobuf(kind, &self.bytes)),
            None => {
                let member = |key| text::member(&self.bytes, key).and_then(text::string).unwrap_or_default();
                T::decode(RawObject::new(&self.bytes, &member("apiVersion"), &member("kind")))
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match self.message() {
            Some(metadata) => Cow::Borrowed(metadata.name),
            None => json::metadata_text(&self.bytes, "name"),
        }
    }

    /// The namespace; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> Cow<'_, str> {
        match self.message() {
            Some(metadata) => Cow::Borrowed(metadata.namespace),
            None => json::metadata_text(&self.bytes, "namespace"),
        }
    }

    /// The UID; empty where the server gave none.
    #[must_use]
    pub fn uid(&self) -> Cow<'_, str> {
        match self.message() {
            Some(metadata) => Cow::Borrowed(metadata.uid),
            None => json::metadata_text(&self.bytes, "uid"),
        }
    }

    /// The resource version; empty where the server gave none.
    #[must_use]
    pub fn resource_version(&self) -> Cow<'_, str> {
        match self.message() {
            Some(metadata) => Cow::Borrowed(metadata.resource_version),
            None => json::metadata_text(&self.bytes, "resourceVersion"),
        }
    }

    /// The value of one label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        match self.message() {
            Some(metadata) => metadata.label(key),
            None => json::label(&self.bytes, key),
        }
    }

    /// The labels, by key.
    #[must_use]
    pub fn labels(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        match self.message() {
            Some(metadata) => borrowed(metadata.labels()),
            None => json::metadata_map(&self.bytes, "labels"),
        }
    }

    /// The value of one annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<Cow<'_, str>> {
        match self.message() {
            Some(metadata) => metadata.annotation(key).map(Cow::Borrowed),
            None => json::annotation(&self.bytes, key),
        }
    }

    /// The text, number or boolean at a path, as a field selector sees it; `None` where there is nothing, an empty text,
    /// or something that is none of these. Of a path through arrays, the first.
    #[must_use]
    pub fn field(&self, path: &FieldPath) -> Option<Cow<'_, str>> {
        let mut first = None;
        self.fields(path, |value| {
            first.get_or_insert(value);
        });
        first
    }

    /// Calls `found` for each text, number or boolean at a path: more than one if the path goes through arrays, as
    /// `spec.containers[*].image` does. Empty texts are left out.
    pub fn fields<'a>(&'a self, path: &FieldPath, mut found: impl FnMut(Cow<'a, str>)) {
        let found = &mut |value: Cow<'a, str>| {
            if !value.is_empty() {
                found(value);
            }
        };
        match self.message_of {
            Some(kind) => path.read_message(kind, &self.bytes, found),
            None => json::fields(&self.bytes, path.segments(), found),
        }
    }

    /// Appends the object as JSON, on one line and equal to what the server would have sent: 5 to 10 µs for a Pod that is kept
    /// as protobuf, a copy for what is kept as JSON.
    ///
    /// # Errors
    /// When the bytes are no object of their kind. `out` is then as it was.
    pub fn write_json(&self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let before = out.len();
        match self.message_of {
            Some(kind) => k8s_protobuf::message_to_json(kind, &self.bytes, out).map_err(|error| {
                out.truncate(before);
                protobuf_error(&error)
            }),
            None => {
                out.extend_from_slice(&self.bytes);
                Ok(())
            }
        }
    }

    /// The object's bytes, and what they are.
    #[must_use]
    pub fn wire(&self) -> Wire<'_> {
        match self.message_of {
            Some(kind) => Wire::Protobuf(kind, &self.bytes),
            None => Wire::Json(&self.bytes),
        }
    }

    fn message(&self) -> Option<k8s_protobuf::Metadata<'_>> {
        self.message_of?;
        // It was read when it came.
        k8s_protobuf::Metadata::of(&self.bytes).ok()
    }
}

impl<K> Lazy<K> {
    /// An object of its JSON text, such as a test needs.
    ///
    /// # Errors
    /// When the text is not one JSON object with a name.
    pub fn from_json(json: &[u8]) -> Result<Self, HeadError> {
        ObjectHead::parse(json)?;
        Ok(Self::of_json(json, "", ""))
    }

    /// An object of its protobuf, with the envelope that begins with `k8s\0`.
    ///
    /// # Errors
    /// When the bytes are no object of a built-in kind.
    pub fn from_protobuf(bytes: &[u8]) -> Result<Self, DecodeError> {
        let read = || {
            let (kind, message) = k8s_protobuf::Envelope::parse(bytes)?.message()?;
            k8s_protobuf::Metadata::of(message)?;
            Ok(Self::of_message(kind, message))
        };
        read().map_err(|error: k8s_protobuf::Error| protobuf_error(&error))
    }

    fn of_json(json: &[u8], api_version: &str, kind: &str) -> Self {
        Self { bytes: json::complete(json, api_version, kind), message_of: None, decoded: PhantomData }
    }

    fn of_message(kind: Kind, message: &[u8]) -> Self {
        Self { bytes: message.into(), message_of: Some(kind), decoded: PhantomData }
    }
}

/// Keeps the bytes: what is in them shows on access.
impl<K: 'static> Decode for Lazy<K> {
    fn decode(raw: RawObject<'_>) -> Result<Self, DecodeError> {
        Ok(match raw.wire {
            Wire::Json(json) => {
                // What is served from here must be JSON.
                serde_json::from_slice::<IgnoredAny>(json)
                    .map_err(|_| DecodeError { path: ".".to_owned(), message: "invalid JSON".to_owned() })?;
                Self::of_json(json, raw.api_version, raw.kind)
            }
            Wire::Protobuf(kind, message) => Self::of_message(kind, message),
        })
    }
}

impl<K> HasLabels for Lazy<K> {
    fn label(&self, key: &str) -> Option<&str> {
        Self::label(self, key)
    }
}

/// As JSON; other formats are given the JSON text. [`Lazy::write_json`] is faster.
impl<K> serde::Serialize for Lazy<K> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = Vec::new();
        self.write_json(&mut json).map_err(serde::ser::Error::custom)?;
        serde_json::from_slice::<&RawValue>(&json).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<K> Clone for Lazy<K> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), message_of: self.message_of, decoded: PhantomData }
    }
}

/// Without the object's content (G34).
impl<K> fmt::Debug for Lazy<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy")
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

fn borrowed<'a>(entries: Entries<'a>) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    entries.map(|(key, value)| (Cow::Borrowed(key), Cow::Borrowed(value))).collect()
}

/// Without values, which the errors of our own bytes do not have (G34).
fn protobuf_error(error: &k8s_protobuf::Error) -> DecodeError {
    match error {
        k8s_protobuf::Error::Type { path, message } => {
            DecodeError { path: path.clone(), message: message.clone() }
        }
        _ => DecodeError { path: ".".to_owned(), message: error.to_string() },
    }
}
