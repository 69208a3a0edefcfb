//! The task of a candidate: sends what the election asks for, and publishes whether it leads.

use std::fmt;
use std::pin::pin;
use std::time::SystemTime;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use informer_core::leader_election::{
    Action, ElectionConfig, ElectionConfigError, LeaderElection, Loss,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::lease::{Answer, LeaseClient, input, system_time, verb, wall};
use super::live::Live;
use super::status::{ElectionError, loss_in_words};
use super::{LeaderElectionConfig, Leadership};
use crate::seed;

/// A candidate of an election (client-go's `LeaderElector`): takes part while
/// [`run`](Self::run) is polled. See the [module](super) for an example.
pub struct LeaderElector {
    election: LeaderElection,
    client: LeaseClient,
    /// Where the election's time begins.
    epoch: Instant,
    /// The Lease as the server last returned it, for what is not the election's.
    known: Option<Box<Lease>>,
    live: Publisher,
}

/// Publishes what handles see. Its drop ends leadership.
struct Publisher(watch::Sender<Live>);

impl LeaderElector {
    /// A candidate. It sends nothing before [`run`](Self::run).
    ///
    /// # Errors
    /// If the durations contradict each other, or the identity is empty.
    pub fn new(client: Client, config: LeaderElectionConfig) -> Result<Self, ElectionConfigError> {
        let LeaderElectionConfig {
            namespace,
            name,
            identity,
            lease_duration,
            renew_deadline,
            retry_period,
        } = config;
        let live = Live::new(format!("{namespace}/{name}").into(), identity.as_str().into());
        let seed = seed::random();
        let config =
            ElectionConfig { identity, lease_duration, renew_deadline, retry_period, seed };
        Ok(Self {
            election: LeaderElection::new(config)?,
            client: LeaseClient::new(client, namespace, name),
            epoch: Instant::now(),
            known: None,
            live: Publisher(watch::Sender::new(live)),
        })
    }

    /// A handle that says whether this process leads.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        Leadership { live: self.live.0.subscribe() }
    }

    /// Takes part in the election until `shutdown` is ready. Then leadership ends at once, and the
    /// Lease is released, so that another candidate need not wait for its end; a server that does
    /// not answer delays the return by half the renew deadline at most.
    ///
    /// After leadership is lost, the candidate takes part again.
    ///
    /// # Cancel safety
    /// Dropping the future ends leadership at once; the Lease is not released, and runs out.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut is_leaving = false;
        let mut request: Option<(&'static str, BoxFuture<'static, Answer>)> = None;
        loop {
            while let Some(action) = self.election.poll(self.now(), wall()) {
                let abandoned = request.take();
                match action {
                    Action::Send(body) => {
                        let verb = verb(&body);
                        let answer = self.client.clone().send(body, self.known.clone());
                        request = Some((verb, answer.boxed()));
                    }
                    Action::Abandon => {
                        if let Some((verb, _)) = abandoned
                            && !is_leaving
                        {
                            let timeout = self.election.request_timeout();
                            self.note_error(self.client.unanswered(verb, timeout));
                        }
                    }
                }
            }
            // Before the next request is sent: a release must not overtake the end of leadership.
            self.publish();
            if self.election.is_finished() {
                return;
            }
            let deadline = self.epoch + self.election.deadline();
            let verb = request.as_ref().map(|(verb, _)| *verb);
            let answer = OptionFuture::from(request.as_mut().map(|(_, answer)| answer));
            tokio::select! {
                biased;
                () = &mut shutdown, if !is_leaving => {
                    is_leaving = true;
                    self.election.release(self.now());
                }
                Some(answer) = answer => {
                    request = None;
                    self.answered(verb, answer);
                }
                () = sleep_until(deadline) => {}
            }
        }
    }

    fn answered(&mut self, verb: Option<&str>, answer: Answer) {
        let input = input(&answer);
        match answer {
            Answer::Lease(lease) => self.known = Some(lease),
            Answer::NotFound { message } => {
                self.known = None;
                // A Lease that is missing will be created; a missing namespace will not.
                if verb == Some("create") {
                    self.note_error(message);
                }
            }
            Answer::Conflict => {}
            Answer::Failed { message } => self.note_error(message),
        }
        self.election.handle(self.now(), input);
    }

    fn publish(&self) {
        let election = &self.election;
        let until = election.leads_until().map(|until| self.epoch + until);
        self.live.0.send_modify(|live| {
            let record = election.lease().map(|lease| &lease.record);
            live.leader = record
                .map(|record| record.holder_identity.clone())
                .filter(|holder| !holder.is_empty());
            live.since = record.and_then(|record| record.acquire_time).and_then(system_time);
            live.transitions = record.map_or(0, |record| record.lease_transitions);
            match until {
                Some(until) => {
                    if live.extend(Instant::now(), until) {
                        tracing::info!(lease = %live.lease, identity = %live.identity, "this process leads");
                    }
                }
                None => {
                    let loss = election.loss().cloned().unwrap_or(Loss::RenewDeadline);
                    let why = loss_in_words(&loss);
                    if live.end(loss) {
                        tracing::warn!(lease = %live.lease, identity = %live.identity, "this process leads no more: {why}");
                    }
                }
            }
        });
    }

    fn note_error(&self, message: String) {
        self.live.0.send_modify(|live| {
            let is_new = live.last_error.as_ref().is_none_or(|last| last.message != message);
            match is_new {
                true => tracing::warn!(lease = %live.lease, "{message}"),
                false => tracing::debug!(lease = %live.lease, "{message}"),
            }
            live.last_error = Some(ElectionError { at: SystemTime::now(), message });
        });
    }

    fn now(&self) -> std::time::Duration {
        Instant::now().saturating_duration_since(self.epoch)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.0.send_modify(|live| {
            live.end(Loss::Released);
            live.is_over = true;
        });
    }
}

impl fmt::Debug for LeaderElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElector").field("election", &self.election).finish_non_exhaustive()
    }
}
