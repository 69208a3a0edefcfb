//! The controller on kube-runtime.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use futures_util::StreamExt;
use informer_peer_controllers::{
    Arguments, Countdown, Set, SetStatus, say_failed, say_hello, say_reconcile,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use kube_runtime::WatchStreamExt;
use kube_runtime::controller::{Action, Config, Controller};
use kube_runtime::reflector::{self, Store};
use kube_runtime::watcher::{self, watcher};

/// What reconciles share.
struct Context {
    client: Client,
    children: Store<ConfigMap>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    say_hello("kube-runtime", "5.0.0");
    ensure!(arguments.lease.is_none(), "kube-runtime has no leader election");
    if let Some(pods) = arguments.five {
        return five(&arguments, pods).await;
    }
    let client = arguments.client()?;
    let sets = Api::<Set>::namespaced(client.clone(), &arguments.namespace);
    let api = Api::<ConfigMap>::namespaced(client.clone(), &arguments.namespace);
    let (children, writer) = reflector::store();
    let changed = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .touched_objects();
    Controller::new(sets, watcher::Config::default())
        .owns_stream(changed)
        .with_config(Config::default().concurrency(arguments.concurrency))
        .run(reconcile, error_policy, Arc::new(Context { client, children }))
        .for_each(|_| ready(()))
        .await;
    Ok(())
}

async fn reconcile(set: Arc<Set>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
    let uid = set.metadata.uid.as_ref();
    let is_own = |child: &Arc<ConfigMap>| {
        let mut owners = child.owner_references().iter();
        owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid)
    };
    // The store of the children may not be filled yet.
    _ = ctx.children.wait_until_ready().await;
    let own: Vec<_> = ctx.children.state().into_iter().filter(is_own).collect();
    say_reconcile(&set, own.iter().map(|child| &**child));
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let api = Api::<ConfigMap>::namespaced(ctx.client.clone(), namespace);
    for _ in own.len()..set.spec.replicas {
        let metadata = ObjectMeta {
            generate_name: Some("child-".to_owned()),
            owner_references: set.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        };
        api.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await?;
    }
    for child in own.iter().skip(set.spec.replicas) {
        let preconditions = Preconditions { uid: child.uid(), resource_version: None };
        let params = DeleteParams::default().preconditions(preconditions);
        match api.delete(&child.name_any(), &params).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            other => drop(other?),
        }
    }
    let replicas = own.len();
    let observed_generation = set.metadata.generation;
    let status = Some(SetStatus { replicas, observed_generation });
    if set.status != status {
        let sets = Api::<Set>::namespaced(ctx.client.clone(), namespace);
        let set = Set { status, ..(*set).clone() };
        sets.replace_status(&set.name_any(), &PostParams::default(), &set).await?;
    }
    Ok(Action::await_change())
}

fn error_policy(_: Arc<Set>, error: &kube::Error, _: Arc<Context>) -> Action {
    say_failed(error);
    Action::requeue(Duration::from_secs(1))
}

async fn five(arguments: &Arguments, count: usize) -> Result<()> {
    let countdown = Arc::new(Countdown::new(count));
    for _ in 1..=5 {
        let pods = Api::<Pod>::namespaced(arguments.client()?, &arguments.namespace);
        let reconcile = |_, countdown: Arc<Countdown>| async move {
            countdown.count();
            Ok::<_, Infallible>(Action::await_change())
        };
        let controller = Controller::new(pods, watcher::Config::default())
            .with_config(Config::default().concurrency(arguments.concurrency))
            .run(reconcile, |_, _, _| Action::await_change(), countdown.clone())
            .for_each(|_| ready(()));
        tokio::spawn(controller);
    }
    pending().await
}
