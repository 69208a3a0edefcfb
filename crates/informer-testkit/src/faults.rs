//! Faults: what goes wrong between a client and an API server, on demand.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

mod alter;
mod fault;
mod stream;

pub use fault::Fault;

pub(crate) use fault::Asked;
pub(crate) use stream::Guarded;

use fault::Effect;

use crate::requests::names;
use k8s_serve::Status;
use k8s_serve::{ResourcePath, Verb};

/// The faults of a server; a cheap handle.
///
/// All of them happen to JSON and to protobuf alike.
///
/// | fault | how |
/// |---|---|
/// | connections refused | [`refuse_connections`](Self::refuse_connections), until [`accept_connections`](Self::accept_connections) |
/// | all connections reset | [`reset_connections`](Self::reset_connections) |
/// | a reset in the middle of a frame, or of a list | [`cut_watches`](Self::cut_watches) with [`Cut::Reset`]; [`Fault::reset_after`] |
/// | the connection ends instead of an answer | [`Fault::hang_up`] |
/// | a write that is applied, and whose answer is lost, late or another | [`Fault::after_serving`] |
/// | a clean close, once and in a loop | [`cut_watches`](Self::cut_watches) with [`Cut::Close`]; [`Fault::close_after`] |
/// | no answer, or one that stalls in the middle | [`Fault::stall`], [`Fault::stall_after`] |
/// | bytes that drip | [`Fault::drip`] |
/// | versions that expire (410), as an event of a watch | [`Cluster::compact`](crate::Cluster::compact); [`Fault::expired`]; [`Cut::Expired`] for open watches |
/// | the same as a status | [`Fault::expired`] for lists; [`Fault::answer`] of [`Status::expired`] for watches, too |
/// | an expired continue token, on any page | [`Fault::expired`] with [`Fault::page`] |
/// | pages of one list that are of different versions | [`Fault::moving_pages`] |
/// | too many requests (429), with and without advice | [`Fault::too_many_requests`], [`Fault::retry_after`] |
/// | 500, 503, any other refusal | [`Fault::internal_error`], [`Fault::unavailable`], [`Fault::answer`] |
/// | a version larger than the server's | [`Fault::too_large_version`] |
/// | streaming lists refused | [`Fault::streaming_lists_refused`]; a whole server: [`disable_watch_list`](crate::TestServerBuilder::disable_watch_list) |
/// | streaming lists that stall, from the start or in the middle | [`Fault::stall`], [`Fault::stall_after`], with [`Fault::streaming_lists`] |
/// | streaming lists that never tell their end | [`Fault::without_end_bookmark`] |
/// | no protobuf: refused, or answered in JSON | [`Fault::without_protobuf`]; 415 and the like: [`Fault::answer`] with [`Fault::accepting_protobuf`]; a whole server: [`protobuf`](crate::TestServerBuilder::protobuf) |
/// | a compressed body that nobody asked for | [`Fault::gzip`] |
/// | truncated, malformed and oversized frames and lists | [`Fault::truncated`], [`Fault::malformed`], [`Fault::oversized`], anything with [`Fault::instead`] |
/// | an undecodable object among good ones | [`Fault::undecodable`] |
/// | duplicate keys in a list, duplicate events | [`Fault::duplicates`] |
/// | a restored backup: versions go back | [`Cluster::restore`](crate::Cluster::restore) |
/// | a 404 that passes | [`Fault::not_found`] |
/// | a resource that goes and returns | delete and create its CustomResourceDefinition |
/// | the server restarts | [`TestServer::shutdown`](crate::TestServer::shutdown), then a builder with the same [`cluster`](crate::TestServerBuilder::cluster) and [`port`](crate::TestServerBuilder::port) |
/// | a compaction | [`Cluster::compact`](crate::Cluster::compact) |
/// | delete and recreate in a gap | [`cut_watches`](Self::cut_watches), then write to the [`Cluster`](crate::Cluster) |
/// | token expired (401), forbidden (403) | [`Auth`](crate::Auth) |
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), informer_testkit::StartError> {
/// use informer_testkit::{Cut, Fault, TestServer, Verb};
///
/// let server = TestServer::start().await?;
/// let faults = server.faults();
/// faults.inject(Fault::too_many_requests().retry_after(2).on(Verb::List).resource("pods").times(3));
/// let stalled = faults.inject(Fault::stall().on(Verb::Watch));
/// faults.cut_watches(Cut::Reset, Some("pods"));
/// stalled.lift();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    active: Mutex<Vec<Arc<Active>>>,
    watches: Mutex<Vec<OpenWatch>>,
    refusing: watch::Sender<bool>,
    /// Counts the resets of all connections.
    resets: watch::Sender<u64>,
    ids: AtomicU64,
}

