//! The state that a short path reads. The same conditions as on Kubernetes' own paths apply, but
//! requests are never forwarded, because the API server has no short paths.

use http::StatusCode;
use informer::{Resource, Snapshot};
use k8s_serve::ReadError;

use crate::backend::{Source, Use};
use crate::collections::{REFRESH_DEADLINE, Synced};
use crate::endpoint::{Endpoint, Inner};
use crate::object::Object;
use crate::refusal::Refusal;

/// A collection that may answer reads.
pub(super) struct Current {
    pub(super) synced: Synced,
    source: Source,
    /// The path of the resource on the API server, for error messages.
    path: String,
}

impl Current {
    /// Waits for the first list of a resource and returns its collection.
    ///
    /// # Errors
    /// If the resource cannot be held, is strict, or if the cache may not show a write yet.
    pub(super) async fn of(endpoint: &Endpoint, resource: &Resource) -> Result<Self, Refusal> {
        let Inner { catalog, collections, writes, options, client, stopping, .. } =
            &*endpoint.inner;
        let path = resource.path(collections.namespace().filter(|_| resource.namespaced));
        if catalog.is_strict(resource) {
            let name = resource.group_resource();
            return Err(Refusal::forbidden(format!(
                "{name} is never answered from the cache here (--strict): ask for {path}"
            )));
        }
        let synced = collections.synced(resource).await?;
        let collection = &synced.collection;
        if writes.must_forward(collection, REFRESH_DEADLINE) {
            writes.find_version(collection, client);
            return Err(behind(&path));
        }
        let source = Source {
            in_use: Use::of(collection.clone()),
            max_staleness: options.staleness_limit(),
            first_page: None,
            stopping: stopping.clone(),
            permission: None,
        };
        Ok(Self { synced, source, path })
    }

    /// The newest state. It includes every version that the API server has named to a caller.
    ///
    /// # Errors
    /// If the cache does not reach that state in time, or exceeds the staleness limit.
    pub(super) async fn newest(&self) -> Result<Snapshot<Object>, Refusal> {
        self.source.newest().await.map_err(|error| self.refusal(error))
    }

    /// # Errors
    /// If the cache exceeds the staleness limit.
    pub(super) fn check_staleness(&self) -> Result<(), Refusal> {
        self.source.check_staleness().map_err(|error| self.refusal(error))
    }

    fn refusal(&self, error: ReadError) -> Refusal {
        match error {
            ReadError::NotReady { .. } => behind(&self.path),
            ReadError::Refused(status) => {
                let code = StatusCode::from_u16(status.code);
                let code = code.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
                let retry_after = status.details.retry_after_seconds;
                Refusal {
                    retry_after: (retry_after > 0).then_some(retry_after),
                    ..Refusal::new(code, status.message)
                }
            }
            // A read of the newest state has no other errors.
            error => Refusal::unavailable(error.to_string()),
        }
    }
}

/// The error for a read of the newest state while the cache is behind the API server.
fn behind(path: &str) -> Refusal {
    Refusal::unavailable(format!(
        "the cache does not show the last write yet: try again, or ask for {path}, which the API server answers then"
    ))
}
