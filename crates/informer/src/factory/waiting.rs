//! Waiting for all informers of a factory.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;

use super::SharedInformerFactory;
use super::registry::AnyInformer;
use crate::Error;
use crate::error::{Missing, NotSynced};
use crate::registration::{Registration, RegistrationInner};
use crate::shared::WARN_UNSTARTED;

/// A callback with the informer that it is registered with.
struct Callback {
    informer: Arc<dyn AnyInformer>,
    callback: Arc<RegistrationInner>,
}

impl SharedInformerFactory {
    /// Waits until the stores of all informers asked for so far hold their first complete lists
    /// (client-go's `WaitForCacheSync`); those that were stopped since do not count. Waiting before
    /// anyone has called [`start`](Self::start) waits for that too, and says so in the log after 5
    /// s (G22).
    ///
    /// # Errors
    /// The first error of an informer's [`synced`](crate::SharedInformer::synced).
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_sync(&self) -> Result<(), Error> {
        let informers = self.informers()?;
        let synced = try_join_all(informers.iter().map(|informer| informer.synced()));
        self.warning_if_unstarted(synced).await.map(drop)
    }

    /// [`wait_for_sync`](Self::wait_for_sync), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `wait_for_sync`, and [`Error::NotSynced`], which names each informer that is missing, its
    /// state and its last error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_sync_within(&self, deadline: Duration) -> Result<(), Error> {
        let informers = self.informers()?;
        let missing = || {
            let unsynced = informers.iter().filter(|informer| !informer.status().has_synced);
            unsynced.map(|informer| informer.missing(None)).collect()
        };
        within(deadline, self.wait_for_sync(), missing).await
    }

    /// Waits until the stores of all informers asked for so far are synced and every callback
    /// registered with them has returned from its initial set (G19). Streams count only by their
    /// own [`synced`](crate::EventStream::synced).
    ///
    /// # Errors
    /// As for [`wait_for_sync`](Self::wait_for_sync).
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_handlers(&self) -> Result<(), Error> {
        self.wait_for_sync().await?;
        for Callback { callback, .. } in callbacks_of(&self.informers()?) {
            match Registration::from(callback).synced().await {
                // One that was removed is nobody's business any more.
                Ok(()) | Err(Error::Removed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// [`wait_for_handlers`](Self::wait_for_handlers), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `wait_for_handlers`, and [`Error::NotSynced`], which names each informer and handler that
    /// is missing.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_handlers_within(&self, deadline: Duration) -> Result<(), Error> {
        let informers = self.informers()?;
        let missing = || {
            let stores = informers.iter().filter(|informer| !informer.status().has_synced);
            // Asked only now: some may have been added while the stores were waited for.
            let callbacks = callbacks_of(&informers);
            let handlers = callbacks.iter().filter(|it| !it.callback.status().has_synced);
            stores
                .map(|informer| informer.missing(None))
                .chain(handlers.map(|it| it.informer.missing(Some(it.callback.name()))))
                .collect()
        };
        within(deadline, self.wait_for_handlers(), missing).await
    }

    fn informers(&self) -> Result<Vec<Arc<dyn AnyInformer>>, Error> {
        if self.inner.registry.is_closed() {
            return Err(Error::ShutDown);
        }
        let mut informers = self.inner.registry.all();
        // One that was stopped by its handle is nobody's business any more.
        informers.retain(|informer| !informer.is_stopped() || informer.has_failed());
        Ok(informers)
    }

    async fn warning_if_unstarted<O>(&self, wait: impl Future<Output = O>) -> O {
        let mut wait = std::pin::pin!(wait);
        tokio::select! {
            done = &mut wait => done,
            () = tokio::time::sleep(WARN_UNSTARTED) => {
                if !self.inner.registry.is_started() {
                    tracing::warn!("waiting for informers of a factory that nobody has started: call `start()`");
                }
                wait.await
            }
        }
    }
}

fn callbacks_of(informers: &[Arc<dyn AnyInformer>]) -> Vec<Callback> {
    let of = |informer: &Arc<dyn AnyInformer>| {
        let with = |callback| Callback { informer: Arc::clone(informer), callback };
        informer.callbacks().into_iter().map(with).collect::<Vec<_>>()
    };
    informers.iter().flat_map(of).collect()
}

async fn within(
    deadline: Duration,
    wait: impl Future<Output = Result<(), Error>>,
    missing: impl FnOnce() -> Vec<Missing>,
) -> Result<(), Error> {
    tokio::time::timeout(deadline, wait)
        .await
        .unwrap_or_else(|_| Err(Error::NotSynced(NotSynced { missing: missing() })))
}
