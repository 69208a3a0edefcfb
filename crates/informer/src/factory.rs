//! A factory of informers that share what can be shared.

mod builder;
mod for_resource;
mod registry;
mod waiting;

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::core::{DynamicObject, PartialObjectMeta};
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

pub use builder::SharedInformerFactoryBuilder;
pub use for_resource::ForResource;

use crate::options::{InformerOptions, Transform};
use crate::representation::Representation;
use crate::shared::Shared;
use crate::shared_informer::STOP_DEADLINE;
use crate::source::{KubeSource, ListWatch};
use crate::{Error, Lazy, Resource, Scope, SharedInformer, Status, TypedResource};
use builder::{Defaults, MetadataTransform};
use registry::{Collection, Registry};

/// Makes informers and shares them: asking twice for the same collection gives the same informer,
/// with one watch (client-go's `SharedInformerFactory`). Cloning is cheap, and all clones are the
/// same factory.
///
/// The factory holds its informers until [`stop`](Self::stop), [`shutdown`](Self::shutdown) or its
/// own last drop (G24); they run on the runtime on which it was built, and end with that. What
/// identifies a collection is resource, scope, selectors and type; asking for it again with
/// contradictory other options is an error (G23).
///
/// # Examples
/// ```
/// use informer::SharedInformerFactory;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// # let server = informer_testkit::TestServer::start().await?;
/// # let client = server.client()?;
/// # server.cluster().load(informer_testkit::generate::pods(3))?;
/// let factory = SharedInformerFactory::builder(client).build();
/// let pods = factory.informer::<Pod>()?;
/// factory.start();
/// let lister = pods.synced().await?;
/// assert_eq!(lister.len(), 3);
/// factory.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    defaults: Defaults,
    runtime: Handle,
    registry: Registry,
}

impl SharedInformerFactory {
    /// Starts to build a factory whose informers ask through `client`.
    #[must_use]
    pub fn builder(client: Client) -> SharedInformerFactoryBuilder {
        SharedInformerFactoryBuilder::new(client)
    }

