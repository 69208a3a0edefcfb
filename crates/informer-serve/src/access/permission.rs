//! A permission that was granted, and the reviews that detect its loss.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_serve::Status;
use tokio::time::Instant;

use super::Control;
use super::answers::Party;
use super::attributes::Attributes;
use super::caller::Identity;
use super::credentials::Presented;
use super::impersonation::{Impersonation, Way};
use super::reviews::{Purpose, Refused};

/// Minimum and maximum time until a permission is reviewed again. Review results are cached for 10
/// s here, and tokens for 10 s by the API server, so a watch ends within 70 s.
const REVIEW_AFTER: (Duration, Duration) = (Duration::from_secs(40), Duration::from_secs(50));
/// The same after a review that failed.
const REVIEW_AGAIN: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(6));
/// How long reviews may fail before the permission counts as lost.
const MAX_FAILING: Duration = Duration::from_secs(120);

/// A permission of a caller. The guard puts it into the extensions of requests for Kubernetes'
/// paths on addresses with access control.
#[derive(Clone)]
pub(crate) struct Permission {
    pub(super) control: Control,
    pub(super) presented: Presented,
    /// The user that the reviews of the open watch are accounted to.
    pub(super) user: Party,
    pub(super) attributes: Arc<Attributes>,
    /// The impersonation, if the request is made on behalf of another user.
    pub(super) impersonation: Option<Arc<Impersonation>>,
}

impl Permission {
    /// Resolves when the credentials or the permission are revoked, or reviews have failed for two
    /// minutes. The result is the status that ends the watch.
    ///
    /// # Cancel safety
    /// Dropping it ends the reviews.
    pub(crate) async fn lost(self) -> Box<Status> {
        let mut wait = REVIEW_AFTER;
        let mut failing_since = None;
        loop {
            let (least, most) = wait;
            tokio::time::sleep(least + (most - least).mul_f64(fastrand::f64())).await;
            match self.review().await {
                Ok(()) => (wait, failing_since) = (REVIEW_AFTER, None),
                Err(refused @ (Refused::Unknown | Refused::Busy)) => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= MAX_FAILING {
                        return Box::new(refused.status());
                    }
                    wait = REVIEW_AGAIN;
                }
                Err(refused @ (Refused::Unauthenticated | Refused::Forbidden(_))) => {
                    return Box::new(refused.status());
                }
            }
        }
    }

    async fn review(&self) -> Result<(), Refused> {
        let purpose = Purpose::OpenWatch(Arc::clone(&self.user));
        let caller = self.control.authenticate(&self.presented, &purpose).await?;
        let reviews = &self.control.reviews;
        let Some(impersonation) = &self.impersonation else {
            return reviews.check(&caller.identity, &self.attributes, &purpose).await;
        };
        let mut refused = None;
        for way in &impersonation.ways {
            match self.may_act(&caller.identity, way, &purpose).await {
                Ok(()) => {
                    return reviews.check(&way.identity, &self.attributes, &purpose).await;
                }
                Err(it @ Refused::Forbidden(_)) => refused = refused.or(Some(it)),
                Err(it) => return Err(it),
            }
        }
        Err(refused.unwrap_or(Refused::Unauthenticated))
    }

    /// Whether the caller may act as another user in this way.
    async fn may_act(
        &self,
        caller: &Arc<Identity>,
        way: &Way,
        purpose: &Purpose,
    ) -> Result<(), Refused> {
        for right in &way.rights {
            self.control.reviews.check(caller, right, purpose).await?;
        }
        Ok(())
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permission").field("attributes", &self.attributes).finish_non_exhaustive()
    }
}
