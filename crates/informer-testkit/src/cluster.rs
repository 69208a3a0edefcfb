//! The objects of a cluster, in memory: one counter of versions, a history of changes, and writes.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use informer_core::ObjectKey;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

mod collection;
mod custom;
mod patch;
mod read;
mod state;
mod write;

pub use collection::ClusterSnapshot;

pub(crate) use patch::PatchKind;
pub(crate) use state::mix;
pub(crate) use write::{DeleteOptions, Part, Target};

use crate::json::Fields;
use crate::object::Object;
use k8s_serve::Resource;
use k8s_serve::Snapshot;
use k8s_serve::Status;

use state::State;

/// The objects of a cluster, in memory; a cheap handle, clones share the objects.
///
/// All built-in resources of Kubernetes are there, and custom ones once a CustomResourceDefinition
/// is created. Versions come from one counter: every change of any object takes the next number.
///
/// The methods write from within the process, as a controller with all rights would: the **whole**
/// object is written, its status included, and namespaces are created as needed. What goes through
/// a [`TestServer`](crate::TestServer) obeys the rules of the API instead.
///
/// Resources are named as for `kubectl`: `pods`, `po`, `deployments.apps`,
/// `widgets.v1.example.com`. The namespace of cluster-scoped objects is empty.
///
/// # Simplifications
/// - Deletion is immediate unless there are finalizers; nothing waits for a kubelet. Deleting a
///   namespace deletes its content, deleting a CustomResourceDefinition its objects.
/// - Objects are not validated against schemas, and defaults are not filled in.
/// - Owner references are not followed: nothing collects garbage.
///
/// # Examples
/// ```
/// use informer_testkit::Cluster;
/// use serde_json::json;
///
/// let cluster = Cluster::new();
/// let pod = cluster.create(&json!({
///     "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "default"},
/// }))?;
/// cluster.patch("pods", "default", "web-0", &json!({"status": {"phase": "Running"}}))?;
/// let running = cluster.get("po", "default", "web-0").expect("it was created");
/// assert_eq!(running.field("status.phase"), "Running");
/// assert_eq!(running.version(), pod.version() + 1);
/// # Ok::<(), informer_testkit::Status>(())
/// ```
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// The newest version; wakes those who wait for one.
    version: watch::Sender<u64>,
}

/// What can be chosen when a [`Cluster`] is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// How many changes of each resource are remembered; what is older answers 410. Default:
    /// 10,000.
    pub history: usize,
    /// Whether creating an object in a namespace that does not exist is refused with 404, as a real
    /// server does. Default: no, the namespace is created first.
    pub strict_namespaces: bool,
}

/// One write among many, for [`Cluster::write_many`].
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Creates the object, or replaces the one that is there.
    Apply(Value),
    /// Deletes an object; one that is not there is no error.
    Delete {
        /// The resource, for example `pods`.
        resource: String,
        /// The namespace; empty for cluster-scoped objects.
        namespace: String,
        /// The name.
        name: String,
    },
}

/// A state of a cluster to return to, from [`Cluster::checkpoint`].
#[derive(Debug, Clone)]
pub struct Checkpoint(Box<State>);

impl Default for ClusterOptions {
    fn default() -> Self {
        Self { history: 10_000, strict_namespaces: false }
    }
}

