//! Why a resource is not held.

use std::fmt;

use http::StatusCode;
use informer::Resource;
use informer::source::Failure;

use crate::options::Options;
use crate::refusal::Refusal;

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
}

impl fmt::Display for Unheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(failure) => failure.fmt(f),
            Self::TooMany => f.write_str("as many resources are held as --max-collections allows"),
            Self::TooLarge => f.write_str("it does not fit into what --max-memory allows"),
            Self::Unordered => f.write_str("its versions are no numbers"),
        }
    }
}

impl Unheld {
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
        };
        refusal.retry_after = Some(60);
        refusal
    }
}
