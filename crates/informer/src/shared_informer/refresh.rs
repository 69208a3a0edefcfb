//! Making the store as new as now.

use std::time::Duration;

use super::SharedInformer;
use crate::Error;
use crate::shared::warning_if_unstarted;

impl<T: Send + Sync + 'static> SharedInformer<T> {
    /// Lists the collection at the server's newest version, and returns once that list is in the
    /// store: it then shows every write that was acknowledged before this was called, by whatever
    /// client (G14). For what no version says, such as a write whose answer was lost, or the writes
    /// of the process that held a lease before. For a write whose answer arrived,
    /// [`wait_for_object`](Self::wait_for_object) is cheaper.
    ///
    /// - The watch is closed, the collection is listed at `""` (as a streaming list where those
    ///   work), and watched again from there (G26). The server and the network pay for a list; the
    ///   store, indexes and handlers only for what changed (G7).
    /// - Concurrent calls share one list. A list that is already under way does not count, since it
    ///   may be older than the call; another follows it, at least 1 s after its end.
    /// - A server that fails is not asked sooner than otherwise (G28). The wait lasts until a list
    ///   at the newest version succeeds: what must go on has a deadline
    ///   ([`refresh_within`](Self::refresh_within)).
    /// - If the server's history is replaced meanwhile, the wait ends with the list of the new
    ///   history; if the resource is removed, with the removal of its objects (G32). A resource
    ///   that is not installed is waited for.
    /// - Objects that cannot be decoded stay as they were, as after any list (G30).
    ///
    /// Calling this before anyone has started the informer waits for that too, and says so in the
    /// log after 5 s (G22); its first list is then made at the newest version.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    ///
    /// # Cancel safety
    /// The refresh is requested at the first poll. Dropping the future only ends the wait: the list
    /// is made all the same.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use informer::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let server = informer_testkit::TestServer::start().await?;
    /// # let client = server.client()?;
    /// let factory = SharedInformerFactory::builder(client).build();
    /// let pods = factory.informer::<Pod>()?;
    /// factory.start();
    /// let lister = pods.synced().await?;
    ///
    /// # server.cluster().load(informer_testkit::generate::pods(3))?;
    /// // Another process has created three pods; the lease is ours now.
    /// pods.refresh_within(Duration::from_secs(30)).await?;
    /// assert_eq!(lister.len(), 3);
    /// # factory.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refresh(&self) -> Result<(), Error> {
        let mut reached = self.shared.reached.subscribe();
        let number = self.shared.request_refresh();
        let wait = async {
            let reached = reached.wait_for(|it| it.refreshes >= number || it.stopped).await;
            reached.is_ok_and(|reached| reached.refreshes >= number)
        };
        match warning_if_unstarted(&self.shared.name, || self.owner.is_started(), wait).await {
            true => Ok(()),
            false => Err(self.shared.stopped()),
        }
    }

    /// [`refresh`](Self::refresh), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `refresh`, and [`Error::NotRefreshed`], which names the informer's state and its last
    /// error.
    ///
    /// # Cancel safety
    /// As for `refresh`; the list is made all the same after the deadline, too.
    pub async fn refresh_within(&self, deadline: Duration) -> Result<(), Error> {
        let refreshed = tokio::time::timeout(deadline, self.refresh()).await;
        refreshed.unwrap_or_else(|_| Err(Error::NotRefreshed(Box::new(self.shared.missing(None)))))
    }

    /// Whether the store may be older than the start of this informer: neither a list at the newest
    /// version nor a [`refresh`](Self::refresh) is in it yet. A first LIST is made at version `0`,
    /// which a server answers from a cache of any age; a first streaming list is made at the newest
    /// version (G26). After a removal of the resource it is as at the start.
    ///
    /// A controller that must not repeat what an earlier process did refreshes before its first
    /// reconcile if this says so.
    #[must_use]
    pub fn needs_refresh(&self) -> bool {
        self.shared.reached.borrow().needs_refresh
    }
}
