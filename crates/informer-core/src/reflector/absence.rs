//! Resources that are removed and return (G32).

use std::time::Duration;

use super::listing::Relist;
use super::{Action, Failure, Mode, Next, Reflector, ReflectorConfig, State, Trouble};
use crate::ResourceVersion;

/// How many discoveries in a row must find the resource missing.
const ABSENCES: u32 = 3;

/// A 404, and the results of discovery since.
#[derive(Debug)]
pub(super) struct Absence {
    cause: Failure,
    absent: u32,
    first_absent: Option<Duration>,
    discovery: Discovery,
}

#[derive(Debug)]
enum Discovery {
    Due(Duration),
    /// With the number of refreshes requested before.
    Asked(Duration, u64),
}

impl Absence {
    pub(super) fn deadline(&self, config: &ReflectorConfig) -> Duration {
        match self.discovery {
            Discovery::Due(at) => at,
            Discovery::Asked(at, _) => at.saturating_add(config.open_timeout),
        }
    }
}

impl Reflector {
    /// Handles a 404; the request is over.
    pub(super) fn become_unavailable(&mut self, now: Duration, cause: Failure) {
        self.note_failure(&cause);
        self.abandon();
        self.trouble = Trouble::default();
        self.state = State::Unavailable { cause: cause.clone(), absent: 0, until: now };
        self.mode = Mode::Absent(Absence {
            cause,
            absent: 0,
            first_absent: None,
            discovery: Discovery::Due(now),
        });
    }

    pub(super) fn absence_on_time(&mut self, now: Duration) {
        let requested = self.refreshes.requested();
        let Mode::Absent(absence) = &mut self.mode else { return };
        if now < absence.deadline(&self.config) {
            return;
        }
        if matches!(absence.discovery, Discovery::Due(_)) {
            absence.discovery = Discovery::Asked(now, requested);
            self.actions.push_back(Action::Discover);
        } else {
            self.discover_later(now, None);
        }
    }

    pub(super) fn on_discovered(&mut self, now: Duration, answer: Result<bool, Failure>) {
        let Mode::Absent(absence) = &mut self.mode else { return };
        let Discovery::Asked(_, requested) = absence.discovery else { return };
        match answer {
            // The resource has appeared, after at least one delay.
            Ok(true) if absence.absent > 0 => self.start_list(now),
            Ok(true) => {
                let cause = absence.cause.clone();
                self.back_off(now, cause, Next::List);
            }
            Ok(false) => {
                absence.absent = absence.absent.saturating_add(1);
                let first = *absence.first_absent.get_or_insert(now);
                let counts = absence.absent >= ABSENCES
                    && now.saturating_sub(first) >= self.config.absence_span;
                if counts && !self.version.is_unset() {
                    self.refreshes.removed(requested);
                    self.actions.push_back(Action::RemoveAll { refreshes: requested });
                    self.version = ResourceVersion::unset();
                    self.relist = Relist::default();
                    self.malformed = None;
                }
                self.discover_later(now, None);
            }
            Err(failure) => {
                self.note_failure(&failure);
                self.discover_later(now, failure.retry_after);
            }
        }
    }

    fn discover_later(&mut self, now: Duration, retry_after: Option<Duration>) {
        let wanted = self.obeyed(retry_after);
        let Mode::Absent(absence) = &mut self.mode else { return };
        self.lists.delay_from(now);
        let until = self.lists.due.max(now.saturating_add(wanted));
        absence.discovery = Discovery::Due(until);
        self.state =
            State::Unavailable { cause: absence.cause.clone(), absent: absence.absent, until };
    }
}
