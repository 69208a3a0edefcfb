//! Leader election through an outage, as an API server stores Leases.

use std::time::Duration;

use anyhow::{Context, ensure};
use informer::leader_election::{
    LeaderElectionConfig, LeaderElector, Leadership, Loss, NotLeaderCause,
};
use informer_tests::on_both_arms;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Far longer than any election here takes.
const LONG: Duration = Duration::from_secs(60);

struct Candidate {
    leadership: Leadership,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Candidate {
    fn start(client: Client, namespace: &str, identity: &str) -> anyhow::Result<Self> {
        let config = LeaderElectionConfig::new(namespace, "elected", identity)
            .lease_duration(Duration::from_secs(4))
            .renew_deadline(Duration::from_secs(2))
            .retry_period(Duration::from_millis(500));
        let elector = LeaderElector::new(client, config)?;
        let leadership = elector.leadership();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(elector.run(async { _ = stopped.await }));
        Ok(Self { leadership, stop, task })
    }

    async fn leads(&self) -> anyhow::Result<informer::leader_election::Term> {
        let leads = timeout(LONG, self.leadership.wait_until_leading()).await;
        Ok(leads.with_context(|| format!("{:?}", self.leadership.status()))??)
    }

    async fn shut_down(self) -> anyhow::Result<()> {
        _ = self.stop.send(());
        Ok(timeout(LONG, self.task).await??)
    }
}

async fn spec(client: &Client, namespace: &str) -> anyhow::Result<LeaseSpec> {
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get("elected").await?;
    lease.spec.context("a Lease has a spec")
}

on_both_arms!(own another_leads_during_an_outage_and_after_a_release, |arm| async {
    let namespace = arm.namespace("election").await?;
    let first = Candidate::start(arm.client().await?, &namespace, "first")?;
    let term = first.leads().await?;
    let second = Candidate::start(arm.direct().clone(), &namespace, "second")?;
    let acquired = spec(arm.direct(), &namespace).await?;
    ensure!(acquired.holder_identity.as_deref() == Some("first"), "{acquired:?}");

    // The first one goes through the proxy, the second one does not.
    arm.begin_outage().await;
    let why = timeout(LONG, term.lost()).await?;
    assert_eq!(why.cause, NotLeaderCause::Lost(Loss::RenewDeadline));
    second.leads().await?;
    ensure!(!first.leadership.is_leader(), "two lead");
    let taken = spec(arm.direct(), &namespace).await?;
    assert_eq!(taken.holder_identity.as_deref(), Some("second"));
    assert_eq!(taken.lease_transitions, acquired.lease_transitions.map(|it| it + 1));

    arm.end_outage().await;
    second.shut_down().await?;
    first.leads().await?;
    first.shut_down().await?;
    let released = spec(arm.direct(), &namespace).await?;
    assert_eq!(released.holder_identity.as_deref().unwrap_or_default(), "", "{released:?}");
    Ok(())
});

on_both_arms!(a_refusal_is_told_with_the_rule_that_is_needed, |arm| async {
    let namespace = arm.namespace("refused").await?;
    let candidate = Candidate::start(arm.client_as("viewer").await?, &namespace, "viewer")?;
    let mut leadership = candidate.leadership.clone();
    let refused = async {
        loop {
            if let Some(error) = leadership.status().last_error {
                return error.message;
            }
            leadership.status_changed().await;
        }
    };
    let message = timeout(LONG, refused).await?;
    ensure!(message.contains("resources: [leases], verbs: [get, create, update]"), "{message}");
    ensure!(!leadership.is_leader(), "without a right to");
    candidate.shut_down().await
});
