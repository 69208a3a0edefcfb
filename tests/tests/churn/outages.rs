//! What an informer's status said of outages.

use std::mem::discriminant;
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use informer::{InformerState, SharedInformer};
use tokio::sync::watch;
use tokio::time::timeout;

/// The states that an informer went through, as its status told them.
#[derive(Debug)]
pub(crate) struct Told {
    name: &'static str,
    /// One entry for each change of the kind of state, the newest last.
    states: watch::Receiver<Vec<InformerState>>,
}

/// An outage that began.
#[derive(Clone, Copy)]
pub(crate) struct Outage {
    began: SystemTime,
    /// How many states had been told before.
    before: usize,
}

impl Told {
    /// Follows the status of an informer, which it does not keep alive.
    pub(crate) fn by<T: Send + Sync + 'static>(
        name: &'static str,
        informer: &SharedInformer<T>,
    ) -> Self {
        let mut changes = informer.status_changes();
        let (told, states) = watch::channel(Vec::<InformerState>::new());
        tokio::spawn(async move {
            while let Some(status) = changes.next().await {
                told.send_modify(|states| match states.last_mut() {
                    Some(last) if discriminant(last) == discriminant(&status.state) => {
                        *last = status.state
                    }
                    _ => states.push(status.state),
                });
            }
        });
        Self { name, states }
    }

    /// Says that an outage begins now.
    pub(crate) fn outage(&self) -> Outage {
        Outage { began: SystemTime::now(), before: self.states.borrow().len() }
    }

    /// Waits until the status tells of the outage, with a cause.
    pub(crate) async fn of(&self, outage: Outage, deadline: Duration) -> anyhow::Result<()> {
        let mut states = self.states.clone();
        let told = timeout(
            deadline,
            states.wait_for(|states| states[outage.before..].iter().any(is_outage)),
        );
        let told = told.await.map(drop);
        told.with_context(|| {
            format!("{} did not tell of the outage: {:?}", self.name, self.since(outage))
        })
    }

    /// Waits until the status tells that the informer watches again, and checks that the errors of
    /// the outage are among the recent ones, by name.
    pub(crate) async fn recovered<T: Send + Sync + 'static>(
        &self,
        informer: &SharedInformer<T>,
        outage: Outage,
        deadline: Duration,
    ) -> anyhow::Result<()> {
        let mut states = self.states.clone();
        let told = timeout(deadline, states.wait_for(|states| is_over(&states[outage.before..])));
        let told = told.await.map(drop);
        told.with_context(|| {
            format!("{} does not watch again: {:?}", self.name, self.since(outage))
        })?;
        let errors = informer.status().recent_errors;
        let resource = &informer.resource().plural;
        let named = errors
            .iter()
            .any(|error| error.at >= outage.began && error.message.contains(resource.as_str()));
        ensure!(
            named,
            "no recent error of {} names the outage since {:?}: {errors:#?}",
            self.name,
            outage.began
        );
        Ok(())
    }

    /// How many outages were told.
    pub(crate) fn outages(&self) -> usize {
        self.states.borrow().iter().filter(|state| is_outage(state)).count()
    }

    fn since(&self, outage: Outage) -> Vec<InformerState> {
        self.states.borrow()[outage.before..].to_vec()
    }
}

fn is_outage(state: &InformerState) -> bool {
    matches!(state, InformerState::BackingOff { cause, .. } if !cause.message.is_empty())
}

fn is_over(states: &[InformerState]) -> bool {
    let outage = states.iter().position(is_outage);
    outage.is_some_and(|at| {
        states[at..].iter().any(|state| matches!(state, InformerState::Watching { .. }))
    }) && matches!(states.last(), Some(InformerState::Watching { .. }))
}
