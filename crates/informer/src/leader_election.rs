//! Leader election over Leases (client-go's `tools/leaderelection`): of several replicas, one acts.
//!
//! ```
//! use informer::leader_election::{LeaderElectionConfig, LeaderElector};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anyhow::Result<()> {
//! # let server = informer_testkit::TestServer::start().await?;
//! # let client = server.client()?;
//! // The Pod's name, from the downward API: no other replica has it.
//! # let pod_name = "controller-0";
//! let config = LeaderElectionConfig::new("default", "my-controller", pod_name);
//! let elector = LeaderElector::new(client, config)?;
//! let leadership = elector.leadership();
//! let (shut_down, until) = tokio::sync::oneshot::channel::<()>();
//! let running = tokio::spawn(elector.run(async { _ = until.await }));
//!
//! let term = leadership.wait_until_leading().await?;
//! let gate = term.gate(); // asked before every write
//! # let work = async { gate() };
//! tokio::select! {
//!     result = work => result?,             // workers, begun after a refresh
//!     why = term.lost() => println!("{why}"), // dropping `work` cancels it
//! }
//!
//! _ = shut_down.send(()); // releases the Lease: the next replica takes over at once
//! running.await?;
//! assert!(!leadership.is_leader());
//! # Ok(())
//! # }
//! ```
//!
//! Leadership ends at the renew deadline, before the Lease does, by this process's monotonic clock:
//! also while the API server hangs, and after the process was stopped (SIGSTOP). What that does not
//! protect against: [`manual::leader_election`](crate::manual::leader_election).
//!
//! # The clock
//! All decisions are made on tokio's [`Instant`], on Linux `CLOCK_MONOTONIC`. It goes on while the
//! process is stopped. It stands still while the whole machine is suspended: a machine that wakes
//! up again considers itself the leader for what was left of its renew deadline.

mod elector;
mod lease;
mod live;
mod status;

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

pub use informer_core::leader_election::{ElectionConfigError, Loss};

pub use self::elector::LeaderElector;
use self::live::Live;
pub use self::status::{ElectionError, LeaderElectionStatus, NotLeader, NotLeaderCause};

/// What election to take part in, and how.
///
/// The candidates of one election have the same namespace and name, and should have the same
/// durations. Durations must be `lease_duration > renew_deadline > retry_period`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaderElectionConfig {
    /// The namespace of the Lease, usually the controller's own.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The name of this candidate, such as its Pod's. **No other candidate may have the same**: two
    /// with one identity both lead.
    pub identity: String,
    /// How long others wait after the last renewal that they observed, before they take over.
    /// Default: 15 s. Rounded up to seconds in the Lease.
    pub lease_duration: Duration,
    /// How long after the last successful renewal this process may act. Default: 10 s.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed, or looked at. Default: 2 s.
    pub retry_period: Duration,
}

impl LeaderElectionConfig {
    /// The Lease `name` in `namespace`, with client-go's durations.
    #[must_use]
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Sets [`lease_duration`](Self::lease_duration).
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets [`renew_deadline`](Self::renew_deadline).
    #[must_use]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets [`retry_period`](Self::retry_period).
    #[must_use]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }
}

/// Whether this process leads: a handle to a [`LeaderElector`]. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Leadership {
    live: watch::Receiver<Live>,
}

/// A time during which this process leads without a break. Once it has ended it stays ended, also
/// if the process leads again. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Term {
    number: u64,
    live: watch::Receiver<Live>,
}

impl Leadership {
    /// Whether this process leads now. Looks at the clock, so that the answer is right after a pause
    /// of the process too.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.check().is_ok()
    }

    /// `Ok` if this process leads now.
    ///
    /// # Errors
    /// Says why not.
    pub fn check(&self) -> Result<(), NotLeader> {
        self.current().map(drop)
    }

    /// The current term.
    ///
    /// # Errors
    /// If this process does not lead.
    pub fn term(&self) -> Result<Term, NotLeader> {
        Ok(Term { number: self.current()?, live: self.live.clone() })
    }

    /// [`check`](Self::check) as a function that owns what it needs. What was begun in one term
    /// should ask the gate of that [`Term`] instead.
    pub fn gate(&self) -> impl Fn() -> Result<(), NotLeader> + Clone + Send + Sync + use<> {
        let leadership = self.clone();
        move || leadership.check()
    }

    /// Waits until this process leads.
    ///
    /// # Errors
    /// If the elector has ended, so that this process will not lead any more.
    ///
    /// # Cancel safety
    /// Dropping the future only ends the wait.
    pub async fn wait_until_leading(&self) -> Result<Term, NotLeader> {
        let mut live = self.live.clone();
        loop {
            live.mark_unchanged();
            let why = match self.term() {
                Ok(term) => return Ok(term),
                Err(why) => why,
            };
            // An elector that is dropped says so before its channel closes.
            if why.cause == NotLeaderCause::Over || live.changed().await.is_err() {
                return Err(why);
            }
        }
    }

    /// Waits until this process does not lead, and says why. Returns at once if it does not lead.
    /// [`Term::lost`] is what work should wait for: it does not overlook the end of a term that
    /// another follows at once.
    ///
    /// # Cancel safety
    /// Dropping the future only ends the wait.
    pub async fn lost(&self) -> NotLeader {
        match self.term() {
            Ok(term) => term.lost().await,
            Err(why) => why,
        }
    }

    /// What the election is doing, to be shown or serialized.
    #[must_use]
    pub fn status(&self) -> LeaderElectionStatus {
        self.live.borrow().status(Instant::now())
    }

    /// Waits until the status changes: with every renewal, every failure, and when leadership begins
    /// or ends. `false` if the elector has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn status_changed(&mut self) -> bool {
        self.live.changed().await.is_ok()
    }

    /// The number of the current term.
    fn current(&self) -> Result<u64, NotLeader> {
        let live = self.live.borrow();
        let now = Instant::now();
        live.lead(now).map(|lead| lead.term).ok_or_else(|| live.not_leader(now))
    }
}

impl Term {
    /// `Ok` while this term lasts. Looks at the clock: to be asked before every write.
    ///
    /// # Errors
    /// Says why it has ended.
    pub fn check(&self) -> Result<(), NotLeader> {
        self.ends().map(drop)
    }

    /// [`check`](Self::check) as a function that owns what it needs.
    pub fn gate(&self) -> impl Fn() -> Result<(), NotLeader> + Clone + Send + Sync + use<> {
        let term = self.clone();
        move || term.check()
    }

    /// Waits until this term has ended, and says why.
    ///
    /// # Cancel safety
    /// Dropping the future only ends the wait.
    pub async fn lost(&self) -> NotLeader {
        let mut live = self.live.clone();
        loop {
            live.mark_unchanged();
            let until = match self.ends() {
                Ok(until) => until,
                Err(why) => return why,
            };
            tokio::select! {
                // An elector that was dropped has said so before.
                _ = live.changed() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// When this term ends unless it is renewed.
    fn ends(&self) -> Result<Instant, NotLeader> {
        let live = self.live.borrow();
        let now = Instant::now();
        let lead = live.lead(now).filter(|lead| lead.term == self.number);
        lead.map(|lead| lead.until).ok_or_else(|| live.not_leader(now))
    }
}
