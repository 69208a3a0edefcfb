//! Why a resource is not held.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use informer::Resource;
use informer::source::Failure;
use tokio::time::Instant;

use crate::options::Options;
use crate::refusal::Refusal;

/// How long a resource that cannot be held is forwarded before it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(60);
/// How long one that took too much is forwarded at most: it may have become smaller.
const TRY_AGAIN_ANYWAY: Duration = Duration::from_secs(3600);

/// Why a request is not answered from a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unheld {
    /// Our own account may not list it, or the server cannot.
    Refused(Failure),
    /// As many are held as may be.
    TooMany,
    /// It does not fit into memory.
    TooLarge,
    /// Its versions are no numbers.
    Unordered,
    /// An extension API server serves it, and the configuration does not name it.
    Extension,
    /// An extension API server may serve it: which groups they serve is not known.
    Unattributed,
}

/// A resource that is not held, and when it is tried again.
pub(crate) struct Rest {
    pub(crate) unheld: Unheld,
    since: Instant,
    wait: Duration,
    /// What it took in memory; zero if that was not the reason.
    bytes: usize,
}

impl Rest {
    pub(crate) fn new(unheld: Unheld) -> Self {
        Self { unheld, since: Instant::now(), wait: TRY_AGAIN, bytes: 0 }
    }

    /// For a resource that took this much, which was too much. The wait doubles with each time.
    pub(crate) fn too_large(bytes: usize, earlier: Option<&Self>) -> Self {
        let earlier = earlier.filter(|it| it.unheld == Unheld::TooLarge);
        let wait = earlier.map_or(TRY_AGAIN, |it| (it.wait * 2).min(TRY_AGAIN_ANYWAY));
        Self { unheld: Unheld::TooLarge, since: Instant::now(), wait, bytes }
    }

    /// Whether it may be tried again, with this much memory left.
    pub(crate) fn is_over(&self, room: usize) -> bool {
        let rested = self.since.elapsed();
        rested >= TRY_AGAIN_ANYWAY || (rested >= self.wait && room >= self.bytes)
    }

    /// Whether nothing of it is needed any more.
    pub(crate) fn is_forgotten(&self) -> bool {
        let lasts = match self.unheld {
            // Longer than it rests: the next wait depends on this one.
            Unheld::TooLarge => TRY_AGAIN_ANYWAY * 2,
            Unheld::Refused(_)
            | Unheld::TooMany
            | Unheld::Unordered
            | Unheld::Extension
            | Unheld::Unattributed => self.wait,
        };
        self.since.elapsed() >= lasts
    }
}

impl fmt::Display for Unheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(failure) => failure.fmt(f),
            Self::TooMany => f.write_str("as many resources are held as --max-collections allows"),
            Self::TooLarge => f.write_str("it does not fit into what --max-memory allows"),
            Self::Unordered => f.write_str("its versions are no numbers"),
            Self::Extension => f.write_str(
                "an extension API server serves it, which may show each caller other objects; name it with --allow if it does not",
            ),
            Self::Unattributed => f.write_str(
                "it is not known whether an extension API server serves it: this endpoint's account needs to list and watch apiservices.apiregistration.k8s.io, or name the resource with --allow",
            ),
        }
    }
}

impl Unheld {
    /// Whether it is a while before it is tried again; else each request finds out.
    pub(crate) fn rests(&self) -> bool {
        match self {
            Self::Refused(_) | Self::TooMany | Self::TooLarge | Self::Unordered => true,
            Self::Extension | Self::Unattributed => false,
        }
    }

    /// For requests that cannot be forwarded.
    pub(crate) fn refusal(&self, resource: &Resource, options: &Options) -> Refusal {
        let mut refusal = match self {
            Self::Refused(failure) => return Refusal::passed_on(failure),
            Self::TooMany => Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "the gateway holds {} resources already, the most it may; ask for one of them, wait until one is let go, or raise --max-collections",
                    options.max_collections
                ),
            ),
            Self::TooLarge => Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "{resource} does not fit into the memory that the gateway may take; raise --max-memory"
                ),
            ),
            Self::Unordered => {
                let message =
                    format!("{resource}: its versions are no numbers, so they cannot be ordered");
                return Refusal::new(StatusCode::NOT_IMPLEMENTED, message);
            }
            Self::Extension | Self::Unattributed => {
                return Refusal::forbidden(format!("{resource} is not held: {self}"));
            }
        };
        refusal.retry_after = Some(60);
        refusal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_fit_waits_for_room_and_longer_each_time() {
        let first = Rest::too_large(100, None);
        assert!(!first.is_over(200), "not at once");
        let second = Rest::too_large(100, Some(&first));
        let mut other = Rest::new(Unheld::Unordered);
        assert_eq!(second.wait, first.wait * 2);
        assert_eq!(Rest::too_large(100, Some(&other)).wait, first.wait);
        other.wait = Duration::ZERO;
        assert!(other.is_over(0) && other.is_forgotten());
        let rested = Rest { wait: Duration::ZERO, ..second };
        assert!(!rested.is_over(99) && rested.is_over(100) && !rested.is_forgotten());
    }
}
