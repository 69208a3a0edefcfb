//! Everything there is, and time: what is due next happens next.

use std::cell::RefCell;
use std::time::Duration;

use fastrand::Rng;
use informer_core::ObjectKey;
use k8s_serve::log::Room;
use k8s_serve::watch_cache::EventType;

use crate::client::{Client, Connection, Message, Phase};
use crate::coverage::Coverage;
use crate::plan::{Action, Config, Plan, Step};
use crate::replica::Replica;
use crate::server::Server;
use crate::upstream::Upstream;

pub(crate) struct World {
    config: Config,
    seed: u64,
    rng: Rng,
    now: Duration,
    trace: Option<RefCell<Vec<String>>>,
    pub(crate) coverage: Coverage,
    upstream: Upstream,
    replicas: Vec<Place>,
    incarnations: u64,
    clients: Vec<Client>,
}

/// What stands where a replica is to be.
enum Place {
    Up(Box<Replica>),
    /// Another comes then.
    Down(Duration),
}

#[derive(Clone, Copy)]
enum Who {
    Replica(usize),
    Client(usize),
}

/// How long a read waits for a version before it is forwarded.
const FRESHNESS_WAIT: Duration = Duration::from_secs(3);

/// How often a watch gets a bookmark.
const MINUTE: Duration = Duration::from_secs(60);

impl World {
    pub(crate) fn new(plan: &Plan, traced: bool) -> Self {
        let config = plan.config.clone();
        let upstream = Upstream {
            server: Server::new(),
            rng: Rng::with_seed(plan.seed ^ 0xFEED),
            outage: Duration::ZERO,
            streaming: config.streaming_upstream,
            lag: config.lag,
        };
        let mut world = Self {
            seed: plan.seed,
            rng: Rng::with_seed(plan.seed ^ 0x5EED),
            now: Duration::ZERO,
            trace: traced.then(RefCell::default),
            coverage: Coverage::default(),
            upstream,
            replicas: (0..config.replicas).map(|_| Place::Down(Duration::ZERO)).collect(),
            incarnations: 0,
            clients: config.clients.iter().cloned().map(Client::new).collect(),
            config,
        };
        for name in 0..world.rng.u8(0..8) {
            let look = crate::pod::Look::default();
            world.upstream.server.write(&key(name), Some(look), u64::MAX);
        }
        world
    }

    pub(crate) fn step(&mut self, step: &Step) {
        self.run_until(self.now + step.after);
        self.trace(|| format!("{:?}", step.action));
        self.act(&step.action);
        self.spread();
    }

    /// Everything is well again, and in the end everybody has the collection.
    pub(crate) fn end(&mut self) {
        self.trace(|| "the end".to_owned());
        (self.upstream.outage, self.upstream.lag) = (self.now, 0);
        for client in &mut self.clients {
            client.plan.pause = Duration::ZERO;
        }
        for place in &mut self.replicas {
            if matches!(place, Place::Down(_)) {
                *place = Place::Down(self.now);
            }
        }
        self.run_until(self.now + Duration::from_secs(400));
        for name in 0..3 {
            self.act(&Action::Write(name, Some(crate::pod::Look::default())));
        }
        self.spread();
        self.run_until(self.now + Duration::from_secs(100));
        let server = &self.upstream.server;
        for (which, client) in self.clients.iter().enumerate() {
            assert!(
                client.has(server.collection()),
                "S5: client {which} does not end with the collection"
            );
        }
        // Nothing is kept for those who have gone.
        for (which, place) in self.replicas.iter().enumerate() {
            let Place::Up(replica) = place else { panic!("S5: replica {which} is down") };
            let here = |client: &&Client| match &client.phase {
                Phase::Watching(it) => it.replica == which && it.place.is_some(),
                Phase::Idle(_) | Phase::Waiting { .. } => false,
            };
            let watchers = self.clients.iter().filter(here).count();
            assert_eq!(replica.dispatch.watchers(), watchers, "S6: watchers of replica {which}");
        }
    }

    pub(crate) fn take_trace(&mut self) -> Vec<String> {
        self.trace.take().map(RefCell::into_inner).unwrap_or_default()
    }

    fn cover(&mut self, what: &'static str) {
        self.coverage.note(what);
    }

