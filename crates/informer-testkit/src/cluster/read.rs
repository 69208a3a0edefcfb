//! A cluster as the backend of the read side.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use informer_core::ObjectKey;
use k8s_serve::table::Columns;
use k8s_serve::{
    At, Backend, Change, Discovery, DiscoveryPath, Feed, FeedEnd, ReadError, Resource, ResourcePath,
};
use serde_json::Value;
use tokio::sync::watch;

use super::{Cluster, ClusterSnapshot};
use crate::object::Object;

/// How many changes a feed returns at once: what a watch that lags behind holds in memory.
const BATCH: usize = 64;

/// The changes of one collection of a [`Cluster`].
pub struct ClusterFeed {
    cluster: Cluster,
    collection: String,
    generation: u64,
    /// Up to where changes have been returned.
    position: u64,
    progress: Option<u64>,
    wake: watch::Receiver<u64>,
}

impl Backend for Cluster {
    type Object = Object;
    type Snapshot = ClusterSnapshot;
    type Feed = ClusterFeed;

    async fn discovery(&self, _: &DiscoveryPath, _: &HeaderMap) -> Result<Discovery, ReadError> {
        Ok(Discovery::Resources(Arc::clone(&self.lock().resources)))
    }

    async fn resolve(&self, path: &ResourcePath) -> Result<Arc<Resource>, ReadError> {
        let state = self.lock();
        let is_named = |resource: &&Arc<Resource>| path.names(resource);
        state.resources.iter().find(is_named).cloned().ok_or(ReadError::NotServed)
    }

    async fn snapshot(&self, resource: &Resource, at: At) -> Result<ClusterSnapshot, ReadError> {
        let state = self.lock();
        let collection = state.collection(resource).ok_or(ReadError::NotServed)?;
        match at {
            At::Any | At::Newest => Ok(collection.newest(state.version)),
            At::Exact(version) if version < state.compacted => {
                Err(ReadError::Expired { current: state.version })
            }
            At::Exact(version) => {
                collection.at(version).ok_or(ReadError::Expired { current: state.version })
            }
        }
    }

    async fn columns(&self, resource: &Resource) -> Result<Columns, ReadError> {
        Ok(self
            .definition_of(resource)
            .and_then(|definition| Columns::of_definition(&definition, &resource.version))
            .unwrap_or_else(|| Columns::of_kind(&resource.group, &resource.kind)))
    }

    async fn reached(&self, _: &Resource, version: u64) -> Result<(), ReadError> {
        let mut wake = self.shared.version.subscribe();
        // It can only fail once the cluster is gone, which this handle prevents.
        let _ = wake.wait_for(|current| *current >= version).await;
        Ok(())
    }

    async fn version(&self, _: &Resource) -> Result<u64, ReadError> {
        Ok(Self::version(self))
    }

    async fn feed(&self, resource: &Resource, after: u64) -> Result<ClusterFeed, ReadError> {
        let state = self.lock();
        let collection = state.collection(resource).ok_or(ReadError::NotServed)?;
        if after < state.compacted || collection.after(after).is_none() {
            return Err(ReadError::Expired { current: state.version });
        }
        Ok(ClusterFeed {
            cluster: self.clone(),
            collection: resource.name(),
            generation: collection.generation,
            position: after,
            progress: (after <= state.version).then_some(after),
            wake: self.shared.version.subscribe(),
        })
    }
}

impl Cluster {
    /// The CustomResourceDefinition of a resource.
    fn definition_of(&self, resource: &Resource) -> Option<Value> {
        if !resource.custom {
            return None;
        }
        let state = self.lock();
        let definitions = state.resource(super::custom::CRD)?;
        let definition = state.get(definitions, &ObjectKey::cluster(&resource.name()))?;
        serde_json::from_slice(definition.json()).ok()
    }
}

impl ClusterFeed {
    /// What there is now; an empty list if nothing has changed.
    fn poll(&mut self) -> Result<Vec<Change<Object>>, FeedEnd> {
        let state = self.cluster.lock();
        let collection = state.collection_by_name(&self.collection).ok_or(FeedEnd::Closed)?;
        let changes: Vec<Change<Object>> = collection
            .after(self.position)
            .ok_or(FeedEnd::Expired { current: state.version })?
            .take(BATCH)
            .cloned()
            .collect();
        if let Some(last) = changes.last().filter(|_| changes.len() == BATCH) {
            self.position = last.version;
            self.progress = Some(last.version);
            return Ok(changes);
        }
        let closed = collection.generation != self.generation || collection.retired;
        if closed && changes.is_empty() {
            return Err(FeedEnd::Closed);
        }
        if state.version >= self.position {
            self.position = state.version;
            self.progress = Some(state.version);
        }
        Ok(changes)
    }
}

impl Feed for ClusterFeed {
    type Object = Object;

    async fn next(&mut self) -> Result<Vec<Change<Object>>, FeedEnd> {
        loop {
            // Marked as seen before looking: what comes in between wakes the next round.
            self.wake.borrow_and_update();
            let changes = self.poll()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            self.wake.changed().await.map_err(|_| FeedEnd::Closed)?;
        }
    }

    fn progress(&self) -> Option<u64> {
        self.progress
    }
}

impl fmt::Debug for ClusterFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterFeed")
            .field("collection", &self.collection)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
