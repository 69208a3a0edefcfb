//! What an informer is asked to be.

use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use informer_core::reflector::{ReflectorConfig, SHORTEST_WATCH_TIMEOUT};
use informer_core::selector::{FieldSelector, LabelSelector, ParseSelectorError};

use crate::representation::{Form, Representation};
use crate::source::{ListCompression, Projection, WireFormat};
use crate::{Error, MetadataOnly, Resource, Scope};

/// How an informer lists, watches, decodes and keeps its objects. Options are part of what is asked
/// for: asking a factory for the same collection with contradictory options is an error (G23).
///
/// # Defaults
/// The factory's namespace and selectors (none for a standalone informer), streaming lists where
/// the server has them, pages of 500 where lists are paged, protobuf where the server has it and
/// else JSON, no resync, managedFields dropped, 16 MiB per object at most.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use informer::InformerOptions;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let options = InformerOptions::<Pod>::new()
///     .namespace("default")
///     .labels("app=web")?
///     .resync(Duration::from_secs(300))
///     .transform("drop annotations", |pod: &mut Pod| {
///         pod.metadata.annotations = None;
///         Ok(())
///     });
/// # Ok::<(), informer::ParseSelectorError>(())
/// ```
pub struct InformerOptions<T> {
    namespace: Option<Option<String>>,
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
    pub(crate) resync: Option<Duration>,
    pub(crate) wire: WireOptions,
    pub(crate) transforms: Vec<Transform<T>>,
    pub(crate) representation: Representation<T>,
}

/// The options that do not depend on the type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireOptions {
    /// The reflector's, if not said.
    pub(crate) page_size: Option<Option<u32>>,
    pub(crate) streaming_lists: bool,
    pub(crate) watch_timeout: RangeInclusive<Duration>,
    pub(crate) degraded_list_age: Duration,
    pub(crate) silent_list_interval: Duration,
    pub(crate) keep_managed_fields: bool,
    pub(crate) strict: bool,
    pub(crate) max_object_bytes: usize,
    pub(crate) compression: ListCompression,
    pub(crate) projection: Projection,
    /// The factory's, if not said.
    pub(crate) format: Option<WireFormat>,
}

/// A named change that is made to each object before anything sees it (G33).
pub(crate) struct Transform<T> {
    pub(crate) name: String,
    /// Where it was added to the options, or to the factory's builder.
    pub(crate) added_at: &'static Location<'static>,
    pub(crate) change: Arc<TransformFn<T>>,
}

type TransformFn<T> = dyn Fn(&mut T) -> Result<(), TransformError> + Send + Sync;

/// Why a transform refuses an object.
///
/// The text becomes a part of the status, so it must not quote the object (G34): that is why no
/// other error turns into one by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(String);

impl TransformError {
    /// An error with this text.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl<T> InformerOptions<T>
where
    Representation<T>: Default,
{
    /// The defaults; objects become what serde makes of `T`, or its bytes if it is
    /// [`Lazy`](crate::Lazy).
    #[must_use]
    pub fn new() -> Self {
        Self::of(Representation::default())
    }
}

impl<T> InformerOptions<T> {
    /// The defaults, with another representation of the objects.
    #[must_use]
    pub fn of(representation: Representation<T>) -> Self {
        let config = ReflectorConfig::default();
        Self {
            namespace: None,
            labels: None,
            fields: None,
            resync: None,
            wire: WireOptions {
                page_size: None,
                streaming_lists: config.streaming_lists,
                watch_timeout: config.watch_timeout,
                degraded_list_age: config.degraded_list_age,
                silent_list_interval: config.silent_list_interval,
                keep_managed_fields: false,
                strict: false,
                max_object_bytes: informer_core::wire::DEFAULT_MAX_OBJECT_BYTES,
                compression: ListCompression::default(),
                projection: Projection::default(),
                format: None,
            },
            transforms: Vec::new(),
            representation,
        }
    }

    /// Only this namespace; the empty text stands for all of them. Means nothing for cluster-scoped
    /// resources.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(Some(namespace.into()).filter(|namespace| !namespace.is_empty()));
        self
    }

    /// All namespaces, whatever the factory's default.
    #[must_use]
    pub fn all_namespaces(mut self) -> Self {
        self.namespace = Some(None);
        self
    }

    /// Only objects whose labels match, selected by the server. The selector is parsed or a text.
    ///
    /// # Errors
    /// If a text is no label selector; a [`LabelSelector`] never fails.
    pub fn labels<S>(mut self, selector: S) -> Result<Self, ParseSelectorError>
    where
        S: TryInto<LabelSelector>,
        ParseSelectorError: From<S::Error>,
    {
        self.labels = Some(selector.try_into()?);
        Ok(self)
    }

    /// Only objects whose fields match, selected by the server, which knows few fields of each
    /// kind. The selector is parsed or a text.
    ///
    /// # Errors
    /// If a text is no field selector; a [`FieldSelector`] never fails.
    pub fn fields<S>(mut self, selector: S) -> Result<Self, ParseSelectorError>
    where
        S: TryInto<FieldSelector>,
        ParseSelectorError: From<S::Error>,
    {
        self.fields = Some(selector.try_into()?);
        Ok(self)
    }

