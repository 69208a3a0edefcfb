//! Waiting for what one wrote oneself.

use std::time::Duration;

use informer_core::ResourceVersion;

use super::SharedInformer;
use crate::Error;
use crate::error::NotReached;

impl<T: Send + Sync + 'static> SharedInformer<T> {
    /// [`wait_for`](Self::wait_for), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `wait_for`, and [`Error::NotReached`], which says at which version the store stands, and
    /// names the informer's state and its last error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_within(
        &self,
        version: impl Into<ResourceVersion>,
        deadline: Duration,
    ) -> Result<(), Error> {
        let wanted = version.into();
        match tokio::time::timeout(deadline, self.wait_for(wanted.clone())).await {
            Ok(reached) => reached,
            Err(_) => {
                let (reached, missing) =
                    (self.last_sync_resource_version(), self.shared.missing(None));
                Err(Error::NotReached(Box::new(NotReached { wanted, reached, missing })))
            }
        }
    }

    /// Waits until the store has reached the version of `written`, an object of the informer's
    /// resource as a create, an update or a patch returned it (G14).
    ///
    /// It is the store's version that is waited for, not the object: the wait ends as well if the
    /// object was changed, deleted or replaced meanwhile, or is excluded by the informer's
    /// selectors. What the store shows then is that state or a later one. The version of a write
    /// that the informer's selectors exclude is reached with the next event or bookmark, which may
    /// take a minute.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for); [`Error::UnorderedVersion`] also for an object without a
    /// version, which does not come from the server.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for_object(&self, written: &impl kube::Resource) -> Result<(), Error> {
        self.wait_for(version_of(written)).await
    }

    /// [`wait_for_object`](Self::wait_for_object), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `wait_for_object`, and [`Error::NotReached`], which says at which version the store
    /// stands, and names the informer's state and its last error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use informer::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::{Api, ObjectMeta, PostParams};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let server = informer_testkit::TestServer::start().await?;
    /// # let client = server.client()?;
    /// let factory = SharedInformerFactory::builder(client.clone()).namespace("default").build();
    /// let config_maps = factory.informer::<ConfigMap>()?;
    /// factory.start();
    ///
    /// let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    /// let wanted = ConfigMap { metadata, ..ConfigMap::default() };
    /// let written = Api::default_namespaced(client).create(&PostParams::default(), &wanted).await?;
    /// config_maps.wait_for_object_within(&written, Duration::from_secs(5)).await?;
    /// assert!(config_maps.synced().await?.find("default", "a").is_some());
    /// # factory.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_object_within(
        &self,
        written: &impl kube::Resource,
        deadline: Duration,
    ) -> Result<(), Error> {
        self.wait_for_within(version_of(written), deadline).await
    }
}

fn version_of(object: &impl kube::Resource) -> ResourceVersion {
    object.meta().resource_version.as_deref().unwrap_or_default().into()
}
