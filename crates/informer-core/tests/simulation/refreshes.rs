//! Refreshes: when one is complete, the store shows every write acknowledged before it was
//! requested (G14), whatever the watch holds back.

use std::collections::VecDeque;
use std::time::Duration;

use crate::content::number;
use crate::requests::Current;
use crate::world::World;

#[derive(Debug, Default)]
pub(crate) struct Refreshes {
    waiting: VecDeque<Requested>,
    /// How many the list that was sent last completes, if it is one at `""`, and how many the
    /// discovery that was sent last does.
    listing: Option<u64>,
    discovering: u64,
    /// How many are complete, by what the server was asked.
    completed: u64,
    /// When the resource was last seen missing by the server itself.
    pub(crate) absent: Option<Duration>,
}

/// What the server had when a refresh was requested.
#[derive(Debug)]
struct Requested {
    number: u64,
    at: Duration,
    version: u64,
    histories: usize,
}

impl World {
    pub(crate) fn request_refresh(&mut self) {
        let store = &mut self.ingest.sink;
        store.refreshes += 1;
        let (number, version) = (store.refreshes, self.server.version());
        let histories = self.server.lineages.len();
        self.refreshes.waiting.push_back(Requested { number, at: self.now, version, histories });
        if self.ledger.current == Current::Watch && self.held_version() < version {
            self.cover("refresh requested behind the server");
        }
    }

    fn held_version(&self) -> u64 {
        number(self.ingest.last_sync_resource_version())
    }

    /// Whether the next list has to be one at `""`.
    pub(crate) fn is_refresh_pending(&self) -> bool {
        self.ingest.sink.refreshes > self.refreshes.completed
    }

    /// The first page of a list is requested.
    pub(crate) fn list_requested(&mut self, newest: bool) {
        self.refreshes.listing = newest.then_some(self.ingest.sink.refreshes);
    }

    pub(crate) fn discovery_requested(&mut self) {
        self.refreshes.discovering = self.ingest.sink.refreshes;
    }

    pub(crate) fn list_completes_refreshes(&mut self) {
        let completed = self.refreshes.listing.take().unwrap_or_default();
        self.refreshes.completed = self.refreshes.completed.max(completed);
    }

    pub(crate) fn removal_completes_refreshes(&mut self) {
        self.refreshes.completed = self.refreshes.completed.max(self.refreshes.discovering);
    }

    /// Checks what is complete, after a delivery.
    pub(crate) fn check_refreshes(&mut self) {
        let completed = self.ingest.sink.pipeline.refreshes();
        let expected = self.refreshes.completed;
        assert!(completed <= expected, "G26: {completed} refreshes complete, of {expected}");
        if self.ingest.queued() == 0 {
            assert_eq!(completed, expected, "G26: refreshes that are complete");
        }
        let is_complete = |request: &Requested| request.number <= completed;
        while self.refreshes.waiting.front().is_some_and(is_complete) {
            let Some(request) = self.refreshes.waiting.pop_front() else { return };
            let shown = number(self.content.reader.snapshot().version());
            if self.content.cleared {
                let absent = self.server.removed || self.refreshes.absent >= Some(request.at);
                assert!(absent, "G32: a removal from before it completes {request:?}");
                self.cover("refresh complete: the resource was removed");
            } else if self.server.lineages.len() > request.histories {
                self.cover("refresh complete: the history was replaced");
            } else {
                assert!(shown >= request.version, "G14: at {shown}, refreshed for {request:?}");
                self.cover("refresh complete");
            }
        }
    }
}