    /// Every handler sees the whole store again that often, unless it says otherwise (G8). Zero:
    /// never; a period under 1 s is raised to 1 s.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Objects per page of every LIST; `None` never pages. (A server may send a list whole all the
    /// same, as its cache does for the first list; streaming lists have no pages.) Default: 500 for
    /// the first list; later ones come whole, from the server's cache, unless the first one came in
    /// pages.
    #[must_use]
    pub fn page_size(mut self, objects: Option<u32>) -> Self {
        self.wire.page_size = Some(objects);
        self
    }

    /// Whether to ask for a streaming list (WatchList, KEP-3157) before falling back to LIST and
    /// WATCH.
    #[must_use]
    pub fn streaming_lists(mut self, try_first: bool) -> Self {
        self.wire.streaming_lists = try_first;
        self
    }

    /// How long watches are asked to last: each draws a time from this range. Default: 200 s to 280
    /// s, below the idle limits of common load balancers. Less than 10 s is
    /// [`Error::InvalidOption`].
    #[must_use]
    pub fn watch_timeout(mut self, range: RangeInclusive<Duration>) -> Self {
        self.wire.watch_timeout = range;
        self
    }

    /// How old the last list must be for another one while watches keep failing (`Degraded`, G28).
    /// Default: 2 min.
    #[must_use]
    pub fn degraded_list_age(mut self, age: Duration) -> Self {
        self.wire.degraded_list_age = age;
        self
    }

    /// How far apart the lists are, at least, that show whether a watch without bookmarks that
    /// keeps silent is deaf (G29). Default: 10 min.
    #[must_use]
    pub fn silent_list_interval(mut self, interval: Duration) -> Self {
        self.wire.silent_list_interval = interval;
        self
    }

    /// Keeps `metadata.managedFields`, 42 % of a typical Pod's JSON, which is dropped otherwise.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.wire.keep_managed_fields = true;
        self
    }

    /// Asks the server for metadata only: other fields are absent, for field selectors too. For
    /// types that need nothing else ([`MetadataOnly`]), such as `kube::core::PartialObjectMeta`.
    #[must_use]
    pub fn metadata_only(mut self) -> Self
    where
        T: MetadataOnly,
    {
        self.wire.projection = Projection::Metadata;
        self
    }

    /// Treats the first object that cannot be decoded or transformed as a failure, instead of
    /// keeping its last good state, and leaves nothing out of a list that cannot be read (G30).
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.wire.strict = true;
        self
    }

    /// The most bytes that one object may have.
    #[must_use]
    pub fn max_object_bytes(mut self, bytes: usize) -> Self {
        self.wire.max_object_bytes = bytes;
        self
    }

    /// Whether lists may be compressed: worth it on slow links.
    #[must_use]
    pub fn list_compression(mut self, compression: ListCompression) -> Self {
        self.wire.compression = compression;
        self
    }

    /// In which encoding the server sends objects: protobuf where it has it, unless said otherwise
    /// here or to the factory.
    #[must_use]
    pub fn wire_format(mut self, format: WireFormat) -> Self {
        self.wire.format = Some(format);
        self
    }

    /// Changes each object once per received version, before the store, the indexes and the
    /// handlers see it (G33). It must leave name, namespace, UID and version alone, which is
    /// checked by the typed, dynamic and metadata-only informers of a factory; elsewhere, with the
    /// representations of these ([`Representation::typed`]). A type of your own without metadata
    /// has nothing to change: the store keeps keys, UIDs and versions of its own, as the server
    /// sent them. An object for which it returns an error is treated as undecodable (G30). Called
    /// in the order given.
    ///
    /// `name` stands for the function when options are compared (G23) and in errors. The error that
    /// it returns becomes a part of the status, so its text must not quote the object (G34). That
    /// it panics is told by its name, the place of this call and the object's key, never by the
    /// text of the panic.
    #[must_use]
    #[track_caller]
    pub fn transform(
        mut self,
        name: impl Into<String>,
        change: impl Fn(&mut T) -> Result<(), TransformError> + Send + Sync + 'static,
    ) -> Self {
        let added_at = Location::caller();
        self.transforms.push(Transform { name: name.into(), added_at, change: Arc::new(change) });
        self
    }

    /// The scope, with what is not said taken from `default`.
    pub(crate) fn scope(&self, default: &Scope, namespaced: bool) -> Scope {
        let namespace = self.namespace.clone().unwrap_or_else(|| default.namespace.clone());
        Scope {
            namespace: namespace.filter(|_| namespaced),
            labels: self.labels.clone().unwrap_or_else(|| default.labels.clone()),
            fields: self.fields.clone().unwrap_or_else(|| default.fields.clone()),
        }
    }

    /// The encoding that a factory's source asks for.
    pub(crate) fn source_format(&self) -> WireFormat {
        match (
            self.wire.format.unwrap_or_default(),
            self.wire.projection,
            self.representation.form(),
        ) {
            // They come out of JSON sooner than out of protobuf, which has fewer bytes but no
            // names.
            (WireFormat::Auto, Projection::Whole, Form::Dynamic) => WireFormat::Json,
            (format, _, _) => format,
        }
    }

    /// Another representation, unless these options name one that is not the default.
    pub(crate) fn represented(mut self, representation: Representation<T>) -> Self {
        self.representation = self.representation.or(representation);
        self
    }

    pub(crate) fn reflector_config(&self, seed: u64) -> ReflectorConfig {
        let config = ReflectorConfig::default();
        ReflectorConfig {
            page_size: self.wire.page_size.unwrap_or(config.page_size),
            page_relists: self.wire.page_size.is_some(),
            streaming_lists: self.wire.streaming_lists,
            watch_timeout: self.wire.watch_timeout.clone(),
            degraded_list_age: self.wire.degraded_list_age,
            silent_list_interval: self.wire.silent_list_interval,
            strict: self.wire.strict,
            seed,
            ..config
        }
    }

    /// Whether an informer can be like this.
    pub(crate) fn check(&self, resource: &Resource, scope: &Scope) -> Result<(), Error> {
        let range = &self.wire.watch_timeout;
        if *range.start() >= SHORTEST_WATCH_TIMEOUT && range.start() <= range.end() {
            return Ok(());
        }
        let informer = format!("{resource} in {scope}");
        let problem =
            format!("{range:?} is not a range of times of {SHORTEST_WATCH_TIMEOUT:?} or more");
        Err(Error::InvalidOption { informer, option: "watch_timeout", problem })
    }

    /// What two requests for one collection must agree on.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint {
            representation: match self.representation.form() {
                Form::Custom(name) => Some(name),
                Form::Dynamic => Some("dynamic"),
                // Of one type, these make the same of an object.
                Form::Serde | Form::Typed | Form::Metadata | Form::Lazy => None,
            },
            resync: self.resync,
            wire: self.wire.clone(),
            transforms: self.transforms.iter().map(|transform| transform.name.clone()).collect(),
        }
    }
}