/// How [`Faults::cut_watches`] ends a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The response ends as it does after its timeout; the connection stays usable.
    Close,
    /// Half an event is sent, then the connection is reset.
    Reset,
    /// An error event says that the version has expired (410), then the response ends.
    Expired,
}

/// A fault that is in force.
#[derive(Clone)]
pub struct FaultHandle {
    faults: Faults,
    active: Arc<Active>,
}

struct Active {
    fault: Fault,
    /// How many requests it has hit.
    hits: AtomicU64,
    lifted: CancellationToken,
}

struct OpenWatch {
    id: u64,
    path: ResourcePath,
    cut: oneshot::Sender<Cut>,
}

/// What is to be done with a request.
pub(crate) enum Verdict {
    Serve,
    Answer(Status),
    /// A watch that is opened, and ends with this.
    ErrorEvent(Status),
    HangUp,
    /// Wait for the end of the fault, then look again.
    Wait(CancellationToken),
}

impl FaultHandle {
    /// Ends the fault. What it has held up goes on.
    pub fn lift(&self) {
        self.active.lifted.cancel();
        self.faults.lock().retain(|active| !Arc::ptr_eq(active, &self.active));
    }

    /// How many requests it has hit.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.active.hits.load(Ordering::Relaxed)
    }
}

impl Active {
    /// Counts a hit, if there is one left.
    fn hit(&self) -> bool {
        let limit = self.fault.times.unwrap_or(u64::MAX);
        !self.lifted.is_cancelled()
            && self
                .hits
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |hits| {
                    (hits < limit).then_some(hits + 1)
                })
                .is_ok()
    }
}

