//! Everything a cluster holds, behind one lock.

use std::collections::HashMap;
use std::sync::Arc;

use informer_core::ObjectKey;
use k8s_serve::{Resource, Status};
use serde_json::{Value, json};

use super::collection::Collection;
use crate::builtin;
use crate::json::Fields;
use crate::object::Object;

/// The state of a cluster. Versions are counted here: one for each change of any object.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) version: u64,
    /// Versions below this one cannot be asked for any more.
    pub(super) compacted: u64,
    pub(super) resources: Arc<[Arc<Resource>]>,
    pub(super) history: usize,
    pub(super) strict_namespaces: bool,
    collections: HashMap<String, Collection>,
    ids: u64,
}

impl State {
    pub(super) fn new(seed: u64, history: usize, strict_namespaces: bool) -> Self {
        let resources: Vec<Arc<Resource>> =
            builtin::resources().into_iter().map(Arc::new).collect();
        let collections =
            resources.iter().map(|r| (r.name(), Collection::new(0, history))).collect();
        let mut state = Self {
            version: 0,
            compacted: 0,
            resources: resources.into(),
            history,
            strict_namespaces,
            collections,
            ids: seed,
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            state.create_namespace(name);
        }
        state.tell_version();
        state
    }

    pub(super) fn collection(&self, resource: &Resource) -> Option<&Collection> {
        self.collections.get(&resource.name()).filter(|collection| !collection.retired)
    }

    /// Finds a resource by `pods`, `po`, `deployments.apps`, `deployments.v1.apps`.
    pub(super) fn resource(&self, name: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|resource| resource.is_called(name))
    }

    pub(super) fn resource_of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|r| r.kind == kind && r.api_version() == api_version)
    }

    pub(super) fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<&Object> {
        self.collection(resource)?.get(key)
    }

    /// Stores an object at the next version.
    pub(super) fn put(
        &mut self,
        resource: &Resource,
        metadata: Fields,
        rest: Fields,
    ) -> Result<Object, Status> {
        let object = self.assemble(resource, metadata, rest)?;
        self.version = object.version();
        if let Some(collection) = self.collections.get_mut(&resource.name()) {
            collection.put(object.clone());
        }
        Ok(object)
    }

    /// The object that [`put`](Self::put) would store.
    pub(super) fn assemble(
        &self,
        resource: &Resource,
        metadata: Fields,
        rest: Fields,
    ) -> Result<Object, Status> {
        Object::assemble(resource, metadata, rest, self.version + 1).map_err(|error| {
            Status::bad_request(format!("{} cannot be decoded: {error}", resource.kind))
        })
    }

    /// Takes an object out at the next version.
    pub(super) fn take(&mut self, resource: &Resource, key: &ObjectKey) -> Option<Object> {
        let version = self.version + 1;
        let object = self.collections.get_mut(&resource.name())?.take(key, version)?;
        self.version = version;
        Some(object.at_version(version))
    }

    /// Makes sure that a namespace is there.
    pub(super) fn require_namespace(&mut self, name: &str) -> Result<(), Status> {
        let Some(namespaces) = self.resource("namespaces").map(Arc::clone) else { return Ok(()) };
        if self.get(&namespaces, &ObjectKey::cluster(name)).is_none() {
            if self.strict_namespaces {
                return Err(Status::not_found(&namespaces, name));
            }
            self.create_namespace(name);
        }
        Ok(())
    }

    /// Replaces the list of what is served. Resources that are new get a collection; those that are
    /// gone keep theirs, and their watches end once they have been given the last changes.
    pub(super) fn serve(&mut self, resources: Vec<Arc<Resource>>) {
        for (name, collection) in &mut self.collections {
            let was_retired = collection.retired;
            collection.retired = !resources.iter().any(|resource| resource.name() == *name);
            if collection.retired && !was_retired {
                collection.watch_cache.end_watchers();
            }
        }
        for resource in &resources {
            let history = self.history;
            self.collections.entry(resource.name()).or_insert_with(|| Collection::new(0, history));
        }
        self.resources = resources.into();
    }

    /// Ends the watches of a resource once they have been given what there is.
    pub(super) fn end_watches(&self, resource: &Resource) {
        if let Some(collection) = self.collections.get(&resource.name()) {
            collection.watch_cache.end_watchers();
        }
    }

    /// Tells all watches how far their collections have come: versions are of the whole cluster.
    pub(super) fn tell_version(&self) {
        for collection in self.collections.values() {
            collection.watch_cache.push(self.version, []);
        }
    }

    /// Takes the place of `other`, as after a restore: every watch ends, every older version is
    /// unknown.
    pub(super) fn supersede(&mut self, other: &Self) {
        self.ids = self.ids.max(other.ids).wrapping_add(1);
        let (version, history) = (self.version, self.history);
        self.compacted = version;
        for collection in self.collections.values_mut() {
            collection.forget(version, history);
        }
        for collection in other.collections.values() {
            collection.watch_cache.close();
        }
    }

    /// A number that no other object of this cluster gets.
    pub(super) fn next_id(&mut self) -> u64 {
        self.ids = self.ids.wrapping_add(1);
        self.ids
    }

    /// A UID, in the form of a random UUID.
    pub(super) fn next_uid(&mut self) -> String {
        let id = self.next_id();
        let (high, low) = (mix(id), mix(!id));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            (low >> 48 & 0x3fff) | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }

    fn create_namespace(&mut self, name: &str) {
        let Some(namespaces) = self.resource("namespaces").map(Arc::clone) else { return };
        let metadata = fields(&json!({
            "name": name,
            "uid": self.next_uid(),
            "creationTimestamp": now(),
            "labels": {"kubernetes.io/metadata.name": name},
        }));
        let rest =
            fields(&json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}));
        // The object above is well-formed.
        let _ = self.put(&namespaces, metadata, rest);
    }
}

/// The time as objects carry it.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The fields of a JSON object.
pub(super) fn fields(value: &Value) -> Fields {
    Fields::parse(value.to_string().as_bytes()).unwrap_or_default()
}

/// Spreads numbers that are close to each other over the whole range (splitmix64).
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