/// See [`InformerOptions::fingerprint`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fingerprint {
    /// The name of a representation that makes something else of objects than serde does.
    representation: Option<&'static str>,
    resync: Option<Duration>,
    wire: WireOptions,
    transforms: Vec<String>,
}

impl Fingerprint {
    /// The first option in which the two differ.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        let (a, b) = (&self.wire, &other.wire);
        [
            (self.representation != other.representation, "representation"),
            (self.resync != other.resync, "resync"),
            (self.transforms != other.transforms, "transform"),
            (a.page_size != b.page_size, "page_size"),
            (a.streaming_lists != b.streaming_lists, "streaming_lists"),
            (a.watch_timeout != b.watch_timeout, "watch_timeout"),
            (a.degraded_list_age != b.degraded_list_age, "degraded_list_age"),
            (a.silent_list_interval != b.silent_list_interval, "silent_list_interval"),
            (a.keep_managed_fields != b.keep_managed_fields, "keep_managed_fields"),
            (a.strict != b.strict, "strict"),
            (a.max_object_bytes != b.max_object_bytes, "max_object_bytes"),
            (a.compression != b.compression, "list_compression"),
            (a.projection != b.projection, "metadata_only"),
            (a.format.unwrap_or_default() != b.format.unwrap_or_default(), "wire_format"),
        ]
        .into_iter()
        .find_map(|(differs, name)| differs.then_some(name))
    }
}

impl<T> Transform<T> {
    /// Runs the transform; a panic is an error, without its text, which may quote the object (G34).
    pub(crate) fn run(&self, object: &mut T) -> Result<(), String> {
        let Self { name, added_at, change } = self;
        match catch_unwind(AssertUnwindSafe(|| change(object))) {
            Ok(outcome) => outcome.map_err(|why| format!("transform {name}: {why}")),
            Err(_) => Err(format!("transform {name} panicked (added at {added_at})")),
        }
    }
}

impl<T> Default for InformerOptions<T>
where
    Representation<T>: Default,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for InformerOptions<T> {
    fn clone(&self) -> Self {
        Self {
            namespace: self.namespace.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            resync: self.resync,
            wire: self.wire.clone(),
            transforms: self.transforms.clone(),
            representation: self.representation,
        }
    }
}

impl<T> Clone for Transform<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), added_at: self.added_at, change: Arc::clone(&self.change) }
    }
}

impl<T> fmt::Debug for InformerOptions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerOptions")
            .field("namespace", &self.namespace)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("resync", &self.resync)
            .field("wire", &self.wire)
            .field("transforms", &self.transforms)
            .field("representation", &self.representation)
            .finish()
    }
}

impl<T> fmt::Debug for Transform<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transform").field(&self.name).finish()
    }
}
