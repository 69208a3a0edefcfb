//! What an election says of itself: status, and why this process does not lead.

use std::fmt;
use std::time::SystemTime;

use informer_core::leader_election::Loss;
use serde::Serialize;

use crate::status::{rfc3339, rfc3339_if_any};

/// What an election is doing. Serializes in camelCase, with times in RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LeaderElectionStatus {
    /// Namespace and name of the Lease.
    pub lease: String,
    /// This candidate.
    pub identity: String,
    /// Whether this candidate leads.
    pub is_leader: bool,
    /// How often this candidate began to lead.
    pub terms: u64,
    /// The holder according to the Lease; `None` if it has none, or was not read yet.
    pub leader: Option<String>,
    /// When the holder acquired the Lease, on the holder's wall clock.
    #[serde(serialize_with = "rfc3339_if_any")]
    pub since: Option<SystemTime>,
    /// How often the Lease passed to another holder.
    pub transitions: u32,
    /// The last request that failed.
    pub last_error: Option<ElectionError>,
}

/// A request about the Lease that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElectionError {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: SystemTime,
    /// What happened, in words.
    pub message: String,
}

/// This process does not lead, so it must not write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotLeader {
    /// Namespace and name of the Lease.
    pub lease: String,
    /// Why.
    pub cause: NotLeaderCause,
}

/// Why a process does not lead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotLeaderCause {
    /// It has not been elected.
    NotElected {
        /// The holder according to the Lease, if it has one.
        leader: Option<String>,
    },
    /// It has led, and lost it.
    Lost(Loss),
    /// Its elector has ended.
    Over,
}

impl std::error::Error for NotLeader {}

impl fmt::Display for NotLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not the leader by Lease {}: ", self.lease)?;
        match &self.cause {
            NotLeaderCause::NotElected { leader: Some(leader) } => write!(f, "{leader} is"),
            NotLeaderCause::NotElected { leader: None } => f.write_str("not elected yet"),
            NotLeaderCause::Lost(loss) => f.write_str(&loss_in_words(loss)),
            NotLeaderCause::Over => f.write_str("the elector has ended"),
        }
    }
}

/// Why leadership ended, for errors and logs.
pub(super) fn loss_in_words(loss: &Loss) -> String {
    match loss {
        Loss::RenewDeadline => "no renewal succeeded within the renew deadline".to_owned(),
        Loss::TakenOver { by } => format!("{by} holds it now"),
        Loss::Cleared => "its holder was cleared by another".to_owned(),
        Loss::Released => "it was released".to_owned(),
        loss => format!("{loss:?}"),
    }
}
