//! Leader election over a Lease: who may act, decided on one's own monotonic clock.
//!
//! After client-go's `tools/leaderelection`. [`LeaderElection`] is a state machine for one
//! candidate. Its driver calls [`poll`](LeaderElection::poll) until that returns `None`, after every
//! input and at [`deadline`](LeaderElection::deadline), and passes the answer to each request to
//! [`handle`](LeaderElection::handle).
//!
//! # Why there is one leader
//! All durations are measured on the candidate's own monotonic clock. The times in the Lease are
//! only compared for being equal.
//! - A holder leads until `renew_deadline` after it *sent* the last renewal that succeeded.
//! - Another candidate takes the Lease over `lease_duration` after it *observed* the last change of
//!   the record. It observes a renewal after the renewal was sent, so it takes over later than the
//!   holder's own end of leadership, by at least `lease_duration - renew_deadline`.
//! - Every update carries the version that was read. Of two candidates, the second gets a conflict.
//!
//! This holds while monotonic clocks run at about the same rate, and identities are unique.

mod record;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod types;

use std::time::Duration;

pub use self::types::{
    Action, ElectionConfig, ElectionConfigError, Input, LeaderElectionRecord, Loss, MicroTime,
    ObservedLease, Request,
};
use crate::reflector::Random;

/// One candidate's part in an election. See the [module](self).
#[derive(Debug)]
pub struct LeaderElection {
    config: ElectionConfig,
    random: Random,
    step: Step,
    /// The Lease as it was last returned; `None` if there is none, or none was read yet.
    lease: Option<ObservedLease>,
    /// Another candidate's claim to the Lease, as far as this one can tell.
    hold: Option<Hold>,
    leads_until: Option<Duration>,
    /// Whether the Lease may have changed since it was last returned, by a write of this candidate
    /// whose outcome is unknown, or by another.
    must_read: bool,
    /// Whether this attempt met a conflict already.
    met_conflict: bool,
    /// Set when the candidate withdraws: until then it tries to release the Lease.
    release_by: Option<Duration>,
    loss: Option<Loss>,
}

/// What the machine does.
#[derive(Debug)]
enum Step {
    Waiting { until: Duration },
    Due(Kind),
    Sent { kind: Kind, at: Duration },
    Finished,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Get,
    Create,
    /// Takes a Lease that another held, or nobody.
    Acquire,
    Renew,
    Release,
}

/// Another candidate's claim.
#[derive(Debug)]
struct Hold {
    by: String,
    until: Duration,
}

impl LeaderElection {
    /// A candidate that has sent nothing yet.
    ///
    /// # Errors
    /// If the configuration [does not hold](ElectionConfig::check).
    pub fn new(config: ElectionConfig) -> Result<Self, ElectionConfigError> {
        config.check()?;
        Ok(Self {
            random: Random::new(config.seed),
            step: Step::Waiting { until: Duration::ZERO },
            lease: None,
            hold: None,
            leads_until: None,
            must_read: false,
            met_conflict: false,
            release_by: None,
            loss: None,
            config,
        })
    }