    fn trace(&self, what: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.borrow_mut().push(format!("{:>12.3} {}", self.now.as_secs_f64(), what()));
        }
    }

    fn act(&mut self, action: &Action) {
        let now = self.now;
        let limit = self.limit();
        let server = &mut self.upstream.server;
        match action {
            Action::Write(name, look) => _ = server.write(&key(*name), *look, limit),
            Action::Burst(all) => {
                for (name, look) in all {
                    server.write(&key(*name), *look, limit);
                }
            }
            Action::Recreate(name, look) => {
                if server.write(&key(*name), None, limit) {
                    server.write(&key(*name), Some(*look), limit);
                    self.cover("an object recreated");
                }
            }
            Action::Elsewhere(versions) => server.elsewhere(*versions, limit),
            Action::CutUpstream(which) => {
                if let Some(Place::Up(replica)) = self.replicas.get_mut(*which) {
                    replica.cut(now, &mut self.upstream);
                }
            }
            Action::CloseUpstream(which) => {
                if let Some(Place::Up(replica)) = self.replicas.get_mut(*which)
                    && let Some(watch) = replica.open.as_mut().and_then(|it| it.watch.as_mut())
                {
                    watch.expires = now;
                }
            }
            Action::Lose(which, long, writes) => {
                if let Some(Place::Up(replica)) = self.replicas.get_mut(*which)
                    && replica.is_ready
                {
                    replica.is_lost = Some(now + *long);
                    replica.cut(now, &mut self.upstream);
                }
                for (name, look) in writes {
                    self.upstream.server.write(&key(*name), *look, limit);
                }
            }
            Action::Delay(which, by) => {
                if let Some(Place::Up(replica)) = self.replicas.get_mut(*which)
                    && let Some(open) = &mut replica.open
                {
                    open.last = open.last.max(now) + *by;
                    open.incoming.iter_mut().for_each(|it| it.0 += *by);
                }
            }
            Action::Outage(long) => {
                self.upstream.outage = now + *long;
                self.cut_all();
            }
            Action::Compact(keep) => server.compact(*keep),
            Action::Restore(back) => {
                if limit == u64::MAX && server.restore(*back) {
                    self.cover("the history replaced");
                    self.cut_all();
                }
            }
            Action::Kill(which, long) => {
                for client in 0..self.clients.len() {
                    if self.is_at(client, *which) {
                        let received = self.rng.usize(0..4);
                        self.cut_client(client, received);
                    }
                }
                if let Some(place @ Place::Up(_)) = self.replicas.get_mut(*which) {
                    *place = Place::Down(now + *long);
                    self.cover("a replica killed");
                }
            }
            Action::CutClient(which, received) if *which < self.clients.len() => {
                self.cut_client(*which, *received);
            }
            Action::CutWithinGap(which, received) if *which < self.clients.len() => {
                self.clients[*which].breaks_within_gap = Some(*received);
            }
            Action::Slow(which, pause) if *which < self.clients.len() => {
                self.clients[*which].plan.pause = *pause;
            }
            Action::CutClient(..) | Action::CutWithinGap(..) | Action::Slow(..) => {}
        }
    }

    /// The version that may not be reached: a replica that has not noticed a new history would
    /// take its versions for those of the old.
    fn limit(&self) -> u64 {
        let server = &self.upstream.server;
        let is_stale = |it: &&Replica| {
            it.is_ready && it.dispatch.version() > server.common(it.lineage, server.lineage())
        };
        let stale = self.up().filter(is_stale).map(|it| it.dispatch.version());
        stale.min().unwrap_or(u64::MAX)
    }

    fn up(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.iter().filter_map(|place| match place {
            Place::Up(replica) => Some(&**replica),
            Place::Down(_) => None,
        })
    }

    fn cut_all(&mut self) {
        for place in &mut self.replicas {
            if let Place::Up(replica) = place {
                replica.cut(self.now, &mut self.upstream);
            }
        }
    }

    /// Lets everything happen that is due until `end`.
    fn run_until(&mut self, end: Duration) {
        let mut rounds = 0;
        self.spread();
        while let Some((at, who)) = self.next().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            rounds += 1;
            assert!(rounds < 50_000, "S7: far too much happens");
            match who {
                Who::Replica(which) => self.replica(which),
                Who::Client(which) => self.client(which),
            }
            self.spread();
        }
        self.now = self.now.max(end);
    }

    /// What is due first; of several things at one time, any.
    fn next(&mut self) -> Option<(Duration, Who)> {
        let now = self.now;
        let replicas = self.replicas.iter().enumerate().map(|(which, place)| match place {
            Place::Up(replica) => (replica.due(), Who::Replica(which)),
            Place::Down(until) => (*until, Who::Replica(which)),
        });
        let clients = self.clients.iter().enumerate().map(|(which, client)| {
            let due = if self.is_answered(client) { now } else { client.due() };
            (due, Who::Client(which))
        });
        let due: Vec<_> = replicas.chain(clients).map(|(at, who)| (at.max(now), who)).collect();
        let earliest = due.iter().map(|(at, _)| *at).min()?;
        self.rng.choice(due.into_iter().filter(|(at, _)| *at == earliest).collect::<Vec<_>>())
    }

    /// Whether it waits for a version that its replica has reached, or for one that is gone.
    fn is_answered(&self, client: &Client) -> bool {
        let Phase::Waiting { replica, incarnation, version, .. } = &client.phase else {
            return false;
        };
        self.reached(*replica, *incarnation).is_none_or(|reached| reached >= *version)
    }

    /// The version that a replica has reached, if it is still the one.
    fn reached(&self, which: usize, incarnation: u64) -> Option<u64> {
        let Place::Up(replica) = &self.replicas[which] else { return None };
        (replica.incarnation == incarnation).then(|| replica.dispatch.version())
    }

    fn replica(&mut self, which: usize) {
        let now = self.now;
        match &mut self.replicas[which] {
            Place::Up(replica) => replica.step(now, &mut self.upstream),
            Place::Down(_) => {
                self.incarnations += 1;
                let seed = self.seed.wrapping_add(self.incarnations);
                let Config { log, streaming_upstream, .. } = self.config;
                let mut replica = Replica::new(self.incarnations, seed, log, streaming_upstream);
                replica.is_traced = self.trace.is_some();
                replica.act(now, &mut self.upstream);
                self.replicas[which] = Place::Up(Box::new(replica));
            }
        }
    }

    /// The API server sends what has changed, and the replicas wake their watchers.
    fn spread(&mut self) {
        let Self { replicas, upstream, clients, now, coverage, trace, .. } = self;
        for (which, place) in replicas.iter_mut().enumerate() {
            let Place::Up(replica) = place else { continue };
            if let Some(open) = &mut replica.open {
                upstream.send_changes(*now, open);
            }
            if let Some(trace) = trace {
                let lines = std::mem::take(&mut replica.trace);
                let at = now.as_secs_f64();
                let lines = lines.iter().map(|it| format!("{at:>12.3} replica {which}: {it}"));
                trace.borrow_mut().extend(lines);
            }
            let woken = std::mem::take(&mut replica.woken);
            for client in clients.iter_mut() {
                let Phase::Watching(it) = &mut client.phase else { continue };
                let Some(place) = it.place.as_ref().filter(|_| it.replica == which) else {
                    continue;
                };
                it.is_woken |= woken.all || woken.selections.contains(&place.selection());
                if it.restarts != replica.restarts || client.lineage == replica.lineage {
                    continue;
                }
                // The replica has noticed a new history, which began after all that it had.
                let common = upstream.server.common(client.lineage, replica.lineage);
                if client.version.is_some_and(|version| version.max(it.start) > common) {
                    coverage.note("a client of a replaced history starts over");
                    replica.dispatch.leave(place);
                    client.start_over(*now);
                } else {
                    client.lineage = replica.lineage;
                }
            }
        }
    }

    fn client(&mut self, which: usize) {
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
        if start <= common {
            client.lineage = up.lineage;
        } else if client.lineage < up.lineage {
            // Nobody can tell that its version is of another history.
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
                    let (event, pod) = (*event, std::sync::Arc::clone(pod));
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

    fn is_at(&self, client: usize, replica: usize) -> bool {
        matches!(&self.clients[client].phase, Phase::Watching(it) if it.replica == replica)
    }

    /// The connection of a client breaks, after so much of what is on its way.
    fn cut_client(&mut self, which: usize, received: usize) {
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
        client.left(&up.gaps);
    }
}

impl Client {
    /// Forgets its version, as one does that has just begun.
    fn start_over(&mut self, now: Duration) {
        (self.needs_list, self.is_unavailable) = (true, true);
        self.phase = Phase::Idle(now + Duration::from_millis(800));
    }
}

fn key(name: u8) -> ObjectKey {
    ObjectKey::namespaced(["a", "b"][usize::from(name % 2)], &format!("n{}", name / 2))
}