    /// The informer of a typed kind, in the factory's scope.
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    pub fn informer<K>(&self) -> Result<SharedInformer<K>, Error>
    where
        K: TypedResource + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        self.informer_with(InformerOptions::new())
    }

    /// The informer of a typed kind, with options.
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    pub fn informer_with<K>(&self, options: InformerOptions<K>) -> Result<SharedInformer<K>, Error>
    where
        K: TypedResource + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        self.with_metadata(Resource::of::<K>(), options.represented(Representation::typed()))
    }

    /// The informer of a typed kind's metadata: the server sends nothing else.
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    pub fn metadata<K>(
        &self,
        options: InformerOptions<PartialObjectMeta<K>>,
    ) -> Result<SharedInformer<PartialObjectMeta<K>>, Error>
    where
        K: TypedResource + Send + Sync + 'static,
        PartialObjectMeta<K>: DeserializeOwned + kube::Resource,
    {
        let options = options.metadata_only().represented(Representation::metadata());
        self.with_metadata(Resource::of::<K>(), options)
    }

    /// The informer of a typed kind that keeps the objects' bytes, and decodes on access: see
    /// [`Lazy`].
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    pub fn lazy<K: TypedResource + 'static>(&self) -> Result<SharedInformer<Lazy<K>>, Error> {
        self.lazy_with(InformerOptions::new())
    }

    /// [`lazy`](Self::lazy), with options.
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    pub fn lazy_with<K: TypedResource + 'static>(
        &self,
        options: InformerOptions<Lazy<K>>,
    ) -> Result<SharedInformer<Lazy<K>>, Error> {
        self.informer_as(Resource::of::<K>(), options)
    }

    /// The informer of a typed kind's metadata, kept as bytes and decoded on access.
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    pub fn lazy_metadata<K>(
        &self,
        options: InformerOptions<Lazy<PartialObjectMeta<K>>>,
    ) -> Result<SharedInformer<Lazy<PartialObjectMeta<K>>>, Error>
    where
        K: TypedResource + 'static,
    {
        self.informer_as(Resource::of::<K>(), options.metadata_only())
    }

    /// The informer of a resource in whatever form: a struct of your own with just the fields you
    /// use, or another [`Representation`] that the options name. (For `DynamicObject`,
    /// [`dynamic`](Self::dynamic) knows more.)
    ///
    /// # A struct of your own
    /// Objects have more fields than the struct, so a field that is misspelt looks like one that
    /// the object does not have: an `Option`, or one with `#[serde(default)]`, is then empty **for
    /// every object, without an error**. Kubernetes writes `nodeName`, not `node_name`. So:
    /// - write `#[serde(rename_all = "camelCase")]` at every struct, and `#[serde(rename = "…")]`
    ///   where that does not fit (`podIP`, `clusterIPs`);
    /// - make an `Option` only of what objects may lack. Without it, a misspelt field is an error
    ///   at the first list: [`Error::NothingDecodes`], with the name of the field.
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    ///
    /// # Examples
    /// ```
    /// use informer::{InformerOptions, Resource, SharedInformerFactory};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Slim { spec: Spec }
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Spec { node_name: Option<String> }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let server = informer_testkit::TestServer::start().await?;
    /// # let client = server.client()?;
    /// # server.cluster().load(informer_testkit::generate::pods(3))?;
    /// let factory = SharedInformerFactory::builder(client).build();
    /// let pods = factory.informer_as::<Slim>(Resource::of::<Pod>(), InformerOptions::new())?;
    /// factory.start();
    /// for entry in pods.synced().await?.snapshot().iter() {
    ///     println!("{} runs on {:?}", entry.key, entry.object().spec.node_name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn informer_as<T: Send + Sync + 'static>(
        &self,
        resource: Resource,
        options: InformerOptions<T>,
    ) -> Result<SharedInformer<T>, Error> {
        let client = self.inner.client.clone();
        self.informer_for(resource, options, move |resource, scope, options| {
            KubeSource::new(client, resource.clone(), scope.clone())
                .projection(options.wire.projection)
                .list_compression(options.wire.compression)
                .wire_format(options.source_format())
                .max_object_bytes(options.wire.max_object_bytes)
        })
    }

    /// The informer of a resource with a source of your own, made if the factory has none of this
    /// collection yet (client-go's `InformerFor`).
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    pub fn informer_for<T: Send + Sync + 'static, S: ListWatch>(
        &self,
        resource: Resource,
        options: InformerOptions<T>,
        list_watch: impl FnOnce(&Resource, &Scope, &InformerOptions<T>) -> S,
    ) -> Result<SharedInformer<T>, Error> {
        let options = self.inner.defaults.complete(&resource, options);
        let scope = options.scope(&self.inner.defaults.scope, resource.namespaced);
        scope.check()?;
        options.check(&resource, &scope)?;
        let collection = Collection { type_id: TypeId::of::<T>(), resource, scope };
        let runtime = &self.inner.runtime;
        self.inner.registry.find_or_make(
            collection,
            runtime,
            &options.fingerprint(),
            |collection, learn| {
                let Collection { resource, scope, .. } = collection;
                let source = list_watch(resource, scope, &options);
                let mut shared = Shared::new(resource.clone(), scope.clone(), runtime.clone());
                shared.learn_streaming_lists = Some(learn);
                SharedInformer::from_parts(shared, source, options, false)
            },
        )
    }

    /// The dynamic informer of a resource by group (empty or `core` for the core group), version
    /// and plural name, built-in or custom; discovery tells the rest. Add
    /// [`.when_installed()`](ForResource::when_installed) to wait for a resource that is not there
    /// yet.
    ///
    /// # Errors
    /// [`Error::UnknownResource`] with suggestions, also for a short name, a singular or a kind;
    /// [`Error::Discovery`], [`Error::InvalidNamespace`], [`Error::ShutDown`].
    ///
    /// # Cancel safety
    /// Dropping the future gives up the discovery; nothing was made.
    pub fn for_resource<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
        plural: &'a str,
    ) -> ForResource<'a> {
        self.for_resource_with(group, version, plural, InformerOptions::new())
    }

    /// [`for_resource`](Self::for_resource), with options.
    ///
    /// # Errors
    /// As `for_resource`, and [`Error::ConflictingOptions`], [`Error::InvalidOption`].
    ///
    /// # Cancel safety
    /// Dropping the future gives up the discovery; nothing was made.
    pub fn for_resource_with<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
        plural: &'a str,
        options: InformerOptions<DynamicObject>,
    ) -> ForResource<'a> {
        ForResource::new(self, [group, version, plural], options)
    }

    /// The dynamic informer of a resource that is known already.
    ///
    /// # Errors
    /// [`Error::ConflictingOptions`], [`Error::InvalidNamespace`], [`Error::InvalidOption`],
    /// [`Error::ShutDown`], [`Error::Stopped`] if the factory's runtime has ended.
    pub fn dynamic(
        &self,
        resource: Resource,
        options: InformerOptions<DynamicObject>,
    ) -> Result<SharedInformer<DynamicObject>, Error> {
        self.with_metadata(resource, options.represented(Representation::dynamic()))
    }

    /// Starts every informer that was asked for, and those asked for from now on when they are;
    /// returns at once. Calling it again, from whatever task, does nothing (G22).
    pub fn start(&self) {
        self.inner.registry.start();
    }

    /// Stops one informer and forgets it: asking for its collection again makes a new one (G24).
    ///
    /// # Cancel safety
    /// The informer is stopped and forgotten at the first poll; dropping the future only ends the
    /// wait.
    pub async fn stop<T: Send + Sync + 'static>(&self, informer: &SharedInformer<T>) {
        self.inner.registry.forget(&informer.shared);
        informer.stop().await;
        self.inner.registry.sweep();
    }

    /// Stops all informers, lets running callbacks return, and comes back when every task has
    /// ended, or after 30 s, when callbacks that still run are left behind. The factory makes no
    /// informers after that.
    ///
    /// Several may wait for the end, those that stop single informers included; none comes back
    /// before it, and the earliest deadline counts. Inside a callback it waits for everything but
    /// that callback, as [`SharedInformer::stop`] does.
    ///
    /// # Cancel safety
    /// Everything is told to stop at the first poll; dropping the future only ends the wait.
    pub async fn shutdown(&self) {
        self.shutdown_within(STOP_DEADLINE).await;
    }

    /// [`shutdown`](Self::shutdown) with a deadline of your own for running callbacks.
    ///
    /// # Cancel safety
    /// As for `shutdown`.
    pub async fn shutdown_within(&self, deadline: Duration) {
        let informers = self.inner.registry.close();
        futures_util::future::join_all(informers.iter().map(|informer| informer.stop(deadline)))
            .await;
        self.inner.registry.sweep();
    }

    /// The status of every informer.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        self.inner.registry.all().iter().map(|informer| informer.status()).collect()
    }

    /// The client that the informers ask through.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    fn with_metadata<K>(
        &self,
        resource: Resource,
        mut options: InformerOptions<K>,
    ) -> Result<SharedInformer<K>, Error>
    where
        K: kube::Resource + Send + Sync + 'static,
    {
        for MetadataTransform { name, added_at, change } in &self.inner.defaults.metadata_transforms
        {
            let change = Arc::clone(change);
            let change = Arc::new(move |object: &mut K| change(object.meta_mut()));
            options.transforms.push(Transform { name: name.clone(), added_at, change });
        }
        self.informer_as(resource, options)
    }
}

impl Clone for SharedInformerFactory {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformerFactory")
            .field("informers", &self.inner.registry.all().len())
            .finish_non_exhaustive()
    }
}
