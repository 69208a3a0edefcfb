//! The form in which these scenarios keep objects: as their bytes, decoded on access.

use std::borrow::Cow;
use std::sync::LazyLock;

use informer::{
    Error, FieldPath, InformerOptions, Lazy, SharedInformer, SharedInformerFactory, TransformError,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;

/// A kind as it is kept.
pub(crate) type Form<K> = Lazy<K>;

/// What is in an object, read from its bytes; what `decode` makes of it is the same.
pub(crate) fn value_of(map: &Form<ConfigMap>) -> Cow<'_, str> {
    static VALUE: LazyLock<FieldPath> =
        LazyLock::new(|| FieldPath::of::<ConfigMap>("data.value").expect("ConfigMaps have data"));
    let value = map.field(&VALUE).unwrap_or_default();
    let decoded = map.decode().expect("ConfigMaps decode");
    assert_eq!(
        decoded.data.as_ref().and_then(|data| data.get("value")).map_or("", String::as_str),
        value
    );
    value
}

/// Changes an object as a transform does.
pub(crate) fn change(
    map: &mut Form<ConfigMap>,
    change: impl FnOnce(&mut ConfigMap),
) -> Result<(), TransformError> {
    let mut decoded =
        map.decode_as::<ConfigMap>().map_err(|error| TransformError::new(error.to_string()))?;
    change(&mut decoded);
    let json =
        serde_json::to_vec(&decoded).map_err(|error| TransformError::new(error.to_string()))?;
    *map = Lazy::from_json(&json).map_err(|error| TransformError::new(error.to_string()))?;
    Ok(())
}

/// The factory's informer of ConfigMaps' metadata.
pub(crate) fn metadata(
    factory: &SharedInformerFactory,
    options: InformerOptions<Form<PartialObjectMeta<ConfigMap>>>,
) -> Result<SharedInformer<Form<PartialObjectMeta<ConfigMap>>>, Error> {
    factory.lazy_metadata(options)
}
