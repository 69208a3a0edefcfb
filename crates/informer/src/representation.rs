//! How received objects become what an informer keeps.

use std::fmt;

use kube::core::{DynamicObject, PartialObjectMeta, TypeMeta};
use serde::de::DeserializeOwned;

use crate::Lazy;
use crate::decode::{DecodeError, Encoding, RawObject};
use crate::reflector::{Identity, identity_of};

/// How received objects become `T`: the form in which an informer keeps them. Part of
/// [`InformerOptions`](crate::InformerOptions), which have the default of `T` unless they are made
/// [of another one](crate::InformerOptions::of).
///
/// Decoding is called once for each received version of an object, item by item from the stream.
///
/// # Examples
/// A struct of your own takes a fraction of the memory of the full type; serde skips the rest of
/// the object while decoding:
/// ```
/// use informer::{InformerOptions, Representation};
///
/// #[derive(serde::Deserialize)]
/// struct PodPhase { status: Status }
///
/// #[derive(serde::Deserialize)]
/// struct Status { phase: String }
///
/// let options = InformerOptions::<PodPhase>::new();
/// ```
/// What serde cannot do, a function does:
/// ```
/// # use informer::{InformerOptions, Representation};
/// struct Size(usize);
///
/// let size = Representation::custom("size", |raw| Ok(Size(raw.wire.bytes.len())));
/// let options = InformerOptions::of(size);
/// ```
pub struct Representation<T> {
    form: Form,
    pub(crate) decode: fn(RawObject<'_>) -> Result<T, DecodeError>,
    /// How to read an object's identity, for types that have it.
    pub(crate) identity: Option<fn(&T) -> Identity<'_>>,
}

/// What a representation is, whatever its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Serde,
    Typed,
    Metadata,
    Dynamic,
    Lazy,
    Custom(&'static str),
}

impl<T> Representation<T> {
    /// Objects that a function of your own makes. `name` stands for the function when options are
    /// compared (G23).
    ///
    /// Its error must not carry values (G34). That it panics is told without the text of the panic.
    #[must_use]
    pub fn custom(name: &'static str, decode: fn(RawObject<'_>) -> Result<T, DecodeError>) -> Self {
        Self { form: Form::Custom(name), decode, identity: None }
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// The other one, if this is only what serde makes of any type.
    pub(crate) fn or(self, refined: Self) -> Self {
        match self.form {
            Form::Serde => refined,
            Form::Typed | Form::Metadata | Form::Dynamic | Form::Lazy | Form::Custom(_) => self,
        }
    }
}

impl<T: DeserializeOwned + 'static> Representation<T> {
    /// Whatever serde can deserialize, such as a struct of your own. The default.
    #[must_use]
    pub fn serde() -> Self {
        Self { form: Form::Serde, decode: |raw| raw.wire.decode(), identity: None }
    }
}

impl<K: kube::Resource + DeserializeOwned + Clone + 'static> Representation<K> {
    /// Types of k8s-openapi and derived custom resources: as [`serde`](Self::serde), with lists of
    /// the length that they need, and it is checked that transforms leave name, namespace, UID and
    /// version alone (G33).
    #[must_use]
    #[expect(clippy::redundant_clone, reason = "the clone has vectors of the exact length")]
    pub fn typed() -> Self {
        let decode = |raw: RawObject<'_>| {
            let object: K = raw.wire.decode()?;
            Ok(match raw.wire.encoding {
                // JSON does not say how long a list is, so its vector has grown by doubling: a
                // third of a Pod's memory. A copy has the exact length.
                Encoding::Json => object.clone(),
                Encoding::Protobuf(_) => object,
            })
        };
        Self { form: Form::Typed, decode, identity: Some(identity_of::<K>) }
    }
}

impl Representation<DynamicObject> {
    /// Objects of any kind, with `apiVersion` and `kind` also where the server leaves them out, and
    /// the same check of transforms. Asked for in JSON unless told otherwise.
    #[must_use]
    pub fn dynamic() -> Self {
        let decode = |raw: RawObject<'_>| {
            let mut object: DynamicObject = raw.wire.decode()?;
            // Items of lists of built-in kinds come without, and they are needed to print the
            // object or to send it on.
            object.types.get_or_insert_with(|| raw.types());
            Ok(object)
        };
        Self { form: Form::Dynamic, decode, identity: Some(identity_of::<DynamicObject>) }
    }
}

impl<K> Representation<PartialObjectMeta<K>>
where
    PartialObjectMeta<K>: kube::Resource + DeserializeOwned + 'static,
{
    /// Metadata alone, with the same check of transforms.
    #[must_use]
    pub fn metadata() -> Self {
        let decode = |raw: RawObject<'_>| match partial_metadata(&raw) {
            Some(metadata) => Ok(metadata),
            None => raw.wire.decode(),
        };
        Self { form: Form::Metadata, decode, identity: Some(identity_of::<PartialObjectMeta<K>>) }
    }
}

impl<K> Representation<Lazy<K>> {
    /// The objects' bytes: see [`Lazy`].
    #[must_use]
    pub fn lazy() -> Self {
        Self { form: Form::Lazy, decode: Lazy::keep, identity: None }
    }
}