impl Faults {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            active: Mutex::default(),
            watches: Mutex::default(),
            refusing: watch::Sender::new(false),
            resets: watch::Sender::new(0),
            ids: AtomicU64::new(0),
        }))
    }

    /// Puts a fault in force. Of several that fit a request, the one injected first hits it.
    pub fn inject(&self, fault: Fault) -> FaultHandle {
        let active =
            Arc::new(Active { fault, hits: AtomicU64::new(0), lifted: CancellationToken::new() });
        self.lock().push(Arc::clone(&active));
        FaultHandle { faults: self.clone(), active }
    }

    /// Lifts everything that was injected, and accepts connections again.
    pub fn lift_all(&self) {
        for active in std::mem::take(&mut *self.lock()) {
            active.lifted.cancel();
        }
        self.accept_connections();
    }

    /// Refuses new connections from now on. Those that are open stay; see
    /// [`reset_connections`](Self::reset_connections). Without sockets every request fails.
    pub fn refuse_connections(&self) {
        self.0.refusing.send_replace(true);
    }

    /// Accepts connections again, on the same port.
    pub fn accept_connections(&self) {
        self.0.refusing.send_replace(false);
    }

    /// Resets all open connections, as when the server is killed.
    pub fn reset_connections(&self) {
        self.0.resets.send_modify(|resets| *resets += 1);
    }

    /// Ends all open watches, or those of one resource (`pods`, `deployments.apps`); returns how
    /// many.
    pub fn cut_watches(&self, how: Cut, resource: Option<&str>) -> usize {
        let mut watches = self.0.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let cut = watches
            .extract_if(.., |open| resource.is_none_or(|resource| names(&open.path, resource)))
            .filter_map(|open| open.cut.send(how).ok());
        cut.count()
    }

    /// The number of open watches, of one resource or of all.
    #[must_use]
    pub fn open_watches(&self, resource: Option<&str>) -> usize {
        let watches = self.0.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches
            .iter()
            .filter(|open| resource.is_none_or(|resource| names(&open.path, resource)))
            .count()
    }

    pub(crate) fn refusing(&self) -> watch::Receiver<bool> {
        self.0.refusing.subscribe()
    }

    pub(crate) fn resets(&self) -> watch::Receiver<u64> {
        self.0.resets.subscribe()
    }

    /// What is to be done with a request that has arrived.
    pub(crate) fn judge(&self, asked: &Asked) -> Verdict {
        self.verdict(asked, false)
    }

    /// What is to be done instead of answering a request that was served.
    pub(crate) fn judge_served(&self, asked: &Asked) -> Verdict {
        self.verdict(asked, true)
    }

    fn verdict(&self, asked: &Asked, after_serving: bool) -> Verdict {
        let is_due =
            |fault: &Fault| fault.effect.is_verdict() && fault.after_serving == after_serving;
        let Some(hit) = self.hit_by(asked, is_due) else { return Verdict::Serve };
        match &hit.fault.effect {
            Effect::Answer(status) => Verdict::Answer(status.clone()),
            Effect::Expired if asked.verb == Verb::Watch => Verdict::ErrorEvent(asked.expired()),
            Effect::Expired => Verdict::Answer(asked.expired()),
            Effect::TooLargeVersion => Verdict::Answer(asked.too_large_version()),
            Effect::HangUp => Verdict::HangUp,
            Effect::Stall => Verdict::Wait(hit.lifted.clone()),
            Effect::Gzip
            | Effect::WithoutProtobuf
            | Effect::MovePages
            | Effect::Stop(..)
            | Effect::Drip { .. }
            | Effect::Alter(_) => Verdict::Serve,
        }
    }

    /// Whether the answer is to be compressed.
    pub(crate) fn compresses(&self, asked: &Asked) -> bool {
        self.hit(asked, |effect| matches!(effect, Effect::Gzip)).is_some()
    }

    /// Whether the request is read as by a server that does not know protobuf.
    pub(crate) fn have_no_protobuf(&self, asked: &Asked) -> bool {
        self.hit(asked, |effect| matches!(effect, Effect::WithoutProtobuf)).is_some()
    }

    /// Whether the page asked for is to be one of the newest state.
    pub(crate) fn move_page(&self, asked: &Asked) -> bool {
        asked.continues() && self.hit(asked, |effect| matches!(effect, Effect::MovePages)).is_some()
    }

    /// Whether there is a fault that happens to bodies.
    pub(crate) fn touch_bodies(&self) -> bool {
        self.lock().iter().any(|active| active.fault.effect.is_in_body())
    }

    /// The first fault of a kind that hits a request.
    fn hit(&self, asked: &Asked, kind: impl Fn(&Effect) -> bool) -> Option<Arc<Active>> {
        self.hit_by(asked, |fault| kind(&fault.effect))
    }

    fn hit_by(&self, asked: &Asked, kind: impl Fn(&Fault) -> bool) -> Option<Arc<Active>> {
        let mut active = self.lock();
        let hit = active
            .iter()
            .find(|active| kind(&active.fault) && active.fault.is_for(asked) && active.hit())
            .cloned();
        // A body that was counted goes on being hit.
        active.retain(|active| active.fault.effect.is_in_body() || !active.is_used_up());
        hit
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Active>>> {
        self.0.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Active {
    fn is_used_up(&self) -> bool {
        self.fault.times.is_some_and(|times| self.hits.load(Ordering::Relaxed) >= times)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("refusing", &*self.0.refusing.borrow())
            .field(
                "active",
                &self.lock().iter().map(|active| active.fault.clone()).collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FaultHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultHandle")
            .field("fault", &self.active.fault)
            .field("hits", &self.hits())
            .finish_non_exhaustive()
    }
}
