//! What an elector and the handles to it share.

use std::sync::Arc;
use std::time::SystemTime;

use informer_core::leader_election::Loss;
use tokio::time::Instant;

use super::status::{ElectionError, LeaderElectionStatus, NotLeader, NotLeaderCause};

/// What an elector has published. It is read and changed under the lock of its channel, with the
/// time taken inside: what one reader saw end does not go on for another.
#[derive(Debug)]
pub(super) struct Live {
    /// Namespace and name of the Lease.
    pub(super) lease: Arc<str>,
    pub(super) identity: Arc<str>,
    /// The latest term, if the elector has not ended it; it may have ended on the clock.
    lead: Option<Lead>,
    /// How many terms there were.
    terms: u64,
    loss: Option<Loss>,
    /// Whether the elector has ended.
    pub(super) is_over: bool,
    /// The holder according to the Lease, and since when, on its own clock.
    pub(super) leader: Option<String>,
    pub(super) since: Option<SystemTime>,
    pub(super) transitions: u32,
    pub(super) last_error: Option<ElectionError>,
}

/// A term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lead {
    pub(super) term: u64,
    pub(super) until: Instant,
}

impl Live {
    pub(super) fn new(lease: Arc<str>, identity: Arc<str>) -> Self {
        Self {
            lease,
            identity,
            lead: None,
            terms: 0,
            loss: None,
            is_over: false,
            leader: None,
            since: None,
            transitions: 0,
            last_error: None,
        }
    }

    /// The current term, if this process leads.
    pub(super) fn lead(&self, now: Instant) -> Option<Lead> {
        self.lead.filter(|lead| now < lead.until)
    }

    /// Leads until then. A term that has ended on the clock does not go on: another begins. Returns
    /// whether one began.
    pub(super) fn extend(&mut self, now: Instant, until: Instant) -> bool {
        if self.lead(now).is_none() && self.lead.take().is_some() {
            self.loss = Some(Loss::RenewDeadline);
        }
        match &mut self.lead {
            Some(lead) => {
                lead.until = until;
                false
            }
            None if now < until => {
                self.terms += 1;
                self.lead = Some(Lead { term: self.terms, until });
                true
            }
            None => false,
        }
    }

    /// Leads no more. Returns whether it did.
    pub(super) fn end(&mut self, loss: Loss) -> bool {
        let did_lead = self.lead.take().is_some();
        if did_lead {
            self.loss = Some(loss);
        }
        did_lead
    }

    /// Why this process does not lead, or an earlier term of it has ended.
    pub(super) fn not_leader(&self, now: Instant) -> NotLeader {
        let has_lapsed = self.lead.is_some() && self.lead(now).is_none();
        let cause = if self.is_over {
            NotLeaderCause::Over
        } else if has_lapsed {
            // The elector has not noticed yet.
            NotLeaderCause::Lost(Loss::RenewDeadline)
        } else if let Some(loss) = &self.loss {
            NotLeaderCause::Lost(loss.clone())
        } else {
            NotLeaderCause::NotElected { leader: self.leader.clone() }
        };
        NotLeader { lease: self.lease.to_string(), cause }
    }

    pub(super) fn status(&self, now: Instant) -> LeaderElectionStatus {
        LeaderElectionStatus {
            lease: self.lease.to_string(),
            identity: self.identity.to_string(),
            is_leader: self.lead(now).is_some(),
            terms: self.terms,
            leader: self.leader.clone(),
            since: self.since,
            transitions: self.transitions,
            last_error: self.last_error.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_term_that_has_ended_on_the_clock_does_not_go_on() {
        let mut live = Live::new("default/lease".into(), "me".into());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(live.extend(at(0), at(10)));
        assert!(!live.extend(at(9), at(19)), "renewed in time");
        assert_eq!(live.lead(at(18)).map(|lead| lead.term), Some(1));
        assert!(live.lead(at(19)).is_none());
        // The process was stopped between the decision and its publication.
        assert!(live.extend(at(20), at(28)));
        assert_eq!(live.lead(at(20)).map(|lead| lead.term), Some(2));
        assert!(!live.extend(at(40), at(38)), "too late for any term");
        assert!(live.lead(at(40)).is_none());
        assert_eq!(live.not_leader(at(40)).cause, NotLeaderCause::Lost(Loss::RenewDeadline));
    }
}
