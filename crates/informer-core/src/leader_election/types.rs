//! What goes in and out of a [`LeaderElection`](super::LeaderElection).

use std::time::Duration;

use crate::{ResourceVersion, Uid};

/// How a candidate takes part in an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionConfig {
    /// The name of this candidate in the Lease. No other candidate may have the same.
    pub identity: String,
    /// How long other candidates wait after the last renewal that they observed.
    pub lease_duration: Duration,
    /// How long after the last successful renewal this candidate considers itself the leader.
    pub renew_deadline: Duration,
    /// How long to wait between two renewals, and between two looks at the Lease of another.
    pub retry_period: Duration,
    /// The seed of the jitter.
    pub seed: u64,
}

/// Why a candidate cannot take part with an [`ElectionConfig`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionConfigError {
    /// The identity is empty, which in a Lease means that nobody holds it.
    #[error("the identity is empty, which in a Lease means that nobody holds it")]
    NoIdentity,
    /// The lease does not outlast the renew deadline.
    #[error(
        "lease_duration ({lease_duration:?}) must be longer than renew_deadline ({renew_deadline:?}): others take over after the one, and the leader stops acting after the other"
    )]
    LeaseTooShort {
        /// The lease duration.
        lease_duration: Duration,
        /// The renew deadline.
        renew_deadline: Duration,
    },
    /// A failed renewal could not be repeated before the renew deadline.
    #[error(
        "renew_deadline ({renew_deadline:?}) must be longer than retry_period ({retry_period:?}), or leadership ends before its renewal"
    )]
    DeadlineTooShort {
        /// The renew deadline.
        renew_deadline: Duration,
        /// The retry period.
        retry_period: Duration,
    },
    /// The retry period is zero.
    #[error("retry_period must not be zero")]
    NoRetryPeriod,
}

impl ElectionConfig {
    /// Whether an election can be held this way.
    ///
    /// # Errors
    /// If the identity is empty, or the durations are not
    /// `lease_duration > renew_deadline > retry_period > 0`.
    pub fn check(&self) -> Result<(), ElectionConfigError> {
        let &Self { ref identity, lease_duration, renew_deadline, retry_period, seed: _ } = self;
        if identity.is_empty() {
            return Err(ElectionConfigError::NoIdentity);
        }
        if lease_duration <= renew_deadline {
            return Err(ElectionConfigError::LeaseTooShort { lease_duration, renew_deadline });
        }
        if renew_deadline <= retry_period {
            return Err(ElectionConfigError::DeadlineTooShort { renew_deadline, retry_period });
        }
        if retry_period.is_zero() {
            return Err(ElectionConfigError::NoRetryPeriod);
        }
        Ok(())
    }
}

/// A time on a wall clock, as a Lease has it: microseconds since 1970.
///
/// Written for people and for other clients; never compared with a clock of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroTime(pub i64);

/// The part of a Lease's `spec` that an election is about (client-go's `LeaderElectionRecord`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LeaderElectionRecord {
    /// `holderIdentity`; empty if nobody holds the Lease.
    pub holder_identity: String,
    /// `leaseDurationSeconds`.
    pub lease_duration_seconds: Option<u32>,
    /// `acquireTime`.
    pub acquire_time: Option<MicroTime>,
    /// `renewTime`.
    pub renew_time: Option<MicroTime>,
    /// `leaseTransitions`.
    pub lease_transitions: u32,
}

/// A Lease as the server returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`: what the next write must carry.
    pub resource_version: ResourceVersion,
    /// Who holds it.
    pub record: LeaderElectionRecord,
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this request, and hand its answer to [`handle`](super::LeaderElection::handle).
    Send(Request),
    /// Drop the request that was sent last. The server may act on it nevertheless.
    Abandon,
}

/// A request about the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// GET it.
    Get,
    /// POST it.
    Create(LeaderElectionRecord),
    /// PUT it at the version that was last returned: only if it has not changed since.
    Update {
        /// The version to replace.
        resource_version: ResourceVersion,
        /// What to write.
        record: LeaderElectionRecord,
    },
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The server returned the Lease: as it was read, or as it was written.
    Lease(ObservedLease),
    /// There is no such Lease (404 to a GET or PUT).
    NotFound,
    /// The Lease was changed or created by another since it was read (409).
    Conflict,
    /// The request failed otherwise, or its outcome is unknown.
    Failed,
}

/// Why leadership ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// No renewal succeeded within the renew deadline.
    RenewDeadline,
    /// Another candidate holds the Lease.
    TakenOver {
        /// Its identity.
        by: String,
    },
    /// The Lease has no holder any more, and this candidate did not clear it.
    Cleared,
    /// This candidate gave it up.
    Released,
}
