//! Everything there is, and time: what is due next happens next.

use std::cell::RefCell;
use std::time::Duration;

use fastrand::Rng;
use informer_core::ObjectKey;

use crate::client::{Client, Phase};
use crate::coverage::Coverage;
use crate::plan::{Action, Config, Plan, Step};
use crate::replica::Replica;
use crate::server::Server;
use crate::upstream::Upstream;

pub(crate) struct World {
    pub(crate) config: Config,
    seed: u64,
    pub(crate) rng: Rng,
    pub(crate) now: Duration,
    trace: Option<RefCell<Vec<String>>>,
    pub(crate) coverage: Coverage,
    pub(crate) upstream: Upstream,
    pub(crate) replicas: Vec<Place>,
    incarnations: u64,
    pub(crate) clients: Vec<Client>,
}

/// What stands where a replica is to be.
pub(crate) enum Place {
    Up(Box<Replica>),
    /// Another comes then.
    Down(Duration),
}

#[derive(Clone, Copy)]
enum Who {
    Replica(usize),
    Client(usize),
}

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

    pub(crate) fn cover(&mut self, what: &'static str) {
        self.coverage.note(what);
    }

    pub(crate) fn trace(&self, what: impl FnOnce() -> String) {
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
    pub(crate) fn reached(&self, which: usize, incarnation: u64) -> Option<u64> {
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
                let reached = client.version.map(|version| client.reaches(version));
                let Phase::Watching(it) = &mut client.phase else { continue };
                let Some(place) = it.place.as_ref().filter(|_| it.replica == which) else {
                    continue;
                };
                let start = it.start;
                it.is_woken |= woken.all || woken.selections.contains(&place.selection());
                if it.restarts != replica.restarts || client.lineage == replica.lineage {
                    continue;
                }
                // The replica has noticed a new history, which began after all that it had.
                let common = upstream.server.common(client.lineage, replica.lineage);
                if reached.is_some_and(|it| it.max(start) > common) {
                    coverage.note("a client of a replaced history starts over");
                    replica.dispatch.leave(place);
                    client.start_over(*now);
                } else {
                    client.lineage = replica.lineage;
                }
            }
        }
    }
}

fn key(name: u8) -> ObjectKey {
    ObjectKey::namespaced(["a", "b"][usize::from(name % 2)], &format!("n{}", name / 2))
}
