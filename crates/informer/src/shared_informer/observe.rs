//! Observers of what is published to the store.

use std::fmt;
use std::sync::{Arc, Weak};

use informer_core::{ObserverId, Publication};

use super::SharedInformer;
use crate::shared::Shared;
use crate::{Error, Snapshot};

/// An observer that was added with [`SharedInformer::observe_publications`]; dropping this removes
/// it. It does not keep the informer running.
#[must_use = "dropping it removes the observer"]
pub struct Observation<T> {
    shared: Weak<Shared<T>>,
    id: ObserverId,
    start: Option<Snapshot<T>>,
}

impl<T: Send + Sync + 'static> SharedInformer<T> {
    /// Adds an observer of publications to the store: its whole history, with the version of every
    /// change and up to which version it is complete. For logs of changes, as a server of watches
    /// needs one; for everything else there are handlers and streams.
    ///
    /// The observer is called in the informer's own task, after each publication and before
    /// handlers are woken, and ends with the informer. It begins exactly where
    /// [`Observation::start`] ends, whenever it is added: nothing is missed, nothing comes twice.
    ///
    /// It **must be cheap and must not block**: the informer and all registrations wait for it. It
    /// must not call this informer except for snapshots and status; adding or removing a handler,
    /// index or observer would wait for itself. One that panics is removed and dropped, which is
    /// reported ([`Phase::Observer`](crate::reflector::Phase::Observer)).
    ///
    /// # Errors
    /// [`Error::Stopped`].
    ///
    /// # Examples
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use informer::{Publication, SharedInformerFactory};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let server = informer_testkit::TestServer::start().await?;
    /// # let client = server.client()?;
    /// # server.cluster().load(informer_testkit::generate::pods(3))?;
    /// let factory = SharedInformerFactory::builder(client).build();
    /// let pods = factory.lazy::<Pod>()?;
    /// let log = Arc::new(Mutex::new(Vec::new()));
    /// let observed = Arc::clone(&log);
    /// let observation = pods.observe_publications(move |publication: &Publication<'_, _>| {
    ///     let mut log = observed.lock().unwrap();
    ///     for (version, event) in publication.changes() {
    ///         log.push(format!("{} at {version}", event.key()));
    ///     }
    ///     log.push(format!("complete up to {}", publication.version()));
    /// })?;
    /// assert!(observation.start().is_none(), "it was not started yet");
    ///
    /// factory.start();
    /// let lister = pods.synced().await?;
    /// let version = lister.snapshot().version().to_string();
    /// assert_eq!(*log.lock().unwrap(), [format!("complete up to {version}")]);
    /// # factory.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn observe_publications(
        &self,
        observer: impl FnMut(&Publication<'_, T>) + Send + 'static,
    ) -> Result<Observation<T>, Error> {
        let mut pipeline = self.shared.pipeline();
        // Checked under the lock: a stopping informer drops its observers under it.
        if self.shared.is_stopping() {
            return Err(self.shared.stopped());
        }
        let (id, start) = pipeline.observe(observer);
        Ok(Observation { shared: Arc::downgrade(&self.shared), id, start })
    }
}

impl<T> Observation<T> {
    /// The state from which the first publication leads on; `None` before the first list, which is
    /// then the first publication.
    #[must_use]
    pub fn start(&self) -> Option<&Snapshot<T>> {
        self.start.as_ref()
    }

    /// Forgets [`start`](Self::start), which would keep what it holds in memory.
    pub fn take_start(&mut self) -> Option<Snapshot<T>> {
        self.start.take()
    }
}

impl<T> Drop for Observation<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.pipeline().unobserve(self.id);
        }
    }
}

impl<T> fmt::Debug for Observation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observation").field("start", &self.start).finish_non_exhaustive()
    }
}
