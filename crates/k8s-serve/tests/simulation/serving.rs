//! What replicas do for clients, as the read side does it: lists, watches, bookmarks, and what is
//! on its way.

use std::sync::Arc;
use std::time::Duration;

use k8s_serve::log::Room;
use k8s_serve::watch_cache::EventType;

use crate::client::{Client, Connection, Message, Phase};
use crate::world::{Place, World};

/// How long a read waits for a version before it is forwarded.
const FRESHNESS_WAIT: Duration = Duration::from_secs(3);

/// How often a watch gets a bookmark.
const MINUTE: Duration = Duration::from_secs(60);

impl World {
    /// Does what a client does now.
    pub(crate) fn client(&mut self, which: usize) {
        match &self.clients[which].phase {
            Phase::Idle(_) if self.clients[which].needs_list => self.ask_for_list(which),
            Phase::Idle(_) => self.connect(which),
            Phase::Waiting { .. } => self.end_waiting(which),
            Phase::Watching(_) => self.watching(which),
        }
    }

    /// Any replica that can be reached at the address.
    fn any_replica(&mut self) -> Option<usize> {
        let is_ready = |place: &Place| matches!(place, Place::Up(replica) if replica.is_ready);
        let ready: Vec<usize> =
            (0..self.replicas.len()).filter(|it| is_ready(&self.replicas[*it])).collect();
        self.rng.choice(ready)
    }

    fn later(&mut self, which: usize, after: u64) {
        self.clients[which].phase = Phase::Idle(self.now + Duration::from_millis(after));
    }

    fn ask_for_list(&mut self, which: usize) {
        let Some(replica) = self.any_replica() else { return self.later(which, 1000) };
        let (Place::Up(up), now) = (&self.replicas[replica], self.now) else { return };
        match self.clients[which].wanted() {
            Some(version) if version > up.dispatch.version() => {
                let (until, incarnation) = (now + FRESHNESS_WAIT, up.incarnation);
                self.cover("a list waits for its version");
                self.clients[which].phase = Phase::Waiting { replica, incarnation, version, until };
            }
            Some(_) | None => self.list_from(which, replica),
        }
    }

    fn list_from(&mut self, which: usize, replica: usize) {
        let Place::Up(up) = &self.replicas[replica] else { return };
        let (version, all) = up.collection();
        self.trace(|| format!("client {which} lists {version} at replica {replica}"));
        let client = &mut self.clients[which];
        client.listed(&self.upstream.server, up.lineage, version, &all);
        let streams = client.plan.streaming;
        // A streaming list goes on at the same replica, and is no other request.
        if streams { self.connect_to(which, replica) } else { self.later(which, 10) }
    }

    fn end_waiting(&mut self, which: usize) {
        let Phase::Waiting { replica, incarnation, version, .. } = self.clients[which].phase else {
            return;
        };
        match self.reached(replica, incarnation) {
            None => self.later(which, 1000),
            Some(reached) if reached >= version => self.list_from(which, replica),
            Some(_) => self.forward(which, version),
        }
    }

    /// The API server answers instead.
    fn forward(&mut self, which: usize, wanted: u64) {
        let server = &self.upstream.server;
        if self.upstream.reachable(self.now).is_err() {
            return self.later(which, 1000);
        }
        if wanted > server.version() {
            self.clients[which].is_unavailable = true;
            self.cover("a list from the future");
            return self.later(which, 800);
        }
        let (lineage, version) = (server.lineage(), server.version());
        let all = server.collection().clone();
        self.clients[which].listed(server, lineage, version, &all);
        self.trace(|| format!("client {which} lists {version} at the API server"));
        self.cover("a list forwarded");
        self.later(which, 10);
    }

    fn connect(&mut self, which: usize) {
        match self.any_replica() {
            Some(replica) => self.connect_to(which, replica),
            None => self.later(which, 1000),
        }
    }

    fn connect_to(&mut self, which: usize, replica: usize) {
        let now = self.now;
        let Place::Up(up) = &mut self.replicas[replica] else { return };
        let client = &mut self.clients[which];
        let Some(start) = client.version else { return };
        let common = self.upstream.server.common(client.lineage, up.lineage);
        if client.reaches(start) <= common {
            client.lineage = up.lineage;
        } else if client.lineage < up.lineage {
            // Nobody can tell that its version, or what it was given early of a gap, is of another
            // history.
            client.start_over(now);
            return self.cover("a client of a replaced history starts over");
        } else if client.lineage > up.lineage {
            client.is_mixed = true;
            client.lineage = up.lineage;
            self.coverage.note("a client at a replica that has not noticed a new history");
        }
        let is_ahead = start > up.dispatch.version();
        let is_replayed = up.gaps.last().is_some_and(|(before, _)| start <= *before);
        match up.dispatch.enter(start, &client.interest) {
            Err(_) => {
                let why = self.why_expired(which, replica, start);
                self.cover(why);
                self.trace(|| format!("client {which} expires at {start} at replica {replica}"));
                self.clients[which].needs_list = true;
                self.cover("410 for a watch that is opened");
                self.later(which, 800);
            }
            Ok(place) => {
                let mut connection = Connection::new(replica, place, start);
                connection.restarts = up.restarts;
                connection.next_read = now;
                connection.latency = Duration::from_millis(self.rng.u64(1..900));
                connection.deadline = now + Duration::from_secs(self.rng.u64(100..400));
                if client.plan.bookmarks {
                    connection.next_bookmark = now + MINUTE;
                }
                client.phase = Phase::Watching(Box::new(connection));
                self.trace(|| format!("client {which} watches from {start} at replica {replica}"));
                self.cover("a watch opened");
                if is_ahead {
                    self.cover("a watch from the future");
                } else if is_replayed {
                    self.cover("a gap replayed by a watch that is opened");
                }
            }
        }
    }

