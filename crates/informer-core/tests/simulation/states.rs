//! Where the machine says that it stands (G31), and how long it puts up with silence (G27, G29).

use std::time::Duration;

use informer_core::ingest::Sink as _;
use informer_core::reflector::State;

use crate::requests::Current;
use crate::world::World;

impl World {
    /// Whether the machine stands where what happened leads (G29, G31).
    pub(crate) fn check_state(&mut self) {
        let now = self.now;
        let seconds = Duration::from_secs;
        let deadline = self.ingest.deadline();
        let resync = self.ingest.sink.next_sync().filter(|due| *due <= now);
        assert!(
            deadline > now || resync.is_some(),
            "G28: at rest, and due at {deadline:?} at {now:?}"
        );
        let ledger = &self.ledger;
        let silent = now.saturating_sub(ledger.last_sign);
        let is_watch = self.open.as_ref().map(|open| open.is_watch);
        match (is_watch, ledger.current) {
            (None, _) => {}
            (Some(false), _) => assert!(silent < seconds(60), "G29: a list silent for {silent:?}"),
            (Some(true), Current::Streaming) => {
                assert!(silent < seconds(10), "G27: a streaming list silent for {silent:?}");
            }
            (Some(true), _) if ledger.live_since.is_none() => {
                assert!(silent < seconds(30), "G29: a watch not opened for {silent:?}");
            }
            (Some(true), _) => {
                let open = now.saturating_sub(ledger.asked);
                assert!(open < ledger.timeout + seconds(10), "G29: a watch open for {open:?}");
                assert!(
                    !ledger.bookmarks_seen || silent < seconds(180),
                    "G29: silent for {silent:?}"
                );
                let live = ledger.live_since.unwrap_or(now) + seconds(2);
                let due = (ledger.quiet_since + seconds(120)).max(live).max(ledger.probe_waits);
                assert!(now < due, "G26: a probe was due at {due:?}");
            }
        }
        let held = self.ingest.last_sync_resource_version();
        match self.ingest.state() {
            State::NotStarted => panic!("G31: it was started"),
            State::Listing { streaming, items, .. } => {
                // It lasts until the watch that follows is open.
                let opening = !self.staging && is_watch == Some(true) && !self.ledger.opened;
                let listing = is_watch == Some(*streaming) && self.staging;
                assert!(
                    listing || opening,
                    "G31: {:?}, is watch {is_watch:?}",
                    self.ingest.state()
                );
                let staged = self.ingest.staged();
                assert!(
                    opening || Some(*items) == staged,
                    "G31: progress {items}, staged {staged:?}"
                );
                self.cover("state: listing");
            }
            State::Watching { version, .. } => {
                assert_eq!(version, held, "G31");
                assert!(!self.staging, "G31: watching, with a list staged");
                self.cover("state: watching");
            }
            State::Degraded { .. } if self.open.is_some() && self.ledger.opened => {
                let lived = now.saturating_sub(self.ledger.live_since.expect("it is opened"));
                assert!(lived < seconds(5), "G28: degraded, and a watch is open for {lived:?}");
                assert!(!self.ledger.heard, "G28: degraded, and a watch has delivered something");
                self.cover("degraded, and a watch lives");
            }
            State::BackingOff { until, .. } | State::Degraded { until, .. } => {
                let opening = is_watch == Some(true) && !self.ledger.opened;
                assert!(
                    opening || self.open.is_none() && *until > now,
                    "G31: {:?}",
                    self.ingest.state()
                );
            }
            State::Unavailable { absent, .. } => {
                assert!(self.open.is_none(), "G31: unavailable, and something is open");
                assert_eq!(*absent, self.ledger.absences, "G31, G32");
            }
        }
    }
}
