//! Objects as they are held and written.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use informer::decode::Wire;
use informer::{FieldPath, Lazy, ObjectKey};
use jiff::Timestamp;
use kube::core::DynamicObject;

/// An object as the informers of an endpoint keep it: its bytes.
///
/// A program that uses the same collection asks its factory for an informer of this type, and
/// decodes what it needs ([`Lazy::decode_as`]); it then shares the one watch with the endpoint.
pub type Object = Lazy<DynamicObject>;

/// An object with its key, for the read side.
#[derive(Clone)]
pub(crate) struct Cached {
    key: ObjectKey,
    object: Arc<Object>,
    /// When the state was received, of objects in the log of changes.
    received: Option<Timestamp>,
}

impl Cached {
    pub(crate) fn new(key: &ObjectKey, object: &Arc<Object>) -> Self {
        Self { key: key.clone(), object: Arc::clone(object), received: None }
    }

    pub(crate) fn received(self, at: Timestamp) -> Self {
        Self { received: Some(at), ..self }
    }

    pub(crate) fn received_at(&self) -> Option<Timestamp> {
        self.received
    }

    pub(crate) fn object(&self) -> &Object {
        &self.object
    }
}

impl k8s_serve::Object for Cached {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> u64 {
        self.object.resource_version().parse().unwrap_or_default()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.object.label(key)
    }

    fn field(&self, path: &str) -> Cow<'_, str> {
        match path {
            "metadata.name" => Cow::Borrowed(self.key.name()),
            "metadata.namespace" => Cow::Borrowed(self.key.namespace()),
            path => match path.parse::<FieldPath>() {
                Ok(path) => self.object.field(&path).unwrap_or_default(),
                Err(_) => Cow::Borrowed(""),
            },
        }
    }

    fn wire(&self) -> Wire<'_> {
        self.object.wire()
    }
}

/// What an object weighs in memory beside its bytes: its key, its record and its place in the
/// table, about.
const OVERHEAD: usize = 256;

/// What an object takes in memory, about.
pub(crate) fn weight(object: &Object) -> usize {
    object.wire().bytes.len() + OVERHEAD
}

/// Namespace and name, as they are said: `web/web-0`, or the name alone.
pub(crate) fn full_name(object: &Object) -> String {
    let (namespace, name) = (object.namespace(), object.name());
    if namespace.is_empty() { name.into_owned() } else { format!("{namespace}/{name}") }
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cached").field(&self.key).finish()
    }
}