    /// Whether this candidate may act as the leader at `now`.
    #[must_use]
    pub fn is_leader(&self, now: Duration) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }

    /// When leadership ends unless it is renewed; `None` for a candidate that does not lead. May lie
    /// in the past if neither `handle` nor `poll` was called since.
    #[must_use]
    pub fn leads_until(&self) -> Option<Duration> {
        self.leads_until
    }

    /// The Lease as the server last returned it; `None` if there is none.
    #[must_use]
    pub fn lease(&self) -> Option<&ObservedLease> {
        self.lease.as_ref()
    }

    /// Why leadership last ended.
    #[must_use]
    pub fn loss(&self) -> Option<&Loss> {
        self.loss.as_ref()
    }

    /// Whether the candidate has withdrawn, and the Lease is released as far as possible.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.step, Step::Finished)
    }

    /// How long a request may take before it is abandoned. A second one fits before the renew
    /// deadline.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.config.renew_deadline / 2
    }

    /// Gives up leadership at once and for good, then the Lease, so that the next candidate need not
    /// wait for its end.
    pub fn release(&mut self, now: Duration) {
        if self.release_by.is_some() || self.is_finished() {
            return;
        }
        self.lapse(now);
        self.lose(Loss::Released);
        self.release_by = Some(now.saturating_add(self.request_timeout()));
        self.met_conflict = false;
        match self.step {
            // `poll` abandons it first.
            Step::Sent { .. } => {}
            Step::Waiting { .. } | Step::Due(_) | Step::Finished => self.begin_release(),
        }
    }

    /// Handles how the request that was sent last ended, at `now`: the time since a fixed moment,
    /// on a clock that never goes back. Ignored if that request was abandoned.
    pub fn handle(&mut self, now: Duration, input: Input) {
        self.lapse(now);
        let Step::Sent { kind, at } = self.step else { return };
        match input {
            Input::Lease(lease) => {
                self.observe(now, Some(lease));
                self.must_read = false;
                if self.is_released_or_held(kind) {
                    self.succeed(now, at, kind);
                } else {
                    self.decide(now);
                }
            }
            Input::NotFound if kind == Kind::Create => self.fail(now, kind),
            Input::NotFound => {
                self.observe(now, None);
                self.must_read = false;
                self.decide(now);
            }
            Input::Conflict => {
                self.must_read = true;
                if self.met_conflict {
                    self.wait(now, self.config.retry_period);
                } else {
                    self.met_conflict = true;
                    self.step = Step::Due(Kind::Get);
                }
            }
            Input::Failed => self.fail(now, kind),
        }
    }

    /// The next action; call it until it returns `None`. `wall` is the time on the wall clock, which
    /// is written into the Lease.
    pub fn poll(&mut self, now: Duration, wall: MicroTime) -> Option<Action> {
        self.lapse(now);
        let is_releasing = self.release_by.is_some();
        if let Step::Sent { kind, at } = self.step {
            let is_for_release = matches!(kind, Kind::Release | Kind::Get);
            let is_overdue = now >= at.saturating_add(self.request_timeout());
            let is_too_late = self.release_by.is_some_and(|by| now >= by);
            if is_overdue || is_too_late || (is_releasing && !is_for_release) {
                self.fail(now, kind);
                if is_releasing {
                    self.begin_release();
                } else if self.is_leader(now) {
                    // What is left of the renew deadline is enough for another.
                    self.step = Step::Waiting { until: now };
                }
                self.finish_when_late(now);
                return Some(Action::Abandon);
            }
        }
        self.finish_when_late(now);
        if let Step::Waiting { until } = self.step
            && now >= until
        {
            self.met_conflict = false;
            match self.release_by {
                Some(_) => self.begin_release(),
                None if self.must_read || !self.is_mine() || !self.is_leader(now) => {
                    self.step = Step::Due(Kind::Get);
                }
                None => self.step = Step::Due(Kind::Renew),
            }
        }
        let Step::Due(kind) = self.step else { return None };
        self.step = Step::Sent { kind, at: now };
        Some(Action::Send(self.request(kind, wall)))
    }

    /// When to call [`poll`](Self::poll) again if no input arrives before; `Duration::MAX` for a
    /// candidate that has withdrawn.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        let step = match self.step {
            Step::Waiting { until } => until,
            Step::Due(_) => Duration::ZERO,
            Step::Sent { at, .. } => at.saturating_add(self.request_timeout()),
            Step::Finished => return Duration::MAX,
        };
        [self.leads_until, self.release_by].into_iter().flatten().fold(step, Duration::min)
    }

    /// Ends leadership whose renew deadline has passed.
    fn lapse(&mut self, now: Duration) {
        if self.leads_until.is_some_and(|until| now >= until) {
            self.lose(Loss::RenewDeadline);
        }
    }

    fn lose(&mut self, loss: Loss) {
        if self.leads_until.take().is_some() {
            self.loss = Some(loss);
        }
    }

    /// Notes what the Lease is at `now`.
    fn observe(&mut self, now: Duration, lease: Option<ObservedLease>) {
        // Versions are not compared: a changed label or annotation renews nothing.
        let is_unchanged = match (&self.lease, &lease) {
            (Some(old), Some(new)) => old.uid == new.uid && old.record == new.record,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_unchanged {
            self.hold = match (&lease, &self.lease) {
                (Some(lease), _) => self.hold_of(now, &lease.record),
                // A leader creates its Lease again.
                (None, _) if self.leads_until.is_some() => None,
                // The holder notices with its next renewal, and leads until then. It need not be
                // the one that was last seen.
                (None, Some(gone)) => Some(Hold {
                    by: gone.record.holder_identity.clone(),
                    until: now.saturating_add(
                        self.duration_of(&gone.record).max(self.config.lease_duration),
                    ),
                }),
                (None, None) => None,
            };
        }
        self.lease = lease;
    }

    /// The claim of a record whose change was observed at `now`; `None` if it is nobody's, or one's
    /// own.
    fn hold_of(&self, now: Duration, record: &LeaderElectionRecord) -> Option<Hold> {
        let holder = &record.holder_identity;
        (!holder.is_empty() && *holder != self.config.identity).then(|| Hold {
            by: holder.clone(),
            until: now.saturating_add(self.duration_of(record)),
        })
    }

    /// How long a record holds. Of a record without a duration it is not known, so that this
    /// candidate's own is taken.
    fn duration_of(&self, record: &LeaderElectionRecord) -> Duration {
        let seconds = record.lease_duration_seconds.map(u64::from).map(Duration::from_secs);
        seconds.unwrap_or(self.config.lease_duration)
    }

    fn is_mine(&self) -> bool {
        let holder = self.lease.as_ref().map(|lease| &lease.record.holder_identity);
        holder.is_some_and(|holder| *holder == self.config.identity)
    }

    /// Whether a write of this kind did what it was for. The server may have changed it.
    fn is_released_or_held(&self, kind: Kind) -> bool {
        match kind {
            Kind::Get => false,
            Kind::Create | Kind::Acquire | Kind::Renew => self.is_mine(),
            Kind::Release => !self.is_mine(),
        }
    }

    /// After a write that was sent at `at` succeeded.
    fn succeed(&mut self, now: Duration, at: Duration, kind: Kind) {
        self.met_conflict = false;
        if kind == Kind::Release {
            self.step = Step::Finished;
            return;
        }
        if self.release_by.is_some() {
            self.begin_release();
            return;
        }
        // From when it was sent: others may have observed it from then on.
        let until = at.saturating_add(self.config.renew_deadline);
        if now < until {
            self.leads_until = Some(until);
        }
        self.step = Step::Waiting { until: at.saturating_add(self.config.retry_period) };
    }

    /// What follows from the Lease as it was just observed.
    fn decide(&mut self, now: Duration) {
        if self.release_by.is_some() {
            self.begin_release();
            return;
        }
        if let Some(Hold { by, until }) = &self.hold {
            let (by, until) = (by.clone(), *until);
            self.lose(Loss::TakenOver { by });
            if now < until {
                self.wait(now, until - now);
                return;
            }
        }
        let kind = match &self.lease {
            None => Kind::Create,
            Some(_) if self.is_mine() => Kind::Renew,
            Some(_) => {
                self.lose(Loss::Cleared);
                Kind::Acquire
            }
        };
        self.step = Step::Due(kind);
    }

    fn fail(&mut self, now: Duration, kind: Kind) {
        if kind != Kind::Get {
            self.must_read = true;
        }
        self.wait(now, self.config.retry_period);
    }

    /// Waits for a part of the retry period, and at most until `longest` has passed.
    fn wait(&mut self, now: Duration, longest: Duration) {
        // Less than the retry period, so that several candidates do not stay in step, and none
        // looks less often than that.
        let retry = self.config.retry_period;
        let delay = self.random.between(retry * 3 / 4, retry).min(longest);
        self.step = Step::Waiting { until: now.saturating_add(delay) };
    }

    fn begin_release(&mut self) {
        self.step = match (self.must_read, self.is_mine()) {
            (true, _) => Step::Due(Kind::Get),
            (false, true) => Step::Due(Kind::Release),
            (false, false) => Step::Finished,
        };
    }

    fn finish_when_late(&mut self, now: Duration) {
        if self.release_by.is_some_and(|by| now >= by) {
            self.step = Step::Finished;
        }
    }
}