/// What serde makes of the type.
impl<T: DeserializeOwned + 'static> Default for Representation<T> {
    fn default() -> Self {
        Self::serde()
    }
}

/// The objects' bytes.
impl<K> Default for Representation<Lazy<K>> {
    fn default() -> Self {
        Self::lazy()
    }
}

impl<T> Clone for Representation<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Representation<T> {}

impl<T> fmt::Debug for Representation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Representation({:?})", self.form)
    }
}

/// The metadata of an object, if it is sent alone in protobuf, and nothing about it is unusual:
/// without serde.
fn partial_metadata<K>(raw: &RawObject<'_>) -> Option<PartialObjectMeta<K>> {
    let Encoding::Protobuf(kind) = raw.wire.encoding else { return None };
    let metadata = k8s_protobuf::partial_metadata(kind, raw.wire.bytes)?;
    let types =
        TypeMeta { api_version: kind.api_version().to_owned(), kind: kind.name().to_owned() };
    Some(PartialObjectMeta { types: Some(types), metadata, _phantom: std::marker::PhantomData })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};

    use super::*;
    use crate::decode::{Kind, Wire};

    fn fails<T: DeserializeOwned + 'static>(json: &str) -> DecodeError {
        Wire::json(json.as_bytes()).decode::<T>().err().expect("it should not decode")
    }

    #[test]
    fn g34_a_decode_error_names_path_and_type_and_never_the_value() {
        let json = r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"x"},{"name":"y","ports":"hunter2"}]}}"#;
        let error = fails::<Pod>(json);
        assert_eq!(error.path, "spec.containers[1].ports");
        assert!(error.message.starts_with("invalid type: string, expected"), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");

        let error = fails::<Secret>(r#"{"metadata":{"name":"a"},"data":{"password":"%%hunter2"}}"#);
        assert_eq!(error.path, "data.password");
        assert!(!error.to_string().contains("hunter2"), "{error}");

        let error = fails::<Pod>(r#"{"metadata":{"name":"a","creationTimestamp":"hunter2"}}"#);
        assert!(!error.to_string().contains("hunter2"), "{error}");

        let error = fails::<Pod>(r#"{"metadata":{"name":"a","generation":"x, expected hunter2"}}"#);
        assert!(!error.to_string().contains("hunter2"), "{error}");

        let error = fails::<Pod>(r#"{"metadata":{"name":"a","generation":"73571"}}"#);
        assert_eq!(error.to_string(), "metadata.generation: invalid type: string, expected i64");
    }

    #[test]
    fn g01_what_is_no_utf8_in_json_is_replaced() {
        let json =
            b"{\"metadata\":{\"name\":\"a\",\"annotations\":{\"b\":\"<\xff>\",\"c\":\"d\"}}}";
        let pod = Wire::json(json).decode::<Pod>().unwrap();
        let annotations = pod.metadata.annotations.unwrap();
        assert_eq!((annotations["b"].as_str(), annotations["c"].as_str()), ("<\u{fffd}>", "d"));

        let json = b"{\"metadata\":{\"name\":\"\xff\xff\",\"generation\":\"73571\"}}";
        let error = Wire::json(json).decode::<Pod>().unwrap_err();
        assert_eq!(error.to_string(), "metadata.generation: invalid type: string, expected i64");
    }

    #[test]
    fn a_struct_of_ones_own_says_which_field_is_missing() {
        #[derive(Debug, serde::Deserialize)]
        struct Slim {
            #[expect(dead_code, reason = "only decoded")]
            node: String,
        }
        assert_eq!(fails::<Slim>(r#"{"metadata":{}}"#).to_string(), ".: missing field `node`");
    }

    #[test]
    fn metadata_alone_is_decoded_as_by_serde() {
        let kind = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata").unwrap();
        let raw =
            |bytes| RawObject::new(Wire { encoding: Encoding::Protobuf(kind), bytes }, "v1", "Pod");
        // metadata { name: "a", labels: { "k": "v" } }
        let message = b"\x0a\x0b\x0a\x01a\x5a\x06\x0a\x01k\x12\x01v";
        let quickly: PartialObjectMeta<Pod> = partial_metadata(&raw(message)).unwrap();
        let by_serde: PartialObjectMeta<Pod> = raw(message).wire.decode().unwrap();
        assert_eq!((&quickly.types, &quickly.metadata), (&by_serde.types, &by_serde.metadata));
        assert_eq!(quickly.metadata.labels.unwrap()["k"], "v");
        assert!(partial_metadata::<Pod>(&RawObject::new(Wire::json(b"{}"), "v1", "Pod")).is_none());
        assert!(partial_metadata::<Pod>(&raw(b"\x0a\x05")).is_none());
    }

    #[test]
    fn dynamic_objects_say_what_they_are() {
        let raw = RawObject::new(Wire::json(br#"{"metadata":{"name":"a"}}"#), "v1", "Pod");
        let object = (Representation::dynamic().decode)(raw).unwrap();
        assert_eq!(object.types, Some(TypeMeta { api_version: "v1".into(), kind: "Pod".into() }));
    }
}
