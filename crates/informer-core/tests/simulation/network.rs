//! The model server answers: what a request gets, and what happens to it on the way.

use std::time::Duration;

use informer_core::ResourceVersion;
use informer_core::reflector::{Failure, FailureKind, ListRequest, WatchRequest};

use crate::content::number;
use crate::plan::{Fault, Refusal, WatchList, WatchesGo};
use crate::server::{Change, Good, State, key};
use crate::wire::{self, Arriving, Connection, WatchSide};
use crate::world::World;

/// How a list goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Whole,
    Stalls,
    Breaks,
    EndsEarly,
}

impl World {
    pub(crate) fn answer_list(&mut self, request: &ListRequest) -> Connection {
        let seed = self.connection_seed();
        match self.list_body(request) {
            Err(Some(failure)) => Connection::refused(self.now, seed, failure),
            Err(None) => Connection::new(self.now, seed),
            Ok(text) => {
                let mut connection = Connection::new(self.now, seed);
                let compressed = self.disarm(Fault::Compressed);
                self.ledger.flawed |= compressed;
                connection.send_headers(self.now, compressed);
                self.send_list(&mut connection, &text);
                connection
            }
        }
    }

    /// The text of a list, or the failure that the request meets; no failure: no answer at all.
    fn list_body(&mut self, request: &ListRequest) -> Result<Vec<u8>, Option<Failure>> {
        self.refused()?;
        if self.disarm(Fault::NoList) {
            self.ledger.flawed = true;
            return Ok(wire::no_list(self.config.media_type));
        }
        let server = &self.server;
        let newest = server.version();
        let (version, after) = match &request.continue_token {
            Some(token) => {
                let mut parts = token.split('-').map(|part| part.parse().expect("a token of ours"));
                let mut next = || parts.next().expect("three parts");
                let (lineage, version, after) = (next(), next(), next());
                let expired = self.disarm(Fault::ContinueExpired);
                if expired
                    || lineage != self.server.lineages.len() as u64
                    || version < self.server.compacted
                {
                    self.cover("continue token expired");
                    return Err(wire::refusal(Refusal::Expired));
                }
                if self.server.settings.moves_pages && newest > version {
                    self.cover("pages of different versions");
                    self.ledger.pages_until = newest;
                    self.server.has_moved_pages = true;
                    (newest, Some(after))
                } else {
                    (version, Some(after))
                }
            }
            None if request.version.is_unset() => (newest, None),
            None => {
                let wanted = number(&request.version);
                if wanted > newest && !server.settings.refuses_future {
                    self.cover("older list than asked for");
                } else if wanted > newest {
                    self.cover("list from the future");
                    return Err(wire::refusal(Refusal::TooLarge));
                }
                (self.server.cached(wanted.min(newest)), None)
            }
        };
        let all = self.server.lineage().at(version).expect("the server was there");
        let mut items: Vec<State> = all.iter().flatten().copied().collect();
        items.sort_by_key(State::key);
        let after = after.map(|name| key(u8::try_from(name).expect("a name of ours")));
        items.retain(|state| after.as_ref().is_none_or(|after| state.key() > *after));
        let rest = items;
        let at_zero = request.version == ResourceVersion::from(0);
        let limit = request.limit.filter(|_| !at_zero || self.server.settings.pages_at_zero);
        let count = limit.map_or(rest.len(), |limit| rest.len().min(limit as usize));
        let mut page = rest[..count].to_vec();
        let left = rest.len() - count;
        let token = (left > 0).then(|| {
            let last = page[count - 1].name;
            format!("{}-{version}-{last}", self.server.lineages.len())
        });
        if token.is_some() {
            self.cover("list in pages");
        }
        self.ledger.flawed |= page.iter().any(|state| !state.good.is_readable());
        if !page.is_empty() && self.disarm(Fault::Duplicates) {
            // The same state again, last of all.
            page.push(page[0]);
        }
        let remaining = (left > 0 && version % 2 == 0).then_some(left);
        Ok(wire::list(self.config.media_type, &page, version, token.as_deref(), remaining))
    }

