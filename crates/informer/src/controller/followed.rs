//! What the informers of a controller show, whatever they hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::own_writes::{History, InformerId, Selection, Views};
use kube::core::DynamicObject;
use tokio::sync::watch;

use super::exchange::{GroupResource, Returned};
use crate::error::Missing;
use crate::fields::Fields;
use crate::status::Reached;
use crate::{ObjectKey, Resource, ResourceVersion, Scope, SharedInformer, Uid};

/// An informer of any representation.
pub(super) trait Followed: Send + Sync {
    fn resource(&self) -> &Resource;
    fn scope(&self) -> &Scope;
    fn reached(&self) -> watch::Receiver<Reached>;
    fn history(&self) -> Option<History>;
    /// The version that the store stands for, if it is complete.
    fn version(&self) -> Option<ResourceVersion>;
    fn held(&self, key: &ObjectKey) -> Option<(Uid, ResourceVersion)>;
    fn undecodable(&self, key: &ObjectKey) -> Option<String>;
    /// Its name, state and last error.
    fn missing(&self) -> Missing;
    /// Requests a refresh, and returns its number.
    fn request_refresh(&self) -> u64;
    /// How many refreshes are complete and in the store.
    fn refreshes(&self) -> u64;
}

impl<T: Send + Sync + 'static> Followed for SharedInformer<T> {
    fn resource(&self) -> &Resource {
        &self.shared.resource
    }

    fn scope(&self) -> &Scope {
        &self.shared.scope
    }

    fn reached(&self) -> watch::Receiver<Reached> {
        self.shared.reached.subscribe()
    }

    fn history(&self) -> Option<History> {
        let reached = self.shared.reached.borrow();
        let (epoch, removals) = (reached.epoch, reached.removals);
        (!reached.stopped).then_some(History { epoch, removals })
    }

    fn version(&self) -> Option<ResourceVersion> {
        let reached = self.shared.reached.borrow();
        reached.has_synced.then(|| reached.version.clone())
    }

    fn held(&self, key: &ObjectKey) -> Option<(Uid, ResourceVersion)> {
        let snapshot = self.shared.reader.snapshot();
        snapshot.get(key).map(|record| (record.uid.clone(), record.version.clone()))
    }

    fn undecodable(&self, key: &ObjectKey) -> Option<String> {
        self.shared.live.borrow().stale.get(key).cloned()
    }

    fn missing(&self) -> Missing {
        self.shared.missing(None)
    }

    fn request_refresh(&self) -> u64 {
        self.shared.request_refresh()
    }

    fn refreshes(&self) -> u64 {
        self.shared.reached.borrow().refreshes
    }
}

/// The informers of one controller, by their [`InformerId`].
#[derive(Clone, Default)]
pub(super) struct Stores(pub(super) Vec<Arc<dyn Followed>>);

impl Stores {
    pub(super) fn get(&self, informer: InformerId) -> &dyn Followed {
        &*self.0[informer.index()]
    }

    /// The informers of a resource.
    pub(super) fn of<'a>(
        &'a self,
        resource: &'a GroupResource,
    ) -> impl Iterator<Item = &'a dyn Followed> {
        self.0.iter().map(|it| &**it).filter(move |it| resource.is_of(it.resource()))
    }

    /// Whether the selectors of each informer select what the server returned.
    pub(super) fn select(&self, resource: &GroupResource, returned: &Returned) -> Vec<Selection> {
        let of_resource = |it: &Arc<dyn Followed>| match resource.is_of(it.resource()) {
            true => selects(&**it, returned),
            false => Selection::Unknown,
        };
        self.0.iter().map(of_resource).collect()
    }
}

/// Whether the scope of an informer includes a namespace.
pub(super) fn includes(informer: &dyn Followed, namespace: &str) -> bool {
    let own = informer.scope().namespace.as_deref();
    !informer.resource().namespaced || own.is_none_or(|own| own == namespace)
}

/// Whether the selectors of an informer select what the server returned, as far as that has what
/// they select by.
fn selects(informer: &dyn Followed, returned: &Returned) -> Selection {
    let (Scope { labels, fields, .. }, resource) = (informer.scope(), informer.resource());
    let is_whole = returned.kind == resource.kind;
    if !labels.is_everything() {
        if !is_whole && returned.kind != "PartialObjectMetadata" {
            return Selection::Unknown;
        }
        let own: &BTreeMap<String, String> = &returned.labels;
        if !labels.matches(|key| own.get(key).map(String::as_str)) {
            return Selection::Excluded;
        }
    }
    if !fields.is_everything() {
        let is_whole = is_whole && !k8s_protobuf::hides_levels(&returned.body);
        let object = is_whole.then(|| serde_json::from_slice::<DynamicObject>(&returned.body));
        let Some(Ok(object)) = object else { return Selection::Unknown };
        if !Fields::of(resource, fields).match_object(&object) {
            return Selection::Excluded;
        }
    }
    Selection::Selected
}

impl Views for Stores {
    fn history(&self, informer: InformerId) -> Option<History> {
        self.get(informer).history()
    }

    fn includes_namespace(&self, informer: InformerId, namespace: &str) -> bool {
        includes(self.get(informer), namespace)
    }

    fn has_reached(&self, informer: InformerId, version: &ResourceVersion) -> bool {
        self.get(informer).version().is_some_and(|own| own.has_reached(version))
    }

    fn held(&self, informer: InformerId, key: &ObjectKey) -> Option<(Uid, ResourceVersion)> {
        self.get(informer).held(key)
    }

    fn undecodable(&self, informer: InformerId, key: &ObjectKey) -> Option<String> {
        self.get(informer).undecodable(key)
    }
}
