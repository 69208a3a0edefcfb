//! One object as it is kept: its bytes, and what selectors and events need.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use informer_core::wire::Wire;
use informer_core::{ObjectKey, Uid};
use k8s_protobuf::Kind;
use k8s_serve::{Resource, WriteError};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::json::{Fields, field_value};
use crate::protobuf;

/// An object as serialized JSON together with its key, UID, version and labels; cloning copies a
/// pointer.
///
/// The bytes start with `{"metadata":{…}` and have neither `apiVersion` nor `kind`, which follow
/// from the resource: list items of built-in kinds are sent without them.
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    key: ObjectKey,
    uid: Uid,
    version: u64,
    labels: Box<[(Box<str>, Box<str>)]>,
    json: Bytes,
    /// Where the metadata ends within `json`; it starts at [`METADATA_START`].
    metadata_end: u32,
    /// Where the digits of the version are within `json`.
    version_start: u32,
    /// The object, and its metadata alone, as messages of these kinds: made when first asked for.
    messages: [OnceLock<(Kind, Bytes)>; 2],
}

const METADATA_START: usize = "{\"metadata\":".len();

/// The order in which a real server writes the metadata of built-in kinds.
const METADATA_ORDER: [&str; 10] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];
const METADATA_END: [&str; 5] =
    ["labels", "annotations", "ownerReferences", "finalizers", "managedFields"];

impl Object {
    /// An object from its metadata and its other fields, at `version`.
    ///
    /// `apiVersion` and `kind` among the fields are dropped. The order of the fields is a real
    /// server's: alphabetical for custom resources, that of the Go types (metadata only) for the
    /// others.
    ///
    /// # Errors
    /// If name, namespace, UID or labels are not what they should be.
    pub(crate) fn assemble(
        resource: &Resource,
        mut metadata: Fields,
        mut rest: Fields,
        version: u64,
    ) -> Result<Self, serde_json::Error> {
        metadata.set("resourceVersion", &version.to_string().into());
        if resource.custom {
            metadata.sort(&[], &[]);
        } else {
            metadata.sort(&METADATA_ORDER, &METADATA_END);
        }
        for name in ["apiVersion", "kind", "metadata"] {
            rest.remove(name);
        }
        rest.sort(&[], &["spec", "status"]);

        let mut json = Vec::new();
        json.extend_from_slice(b"{\"metadata\":");
        metadata.write_to(&mut json);
        let metadata_end = json.len();
        if !rest.is_empty() {
            json.push(b',');
            rest.write_fields_to(&mut json);
        }
        json.push(b'}');
        json.shrink_to_fit();

        let labels: Option<std::collections::BTreeMap<Box<str>, Box<str>>> =
            metadata.read("labels")?;
        let name: String = metadata.read("name")?.unwrap_or_default();
        let namespace: String = metadata.read("namespace")?.unwrap_or_default();
        let uid: String = metadata.read("uid")?.unwrap_or_default();
        let version_start = version_offset(&json[..metadata_end]);
        Ok(Self(Arc::new(Inner {
            key: ObjectKey::namespaced(if resource.namespaced { &namespace } else { "" }, &name),
            uid: Uid::from(&*uid),
            version,
            labels: labels.unwrap_or_default().into_iter().collect(),
            json: json.into(),
            metadata_end: u32::try_from(metadata_end).unwrap_or(u32::MAX),
            version_start: u32::try_from(version_start).unwrap_or(u32::MAX),
            messages: Default::default(),
        })))
    }

    /// An object of `resource` as an API server wrote it.
    ///
    /// # Errors
    /// If the bytes are no JSON object with usable metadata, or its version is not a number.
    ///
    /// # Examples
    /// ```
    /// use informer_testkit::{Object, Resource};
    ///
    /// let nodes = Resource::new("", "v1", "nodes", "Node");
    /// let node = Object::parse(&nodes, br#"{"kind":"Node","metadata":{"name":"n1","resourceVersion":"7"}}"#)?;
    /// assert_eq!((node.key().name(), node.version()), ("n1", 7));
    /// assert_eq!(node.json(), r#"{"metadata":{"name":"n1","resourceVersion":"7"}}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn parse(resource: &Resource, json: &[u8]) -> Result<Self, serde_json::Error> {
        let rest = Fields::parse(json)?;
        let metadata = rest.object("metadata");
        let version: String = metadata.read("resourceVersion")?.unwrap_or_default();
        let version = version.parse().map_err(serde::de::Error::custom)?;
        Self::assemble(resource, metadata, rest, version)
    }

    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// The UID.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.0.uid
    }

    /// The version at which the object got this state.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.0.labels.binary_search_by(|(own, _)| (**own).cmp(key)).ok()?;
        Some(&self.0.labels[at].1)
    }

    /// The JSON without `apiVersion` and `kind`.
    #[must_use]
    pub fn json(&self) -> &Bytes {
        &self.0.json
    }

    /// The metadata as JSON.
    #[must_use]
    pub fn metadata_json(&self) -> &[u8] {
        &self.0.json[METADATA_START..self.0.metadata_end as usize]
    }

    /// The text, number or boolean at a path; empty if there is none.
    #[must_use]
    pub fn field(&self, path: &str) -> Cow<'_, str> {
        match path {
            "metadata.name" => Cow::Borrowed(self.0.key.name()),
            "metadata.namespace" => Cow::Borrowed(self.0.key.namespace()),
            _ => Cow::Owned(field_value(&self.0.json, path)),
        }
    }

    /// The object as `T`; most types want `apiVersion` and `kind`, so the resource is needed.
    ///
    /// # Errors
    /// If it is not a `T`.
    pub fn decode<T: DeserializeOwned>(&self, resource: &Resource) -> Result<T, serde_json::Error> {
        let mut json = Vec::with_capacity(self.0.json.len() + 64);
        let types = json!({ "apiVersion": resource.api_version(), "kind": resource.kind });
        json.extend_from_slice(types.to_string().trim_end_matches('}').as_bytes());
        json.push(b',');
        json.extend_from_slice(&self.0.json[1..]);
        serde_json::from_slice(&json)
    }

    /// The same state at a later version: what a DELETED event carries.
    #[must_use]
    pub fn at_version(&self, version: u64) -> Self {
        let old = &*self.0;
        let digits = old.version.to_string().len();
        let start = old.version_start as usize;
        let text = version.to_string();
        let mut json = Vec::with_capacity(old.json.len() + text.len());
        json.extend_from_slice(&old.json[..start]);
        json.extend_from_slice(text.as_bytes());
        json.extend_from_slice(&old.json[start + digits..]);
        Self(Arc::new(Inner {
            key: old.key.clone(),
            uid: old.uid.clone(),
            version,
            labels: old.labels.clone(),
            metadata_end: old.metadata_end + u32::try_from(text.len()).unwrap_or(0)
                - u32::try_from(digits).unwrap_or(0),
            version_start: old.version_start,
            json: json.into(),
            messages: Default::default(),
        }))
    }

    fn cached(&self, place: usize, kind: Kind, json: impl Fn() -> Bytes) -> Cow<'_, [u8]> {
        let encode = || protobuf::message(kind, &json(), self);
        let (own, message) = self.0.messages[place].get_or_init(|| (kind, encode()));
        // Versions of a resource share their objects.
        if *own == kind { Cow::Borrowed(message) } else { Cow::Owned(encode().into()) }
    }

    /// Metadata and the other fields, for a change.
    pub(crate) fn fields(&self) -> (Fields, Fields) {
        let mut rest = Fields::parse(&self.0.json).unwrap_or_default();
        let metadata = rest.object("metadata");
        rest.remove("metadata");
        (metadata, rest)
    }
}