    fn send_list(&mut self, connection: &mut Connection, text: &[u8]) {
        connection.drips = self.disarm(Fault::Drip);
        let body = match () {
            () if self.disarm(Fault::Stall) => Body::Stalls,
            () if self.disarm(Fault::CutWithinFrame) => Body::Breaks,
            () if self.disarm(Fault::CloseWithinFrame) => Body::EndsEarly,
            () => Body::Whole,
        };
        if body == Body::Whole {
            connection.send_bytes(self.now, text);
            connection.send(self.now, Arriving::End);
            return;
        }
        connection.send_bytes(self.now, &text[..text.len() / 2]);
        match body {
            Body::Breaks => {
                let failure = Failure::new(FailureKind::Transport, "connection reset");
                connection.send(self.now, Arriving::Broken(failure));
            }
            Body::EndsEarly => {
                self.ledger.flawed = true;
                connection.send(self.now, Arriving::End);
            }
            Body::Whole | Body::Stalls => connection.ended = true,
        }
    }

    /// The answer to a probe and when it comes; `None`: never.
    pub(crate) fn answer_probe(
        &mut self,
        request: &ListRequest,
    ) -> Option<(Duration, Result<ResourceVersion, Failure>)> {
        let at = self.now + Duration::from_millis(30);
        match self.list_body(request) {
            Ok(text) => Some((at, self.version_of(&text))),
            Err(Some(failure)) => Some((at, Err(failure))),
            Err(None) => None,
        }
    }

    pub(crate) fn answer_discovery(&mut self) -> Option<(Duration, Result<bool, Failure>)> {
        let at = self.now + Duration::from_millis(30);
        match self.outage {
            // It is this resource only that is not found.
            Some((Refusal::NotFound, _)) => Some((at, Ok(!self.server.removed))),
            Some((refusal, _)) => wire::refusal(refusal).map(|failure| (at, Err(failure))),
            None => Some((at, Ok(!self.server.removed))),
        }
    }

    pub(crate) fn answer_watch(&mut self, request: &WatchRequest) -> Connection {
        let seed = self.connection_seed();
        match self.watch_answer(request, seed) {
            Ok(connection) => connection,
            Err(Some(failure)) => Connection::refused(self.now, seed, failure),
            Err(None) => Connection::new(self.now, seed),
        }
    }

    fn watch_answer(
        &mut self,
        request: &WatchRequest,
        seed: u64,
    ) -> Result<Connection, Option<Failure>> {
        self.refused()?;
        let settings = self.server.settings;
        let newest = self.server.version();
        let mut connection = Connection::new(self.now, seed);
        let (wanted, streaming) = (number(&request.version), request.send_initial_events);
        match self.watches_go.filter(|(_, until)| *until > self.now) {
            Some((WatchesGo::Refused(refusal), _)) => return Err(wire::refusal(refusal)),
            Some((WatchesGo::Deaf, _)) if !streaming => {
                let compressed = self.disarm(Fault::Compressed);
                self.ledger.flawed |= compressed;
                connection.send_headers(self.now, compressed);
                connection.ended = true;
                return Ok(connection);
            }
            _ => {}
        }
        if streaming && settings.watch_list == WatchList::Refused {
            self.cover("streaming list refused");
            return Err(wire::refusal(Refusal::Invalid));
        }
        if wanted > newest && (streaming || settings.refuses_future) {
            self.cover("watch from the future refused");
            return Err(wire::refusal(Refusal::TooLarge));
        }
        // Without a version a watch begins with what there is, whether it was asked for that or
        // not.
        let initial = streaming && (settings.watch_list != WatchList::Ignored || wanted == 0);
        if !initial && wanted < self.server.compacted {
            self.cover("watch from before a compaction");
            if !settings.expired_as_event {
                return Err(wire::refusal(Refusal::Expired));
            }
            let compressed = self.disarm(Fault::Compressed);
            self.ledger.flawed |= compressed;
            connection.send_headers(self.now, compressed);
            connection
                .send_bytes(self.now, &wire::error_event(self.config.media_type, Refusal::Expired));
            connection.send(self.now, Arriving::End);
            return Ok(connection);
        }
        let compressed = self.disarm(Fault::Compressed);
        self.ledger.flawed |= compressed;
        connection.send_headers(self.now, compressed);
        connection.drips = self.disarm(Fault::Drip);
        let mut position = wanted;
        if initial {
            position = if wanted == 0 { newest } else { self.server.cached(wanted) };
            // What a list has of a name is of one object, and then of its successor after a
            // DELETED.
            let mixes = |change: &Change| change.replaces && change.state.good != Good::Yes;
            if self.server.lineage().since(position).iter().any(mixes) {
                position = newest;
            }
            let all = self.server.lineage().at(position).expect("the server was there");
            let mut items: Vec<State> = all.iter().flatten().copied().collect();
            items.sort_by_key(State::key);
            self.ledger.flawed |= items.iter().any(|state| !state.good.is_readable());
            for item in &items {
                connection
                    .send_bytes(self.now, &wire::event(self.config.media_type, "ADDED", item));
            }
        }
        connection.watch = Some(WatchSide {
            position,
            expires: self.now + request.timeout,
            next_bookmark: self.now + Duration::from_secs(60),
        });
        if streaming && settings.watch_list == WatchList::Stalled {
            self.cover("streaming list stalled");
            connection.ended = true;
        }
        self.send_changes(&mut connection);
        if streaming && settings.watch_list == WatchList::Served {
            connection.send_bytes(self.now, &wire::bookmark(self.config.media_type, newest, true));
        } else if streaming {
            self.cover("streaming list without an end");
        }
        if self.close_loop.is_some() {
            connection.send(self.now, Arriving::End);
        }
        for fault in self.take_watch_faults() {
            self.damage(&mut connection, fault);
        }
        Ok(connection)
    }

