//! A replica: the informer's own core reads the API server, and a [`Dispatch`] serves what it
//! publishes. What happens between the two in `informer-serve` (`history.rs`) is done here, too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use informer_core::ingest::{Arrival, Held, Ingest, ListChunk, Request, Sink};
use informer_core::reflector::{Failure, FailureKind, ReflectorConfig};
use informer_core::{
    DeltaQueue, Event, Pipeline, Publication, PublicationKind, ResourceVersion, Uid,
};
use k8s_serve::Change;
use k8s_serve::watch_cache::{Capacity, Dispatch, SelectionId};

use crate::pod::{Pod, PodDecoder, Shared};
use crate::server::Collection;
use crate::upstream::Upstream;

pub(crate) struct Replica {
    pub(crate) ingest: Ingest<PodDecoder, Store>,
    pub(crate) dispatch: Dispatch<Shared>,
    /// Tells it from those that were there before.
    pub(crate) incarnation: u64,
    pub(crate) is_ready: bool,
    /// The history that its content is of.
    pub(crate) lineage: usize,
    /// The version at which its log began, and how often it began anew.
    pub(crate) first: u64,
    pub(crate) restarts: u64,
    /// The versions between which it does not know the order of things.
    pub(crate) gaps: Vec<(u64, u64)>,
    /// Those of the histories before, too.
    pub(crate) all_gaps: Vec<(u64, u64)>,
    pub(crate) woken: Woken,
    /// Nothing that it asks for is answered until then, and its next watch is too late.
    pub(crate) is_lost: Option<Duration>,
    /// What has happened, if anybody wants to know.
    pub(crate) trace: Vec<String>,
    pub(crate) is_traced: bool,
    pub(crate) open: Option<Open>,
    pub(crate) probe: Option<(Duration, Result<ResourceVersion, Failure>)>,
    pub(crate) discovery: Option<Duration>,
}

/// Whom the replica has woken.
#[derive(Default)]
pub(crate) struct Woken {
    pub(crate) all: bool,
    pub(crate) selections: Vec<SelectionId>,
}

/// The one list or watch that is open upstream.
pub(crate) struct Open {
    pub(crate) incoming: VecDeque<(Duration, Arrival)>,
    /// When the last of it arrives.
    pub(crate) last: Duration,
    pub(crate) lineage: usize,
    pub(crate) watch: Option<WatchSide>,
}

/// What the API server knows of a watch.
pub(crate) struct WatchSide {
    pub(crate) position: u64,
    pub(crate) expires: Duration,
    pub(crate) next_bookmark: Duration,
}

/// The informer's store, and what it has published.
pub(crate) struct Store {
    pipeline: Pipeline<Pod>,
    published: Arc<Mutex<Vec<Published>>>,
}

struct Published {
    kind: PublicationKind,
    version: u64,
    changes: Vec<Change<Shared>>,
}

impl Sink<Pod> for Store {
    fn deliver(&mut self, now: Duration, deltas: &mut DeltaQueue<Pod>) {
        let deltas: Vec<_> = deltas.pop_batch(usize::MAX).collect();
        drop(self.pipeline.apply(now, deltas));
    }

    fn held(&self, namespace: &str, name: &str, uid: &Uid, version: &ResourceVersion) -> Held {
        self.pipeline.held(namespace, name, uid, version)
    }
}

impl Replica {
    pub(crate) fn new(incarnation: u64, seed: u64, log: usize, streaming_lists: bool) -> Self {
        let mut pipeline = Pipeline::new();
        let published: Arc<Mutex<Vec<Published>>> = Arc::default();
        let seen = Arc::clone(&published);
        pipeline.observe(move |publication| {
            let publication = Published::new(publication);
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(publication);
        });
        let config = ReflectorConfig {
            page_size: None,
            streaming_lists,
            seed,
            ..ReflectorConfig::default()
        };
        Self {
            ingest: Ingest::new(config, PodDecoder, Store { pipeline, published }),
            dispatch: Dispatch::new(0, Capacity::Changes(log)),
            incarnation,
            is_ready: false,
            lineage: 0,
            first: 0,
            restarts: 0,
            gaps: Vec::new(),
            all_gaps: Vec::new(),
            woken: Woken::default(),
            is_lost: None,
            trace: Vec::new(),
            is_traced: false,
            open: None,
            probe: None,
            discovery: None,
        }
    }

    /// The collection that its store shows, and the version that it stands for.
    pub(crate) fn collection(&self) -> (u64, Collection) {
        let snapshot = self.ingest.sink.pipeline.reader().snapshot();
        let all = snapshot.iter().map(|entry| (entry.key.clone(), Arc::clone(entry.object())));
        (number(snapshot.version()), all.collect())
    }

    /// When it has something to do.
    pub(crate) fn due(&self) -> Duration {
        let incoming = self.open.as_ref().and_then(|open| open.incoming.front()).map(|it| it.0);
        let watch = self.open.as_ref().and_then(|open| open.watch.as_ref());
        let own = watch.map(|watch| watch.expires.min(watch.next_bookmark));
        let probe = self.probe.as_ref().map(|it| it.0);
        let deadline = Some(self.ingest.deadline());
        let all = [incoming, own, probe, self.discovery, deadline];
        all.into_iter().flatten().min().unwrap_or(Duration::MAX)
    }

