//! Finds out which API groups extension API servers serve. Such a server may show each caller
//! different objects, by rules that no `SubjectAccessReview` covers. Its objects are therefore not
//! held unless the configuration names them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use informer::{InformerOptions, InformerState, Resource, SharedInformer, SharedInformerFactory};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::catalog::{Catalog, is_built_in};
use crate::collections::{FINAL, refused};
use crate::options::Options;
use crate::unheld::Unheld;

/// After how many refusals in a row the right to read APIServices counts as taken away.
const REFUSALS: u32 = 3;

/// The APIServices of the API server. The watch starts with the first request for a custom
/// resource.
pub(crate) struct Extensions {
    factory: SharedInformerFactory,
    catalog: Arc<Catalog>,
    sync_timeout: Duration,
    services: Mutex<Option<SharedInformer<ApiService>>>,
    /// Whether access is controlled, so that callers have different rights.
    is_controlled: AtomicBool,
    /// Whether the last list or watch of APIServices was refused.
    is_refused: AtomicBool,
}

/// The part of an APIService that names the server of its group and version.
#[derive(Deserialize)]
struct ApiService {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    /// The extension API server; absent if kube-apiserver serves the group.
    service: Option<IgnoredAny>,
}

impl Extensions {
    pub(crate) fn new(
        factory: SharedInformerFactory,
        catalog: Arc<Catalog>,
        options: &Options,
    ) -> Self {
        Self {
            factory,
            catalog,
            sync_timeout: options.sync_timeout,
            services: Mutex::default(),
            is_controlled: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Records that access is controlled. From now on a resource is not held while its server is
    /// unknown.
    pub(crate) fn set_controlled(&self) {
        self.is_controlled.store(true, Ordering::Release);
    }

    /// The reason why a resource must not be held; `None` if it may be held. The first call waits
    /// for the list of APIServices.
    pub(crate) async fn unheld(&self, resource: &Resource) -> Option<Unheld> {
        if !self.may_be_extension(resource) {
            return None;
        }
        if let Some(services) = self.started().filter(|it| !it.has_synced()) {
            tokio::select! {
                _ = services.synced_within(self.sync_timeout) => {}
                // A refused list will not succeed within the timeout.
                _ = refused(&services) => {}
            }
        }
        self.unheld_now(resource)
    }

    /// As [`unheld`](Self::unheld), but without waiting for the list.
    pub(crate) fn unheld_now(&self, resource: &Resource) -> Option<Unheld> {
        if !self.may_be_extension(resource) {
            return None;
        }
        match self.is_extension(resource) {
            Some(true) => Some(Unheld::Extension),
            Some(false) => None,
            // Without rights of their own, callers see what the endpoint's account sees anyway.
            None => self.is_controlled.load(Ordering::Acquire).then_some(Unheld::Unattributed),
        }
    }

    /// The resource that the endpoint's account must be allowed to list and watch: APIServices, if
    /// they are in use and access is controlled.
    pub(crate) fn needed(&self) -> Option<Resource> {
        let is_needed = self.is_controlled.load(Ordering::Acquire) && self.current().is_some();
        is_needed.then(api_services)
    }

    /// Waits until the APIServices have reached a resource version.
    #[cfg(test)]
    pub(crate) async fn reached(&self, version: u64) {
        self.started().unwrap().wait_for(version).await.unwrap();
    }

    fn may_be_extension(&self, resource: &Resource) -> bool {
        !is_built_in(resource)
            && !self.catalog.is_named(resource)
            && self.catalog.has_api_services()
    }

    /// Whether an extension API server serves a resource; `None` if that is unknown.
    fn is_extension(&self, resource: &Resource) -> Option<bool> {
        let informer = self.current()?;
        let services = informer.unsynced_store();
        let state = services.state();
        let code = state.cause().and_then(|it| it.code);
        let is_refused = code.is_some_and(|it| FINAL.contains(&it));
        // An API server that has just started may refuse what it allows a moment later.
        let may_pass =
            matches!(state, InformerState::BackingOff { attempt, .. } if attempt < REFUSALS);
        if matches!(state, InformerState::Watching { .. }) {
            self.is_refused.store(false, Ordering::Release);
        } else if matches!(state, InformerState::Unavailable { .. }) || is_refused && !may_pass {
            // The flag is needed because the state no longer shows the refusal during a retry.
            self.is_refused.store(true, Ordering::Release);
        }
        if !informer.has_synced() || self.is_refused.load(Ordering::Acquire) {
            return None;
        }
        // Every group and version has an APIService. If it is missing here, it is newer than the
        // cached list, and its server is unknown.
        let Resource { group, version, .. } = resource;
        let service = services.find("", &format!("{version}.{group}"))?;
        Some(service.spec.service.is_some())
    }

    /// The informer, if it has been started and not stopped.
    fn current(&self) -> Option<SharedInformer<ApiService>> {
        let services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.clone().filter(|it| !it.is_stopped())
    }

    /// The informer, which is started if necessary; `None` if the factory is shut down.
    fn started(&self) -> Option<SharedInformer<ApiService>> {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if services.as_ref().is_none_or(SharedInformer::is_stopped) {
            *services = self.factory.informer_as(api_services(), InformerOptions::new()).ok();
        }
        services.clone()
    }
}

/// The group of APIServices.
pub(crate) const GROUP: &str = "apiregistration.k8s.io";

fn api_services() -> Resource {
    Resource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        plural: "apiservices".to_owned(),
        kind: "APIService".to_owned(),
        namespaced: false,
    }
}
