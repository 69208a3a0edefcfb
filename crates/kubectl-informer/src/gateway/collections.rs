//! The informers behind the answers: started by the first request, shared, bounded in number, let
//! go when idle.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use informer::{
    Error, InformerOptions, InformerState, Lister, Resource, SharedInformer, SharedInformerFactory,
};
use tokio::sync::Mutex;

use super::GatewayOptions;
use super::refusal::Refusal;
use crate::object::Object;
use crate::refused::refused;

/// How often a discovery must have said that a resource is gone before the gateway says so.
const ABSENT_FOR_GOOD: u32 = 3;

pub(super) struct Collections {
    factory: SharedInformerFactory,
    namespace: Option<String>,
    sync_timeout: Duration,
    idle_timeout: Duration,
    max: usize,
    held: Mutex<HashMap<Resource, Held>>,
}

struct Held {
    informer: SharedInformer<Object>,
    used: Instant,
    /// Requests under way have clones.
    users: Arc<()>,
}

/// A synced informer's lister; while this lives, the informer is in use.
pub(super) struct Synced {
    pub(super) lister: Lister<Object>,
    _user: Arc<()>,
}

impl Collections {
    pub(super) fn new(factory: SharedInformerFactory, options: &GatewayOptions) -> Self {
        Self {
            factory,
            namespace: options.namespace.clone(),
            sync_timeout: options.sync_timeout,
            idle_timeout: options.idle_timeout,
            max: options.max_collections,
            held: Mutex::default(),
        }
    }

    pub(super) fn factory(&self) -> &SharedInformerFactory {
        &self.factory
    }

    /// The namespace that the gateway is limited to, for resources that have any.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The lister of `resource`, once its first list is there.
    pub(super) async fn synced(&self, resource: &Resource) -> Result<Synced, Refusal> {
        let (informer, user) = self.acquire(resource).await?;
        let lister = tokio::select! {
            synced = informer.synced_within(self.sync_timeout) => synced.map_err(refusal)?,
            // Waiting would not help.
            refused = refused(&informer) => return Err(Refusal::passed_on(&refused)),
        };
        if let InformerState::Unavailable { absent: ABSENT_FOR_GOOD.., cause, .. } = lister.state()
        {
            let name = resource.group_resource();
            return Err(Refusal::not_found(format!("the server no longer has {name}: {cause}")));
        }
        Ok(Synced { lister, _user: user })
    }

    async fn acquire(
        &self,
        resource: &Resource,
    ) -> Result<(SharedInformer<Object>, Arc<()>), Refusal> {
        let now = tokio::time::Instant::now().into_std();
        let mut held = self.held.lock().await;
        if let Some(known) = held.get_mut(resource) {
            known.used = now;
            return Ok((known.informer.clone(), Arc::clone(&known.users)));
        }
        if held.len() >= self.max {
            let mut refusal = Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "the gateway holds {} resources already, the most it may; ask for one of them, wait until one is let go, or raise --max-collections",
                    held.len()
                ),
            );
            refusal.retry_after = Some(60);
            return Err(refusal);
        }
        let mut options = InformerOptions::new();
        if let Some(namespace) = self.namespace.as_ref().filter(|_| resource.namespaced) {
            options = options.namespace(namespace);
        }
        let informer =
            self.factory.informer_as::<Object>(resource.clone(), options).map_err(refusal)?;
        let users = Arc::new(());
        let user = Arc::clone(&users);
        held.insert(resource.clone(), Held { informer: informer.clone(), used: now, users });
        Ok((informer, user))
    }

    /// Stops what nobody asked for long enough.
    pub(super) async fn stop_idle(&self, now: Instant) {
        if self.idle_timeout.is_zero() {
            return;
        }
        // Locked until they have stopped, so that nobody gets an informer that is about to stop.
        let mut held = self.held.lock().await;
        let idle: Vec<Resource> = held
            .iter()
            .filter(|(_, it)| Arc::strong_count(&it.users) == 1)
            .filter(|(_, it)| now.saturating_duration_since(it.used) >= self.idle_timeout)
            .map(|(resource, _)| resource.clone())
            .collect();
        for resource in idle {
            if let Some(gone) = held.remove(&resource) {
                tracing::info!(%resource, "nobody asked for it for a while: stopping its informer");
                self.factory.stop(&gone.informer).await;
            }
        }
    }

    pub(super) async fn shutdown(&self) {
        self.factory.shutdown().await;
    }
}

fn refusal(error: Error) -> Refusal {
    match error {
        Error::UnknownResource(unknown) => unknown.into(),
        error @ Error::NothingDecodes { .. } => {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
        }
        other => Refusal::unavailable(other.to_string()),
    }
}