    /// Sends what a watch has not been sent yet.
    pub(crate) fn send_changes(&mut self, connection: &mut Connection) {
        let Some(watch) = &mut connection.watch else { return };
        let changes = self.server.lineage().since(watch.position).to_vec();
        watch.position = watch.position.max(self.server.version());
        for change in changes {
            let broken = change.poison.is_some() || !change.state.good.is_readable();
            self.ledger.flawed |= broken;
            let text = wire::frame(self.config.media_type, &change);
            connection.send_bytes(self.now, &text);
            if change.poison.is_some() {
                connection.ended = true;
                self.ledger.poison_sent = Some(change.version);
                self.cover("poisoned event");
                return;
            }
            if change.twice {
                connection.send_bytes(self.now, &text);
            }
        }
    }

    /// What a fault does to a connection that is open.
    pub(crate) fn damage(&mut self, connection: &mut Connection, fault: Fault) {
        let now = self.now;
        let watches = connection.watch.is_some();
        self.ledger.flawed = true;
        match fault {
            Fault::Cut => connection.cut(now),
            Fault::CutWithinFrame => {
                let failure = Failure::new(FailureKind::Transport, "connection reset");
                if watches {
                    connection.send_bytes(now, &self.half_a_frame());
                }
                connection.send(now, Arriving::Broken(failure));
            }
            Fault::Close if watches => connection.send(now, Arriving::End),
            Fault::CloseWithinFrame if watches => {
                connection.send_bytes(now, &self.half_a_frame());
                connection.send(now, Arriving::End);
            }
            Fault::Stall => connection.stall(),
            Fault::Drip => connection.drips = true,
            Fault::ErrorEvent(refusal) if watches => {
                connection.send_bytes(now, &wire::error_event(self.config.media_type, refusal));
                connection.send(now, Arriving::End);
            }
            Fault::MalformedFrame(poison) if watches => {
                connection.send_bytes(now, &wire::poisoned(self.config.media_type, poison));
                connection.send(now, Arriving::End);
            }
            other => self.armed.push(other),
        }
    }

    /// What is on the way when a watch breaks off within a frame.
    fn half_a_frame(&self) -> Vec<u8> {
        let mut frame = wire::bookmark(self.config.media_type, 1, false);
        frame.truncate(frame.len() / 2);
        frame
    }

    /// What every request meets first.
    fn refused(&mut self) -> Result<(), Option<Failure>> {
        if let Some((refusal, _)) = self.outage {
            return Err(wire::refusal(refusal));
        }
        let armed = self.armed.iter().position(|fault| matches!(fault, Fault::Refuse(_)));
        if let Some(Fault::Refuse(refusal)) = armed.map(|at| self.armed.remove(at)) {
            return Err(wire::refusal(refusal));
        }
        if self.server.removed {
            self.cover("resource is not there");
            return Err(wire::refusal(Refusal::NotFound));
        }
        Ok(())
    }

    fn disarm(&mut self, fault: Fault) -> bool {
        let armed = self.armed.iter().position(|armed| *armed == fault);
        armed.map(|at| self.armed.remove(at)).is_some()
    }

    /// Those that wait for a watch.
    fn take_watch_faults(&mut self) -> Vec<Fault> {
        let for_watch = |fault: &Fault| {
            use Fault::{
                Close, CloseWithinFrame, Cut, CutWithinFrame, ErrorEvent, MalformedFrame, Stall,
            };
            matches!(
                fault,
                Cut | CutWithinFrame
                    | Close
                    | CloseWithinFrame
                    | Stall
                    | ErrorEvent(_)
                    | MalformedFrame(_)
            )
        };
        let (now, later) = self.armed.drain(..).partition(for_watch);
        self.armed = later;
        now
    }
}
