//! Objects kept as the bytes that the server sent.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::wire::{Encoding, HeadError, MediaType, ObjectHead, Wire};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::decode::{DecodeError, RawObject};
use crate::fields::{FieldPath, HasFields, HasLabels};

/// An object of type `K` that is kept as its bytes, and decoded when somebody asks.
///
/// The bytes are the server's, without managedFields unless they were asked for: protobuf for
/// built-in kinds, JSON for the rest. A Pod takes what its protobuf takes, 2.6 kB where a decoded
/// one takes 28 kB, and arrives in the store in a tenth of the time. Name, namespace, UID, version,
/// [labels](Self::label) and [fields](Self::field) are read from the bytes, so indexes and
/// selectors work without decoding; [`write_json`](Self::write_json) serves the object to others.
///
/// Each [`decode`](Self::decode) decodes again: keep the `Arc` while you work with it. An object
/// that cannot be decoded into `K` is in the store all the same, and `decode` says why it cannot:
/// with a decoded representation it would have been reported when it came (G30).
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
    encoding: Encoding,
    decoded: PhantomData<fn() -> K>,
}

impl<K: DeserializeOwned + 'static> Lazy<K> {
    /// Decodes the object: 10 to 19 µs for a Pod, each time.
    ///
    /// # Errors
    /// When the object does not have the shape of `K`.
    pub fn decode(&self) -> Result<Arc<K>, DecodeError> {
        self.decode_as().map(Arc::new)
    }
}

impl<K> Lazy<K> {
    /// Decodes the object into another type, such as a struct of your own with the few fields that
    /// are needed here.
    ///
    /// # Errors
    /// When the object does not have the shape of `T`.
    pub fn decode_as<T: DeserializeOwned + 'static>(&self) -> Result<T, DecodeError> {
        self.wire().decode()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        self.head().map_or(Cow::Borrowed(""), |head| head.name)
    }

    /// The namespace; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> Cow<'_, str> {
        self.head().map_or(Cow::Borrowed(""), |head| head.namespace)
    }

    /// The UID; empty where the server gave none.
    #[must_use]
    pub fn uid(&self) -> Cow<'_, str> {
        self.head().map_or(Cow::Borrowed(""), |head| Cow::Owned(head.uid.to_string()))
    }

    /// The resource version; empty where the server gave none.
    #[must_use]
    pub fn resource_version(&self) -> Cow<'_, str> {
        self.head().map_or(Cow::Borrowed(""), |head| Cow::Owned(head.version.to_string()))
    }

    /// The value of one label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.wire().label(key)
    }

    /// The labels, by key.
    #[must_use]
    pub fn labels(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        self.wire().labels()
    }

    /// The value of one annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<Cow<'_, str>> {
        self.wire().annotation(key)
    }

    /// The text, number or boolean at a path, as a field selector sees it; `None` where there is
    /// nothing, an empty text, or something that is none of these. Of a path through arrays, the
    /// first.
    #[must_use]
    pub fn field(&self, path: &FieldPath) -> Option<Cow<'_, str>> {
        let mut first = None;
        self.fields(path, |value| {
            first.get_or_insert(value);
        });
        first
    }

    /// Calls `found` for each text, number or boolean at a path: more than one if the path goes
    /// through arrays, as `spec.containers[*].image` does. Empty texts are left out.
    pub fn fields<'a>(&'a self, path: &FieldPath, mut found: impl FnMut(Cow<'a, str>)) {
        let found = &mut |value: Cow<'a, str>| {
            if !value.is_empty() {
                found(value);
            }
        };
        self.wire().fields(&path.0, found);
    }

    /// Appends the object as JSON, on one line and equal to what the server would have sent: 5 to
    /// 10 µs for a Pod that is kept as protobuf, a copy for what is kept as JSON.
    ///
    /// # Errors
    /// When the bytes are no object of their kind. `out` is then as it was.
    pub fn write_json(&self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.wire().write_json(out)
    }

    /// The object's bytes, and what they are.
    #[must_use]
    pub fn wire(&self) -> Wire<'_> {
        Wire { encoding: self.encoding, bytes: &self.bytes }
    }

    fn head(&self) -> Option<ObjectHead<'_>> {
        // It was read when the object came.
        ObjectHead::of(self.wire()).ok()
    }

    /// Keeps the bytes: whether they are a `K` shows on access.
    pub(crate) fn keep(raw: RawObject<'_>) -> Result<Self, DecodeError> {
        let bytes = raw.wire.keep(raw.api_version, raw.kind)?;
        Ok(Self { bytes, encoding: raw.wire.encoding, decoded: PhantomData })
    }
}

impl<K> Lazy<K> {
    /// An object of its JSON text, such as a test needs.
    ///
    /// # Errors
    /// When the text is not one JSON object with a name.
    pub fn from_json(json: &[u8]) -> Result<Self, HeadError> {
        let wire = Wire::json(json);
        wire.check()?;
        ObjectHead::of(wire)?;
        Self::keep(RawObject::new(wire, "", "")).map_err(|_| HeadError::Malformed { offset: 0 })
    }

    /// An object of its protobuf, with the envelope that begins with `k8s\0`.
    ///
    /// # Errors
    /// When the bytes are no object of a built-in kind.
    pub fn from_protobuf(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::keep(RawObject::new(MediaType::Protobuf.object(bytes)?, "", ""))
    }
}

impl<K> HasLabels for Lazy<K> {
    fn label(&self, key: &str) -> Option<&str> {
        Self::label(self, key)
    }
}

impl<K> HasFields for Lazy<K> {
    fn field(&self, path: &FieldPath) -> Option<Cow<'_, str>> {
        Self::field(self, path)
    }
}

/// As JSON; other formats are given the JSON text. [`Lazy::write_json`] is faster.
impl<K> serde::Serialize for Lazy<K> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = Vec::new();
        self.write_json(&mut json).map_err(serde::ser::Error::custom)?;
        serde_json::from_slice::<&RawValue>(&json)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<K> Clone for Lazy<K> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), encoding: self.encoding, decoded: PhantomData }
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
