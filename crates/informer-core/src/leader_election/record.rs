//! What a candidate writes into the Lease.

use std::time::Duration;

use super::{Kind, LeaderElection, LeaderElectionRecord, MicroTime, Request};

impl LeaderElection {
    pub(super) fn request(&self, kind: Kind, wall: MicroTime) -> Request {
        let old = self.lease.as_ref();
        let transitions = old.map_or(0, |old| old.record.lease_transitions);
        let taken = LeaderElectionRecord {
            holder_identity: self.config.identity.clone(),
            lease_duration_seconds: Some(whole_seconds(self.config.lease_duration)),
            acquire_time: Some(wall),
            renew_time: Some(wall),
            lease_transitions: transitions,
        };
        let record = match kind {
            Kind::Get => return Request::Get,
            Kind::Create => return Request::Create(taken),
            Kind::Acquire => {
                LeaderElectionRecord { lease_transitions: transitions.saturating_add(1), ..taken }
            }
            Kind::Renew => {
                let acquired = old.and_then(|old| old.record.acquire_time);
                let renewed = old.and_then(|old| old.record.renew_time);
                LeaderElectionRecord {
                    acquire_time: acquired.or(Some(wall)),
                    renew_time: Some(later(wall, renewed)),
                    ..taken
                }
            }
            // As client-go: a Lease must not last for zero seconds.
            Kind::Release => LeaderElectionRecord {
                holder_identity: String::new(),
                lease_duration_seconds: Some(1),
                ..taken
            },
        };
        match old {
            Some(old) => Request::Update { resource_version: old.resource_version.clone(), record },
            None => Request::Create(record),
        }
    }
}

/// `wall`, or the microsecond after `last` on a wall clock that stands still or was set back. Every
/// renewal must be seen as a change, also by a candidate that has missed some in between.
fn later(wall: MicroTime, last: Option<MicroTime>) -> MicroTime {
    match last {
        Some(last) if wall.0 <= last.0 => MicroTime(last.0.saturating_add(1)),
        Some(_) | None => wall,
    }
}

/// The seconds that a Lease has for a duration: rounded up, so that others do not wait less.
pub(super) fn whole_seconds(duration: Duration) -> u32 {
    let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    u32::try_from(seconds).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs())
}
