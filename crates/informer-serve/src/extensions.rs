//! Which API groups are served by extension API servers. Such a server may show each caller other
//! objects, by rules that no `SubjectAccessReview` knows. Its objects are therefore not held unless
//! the configuration names them.

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

/// The APIServices of the API server, watched from the first question about a custom resource on.
pub(crate) struct Extensions {
    factory: SharedInformerFactory,
    catalog: Arc<Catalog>,
    sync_timeout: Duration,
    services: Mutex<Option<SharedInformer<ApiService>>>,
    /// Whether callers have rights of their own.
    is_controlled: AtomicBool,
    /// Whether the last list or watch was refused.
    is_refused: AtomicBool,
}

/// The part of an APIService that says who serves its group and version.
#[derive(Deserialize)]
struct ApiService {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    /// The extension server; absent if kube-apiserver itself serves them.
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

    /// Takes note that callers have rights of their own: from now on, nothing is held of which it is
    /// not known who serves it.
    pub(crate) fn set_controlled(&self) {
        self.is_controlled.store(true, Ordering::Release);
    }

    /// Why a resource must not be held, if it must not. The first question waits for the list of
    /// APIServices.
    pub(crate) async fn unheld(&self, resource: &Resource) -> Option<Unheld> {
        if !self.may_be_extension(resource) {
            return None;
        }
        if let Some(services) = self.started().filter(|it| !it.has_synced()) {
            tokio::select! {
                _ = services.synced_within(self.sync_timeout) => {}
                // Waiting would not help.
                _ = refused(&services) => {}
            }
        }
        self.unheld_now(resource)
    }

    /// As [`unheld`](Self::unheld), by what is known now.
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

    /// What the endpoint's account must be allowed to list and watch to find out.
    pub(crate) fn needed(&self) -> Option<Resource> {
        let is_needed = self.is_controlled.load(Ordering::Acquire) && self.current().is_some();
        is_needed.then(api_services)
    }

    /// Waits until the APIServices are known up to a version.
    #[cfg(test)]
    pub(crate) async fn reached(&self, version: u64) {
        self.started().unwrap().wait_for(version).await.unwrap();
    }

    fn may_be_extension(&self, resource: &Resource) -> bool {
        !is_built_in(resource)
            && !self.catalog.is_named(resource)
            && self.catalog.has_api_services()
    }

    /// Whether an extension server serves a resource; `None` if that is not known.
    fn is_extension(&self, resource: &Resource) -> Option<bool> {
        let informer = self.current()?;
        let services = informer.unsynced_store();
        let state = services.state();
        let code = state.cause().and_then(|it| it.code);
        if matches!(state, InformerState::Watching { .. }) {
            self.is_refused.store(false, Ordering::Release);
        } else if matches!(state, InformerState::Unavailable { .. })
            || code.is_some_and(|it| FINAL.contains(&it))
        {
            // Remembered: while it is tried again, the state does not say so.
            self.is_refused.store(true, Ordering::Release);
        }
        if !informer.has_synced() || self.is_refused.load(Ordering::Acquire) {
            return None;
        }
        // All that is served has an APIService: one that is not here is newer than what is.
        let Resource { group, version, .. } = resource;
        let service = services.find("", &format!("{version}.{group}"))?;
        Some(service.spec.service.is_some())
    }

    /// The informer, if it is there and has not been stopped.
    fn current(&self) -> Option<SharedInformer<ApiService>> {
        let services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.clone().filter(|it| !it.is_stopped())
    }

    /// The informer, made unless it is there; `None` if the factory is shut down.
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