impl Cluster {
    /// A cluster with the namespaces that every cluster has, and nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(&ClusterOptions::default())
    }

    /// A cluster that is not as usual.
    #[must_use]
    pub fn with_options(options: &ClusterOptions) -> Self {
        // Two clusters must not share UIDs: nothing could tell that one took the place of the
        // other.
        let seed = RandomState::new().hash_one(0);
        let state = State::new(seed, options.history, options.strict_namespaces);
        let version = watch::Sender::new(state.version);
        Self { shared: Arc::new(Shared { state: Mutex::new(state), version }) }
    }

    /// The version of the newest change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Finds a resource by one of its names.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<Arc<Resource>> {
        self.lock().resource(name).cloned()
    }

    /// Creates an object; `apiVersion` and `kind` say of which resource.
    ///
    /// # Errors
    /// `AlreadyExists`, or what the API answers to an object that cannot be used.
    pub fn create(&self, object: &impl Serialize) -> Result<Object, Status> {
        self.create_json(&to_json(object)?)
    }

    /// Creates an object from JSON, without decoding more of it than its metadata.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_json(&self, json: &[u8]) -> Result<Object, Status> {
        let body = read(json)?;
        self.write(|state| {
            let target = target_of(state, &body)?;
            state.create(&target, body, false)
        })
    }

    /// Creates many objects from JSON in one step: nobody sees only some of them. Returns their
    /// number.
    ///
    /// # Errors
    /// As [`create`](Self::create), for the first object that fails; those before it stay.
    pub fn load<J: AsRef<[u8]>>(
        &self,
        objects: impl IntoIterator<Item = J>,
    ) -> Result<usize, Status> {
        self.write(|state| {
            let mut count = 0;
            for json in objects {
                let body = read(json.as_ref())?;
                let target = target_of(state, &body)?;
                state.create(&target, body, false)?;
                count += 1;
            }
            Ok(count)
        })
    }

    /// Replaces an object. A version in it must be the newest one, as in the API.
    ///
    /// # Errors
    /// `NotFound`, `Conflict`, or what the API answers to an object that cannot be used.
    pub fn update(&self, object: &impl Serialize) -> Result<Object, Status> {
        let body = read(&to_json(object)?)?;
        self.write(|state| {
            let target = target_of(state, &body)?;
            state.update(&target, body, false)
        })
    }

    /// Creates an object or replaces the one that is there, whatever its version.
    ///
    /// # Errors
    /// What the API answers to an object that cannot be used.
    pub fn apply(&self, object: &impl Serialize) -> Result<Object, Status> {
        let body = read(&to_json(object)?)?;
        self.write(|state| apply(state, body))
    }

    /// Changes an object by a JSON merge patch.
    ///
    /// # Errors
    /// `NotFound`, `Conflict`, or what the API answers to a patch that cannot be used.
    pub fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Object, Status> {
        self.write(|state| {
            let target = target(state, resource, namespace, name)?;
            state.patch(&target, PatchKind::Merge, patch, false)
        })
    }

    /// Deletes an object and returns its last state. One with finalizers is only marked as being
    /// deleted.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<Object, Status> {
        self.write(|state| {
            let target = target(state, resource, namespace, name)?;
            state.delete(&target, &DeleteOptions::default(), false).map(|(object, _)| object)
        })
    }

    /// Does many writes in one step: nobody sees only some of them.
    ///
    /// # Errors
    /// As the single writes, for the first one that fails; those before it stay.
    pub fn write_many(&self, writes: impl IntoIterator<Item = Write>) -> Result<(), Status> {
        self.write(|state| {
            for write in writes {
                match write {
                    Write::Apply(object) => drop(apply(state, read(&to_json(&object)?)?)?),
                    Write::Delete { resource, namespace, name } => {
                        let target = target(state, &resource, &namespace, &name)?;
                        match state.delete(&target, &DeleteOptions::default(), false) {
                            Err(status) if status.code != 404 => return Err(status),
                            _ => {}
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// The newest state of an object.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Object> {
        let state = self.lock();
        let resource = state.resource(resource)?;
        state.get(resource, &ObjectKey::namespaced(namespace, name)).cloned()
    }

    /// All objects of a resource, by namespace and name; none if the resource is unknown.
    #[must_use]
    pub fn list(&self, resource: &str) -> Vec<Object> {
        let state = self.lock();
        let collection = state.resource(resource).and_then(|resource| state.collection(resource));
        collection.map(|collection| collection.iter().cloned().collect()).unwrap_or_default()
    }

    /// The newest state of a resource as one snapshot.
    #[must_use]
    pub fn snapshot(&self, resource: &str) -> Option<impl Snapshot + use<>> {
        let state = self.lock();
        let collection =
            state.resource(resource).and_then(|resource| state.collection(resource))?;
        Some(collection.newest(state.version))
    }

    /// The number of objects of a resource.
    #[must_use]
    pub fn count(&self, resource: &str) -> usize {
        let state = self.lock();
        state
            .resource(resource)
            .and_then(|r| state.collection(r))
            .map_or(0, |collection| collection.len())
    }

    /// Makes all versions but the newest unknown, as a compaction of etcd does: lists, continue
    /// tokens and new watches at older versions answer 410. Watches that are open go on.
    pub fn compact(&self) {
        let mut state = self.lock();
        state.compacted = state.version;
    }

    /// The state now, to return to with [`restore`](Self::restore).
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(Box::new(self.lock().clone()))
    }

    /// Returns to an earlier state, as a restored backup of etcd does: **versions go back**, and
    /// will be given to other changes than before. Open watches end.
    pub fn restore(&self, checkpoint: &Checkpoint) {
        let mut state = self.lock();
        let mut earlier = (*checkpoint.0).clone();
        earlier.supersede(&state);
        *state = earlier;
        self.shared.version.send_replace(state.version);
    }

    /// Writes through the rules of the API.
    pub(crate) fn api_create(
        &self,
        target: &Target,
        body: &[u8],
        dry_run: bool,
    ) -> Result<Object, Status> {
        let body = read(body)?;
        self.write(|state| state.create(target, body, dry_run))
    }

    pub(crate) fn api_update(
        &self,
        target: &Target,
        body: &[u8],
        dry_run: bool,
    ) -> Result<Object, Status> {
        let body = read(body)?;
        self.write(|state| state.update(target, body, dry_run))
    }

    pub(crate) fn api_patch(
        &self,
        target: &Target,
        kind: PatchKind,
        patch: &Value,
        dry_run: bool,
    ) -> Result<Object, Status> {
        self.write(|state| state.patch(target, kind, patch, dry_run))
    }

    pub(crate) fn api_delete(
        &self,
        target: &Target,
        options: &DeleteOptions,
        dry_run: bool,
    ) -> Result<(Object, bool), Status> {
        self.write(|state| state.delete(target, options, dry_run))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is changed in single steps that leave it whole; a panic elsewhere does not
        // spoil it.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes those who wait for a version once.
    fn write<T>(&self, change: impl FnOnce(&mut State) -> Result<T, Status>) -> Result<T, Status> {
        let mut state = self.lock();
        let before = (state.version, Arc::clone(&state.resources));
        let result = change(&mut state);
        if state.version != before.0 || !Arc::ptr_eq(&state.resources, &before.1) {
            state.tell_version();
            self.shared.version.send_replace(state.version);
        }
        result
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("version", &self.version()).finish_non_exhaustive()
    }
}

fn apply(state: &mut State, mut body: Fields) -> Result<Object, Status> {
    let target = target_of(state, &body)?;
    let mut metadata = body.object("metadata");
    for field in ["resourceVersion", "uid"] {
        metadata.remove(field);
    }
    body.set_object("metadata", &metadata);
    match state.update(&target, body.clone(), false) {
        Err(status) if status.code == 404 => state.create(&target, body, false),
        other => other,
    }
}

fn target(state: &State, resource: &str, namespace: &str, name: &str) -> Result<Target, Status> {
    let resource = state.resource(resource).ok_or_else(|| {
        Status::new(404, "NotFound", format!("there is no resource called {resource:?}"))
    })?;
    Ok(Target {
        resource: Arc::clone(resource),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        part: Part::Whole,
    })
}

/// What an object is about by its own account. Without a namespace it is in `default`.
fn target_of(state: &State, body: &Fields) -> Result<Target, Status> {
    let text =
        |fields: &Fields, name: &str| fields.text(name).map(Cow::into_owned).unwrap_or_default();
    let (api_version, kind) = (text(body, "apiVersion"), text(body, "kind"));
    let resource = state.resource_of_kind(&api_version, &kind).ok_or_else(|| {
        Status::bad_request(format!(
            "no resource has objects of kind {kind:?} in version {api_version:?}"
        ))
    })?;
    let metadata = body.object("metadata");
    let namespace = match text(&metadata, "namespace") {
        _ if !resource.namespaced => String::new(),
        namespace if namespace.is_empty() => "default".to_owned(),
        namespace => namespace,
    };
    Ok(Target {
        resource: Arc::clone(resource),
        namespace,
        name: text(&metadata, "name"),
        part: Part::Whole,
    })
}

fn read(json: &[u8]) -> Result<Fields, Status> {
    Fields::parse(json)
        .map_err(|error| Status::bad_request(format!("the object is no JSON object: {error}")))
}

fn to_json(object: &impl Serialize) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(object).map_err(|error| Status::bad_request(error.to_string()))
}