    /// Why a watch from a version ends with 410; fails if there is no reason.
    fn why_expired(&self, which: usize, replica: usize, start: u64) -> &'static str {
        let Place::Up(up) = &self.replicas[replica] else { panic!("the replica is down") };
        let client = &self.clients[which];
        let restarts = match &client.phase {
            Phase::Watching(it) => it.restarts,
            Phase::Idle(_) | Phase::Waiting { .. } => up.restarts,
        };
        let is_hidden = |(before, after): &(u64, u64)| *before < start && start < *after;
        match () {
            () if restarts != up.restarts => "410: another history",
            () if up.restarts > 0 && start > up.dispatch.version() => "410: of a replaced history",
            () if start < up.first => "410: from before the log",
            () if up.gaps.iter().any(is_hidden) => "410: within a gap",
            () if self.config.log < usize::MAX => "410: no longer in the log",
            () if client.is_mixed => "410: of two histories",
            () => panic!("S8: client {which} has to list for nothing, from {start}"),
        }
    }

    fn watching(&mut self, which: usize) {
        let now = self.now;
        let client = &mut self.clients[which];
        let Phase::Watching(it) = &mut client.phase else { return };
        let has_arrived = it.inbox.front().is_some_and(|it| it.0 <= now);
        if has_arrived && let Some((_, message)) = it.inbox.pop_front() {
            let goes_on = client.received(&self.upstream.server, &message);
            self.trace(|| format!("client {which}: {message:?}"));
            if goes_on && self.is_within_gap(which, &message) {
                let received = self.clients[which].breaks_within_gap.take();
                if let Some(received) = received {
                    self.cover("a connection broken within a gap");
                    return self.cut_client(which, received);
                }
            }
            if !goes_on {
                self.leave(which);
                let after = if self.clients[which].needs_list { 800 } else { 10 };
                self.later(which, after);
            }
            return;
        }
        let Place::Up(up) = &mut self.replicas[it.replica] else { return };
        let Some(place) = &mut it.place else { return };
        if it.deadline <= now {
            up.dispatch.leave(place);
            it.place = None;
            it.send(now + it.latency, Message::Closed);
            return self.cover("a watch at its timeout");
        }
        if it.next_bookmark <= now {
            it.next_bookmark = now + MINUTE;
            if let Some(version) = up.dispatch.progress(place) {
                it.send(now + it.latency, Message::Bookmark(version));
                self.coverage.note("a bookmark");
            }
            return;
        }
        let room = Room { changes: client.plan.room, ..Room::ALL };
        match up.dispatch.read(place, room) {
            Ok(events) => {
                it.is_woken = !events.changes.is_empty() || events.mark.is_some();
                it.next_read = now + client.plan.pause;
                for (event, logged) in &events.changes {
                    let change = logged.change();
                    // As `watch.rs` sends it.
                    let (pod, version) = match event {
                        EventType::Added | EventType::Modified => (&change.after, None),
                        EventType::Deleted => (&change.before, Some(change.version)),
                    };
                    let pod = &pod.as_ref().expect("it is selected").0;
                    let version = version.unwrap_or(pod.version);
                    let (event, pod) = (*event, Arc::clone(pod));
                    it.send(now + it.latency, Message::Event { event, pod, version });
                }
                if let Some(version) = events.mark.filter(|_| client.plan.bookmarks) {
                    it.send(now + it.latency, Message::Bookmark(version));
                    self.coverage.note("a bookmark after a gap");
                }
            }
            Err(_) => {
                up.dispatch.leave(place);
                it.place = None;
                it.send(now + it.latency, Message::Expired);
                let (replica, start) = (it.replica, it.start);
                let why = self.why_expired(which, replica, start);
                self.cover(why);
                self.cover("410 within a watch");
            }
        }
    }

    /// Whether a client received something of a gap of its replica, and has not seen its end.
    fn is_within_gap(&self, which: usize, message: &Message) -> bool {
        let (Phase::Watching(it), Message::Event { version, .. }) =
            (&self.clients[which].phase, message)
        else {
            return false;
        };
        let Place::Up(up) = &self.replicas[it.replica] else { return false };
        up.gaps.iter().any(|(before, after)| before < version && version < after)
    }

    pub(crate) fn is_at(&self, client: usize, replica: usize) -> bool {
        matches!(&self.clients[client].phase, Phase::Watching(it) if it.replica == replica)
    }

    /// The connection of a client breaks, after so much of what is on its way.
    pub(crate) fn cut_client(&mut self, which: usize, received: usize) {
        let client = &mut self.clients[which];
        for _ in 0..received {
            let Phase::Watching(it) = &mut client.phase else { break };
            let Some((_, message)) = it.inbox.pop_front() else { break };
            client.received(&self.upstream.server, &message);
        }
        self.leave(which);
        self.later(which, 500);
    }

    /// The watch of a client is over.
    fn leave(&mut self, which: usize) {
        let client = &mut self.clients[which];
        let Phase::Watching(it) = &client.phase else { return };
        if !it.inbox.is_empty() {
            self.coverage.note("events lost on their way");
        }
        let Place::Up(up) = &mut self.replicas[it.replica] else { return };
        if let Some(place) = &it.place {
            up.dispatch.leave(place);
        }
        client.left(&up.all_gaps);
    }
}

impl Client {
    /// Forgets its version, as one does that has just begun.
    pub(crate) fn start_over(&mut self, now: Duration) {
        (self.needs_list, self.is_unavailable) = (true, true);
        self.phase = Phase::Idle(now + Duration::from_millis(800));
    }
}
