//! The life of a controller: waiting for its informers, reconciling, going home.

use std::fmt;
use std::future::pending;
use std::panic::{Location, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::stream::{self, BoxStream, StreamExt, select_all};
use informer_core::ObjectKey;
use tokio::task::coop::consume_budget;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::action::Action;
use super::context::Context;
use super::gate::Gate;
use super::own_writes::OwnWrites;
use super::shared::{Ending, Phase, Shared};
use super::source::{Source, Watch};
use super::worker::{Reconciler, Waits};
use super::{Controller, Settings};
use crate::Error;
use crate::leader_election::{Leadership, NotLeader, Term};
use crate::workqueue::{Priority, WorkQueue};

/// How long a controller waits for its informers before it says so in the log.
const SAY_WAITING: Duration = Duration::from_secs(5);

/// How long tasks that were cancelled have for their end, which is theirs unless they block.
const CANCELLED: Duration = Duration::from_secs(1);

/// Why [`Controller::run`](crate::Controller::run) did not end well.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An informer of the controller cannot be used, or has stopped before the controller did.
    #[error("the controller {controller} ends: {error}")]
    Informer {
        /// The name of the controller.
        controller: String,
        /// What is the matter with the informer.
        error: Error,
    },
    /// The deadline for a graceful shutdown passed, so that reconciles were cancelled.
    #[error(
        "the controller {controller} was shut down, and its reconciles of {} did not end in time and were cancelled",
        keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Cancelled {
        /// The name of the controller.
        controller: String,
        /// The objects whose reconciles were cancelled.
        keys: Vec<ObjectKey>,
    },
    /// This process will not lead any more: its elector has ended before the controller.
    #[error("the controller {controller} ends: {error}")]
    NotLeader {
        /// The name of the controller.
        controller: String,
        /// Why.
        error: NotLeader,
    },
}

pub(super) async fn run<T, S, F, R, E>(
    controller: Controller<T>,
    reconcile: F,
    state: S,
    called_at: &'static Location<'static>,
) -> Result<(), RunError>
where
    T: Send + Sync + 'static,
    S: Send + Sync + 'static,
    F: Fn(Arc<T>, Context<S>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send + 'static,
    E: fmt::Display + Send + 'static,
{
    let Controller { objects, filter, others, settings, shared, .. } = controller;
    let Settings { client, name, limiter, concurrency, timeout, .. } = settings;
    let mut shutdown = settings.shutdown;
    let informer_failed = |error| RunError::Informer { controller: name.clone(), error };

    let watch = Watch::objects(&objects, filter, called_at);
    let mut sources: Vec<Arc<dyn Source>> = vec![Arc::new(watch)];
    sources.extend(others);
    let own_writes = OwnWrites::new(client);
    let _no_more_writes = own_writes.ended().drop_guard();
    sources.iter().for_each(|source| source.follow(&own_writes));
    let queue = WorkQueue::with_limiter(&name, limiter);
    shared.set_up(queue, concurrency, sources.clone(), Arc::clone(&own_writes));
    let _ending = Ending(Arc::clone(&shared));
    shared.phase.send_replace(Phase::Syncing);

    let mut feeding = JoinSet::new();
    feeding.spawn(feed(&shared, &sources).map_err(informer_failed)?);
    let synced = saying_what_it_waits_for(&shared, start(&sources));
    tokio::select! {
        biased;
        () = &mut shutdown => return Ok(()),
        synced = synced => synced.map_err(informer_failed)?,
    }
    let resource = objects.resource().clone();
    let objects = objects.synced().await.map_err(informer_failed)?;

    let (reconcile, state) = (Arc::new(reconcile), Arc::new(state));
    loop {
        let mut term = None;
        if let Some(leadership) = &settings.leadership {
            shared.phase.send_replace(Phase::Standby);
            let begun = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                Some(ended) = feeding.join_next() => {
                    return Err(informer_failed(unless_panicked(ended)));
                }
                begun = begin_term(leadership, &own_writes, &sources) => begun,
            };
            term = Some(begun.map_err(|it| it.of(&name))?);
            // Some were cancelled in the last term, and all were another's meanwhile.
            for entry in objects.snapshot().iter() {
                shared.queue().add_with_priority(entry.key.clone(), Priority::Low);
            }
        }
        let gate = Gate::new(term);

        let stopping = CancellationToken::new();
        // For waits of keys that no worker has, also if this is dropped.
        let _stops = stopping.clone().drop_guard();
        let waiting = TaskTracker::new();
        let (deadline, for_all) = (settings.own_writes_deadline, settings.after_all_writes);
        let reconciler = Arc::new(Reconciler {
            shared: Arc::clone(&shared),
            own_writes: Arc::clone(&own_writes),
            waits: Waits { deadline, for_all, tasks: waiting.clone() },
            gate: gate.clone(),
            resource: resource.clone(),
            objects: objects.clone(),
            state: Arc::clone(&state),
            reconcile: Arc::clone(&reconcile),
            timeout,
            stopping: stopping.clone(),
            called_at,
        });
        let mut workers = JoinSet::new();
        for _ in 0..concurrency {
            workers.spawn(Arc::clone(&reconciler).work());
        }
        shared.phase.send_replace(Phase::Running);

        let ended = tokio::select! {
            biased;
            () = &mut shutdown => Ok(()),
            Some(ended) = feeding.join_next() => Err(informer_failed(unless_panicked(ended))),
            // Workers end when they are told to; but only a limiter's panics are not caught.
            Some(ended) = workers.join_next() => {
                unless_panicked(ended);
                return Ok(());
            }
            why = gate.lost() => {
                tracing::warn!(controller = name, "reconciles are cancelled: {why}");
                stopping.cancel();
                cancel(&mut workers).await;
                own_writes.forget_all();
                continue;
            }
        };
        shared.phase.send_replace(Phase::ShuttingDown);
        stopping.cancel();
        shared.queue().shutdown();
        waiting.close();
        let deadline = settings.shutdown_deadline;
        return ended.and(finish(&shared, workers, &waiting, deadline, gate.lost()).await);
    }
}

