//! The API server answers the replicas: what a request gets, and when it arrives.

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;
use informer_core::ResourceVersion;
use informer_core::ingest::{Arrival, ListChunk};
use informer_core::reflector::{Failure, FailureKind, ListRequest, WatchRequest};
use informer_core::wire::{ListHead, ListPart, WatchEventType, WatchFrame, WireObject};

use crate::replica::{Open, WatchSide};
use crate::server::{Change, Kind, Server};

pub(crate) struct Upstream {
    pub(crate) server: Server,
    pub(crate) rng: Rng,
    /// It does not answer until then.
    pub(crate) outage: Duration,
    pub(crate) streaming: bool,
    /// How many versions its cache is behind.
    pub(crate) lag: u64,
}

impl Upstream {
    pub(crate) fn list(&mut self, now: Duration, request: &ListRequest) -> Open {
        let mut open = self.open(now);
        match self.listed_at(now, &request.version) {
            Err(failure) => self.send(now, &mut open, Arrival::Failed(failure)),
            Ok(version) => {
                let all = self.server.at(self.server.lineage(), version).expect("it was there");
                let part = |bytes| ListPart::Item(WireObject::from(bytes));
                let parts = all.values().map(|pod| part(pod.json())).collect();
                let resource_version = ResourceVersion::from(version);
                let head = ListHead { resource_version, ..ListHead::default() };
                self.send(now, &mut open, Arrival::Opened);
                self.send(now, &mut open, Arrival::List(ListChunk::Parts(parts)));
                self.send(now, &mut open, Arrival::List(ListChunk::End(head)));
            }
        }
        open
    }

    pub(crate) fn refuse(&mut self, now: Duration, kind: FailureKind) -> Open {
        let mut open = self.open(now);
        self.send(now, &mut open, Arrival::Failed(Failure::new(kind, "refused")));
        open
    }

    pub(crate) fn probe(
        &self,
        now: Duration,
        request: &ListRequest,
    ) -> Result<ResourceVersion, Failure> {
        self.listed_at(now, &request.version).map(ResourceVersion::from)
    }

    pub(crate) fn watch(&mut self, now: Duration, request: &WatchRequest) -> Open {
        let mut open = self.open(now);
        if let Err(failure) = self.begin_watch(now, &mut open, request) {
            self.send(now, &mut open, Arrival::Failed(failure));
        }
        open
    }

    fn begin_watch(
        &mut self,
        now: Duration,
        open: &mut Open,
        request: &WatchRequest,
    ) -> Result<(), Failure> {
        let newest = self.server.version();
        let mut position = request.version.number().unwrap_or_default();
        if request.send_initial_events {
            if !self.streaming {
                return Err(Failure::new(FailureKind::Invalid, "no streaming lists"));
            }
            position = self.listed_at(now, &request.version)?;
        }
        self.reachable(now)?;
        if position > newest {
            return Err(Failure::new(FailureKind::TooLargeVersion, "from the future"));
        }
        if position < self.server.compacted && !request.send_initial_events {
            return Err(Failure::new(FailureKind::Expired, "compacted"));
        }
        self.send(now, open, Arrival::Opened);
        if request.send_initial_events {
            let all = self.server.at(self.server.lineage(), position).expect("it was there");
            let frame = |bytes| WatchFrame { kind: WatchEventType::Added, object: bytes };
            let frames: Vec<_> = all.values().map(|it| frame(it.json().into())).collect();
            self.send(now, open, Arrival::Watch(frames));
            self.send(now, open, Arrival::Watch(vec![bookmark(position, true)]));
        }
        let minute = Duration::from_secs(60);
        open.watch = Some(WatchSide {
            position,
            expires: now + request.timeout,
            next_bookmark: now + minute,
        });
        self.send_changes(now, open);
        Ok(())
    }

    /// Sends what a watch has not been sent, at once or one by one.
    pub(crate) fn send_changes(&mut self, now: Duration, open: &mut Open) {
        let Some(watch) = &mut open.watch else { return };
        let changes = self.server.since(watch.position);
        if changes.is_empty() {
            return;
        }
        let frames: Vec<_> = changes.iter().map(frame).collect();
        watch.position = self.server.version();
        if self.rng.bool() {
            return self.send(now, open, Arrival::Watch(frames));
        }
        for frame in frames {
            self.send(now, open, Arrival::Watch(vec![frame]));
        }
    }

    /// What the API server does of itself.
    pub(crate) fn tick(&mut self, now: Duration, open: &mut Open) {
        let version = self.server.version();
        let Some(watch) = &mut open.watch else { return };
        if watch.expires <= now {
            open.watch = None;
            self.send(now, open, Arrival::Closed);
        } else if watch.next_bookmark <= now {
            watch.next_bookmark = now + Duration::from_secs(60);
            if watch.position <= version {
                self.send(now, open, Arrival::Watch(vec![bookmark(version, false)]));
            }
        }
    }

    /// Whether it answers at all.
    pub(crate) fn reachable(&self, now: Duration) -> Result<(), Failure> {
        match self.outage > now {
            true => Err(Failure::new(FailureKind::Refused, "connection refused")),
            false => Ok(()),
        }
    }

    pub(crate) fn send(&mut self, now: Duration, open: &mut Open, arrival: Arrival) {
        let latency = Duration::from_millis(self.rng.u64(1..150));
        open.last = open.last.max(now + latency);
        open.incoming.push_back((open.last, arrival));
    }

    fn open(&self, now: Duration) -> Open {
        let (incoming, lineage) = (VecDeque::new(), self.server.lineage());
        Open { incoming, last: now, lineage, watch: None }
    }

    /// The version at which a list is served.
    fn listed_at(&self, now: Duration, version: &ResourceVersion) -> Result<u64, Failure> {
        self.reachable(now)?;
        let newest = self.server.version();
        if version.is_unset() {
            return Ok(newest);
        }
        let wanted = version.number().unwrap_or_default();
        if wanted > newest {
            return Err(Failure::new(FailureKind::TooLargeVersion, "from the future"));
        }
        let cached = newest.saturating_sub(self.lag).max(wanted);
        let is_known = self.server.at(self.server.lineage(), cached).is_some();
        Ok(if is_known { cached } else { newest })
    }
}

fn frame(change: &Change) -> WatchFrame {
    let kind = match change.kind {
        Kind::Added => WatchEventType::Added,
        Kind::Modified => WatchEventType::Modified,
        Kind::Deleted => WatchEventType::Deleted,
    };
    WatchFrame { kind, object: change.pod.json().into() }
}

fn bookmark(version: u64, ends_list: bool) -> WatchFrame {
    let annotations =
        if ends_list { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
    let json = format!(r#"{{"metadata":{{"resourceVersion":"{version}"{annotations}}}}}"#);
    WatchFrame { kind: WatchEventType::Bookmark, object: bytes::Bytes::from(json).into() }
}
