//! A client like client-go's reflector, behind an address that any replica answers: what it holds,
//! and what must be true of what it is given.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use informer_core::ObjectKey;
use k8s_serve::Resource;
use k8s_serve::watch_cache::{EventType, Interest, Place};

use crate::plan::ClientPlan;
use crate::pod::Pod;
use crate::server::{Collection, Server};

/// An interest as a query says it, and as the model decides it.
type Case = (Option<&'static str>, &'static str, fn(&Pod) -> bool);

pub(crate) const INTERESTS: [Case; 9] = [
    (None, "", |_| true),
    (Some("a"), "", |it| it.key.namespace() == "a"),
    (None, "fieldSelector=metadata.name%3Dn1", |it| it.key.name() == "n1"),
    (None, "fieldSelector=spec.nodeName%3Dnode1", |it| it.look.node == "node1"),
    (None, "fieldSelector=spec.nodeName!%3Dnode1", |it| it.look.node != "node1"),
    (None, "labelSelector=app%3Dweb", |it| it.look.app == Some("web")),
    (None, "labelSelector=app+in+(web,db)", |it| it.look.app.is_some()),
    (None, "labelSelector=app!%3Dweb", |it| it.look.app != Some("web")),
    (Some("b"), "labelSelector=app%3Dweb&fieldSelector=spec.nodeName%3Dnode2", |it| {
        it.key.namespace() == "b" && it.look.app == Some("web") && it.look.node == "node2"
    }),
];

pub(crate) struct Client {
    pub(crate) plan: ClientPlan,
    pub(crate) interest: Arc<Interest>,
    pub(crate) phase: Phase,
    /// What it holds, by stamp and version.
    held: BTreeMap<ObjectKey, (u64, u64)>,
    /// The version from which it goes on; none before its first list.
    pub(crate) version: Option<u64>,
    /// The history that this is of.
    pub(crate) lineage: usize,
    pub(crate) needs_list: bool,
    /// Its version was refused: it lists at `""`.
    pub(crate) is_unavailable: bool,
    /// Its connection breaks within the next gap, after so much more.
    pub(crate) breaks_within_gap: Option<usize>,
    /// It left within a gap that ends at this version: until then it goes on from a version to which
    /// what it holds does not belong, as it knows of some things that came later.
    uncertain_until: u64,
    /// It was given changes of a history that was replaced, after some of the new one: no protocol
    /// saves it from that, and it holds what it holds until the replica has noticed.
    pub(crate) is_mixed: bool,
}

pub(crate) enum Phase {
    /// The next request follows then.
    Idle(Duration),
    /// For a replica to reach a version, as long as it waits before it forwards.
    Waiting {
        replica: usize,
        incarnation: u64,
        version: u64,
        until: Duration,
    },
    Watching(Box<Connection>),
}

/// An open watch, with what is on its way to the client.
pub(crate) struct Connection {
    pub(crate) replica: usize,
    /// How often the log of the replica had begun anew.
    pub(crate) restarts: u64,
    /// None once the replica has ended it.
    pub(crate) place: Option<Place>,
    pub(crate) start: u64,
    /// The newest version that was told to be complete.
    progress: u64,
    pub(crate) inbox: VecDeque<(Duration, Message)>,
    pub(crate) is_woken: bool,
    pub(crate) next_read: Duration,
    /// How long what is sent takes.
    pub(crate) latency: Duration,
    pub(crate) deadline: Duration,
    /// Never for those who do not want any.
    pub(crate) next_bookmark: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum Message {
    Event { event: EventType, pod: Arc<Pod>, version: u64 },
    Bookmark(u64),
    Expired,
    Closed,
}

impl Client {
    pub(crate) fn new(plan: ClientPlan) -> Self {
        let (namespace, query, _) = INTERESTS[plan.interest];
        let pods = Resource { namespaced: true, ..Resource::new("", "v1", "pods", "Pod") };
        let interest = Interest::of_query(&pods, namespace, query).expect("it is well-formed");
        let is_unavailable = plan.newest_first;
        Self {
            plan,
            interest,
            phase: Phase::Idle(Duration::ZERO),
            held: BTreeMap::new(),
            version: None,
            lineage: 0,
            needs_list: true,
            breaks_within_gap: None,
            uncertain_until: 0,
            is_unavailable,
            is_mixed: false,
        }
    }

    /// The version that a list must have reached: none for `""` and `"0"`.
    pub(crate) fn wanted(&self) -> Option<u64> {
        self.version.filter(|_| !self.is_unavailable)
    }