/// Why a term did not begin, and will not.
enum NoTerm {
    Over(NotLeader),
    Informer(Error),
}

impl NoTerm {
    fn of(self, controller: &str) -> RunError {
        let controller = controller.to_owned();
        match self {
            Self::Over(error) => RunError::NotLeader { controller, error },
            Self::Informer(error) => RunError::Informer { controller, error },
        }
    }
}

/// Waits until this process leads and its informers show what was written before.
async fn begin_term(
    leadership: &Leadership,
    own_writes: &OwnWrites,
    sources: &[Arc<dyn Source>],
) -> Result<Term, NoTerm> {
    loop {
        let term = leadership.wait_until_leading().await.map_err(NoTerm::Over)?;
        own_writes.forget_all();
        let refreshes = try_join_all(sources.iter().map(|source| source.refresh()));
        tokio::select! {
            biased;
            _ = term.lost() => {}
            refreshed = refreshes => {
                refreshed.map_err(NoTerm::Informer)?;
                return Ok(term);
            }
        }
    }
}

/// Cancels workers, and waits for them unless they block.
async fn cancel(workers: &mut JoinSet<()>) {
    workers.abort_all();
    let ended = async { while workers.join_next().await.is_some() {} };
    _ = timeout(CANCELLED, ended).await;
}

fn unless_panicked<O>(ended: Result<O, JoinError>) -> O {
    ended.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

/// Starts the informers, and waits until all have synced.
async fn start(sources: &[Arc<dyn Source>]) -> Result<(), Error> {
    sources.iter().for_each(|source| source.start());
    try_join_all(sources.iter().map(|source| source.prepare())).await?;
    try_join_all(sources.iter().map(|source| source.synced())).await.map(drop)
}

async fn saying_what_it_waits_for<O>(shared: &Shared, wait: impl Future<Output = O>) -> O {
    let mut wait = std::pin::pin!(wait);
    tokio::select! {
        biased;
        done = &mut wait => return done,
        () = sleep(SAY_WAITING) => {}
    }
    let phase = shared.status().phase;
    tracing::warn!(controller = shared.name(), "does not reconcile yet: {phase}");
    wait.await
}

/// A task that puts keys into the queue, and ends with the first informer that does. One for all
/// informers: it does little for each event, and needs no thread.
fn feed(
    shared: &Arc<Shared>,
    sources: &[Arc<dyn Source>],
) -> Result<impl Future<Output = Error> + Send + 'static, Error> {
    let of = |source: &Arc<dyn Source>| -> Result<BoxStream<'static, Option<Error>>, Error> {
        let (fed, source) = (source.feed(shared)?, Arc::clone(source));
        let end = stream::once(async move { Some(source.stopped()) });
        Ok(fed.map(|()| None).chain(end).boxed())
    };
    let mut events = select_all(sources.iter().map(of).collect::<Result<Vec<_>, Error>>()?);
    Ok(async move {
        loop {
            // A store with many objects lets others run as well.
            consume_budget().await;
            match events.next().await {
                Some(None) => {}
                Some(Some(stopped)) => return stopped,
                None => pending().await,
            }
        }
    })
}

/// Lets running reconciles end, within the deadline and while this process leads.
async fn finish(
    shared: &Shared,
    mut workers: JoinSet<()>,
    waiting: &TaskTracker,
    deadline: Duration,
    lost: impl Future<Output = NotLeader>,
) -> Result<(), RunError> {
    let ended = async {
        while workers.join_next().await.is_some() {}
        waiting.wait().await;
    };
    tokio::select! {
        biased;
        () = ended => return Ok(()),
        () = sleep(deadline) => {}
        why = lost => {
            tracing::warn!(controller = shared.name(), "reconciles are cancelled: {why}");
        }
    }
    let keys = shared.meter.running().into_iter().map(|running| running.key).collect();
    cancel(&mut workers).await;
    Err(RunError::Cancelled { controller: shared.name().to_owned(), keys })
}