    /// Does what is due.
    pub(crate) fn step(&mut self, now: Duration, upstream: &mut Upstream) {
        if self.probe.as_ref().is_some_and(|it| it.0 <= now) {
            let (_, answer) = self.probe.take().expect("it is there");
            self.ingest.probed(now, answer);
        } else if self.discovery.is_some_and(|at| at <= now) {
            self.discovery = None;
            self.ingest.discovered(now, Ok(true));
        } else if let Some(open) = &mut self.open {
            upstream.tick(now, open);
            let has_arrived = open.incoming.front().is_some_and(|it| it.0 <= now);
            if has_arrived && let Some((_, arrival)) = open.incoming.pop_front() {
                self.arrived(now, arrival);
            }
        }
        self.act(now, upstream);
    }

    /// Sends what the informer asks for.
    pub(crate) fn act(&mut self, now: Duration, upstream: &mut Upstream) {
        for _ in 0..100 {
            let request = self.ingest.poll(now);
            if let Some(request) = request.as_ref().filter(|_| self.is_traced) {
                self.trace.push(format!("→ {request:?}"));
            }
            match request {
                None => return self.deliver(now),
                Some(Request::List(_) | Request::Watch(_))
                    if self.is_lost.is_some_and(|until| now < until) =>
                {
                    self.open = Some(upstream.refuse(now, FailureKind::Refused));
                }
                Some(Request::List(request)) => {
                    self.open = Some(upstream.list(now, &request));
                }
                Some(Request::Watch(request)) => {
                    let is_late = self.is_lost.take().is_some() && !request.send_initial_events;
                    self.open = Some(match is_late {
                        true => upstream.refuse(now, FailureKind::Expired),
                        false => upstream.watch(now, &request),
                    });
                }
                Some(Request::Close) => self.open = None,
                Some(Request::Probe(request)) => {
                    self.probe =
                        Some((now + Duration::from_millis(30), upstream.probe(now, &request)));
                }
                Some(Request::Discover) => self.discovery = Some(now + Duration::from_millis(30)),
            }
        }
        panic!("the informer does not come to rest");
    }

    /// The connection upstream breaks.
    pub(crate) fn cut(&mut self, now: Duration, upstream: &mut Upstream) {
        if self.open.is_some() {
            let failure = Failure::new(FailureKind::Transport, "connection reset");
            self.arrived(now, Arrival::Failed(failure));
            self.act(now, upstream);
        }
    }

    fn arrived(&mut self, now: Duration, arrival: Arrival) {
        let lineage = self.open.as_ref().map_or(self.lineage, |open| open.lineage);
        let is_last = match &arrival {
            Arrival::Failed(_) | Arrival::Closed | Arrival::List(ListChunk::End(_)) => true,
            Arrival::Opened | Arrival::Watch(_) | Arrival::List(ListChunk::Parts(_)) => false,
        };
        if self.is_traced {
            self.trace.push(format!("← {arrival:?}"));
        }
        if is_last {
            self.open = None;
        }
        self.ingest.arrived(now, arrival);
        self.ingest.deliver(now);
        self.publish(lineage);
    }

    fn deliver(&mut self, now: Duration) {
        if self.ingest.queued() > 0 {
            self.ingest.deliver(now);
            self.publish(self.lineage);
        }
    }

    /// Hands on what was published, which is of this history.
    fn publish(&mut self, lineage: usize) {
        let published = Arc::clone(&self.ingest.sink.published);
        let published =
            std::mem::take(&mut *published.lock().unwrap_or_else(PoisonError::into_inner));
        for Published { kind, version, changes } in published {
            self.lineage = lineage;
            if self.is_traced {
                self.trace.push(format!("{kind:?} up to {version}: {changes:?}"));
            }
            let before = self.dispatch.version();
            match kind {
                PublicationKind::FirstList
                | PublicationKind::Relist { history_changed: true }
                | PublicationKind::Cleared => {
                    self.dispatch.restart(version);
                    self.restarts += 1;
                    (self.first, self.woken.all, self.is_ready) = (version, true, true);
                    self.gaps.clear();
                }
                PublicationKind::Relist { history_changed: false } => {
                    let woken = self.dispatch.relist(version, changes);
                    self.woken.selections.extend(woken);
                    self.gaps.push((before, version));
                    self.all_gaps.push((before, version));
                }
                PublicationKind::Changes => {
                    let woken = self.dispatch.push(version, changes);
                    self.woken.selections.extend(woken);
                }
            }
        }
    }
}

impl Published {
    fn new(publication: &Publication<'_, Pod>) -> Self {
        let changes = publication.changes().map(|(version, event)| change(number(version), event));
        Self {
            kind: publication.kind(),
            version: number(publication.version()),
            changes: changes.collect(),
        }
    }
}

fn change(version: u64, event: &Event<Pod>) -> Change<Shared> {
    let shared = |object: &Arc<Pod>| Some(Shared(Arc::clone(object)));
    let (before, after) = match event {
        Event::Added { object, .. } => (None, shared(object)),
        Event::Updated { old, new, .. } => (shared(old), shared(new)),
        Event::Deleted(deleted) => (shared(&deleted.old), None),
    };
    Change { version, before, after }
}

fn number(version: &ResourceVersion) -> u64 {
    version.number().unwrap_or_default()
}