impl k8s_serve::Object for Object {
    fn key(&self) -> &ObjectKey {
        self.key()
    }

    fn version(&self) -> u64 {
        self.version()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.label(key)
    }

    fn field(&self, path: &str) -> Cow<'_, str> {
        self.field(path)
    }

    fn wire(&self) -> Wire<'_> {
        Wire::json(&self.0.json)
    }

    fn message(&self, kind: Kind) -> Result<Cow<'_, [u8]>, WriteError> {
        Ok(self.cached(0, kind, || self.json().clone()))
    }

    fn metadata_message(&self, kind: Kind) -> Result<Cow<'_, [u8]>, WriteError> {
        let metadata = || [&self.0.json[..self.0.metadata_end as usize], b"}"].concat().into();
        Ok(self.cached(1, kind, metadata))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("key", &self.0.key)
            .field("uid", &self.0.uid)
            .field("version", &self.0.version)
            .finish_non_exhaustive()
    }
}

/// Equal bytes; the rest follows from them.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.0.json == other.0.json
    }
}

impl Eq for Object {}

/// Where the version's digits start. Depth 2 only: a label may be called `resourceVersion`, too.
fn version_offset(metadata: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0usize);
    let needle = b"\"resourceVersion\":\"";
    while at < metadata.len() {
        match metadata[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                if depth == 2 && metadata[at..].starts_with(needle) {
                    return at + needle.len();
                }
                at += 1;
                while at < metadata.len() && metadata[at] != b'"' {
                    at += if metadata[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Resource {
        Resource { namespaced: true, ..Resource::new("", "v1", "pods", "Pod") }
    }

    #[test]
    fn metadata_comes_in_the_order_of_a_real_server() {
        let json = br#"{"status":{},"spec":{},"kind":"Pod","apiVersion":"v1","metadata":{"managedFields":[],"labels":{"resourceVersion":"x\""},"resourceVersion":"99","namespace":"a","name":"b"}}"#;
        let pod = Object::parse(&pods(), json).unwrap();
        let text = r#"{"metadata":{"name":"b","namespace":"a","resourceVersion":"99","labels":{"resourceVersion":"x\""},"managedFields":[]},"spec":{},"status":{}}"#;
        assert_eq!(pod.json(), text);
        assert_eq!(pod.at_version(100).json(), &*text.replace("\"99\"", "\"100\""));
        assert_eq!(pod.at_version(100).metadata_json().last(), Some(&b'}'));
        assert_eq!(pod.label("resourceVersion"), Some("x\""));
    }

    #[test]
    fn the_version_of_a_custom_resource_is_found_behind_its_labels() {
        let widgets =
            Resource { custom: true, ..Resource::new("example.com", "v1", "widgets", "Widget") };
        let json =
            br#"{"metadata":{"labels":{"resourceVersion":"1"},"name":"w","resourceVersion":"5"}}"#;
        let widget = Object::parse(&widgets, json).unwrap().at_version(6);
        assert_eq!(
            widget.json(),
            r#"{"metadata":{"labels":{"resourceVersion":"1"},"name":"w","resourceVersion":"6"}}"#
        );
    }

    #[test]
    fn unusable_metadata_is_an_error() {
        for json in [
            "[]",
            "{}",
            r#"{"metadata":{"name":1,"resourceVersion":"1"}}"#,
            r#"{"metadata":{"name":"x"}}"#,
        ] {
            assert!(Object::parse(&pods(), json.as_bytes()).is_err(), "{json}");
        }
    }
}
