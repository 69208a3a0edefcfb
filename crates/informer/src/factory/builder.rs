//! What all informers of a factory have in common.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use informer_core::selector::{FieldSelector, LabelSelector, ParseSelectorError};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;

use super::registry::Registry;
use super::{Inner, SharedInformerFactory};
use crate::options::InformerOptions;
use crate::source::WireFormat;
use crate::{Resource, Scope, TransformError, TypedResource, runtime};

/// Builds a [`SharedInformerFactory`].
///
/// # Defaults
/// All namespaces, no selectors, no resync, protobuf where the server has it and else JSON, no
/// transform.
pub struct SharedInformerFactoryBuilder {
    client: Client,
    defaults: Defaults,
}

#[derive(Default)]
pub(super) struct Defaults {
    pub(super) scope: Scope,
    resync: Option<Duration>,
    /// By type, and by resource.
    resync_of: HashMap<TypeId, Duration>,
    resync_of_resource: HashMap<Resource, Duration>,
    page_size: Option<Option<u32>>,
    wire_format: Option<WireFormat>,
    pub(super) metadata_transforms: Vec<MetadataTransform>,
}

/// A transform of whatever has metadata.
pub(super) struct MetadataTransform {
    pub(super) name: String,
    pub(super) added_at: &'static Location<'static>,
    pub(super) change: Arc<ChangeMetadata>,
}

type ChangeMetadata = dyn Fn(&mut ObjectMeta) -> Result<(), TransformError> + Send + Sync;

impl SharedInformerFactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self { client, defaults: Defaults::default() }
    }

    /// Only this namespace, for informers that do not say otherwise; the empty text stands for all
    /// of them. Cluster-scoped resources have none.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.defaults.scope.namespace =
            Some(namespace.into()).filter(|namespace| !namespace.is_empty());
        self
    }

    /// Only objects whose labels match, selected by the server, for informers that do not say
    /// otherwise. The selector is parsed or a text.
    ///
    /// # Errors
    /// If a text is no label selector; a [`LabelSelector`] never fails.
    pub fn labels<S>(mut self, selector: S) -> Result<Self, ParseSelectorError>
    where
        S: TryInto<LabelSelector>,
        ParseSelectorError: From<S::Error>,
    {
        self.defaults.scope.labels = selector.try_into()?;
        Ok(self)
    }

    /// Only objects whose fields match, selected by the server, for informers that do not say
    /// otherwise. The selector is parsed or a text.
    ///
    /// # Errors
    /// If a text is no field selector; a [`FieldSelector`] never fails.
    pub fn fields<S>(mut self, selector: S) -> Result<Self, ParseSelectorError>
    where
        S: TryInto<FieldSelector>,
        ParseSelectorError: From<S::Error>,
    {
        self.defaults.scope.fields = selector.try_into()?;
        Ok(self)
    }

    /// Every handler sees the whole store again that often, unless it, its informer or its kind
    /// says otherwise (G8). Zero: never; a period under 1 s is raised to 1 s.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.defaults.resync = Some(period);
        self
    }

    /// The resync period of one kind (client-go's `WithCustomResyncConfig`).
    #[must_use]
    pub fn resync_for<K: TypedResource + 'static>(mut self, period: Duration) -> Self {
        self.defaults.resync_of.insert(TypeId::of::<K>(), period);
        self.defaults.resync_of_resource.insert(Resource::of::<K>(), period);
        self
    }

    /// Objects per page of every LIST, for informers that do not say otherwise; `None` never pages.
    /// See [`InformerOptions::page_size`].
    #[must_use]
    pub fn page_size(mut self, objects: Option<u32>) -> Self {
        self.defaults.page_size = Some(objects);
        self
    }

    /// In which encoding the server sends objects, to informers that do not say otherwise.
    #[must_use]
    pub fn wire_format(mut self, format: WireFormat) -> Self {
        self.defaults.wire_format = Some(format);
        self
    }

    /// Changes the metadata of every object of typed, dynamic and metadata-only informers before
    /// anything sees it (G33), such as dropping annotations; informers of structs of your own have
    /// none to change. See [`InformerOptions::transform`].
    #[must_use]
    #[track_caller]
    pub fn transform_metadata(
        mut self,
        name: impl Into<String>,
        change: impl Fn(&mut ObjectMeta) -> Result<(), TransformError> + Send + Sync + 'static,
    ) -> Self {
        let (added_at, change) = (Location::caller(), Arc::new(change));
        self.defaults.metadata_transforms.push(MetadataTransform {
            name: name.into(),
            added_at,
            change,
        });
        self
    }

    /// The factory.
    ///
    /// # Panics
    /// Outside of a tokio runtime, which the informers will run on; the panic names the place of
    /// this call.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> SharedInformerFactory {
        let Self { client, defaults } = self;
        let inner =
            Inner { client, defaults, runtime: runtime::current(), registry: Registry::new() };
        SharedInformerFactory { inner: Arc::new(inner) }
    }
}

impl Defaults {
    /// The options, with what they do not say filled in.
    pub(super) fn complete<T: 'static>(
        &self,
        resource: &Resource,
        mut options: InformerOptions<T>,
    ) -> InformerOptions<T> {
        let of_kind = self
            .resync_of
            .get(&TypeId::of::<T>())
            .or_else(|| self.resync_of_resource.get(resource))
            .copied();
        options.resync = options.resync.or(of_kind).or(self.resync);
        options.wire.page_size = options.wire.page_size.or(self.page_size);
        options.wire.format = options.wire.format.or(self.wire_format);
        options
    }
}

impl fmt::Debug for SharedInformerFactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformerFactoryBuilder")
            .field("scope", &self.defaults.scope)
            .field("resync", &self.defaults.resync)
            .finish_non_exhaustive()
    }
}
