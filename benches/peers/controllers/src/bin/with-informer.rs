//! The controller on informer.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use anyhow::Result;
use clap::Parser;
use informer::controller::{Action, Context};
use informer::leader_election::{LeaderElectionConfig, LeaderElector};
use informer::{Controller, SharedInformer, SharedInformerFactory};
use informer_peer_controllers::{
    Arguments, Countdown, Set, SetStatus, say_failed, say_hello, say_reconcile,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Resource;
use kube::api::ObjectMeta;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    say_hello("informer", env!("CARGO_PKG_VERSION"));
    if let Some(pods) = arguments.five {
        return five(&arguments, pods).await;
    }
    let client = arguments.client()?;
    let factory = SharedInformerFactory::builder(client).namespace(&arguments.namespace).build();
    let (sets, children) = (factory.informer::<Set>()?, factory.informer::<ConfigMap>()?);
    let mut controller = Controller::new(factory.client().clone(), &sets)
        .owns(&children)
        .concurrency(arguments.concurrency.into());
    if let Some(lease) = &arguments.lease {
        let config = LeaderElectionConfig::new(&arguments.namespace, lease, &arguments.agent);
        let elector = LeaderElector::new(factory.client().clone(), config)?;
        controller = controller.leader_election(elector.leadership());
        tokio::spawn(elector.run(pending()));
    }
    let told = |set, ctx| async { reconcile(set, ctx).await.inspect_err(say_failed) };
    Ok(controller.run(told, children).await?)
}

async fn reconcile(set: Arc<Set>, ctx: Context<SharedInformer<ConfigMap>>) -> Result<Action> {
    let own = ctx.owned(ctx.state())?;
    say_reconcile(&set, own.iter().map(|child| &**child));
    for _ in own.len()..set.spec.replicas {
        let metadata = ObjectMeta {
            namespace: set.metadata.namespace.clone(),
            generate_name: Some("child-".to_owned()),
            owner_references: set.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        };
        ctx.create(&ConfigMap { metadata, ..ConfigMap::default() }).await?;
    }
    for child in own.iter().skip(set.spec.replicas) {
        match ctx.delete(&**child).await {
            Err(error) if error.is_not_found() => {}
            other => other?,
        }
    }
    let replicas = own.len();
    let observed_generation = set.metadata.generation;
    let status = Some(SetStatus { replicas, observed_generation });
    if set.status != status {
        ctx.replace_status(&Set { status, ..(*set).clone() }).await?;
    }
    Ok(Action::await_change())
}

async fn five(arguments: &Arguments, count: usize) -> Result<()> {
    let factory =
        SharedInformerFactory::builder(arguments.client()?).namespace(&arguments.namespace).build();
    let pods = factory.informer::<Pod>()?;
    let countdown = Arc::new(Countdown::new(count));
    for number in 1..=5 {
        let controller = Controller::new(factory.client().clone(), &pods)
            .name(format!("pod-{number}"))
            .concurrency(arguments.concurrency.into());
        let reconcile = |_: Arc<Pod>, ctx: Context<Arc<Countdown>>| async move {
            ctx.state().count();
            Ok::<_, Infallible>(Action::await_change())
        };
        tokio::spawn(controller.run(reconcile, countdown.clone()));
    }
    pending().await
}
