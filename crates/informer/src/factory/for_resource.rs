//! Dynamic informers of resources that discovery tells about.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use informer_core::reflector::{Backoff, BackoffConfig, ReflectorConfig};
use kube::core::DynamicObject;

use super::SharedInformerFactory;
use crate::discovery::{Discovery, DiscoveryError};
use crate::error::UnknownResource;
use crate::options::InformerOptions;
use crate::{Error, Resource, SharedInformer};

/// The answer to [`SharedInformerFactory::for_resource`]: a future of the informer.
///
/// # Cancel safety
/// Dropping it gives up the discovery; nothing was made.
#[must_use = "a future does nothing unless it is awaited"]
pub struct ForResource<'a> {
    factory: &'a SharedInformerFactory,
    /// Group, version and plural name.
    names: [&'a str; 3],
    options: InformerOptions<DynamicObject>,
    asking: Option<BoxFuture<'a, Result<Resource, Error>>>,
}

impl<'a> ForResource<'a> {
    pub(super) fn new(
        factory: &'a SharedInformerFactory,
        [group, version, plural]: [&'a str; 3],
        options: InformerOptions<DynamicObject>,
    ) -> Self {
        let group = if group == "core" { "" } else { group };
        Self { factory, names: [group, version, plural], options, asking: None }
    }

    /// Waits until the server has the resource, however long that takes, instead of failing with
    /// [`Error::UnknownResource`] (G32). Discovery is asked at intervals that grow to 30 s, and as
    /// late as a `Retry-After` asks for, up to 5 min; that it does not answer is logged at warn,
    /// and waited for too.
    ///
    /// The short name, singular or kind of a resource that is there is still an error: it would be
    /// waited for in vain.
    ///
    /// A typed informer needs no such call: it is there at once, waits by itself, and says so in
    /// its status. A dynamic one is not there before discovery has told what the resource is.
    ///
    /// # Errors
    /// [`Error::Discovery`] if discovery is forbidden, the credentials are refused, or what answers
    /// is no Kubernetes API server; [`Error::UnknownResource`] for another name than the plural of
    /// a resource that is there; [`Error::ConflictingOptions`]; [`Error::InvalidNamespace`];
    /// [`Error::ShutDown`], at once when the factory is shut down.
    ///
    /// # Cancel safety
    /// Dropping the future gives up waiting; nothing was made.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn demo(factory: informer::SharedInformerFactory) -> Result<(), informer::Error> {
    /// // The CRD may be installed later.
    /// let widgets = factory.for_resource("example.com", "v1", "widgets").when_installed().await?;
    /// let lister = widgets.synced().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn when_installed(self) -> Result<SharedInformer<DynamicObject>, Error> {
        let Self { factory, names, options, .. } = self;
        let resource = tokio::select! {
            biased;
            () = factory.inner.registry.closing() => return Err(Error::ShutDown),
            resource = installed(factory, names) => resource?,
        };
        factory.dynamic(resource, options)
    }
}

impl Future for ForResource<'_> {
    type Output = Result<SharedInformer<DynamicObject>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (factory, names) = (self.factory, self.names);
        let asking = self.asking.get_or_insert_with(|| Box::pin(known(factory, names)));
        let resource = std::task::ready!(asking.as_mut().poll(context))?;
        Poll::Ready(factory.dynamic(resource, self.options.clone()))
    }
}

/// The resource, or an error with suggestions.
async fn known(factory: &SharedInformerFactory, names: [&str; 3]) -> Result<Resource, Error> {
    let [group, version, plural] = names;
    let told = Discovery::fetch_group_version(factory.client(), group, version).await;
    if let Found::It(resource) = found(told, names)? {
        return Ok(resource);
    }
    let all = Discovery::fetch(factory.client()).await?;
    let found = all.require(group, version, plural).map_err(Error::UnknownResource)?;
    Ok(found.resource.clone())
}

/// The resource, once the server has it.
async fn installed(factory: &SharedInformerFactory, names: [&str; 3]) -> Result<Resource, Error> {
    let mut backoff = Backoff::new(BackoffConfig::default(), crate::seed::random());
    let max_retry_after = ReflectorConfig::default().max_retry_after;
    let mut told = None;
    loop {
        let mut wanted = Duration::ZERO;
        let [group, version, _] = names;
        let answer = Discovery::fetch_group_version_once(factory.client(), group, version).await;
        match found(answer, names) {
            Ok(Found::It(resource)) => return Ok(resource),
            Ok(Found::ByAnotherName(unknown)) => return Err(Error::UnknownResource(unknown)),
            Ok(Found::Nothing) => {}
            Err(error) if may_pass(&error) => {
                if let DiscoveryError::Refused { retry_after: Some(asked), .. } = error {
                    wanted = asked.min(max_retry_after);
                }
                if told.as_ref() != Some(&error) {
                    let [group, version, plural] = names;
                    tracing::warn!(group, version, plural, "waiting for the resource: {error}");
                    told = Some(error);
                }
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(backoff.next_delay().max(wanted)).await;
    }
}

/// What the one small document has in which a resource would be.
enum Found {
    It(Resource),
    /// A resource with this short name, singular or kind. The server keeps these names apart from
    /// plurals, so there will be none with this plural.
    ByAnotherName(UnknownResource),
    Nothing,
}

fn found(
    told: Result<Discovery, DiscoveryError>,
    [group, version, plural]: [&str; 3],
) -> Result<Found, DiscoveryError> {
    let known = match told {
        Ok(known) => known,
        Err(DiscoveryError::NotFound { .. }) => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    Ok(match known.require(group, version, plural) {
        Ok(found) => Found::It(found.resource.clone()),
        Err(unknown) if unknown.other_name_of.is_some() => Found::ByAnotherName(unknown),
        Err(_) => Found::Nothing,
    })
}

/// Whether it may be otherwise when asked again.
fn may_pass(error: &DiscoveryError) -> bool {
    match error {
        DiscoveryError::Unreachable { .. } => true,
        DiscoveryError::Refused { code, .. } => *code == 429 || *code >= 500,
        _ => false,
    }
}

impl fmt::Debug for ForResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForResource").field("names", &self.names).finish_non_exhaustive()
    }
}
