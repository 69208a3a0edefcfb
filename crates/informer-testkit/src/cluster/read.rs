//! A cluster as the backend of the read side.

use std::sync::Arc;

use http::HeaderMap;
use informer_core::ObjectKey;
use k8s_serve::table::Columns;
use k8s_serve::watch_cache::{Interest, Watcher};
use k8s_serve::{At, Backend, Discovery, DiscoveryPath, ReadError, Resource, ResourcePath};
use serde_json::Value;

use super::{Cluster, ClusterSnapshot};
use crate::object::Object;

impl Backend for Cluster {
    type Object = Object;
    type Snapshot = ClusterSnapshot;

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

    async fn watch(
        &self,
        resource: &Resource,
        after: u64,
        interest: &Arc<Interest>,
    ) -> Result<Watcher<Object>, ReadError> {
        let state = self.lock();
        let collection = state.collection(resource).ok_or(ReadError::NotServed)?;
        let expired = ReadError::Expired { current: state.version };
        if after < state.compacted {
            return Err(expired);
        }
        collection.watch_cache.watch(after, interest).map_err(|_| expired)
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
