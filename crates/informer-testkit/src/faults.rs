//! Faults: what goes wrong between a client and an API server, on demand.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

mod stream;

pub(crate) use stream::Guarded;

use crate::protocol::{ResourcePath, Verb};
use crate::requests::names;
use crate::status::Status;

/// The faults of a server; a cheap handle.
///
/// | fault | how |
/// |---|---|
/// | connections refused | [`refuse_connections`](Self::refuse_connections), until [`accept_connections`](Self::accept_connections) |
/// | all connections reset | [`reset_connections`](Self::reset_connections) |
/// | watches end, cleanly or within a frame | [`cut_watches`](Self::cut_watches) |
/// | versions expire (410) | [`Cluster::compact`](crate::Cluster::compact), or [`Fault::expired`] whatever the version |
/// | too many requests (429), and any other refusal | [`Fault::too_many_requests`], [`Fault::answer`] |
/// | no answer, or one that stops in the middle | [`Fault::stall`], [`Fault::stall_after`] |
/// | the connection ends instead of an answer | [`Fault::hang_up`] |
/// | a restored backup: versions go back | [`Cluster::restore`](crate::Cluster::restore) |
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

/// What shall go wrong, and for which requests; see [`Faults::inject`].
#[derive(Debug, Clone)]
pub struct Fault {
    effect: Effect,
    verb: Option<Verb>,
    resource: Option<String>,
    times: Option<u64>,
}

#[derive(Debug, Clone)]
enum Effect {
    Answer(Status),
    Expired,
    Stall,
    StallAfter(u64),
    HangUp,
}

/// How [`Faults::cut_watches`] ends a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The response ends as it does after its timeout; the connection stays usable.
    Close,
    /// Half an event is sent, then the connection is reset.
    Reset,
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
    /// As an error within a watch, as an answer otherwise.
    Expired,
    HangUp,
    /// Wait for the end of the fault, then look again.
    Wait(CancellationToken),
}

impl Fault {
    /// 429 without a `Retry-After`, as if the server had too much to do.
    #[must_use]
    pub fn too_many_requests() -> Self {
        Self::answer(Status::new(429, "TooManyRequests", "too many requests, please try again later"))
    }

    /// Any failure as the answer.
    #[must_use]
    pub fn answer(status: Status) -> Self {
        Self::new(Effect::Answer(status))
    }

    /// 410, whatever the version: for a watch as an error event after a 200, as a real server does; for
    /// anything else as the answer. (A watch answered 410 outright: [`Fault::answer`] of
    /// [`Status::expired`].)
    #[must_use]
    pub fn expired() -> Self {
        Self::new(Effect::Expired)
    }

    /// Requests are accepted and not answered, until the fault is lifted.
    #[must_use]
    pub fn stall() -> Self {
        Self::new(Effect::Stall)
    }

    /// Answers stop after so many bytes of their body, until the fault is lifted. Answers that are already
    /// being sent, open watches above all, count what they have sent: with 0 they stop at once.
    #[must_use]
    pub fn stall_after(bytes: u64) -> Self {
        Self::new(Effect::StallAfter(bytes))
    }

    /// The connection is reset instead of an answer.
    #[must_use]
    pub fn hang_up() -> Self {
        Self::new(Effect::HangUp)
    }

    /// Adds a `Retry-After` to the answer, in seconds. Other faults have no answer and ignore it.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        if let Effect::Answer(status) = &mut self.effect {
            status.details.retry_after_seconds = seconds;
        }
        self
    }

    /// Hits only requests with this verb.
    #[must_use]
    pub fn on(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Hits only requests about this resource: `pods` or `deployments.apps`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Hits only so many requests. Default: all, until it is lifted.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    fn new(effect: Effect) -> Self {
        Self { effect, verb: None, resource: None, times: None }
    }

    fn is_for(&self, verb: Verb, path: Option<&ResourcePath>) -> bool {
        self.verb.is_none_or(|own| own == verb)
            && self.resource.as_ref().is_none_or(|own| path.is_some_and(|path| names(path, own)))
    }
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
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |hits| (hits < limit).then_some(hits + 1))
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
        let active = Arc::new(Active { fault, hits: AtomicU64::new(0), lifted: CancellationToken::new() });
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

    /// Ends all open watches, or those of one resource (`pods`, `deployments.apps`); returns how many.
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
        watches.iter().filter(|open| resource.is_none_or(|resource| names(&open.path, resource))).count()
    }

    pub(crate) fn refusing(&self) -> watch::Receiver<bool> {
        self.0.refusing.subscribe()
    }

    pub(crate) fn resets(&self) -> watch::Receiver<u64> {
        self.0.resets.subscribe()
    }

    /// What is to be done with a request that has arrived.
    pub(crate) fn judge(&self, verb: Verb, path: Option<&ResourcePath>) -> Verdict {
        let mut active = self.lock();
        let hit = active
            .iter()
            .find(|a| {
                !matches!(a.fault.effect, Effect::StallAfter(_)) && a.fault.is_for(verb, path) && a.hit()
            })
            .cloned();
        active.retain(|active| matches!(active.fault.effect, Effect::StallAfter(_)) || !active.is_used_up());
        let Some(hit) = hit else { return Verdict::Serve };
        match &hit.fault.effect {
            Effect::Answer(status) => Verdict::Answer(status.clone()),
            Effect::Expired => Verdict::Expired,
            Effect::HangUp => Verdict::HangUp,
            Effect::Stall | Effect::StallAfter(_) => Verdict::Wait(hit.lifted.clone()),
        }
    }

    /// Whether there is a fault that stops answers in the middle.
    pub(crate) fn stops_bodies(&self) -> bool {
        self.lock().iter().any(|active| matches!(active.fault.effect, Effect::StallAfter(_)))
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
            .field("active", &self.lock().iter().map(|active| active.fault.clone()).collect::<Vec<_>>())
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
