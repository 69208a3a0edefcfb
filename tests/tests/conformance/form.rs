//! The form in which these scenarios keep objects: decoded. The same scenarios run in another form
//! in `tests/conformance_lazy`.

use std::borrow::Cow;

use informer::{Error, InformerOptions, SharedInformer, SharedInformerFactory, TransformError};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;

/// A kind as it is kept.
pub(crate) type Form<K> = K;

/// What is in an object.
pub(crate) fn value_of(map: &Form<ConfigMap>) -> Cow<'_, str> {
    map.data.as_ref().and_then(|data| data.get("value")).map_or("", String::as_str).into()
}

/// Changes an object as a transform does.
pub(crate) fn change(
    map: &mut Form<ConfigMap>,
    change: impl FnOnce(&mut ConfigMap),
) -> Result<(), TransformError> {
    change(map);
    Ok(())
}

/// The factory's informer of ConfigMaps' metadata.
pub(crate) fn metadata(
    factory: &SharedInformerFactory,
    options: InformerOptions<Form<PartialObjectMeta<ConfigMap>>>,
) -> Result<SharedInformer<Form<PartialObjectMeta<ConfigMap>>>, Error> {
    factory.metadata(options)
}
