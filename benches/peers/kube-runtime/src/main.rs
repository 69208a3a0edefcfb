//! The peer that informer is put beside in Rust: kube-runtime's watcher and reflector as they come, in a process of
//! their own, which prints the same lines as ours.
//!
//! ```text
//! informer-peer-kube-runtime typed list KUBECONFIG [--strip] [--counted] [--relist] [--bursts N]
//! ```

use anyhow::{Context, Result, bail};
use clap::Parser;
use futures_util::{Stream, StreamExt};
use informer_benches::client::Target;
use informer_benches::events::{Recorder, SENT, print_bursts};
use informer_benches::figures::{Initial, Kept, Phase};
use informer_benches::meter::{Meter, print};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{Api, Resource, ResourceExt};
use kube_runtime::WatchStreamExt;
use kube_runtime::reflector::store::Writer;
use kube_runtime::watcher::{self, Config, Event, watcher};

/// Syncs a reflector of all Pods and prints what it took.
#[derive(Debug, Parser)]
struct Arguments {
    kept: Kept,
    /// `list` is in pages of 500, as is the default
    initial: Initial,
    /// The path of a kubeconfig, or the URL of a server that wants neither TLS nor a token
    target: Target,
    /// Drop managedFields before objects are kept
    #[arg(long)]
    strip: bool,
    /// Count the heap
    #[arg(long)]
    counted: bool,
    /// Go on until a relist, which somebody else must force
    #[arg(long)]
    relist: bool,
    /// Go on for so many bursts of updates, which somebody else must write
    #[arg(long, default_value_t = 0)]
    bursts: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let client = arguments.target.client().await?;
    match arguments.kept {
        Kept::Typed => arguments.measure(Api::<Pod>::all(client), ()).await,
        Kept::Metadata => arguments.measure(Api::<PartialObjectMeta<Pod>>::all(client), ()).await,
        Kept::Dynamic => {
            let pods = ApiResource::erase::<Pod>(&());
            arguments.measure(Api::<DynamicObject>::all_with(client, &pods), pods).await
        }
        _ => bail!("kube-runtime keeps objects as typed, metadata or dynamic here"),
    }
}

impl Arguments {
    async fn measure<K>(&self, api: Api<K>, kind: K::DynamicType) -> Result<()>
    where
        K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync,
    {
        let config = match self.initial {
            Initial::List => Config::default(),
            Initial::WatchList => Config::default().streaming_lists(),
        };
        let strip = self.strip;
        let mut meter = Meter::start(self.counted || self.bursts > 0);
        let writer = Writer::new(kind);
        let store = writer.as_reader();
        let mut events = watcher(api, config)
            .default_backoff()
            .modify(move |object| {
                if strip {
                    object.managed_fields_mut().clear();
                }
            })
            .reflect(writer)
            .boxed();
        listed(&mut events).await?;
        meter.stop();
        print(&meter.finish(Phase::First, store.len()).await?)?;
        if self.relist {
            listed(&mut events).await?;
            meter.stop();
            print(&meter.finish(Phase::Relist, store.len()).await?)?;
        }
        if self.bursts > 0 {
            let (recorder, mut figures) = Recorder::new();
            recorder.begin(self.counted);
            tokio::select! {
                failed = record(&mut events, &recorder) => failed?,
                printed = print_bursts(&recorder, &mut figures, self.bursts) => printed?,
            }
        }
        Ok(())
    }
}

/// Takes the time of each change.
async fn record<K: Resource>(
    events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
    recorder: &Recorder,
) -> Result<()> {
    loop {
        match events.next().await.context("the watcher ended")? {
            Ok(Event::Apply(object)) => {
                let name = object.meta().name.as_deref().unwrap_or_default();
                recorder.record(name, object.annotations().get(SENT).map(String::as_str));
            }
            Ok(_) => {}
            Err(error) => eprintln!("kube-runtime: {error}"),
        }
    }
}

/// Goes on until a list is complete and in the store.
async fn listed<K>(events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin)) -> Result<()> {
    loop {
        match events.next().await.context("the watcher ended")? {
            Ok(Event::InitDone) => return Ok(()),
            Ok(_) => {}
            Err(error) => eprintln!("kube-runtime: {error}"),
        }
    }
}