    /// Takes a list.
    pub(crate) fn listed(
        &mut self,
        server: &Server,
        lineage: usize,
        version: u64,
        all: &Collection,
    ) {
        if let Some(wanted) = self.wanted()
            && wanted <= server.common(self.lineage, lineage)
        {
            assert!(version >= wanted, "S2: a list at {version} is older than {wanted}");
        }
        self.held = self.selected(all);
        (self.version, self.lineage) = (Some(version), lineage);
        (self.needs_list, self.is_unavailable, self.is_mixed) = (false, false, false);
        self.uncertain_until = 0;
        self.check_state(server, version, "listed");
    }

    /// The version up to which it knows anything.
    pub(crate) fn reaches(&self, version: u64) -> u64 {
        version.max(self.uncertain_until)
    }

    /// Takes note of where it left a watch whose replica had these gaps.
    pub(crate) fn left(&mut self, gaps: &[(u64, u64)]) {
        let Some(version) = self.version else { return };
        let within = gaps.iter().filter(|(before, after)| *before <= version && version < *after);
        let until = within.map(|(_, after)| *after).max().unwrap_or_default();
        self.uncertain_until = self.uncertain_until.max(until);
    }

    /// Takes what a watch says. Returns whether it goes on.
    pub(crate) fn received(&mut self, server: &Server, message: &Message) -> bool {
        let Phase::Watching(connection) = &mut self.phase else { return false };
        let start = connection.start;
        match message {
            Message::Event { event, pod, version } => {
                let is_later =
                    *version > start || *event == EventType::Deleted && *version == start;
                assert!(is_later, "S1: {event:?} at {version} in a watch from {start}");
                self.version = Some(*version);
                let state = (pod.stamp, pod.version);
                let held = self.held.get(&pod.key).copied();
                if *event == EventType::Deleted {
                    self.held.remove(&pod.key);
                    return true;
                }
                self.held.insert(pod.key.clone(), state);
                if !self.is_mixed {
                    let is_certain = *version > self.uncertain_until;
                    let is_newer = held.is_none_or(|(_, before)| before < pod.version);
                    assert!(is_newer, "S1: {} goes from {held:?} to {state:?}", pod.key);
                    let is_right = held.is_some() == (*event == EventType::Modified);
                    assert!(
                        is_right || !is_certain,
                        "S4: {event:?} of {}, held: {held:?}",
                        pod.key
                    );
                }
                true
            }
            Message::Bookmark(version) => {
                assert!(*version >= connection.progress, "S1: a bookmark goes back to {version}");
                connection.progress = *version;
                self.version = Some(*version);
                self.check_state(server, *version, "told");
                true
            }
            Message::Expired => {
                self.needs_list = true;
                false
            }
            Message::Closed => false,
        }
    }

    /// What it holds is the collection at a version.
    fn check_state(&self, server: &Server, version: u64, why: &str) {
        if self.is_mixed || version < self.uncertain_until {
            return;
        }
        let Some(all) = server.at(self.lineage, version) else {
            panic!("S3: {why}: {version} was never a version of history {}", self.lineage);
        };
        let expected = self.selected(all);
        assert!(
            self.held == expected,
            "S3: {why} that {version} is complete with {:?}, and it was {expected:?}",
            self.held
        );
    }

    pub(crate) fn has(&self, all: &Collection) -> bool {
        self.held == self.selected(all)
    }

    fn selected(&self, all: &Collection) -> BTreeMap<ObjectKey, (u64, u64)> {
        let (_, _, selects) = INTERESTS[self.plan.interest];
        let selected = all.values().filter(|pod| selects(pod));
        selected.map(|pod| (pod.key.clone(), (pod.stamp, pod.version))).collect()
    }

    /// When it has something to do, but for what it waits for.
    pub(crate) fn due(&self) -> Duration {
        match &self.phase {
            Phase::Idle(until) | Phase::Waiting { until, .. } => *until,
            Phase::Watching(it) => {
                let received = it.inbox.front().map_or(Duration::MAX, |it| it.0);
                if it.place.is_none() {
                    return received;
                }
                let read = if it.is_woken { it.next_read } else { Duration::MAX };
                received.min(read).min(it.deadline).min(it.next_bookmark)
            }
        }
    }
}

impl Connection {
    pub(crate) fn new(replica: usize, place: Place, start: u64) -> Self {
        Self {
            replica,
            restarts: 0,
            place: Some(place),
            start,
            progress: start,
            inbox: VecDeque::new(),
            is_woken: true,
            next_read: Duration::ZERO,
            latency: Duration::ZERO,
            deadline: Duration::MAX,
            next_bookmark: Duration::MAX,
        }
    }

    /// Sends what arrives then, or with what was sent before.
    pub(crate) fn send(&mut self, at: Duration, message: Message) {
        let last = self.inbox.back().map_or(at, |it| it.0.max(at));
        self.inbox.push_back((last, message));
    }
}
