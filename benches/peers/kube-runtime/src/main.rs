//! The peer that informer is put beside in Rust: kube-runtime's watcher and reflector as they come,
//! in a process of their own, which prints the same lines as ours.
//!
//! ```text
//! informer-peer-kube-runtime list KUBECONFIG [--counted | --events]
//! ```

use anyhow::{Context, Result};
use clap::Parser;
use futures_util::{Stream, StreamExt};
use informer_benches::client::Target;
use informer_benches::events::{Recorder, SENT};
use informer_benches::figures::{Initial, Phase};
use informer_benches::meter::{Meter, print};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt};
use kube_runtime::WatchStreamExt;
use kube_runtime::reflector;
use kube_runtime::watcher::{self, Config, Event, watcher};

/// Syncs a reflector of all Pods, which drops managedFields, and prints what it took.
#[derive(Debug, Parser)]
struct Arguments {
    /// `list` is in pages of 500, as is the default
    initial: Initial,
    /// The path of a kubeconfig, or the URL of a server that wants neither TLS nor a token
    target: Target,
    /// Count the heap, and go on until a relist, which the parent must force
    #[arg(long)]
    counted: bool,
    /// Go on until the last of the updates, which the parent must have written
    #[arg(long)]
    events: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let pods = Api::<Pod>::all(arguments.target.client().await?);
    let config = match arguments.initial {
        Initial::List => Config::default(),
        Initial::WatchList => Config::default().streaming_lists(),
    };
    let mut meter = Meter::start(arguments.counted || arguments.events);
    let (store, writer) = reflector::store();
    let mut events = watcher(pods, config)
        .default_backoff()
        .modify(|pod| pod.managed_fields_mut().clear())
        .reflect(writer)
        .boxed();
    listed(&mut events).await?;
    meter.stop();
    let first = meter.finish(Phase::First, store.len()).await?;
    if arguments.events {
        let (recorder, figures) = Recorder::new();
        recorder.begin();
        print(&first)?;
        tokio::select! {
            failed = record(&mut events, &recorder) => failed?,
            figures = figures => print(&figures?)?,
        }
        return Ok(());
    }
    print(&first)?;
    if arguments.counted {
        listed(&mut events).await?;
        meter.stop();
        print(&meter.finish(Phase::Relist, store.len()).await?)?;
    }
    Ok(())
}

type Change = watcher::Result<Event<Pod>>;

/// Takes the time of each change.
async fn record(
    events: &mut (impl Stream<Item = Change> + Unpin),
    recorder: &Recorder,
) -> Result<()> {
    loop {
        match events.next().await.context("the watcher ended")? {
            Ok(Event::Apply(object)) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                recorder.record(name, object.annotations().get(SENT).map(String::as_str));
            }
            Ok(_) => {}
            Err(error) => eprintln!("kube-runtime: {error}"),
        }
    }
}

/// Goes on until a list is complete and in the store.
async fn listed(events: &mut (impl Stream<Item = Change> + Unpin)) -> Result<()> {
    loop {
        match events.next().await.context("the watcher ended")? {
            Ok(Event::InitDone) => return Ok(()),
            Ok(_) => {}
            Err(error) => eprintln!("kube-runtime: {error}"),
        }
    }
}
