//! Refreshes: lists at the newest version that the program asks for.
//!
//! Requests are numbered from 1. A list at `""` completes the requests that came before it was
//! sent: what the server answers is at least as new as every write acknowledged before. Any other
//! list, event or bookmark may be older than the request, and completes none.

use std::time::Duration;

use super::{Action, Mode, Reflector};
use crate::ResourceVersion;

/// The least time from the end of a list to the beginning of a refresh's list.
const SPACING: Duration = Duration::from_secs(1);

/// How many refreshes were requested, and how many are complete.
#[derive(Debug, Default)]
pub(super) struct Refreshes {
    requested: u64,
    completed: u64,
    /// How many the list in progress completes; `None` if it was not requested at `""`.
    listing: Option<u64>,
    /// Whether the list in progress was begun for a refresh alone. Such a list does not count for
    /// the growth of the delays between lists (G28).
    alone: bool,
}

impl Refreshes {
    pub(super) fn is_pending(&self) -> bool {
        self.requested > self.completed
    }

    /// A list at `version` is about to be sent.
    pub(super) fn list_begins(&mut self, version: &ResourceVersion) {
        self.listing = version.is_unset().then_some(self.requested);
    }

    /// The list in progress is complete. Returns how many refreshes are; `None` if the list was not
    /// made at `""`.
    pub(super) fn list_complete(&mut self) -> Option<u64> {
        self.alone = false;
        let completed = self.listing.take()?;
        self.completed = self.completed.max(completed);
        Some(completed)
    }

    /// The list in progress failed; the next one is a retry as any other.
    pub(super) fn list_failed(&mut self) {
        self.listing = None;
        self.alone = false;
    }

    /// Whether the list in progress was begun for a refresh alone.
    pub(super) fn is_alone(&self) -> bool {
        self.alone
    }

    /// How many were requested so far, for an answer that will complete them.
    pub(super) fn requested(&self) -> u64 {
        self.requested
    }

    /// The resource was removed; `requested` were requested before the server was asked.
    pub(super) fn removed(&mut self, requested: u64) {
        self.completed = self.completed.max(requested);
    }
}

impl Reflector {
    /// Refreshes up to this number are requested.
    pub(super) fn on_refresh(&mut self, number: u64) {
        self.refreshes.requested = self.refreshes.requested.max(number);
    }

    /// When a refresh's list may begin instead of a watch, open or due; never if none is pending.
    pub(super) fn refresh_at(&self) -> Duration {
        if !self.refreshes.is_pending() {
            return Duration::MAX;
        }
        let listed = self.listed.map_or(Duration::ZERO, |listed| listed.saturating_add(SPACING));
        // The watch after the list keeps its distance to the present one, too.
        let watched = match &self.mode {
            Mode::Watching(watch) => watch.asked.saturating_add(self.config.backoff.initial),
            Mode::NotStarted
            | Mode::Waiting { .. }
            | Mode::Listing(_)
            | Mode::Streaming(_)
            | Mode::Absent(_) => Duration::ZERO,
        };
        listed.max(watched).max(self.lists.due)
    }

    /// Begins a refresh's list where a watch is open or due. That the watch ends is no failure.
    pub(super) fn start_refresh(&mut self, now: Duration) {
        if let Mode::Watching(watch) = &self.mode {
            let lived = watch.lived(now).unwrap_or_default();
            self.actions.push_back(Action::Close);
            self.has_watched(lived);
            if lived >= self.config.healthy_after {
                self.watch_lived();
            }
        }
        // A streaming list is a watch, and would probably fail for the same reason.
        self.relist.plain |= self.trouble.degraded.is_some();
        self.refreshes.alone = true;
        self.start_list(now);
    }
}
