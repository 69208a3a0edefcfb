//! Waiting for all informers of a factory.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::SharedInformerFactory;
use super::registry::AnyInformer;
use crate::Error;
use crate::error::{Missing, NotSynced};
use crate::registration::{Registration, RegistrationInner};

/// How long a wait goes on before it is said in the log that nobody has started the factory.
const WARN_UNSTARTED: Duration = Duration::from_secs(5);

/// A callback with the informer that it is registered with.
struct Callback {
    informer: Arc<dyn AnyInformer>,
    callback: Arc<RegistrationInner>,
}

impl SharedInformerFactory {
    /// Waits until the stores of all informers asked for so far hold their first complete lists (client-go's
    /// `WaitForCacheSync`). Waiting before anyone has called [`start`](Self::start) waits for that too, and
    /// says so in the log after 5 s (G22).
    ///
    /// # Errors
    /// The first error of an informer's [`synced`](crate::SharedInformer::synced).
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_sync(&self) -> Result<(), Error> {
        let informers = self.informers()?;
        let synced = async {
            join_all(informers.iter().map(|informer| informer.synced())).await.into_iter().collect()
        };
        self.warning_if_unstarted(synced).await
    }

    /// [`wait_for_sync`](Self::wait_for_sync), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `wait_for_sync`, and [`Error::NotSynced`], which names each informer that is missing, its state and
    /// its last error.
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

    /// Waits until the stores of all informers asked for so far are synced and every callback registered with
    /// them has returned from its initial set (G19). Streams count only by their own
    /// [`synced`](crate::EventStream::synced).
    ///
    /// # Errors
    /// As for [`wait_for_sync`](Self::wait_for_sync).
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_handlers(&self) -> Result<(), Error> {
        self.wait_for_sync().await?;
        for Callback { callback, .. } in self.callbacks()? {
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
    /// As `wait_for_handlers`, and [`Error::NotSynced`], which names each informer and handler that is missing.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_handlers_within(&self, deadline: Duration) -> Result<(), Error> {
        let informers = self.informers()?;
        let callbacks = self.callbacks()?;
        let missing = || {
            let stores = informers.iter().filter(|informer| !informer.status().has_synced);
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
        Ok(self.inner.registry.all())
    }

    fn callbacks(&self) -> Result<Vec<Callback>, Error> {
        let informers = self.informers()?;
        let callbacks = informers.iter().flat_map(|informer| {
            let with = |callback| Callback { informer: Arc::clone(informer), callback };
            informer.callbacks().into_iter().map(with).collect::<Vec<_>>()
        });
        Ok(callbacks.collect())
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

async fn within(
    deadline: Duration,
    wait: impl Future<Output = Result<(), Error>>,
    missing: impl FnOnce() -> Vec<Missing>,
) -> Result<(), Error> {
    tokio::time::timeout(deadline, wait)
        .await
        .unwrap_or_else(|_| Err(Error::NotSynced(NotSynced { missing: missing() })))
}
