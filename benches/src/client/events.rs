//! A synced informer, or a drain, while its objects change.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use informer::source::WireFormat;
use informer::{Event, InformerOptions, Lazy, SharedInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use memchr::memmem;

use super::fetch::{END, INITIAL_EVENTS, keep_tail};
use super::{Fetch, Target};
use crate::events::{LAST, Recorder, SENT, print_bursts};
use crate::figures::{Figures, Initial, Kept, Phase, Wire};
use crate::meter::{Meter, print};

/// How long an informer may take to list.
const PATIENCE: Duration = Duration::from_secs(300);

/// An informer of Pods whose handler takes the time.
#[derive(Debug, Args)]
pub struct Events {
    kept: Kept,
    wire: Wire,
    /// A URL or the path of a kubeconfig
    target: Target,
    /// End after so many bursts
    #[arg(long, default_value_t = 1)]
    bursts: usize,
    /// Count allocations
    #[arg(long)]
    counted: bool,
    /// Take them from the informer's stream, in a task
    #[arg(long)]
    stream: bool,
}

/// A watch of Pods whose bytes are thrown away.
#[derive(Debug, Args)]
pub struct EventsDrain {
    wire: Wire,
    /// A URL or the path of a kubeconfig
    target: Target,
    /// End after so many bursts
    #[arg(long, default_value_t = 1)]
    bursts: usize,
    /// Count allocations
    #[arg(long)]
    counted: bool,
}

impl Events {
    /// Prints the figures of the first list, once it is at rest, then those of each burst.
    pub(super) async fn run(self) -> Result<()> {
        let factory = SharedInformerFactory::builder(self.target.client().await?).build();
        match self.kept {
            Kept::Typed => {
                let informer = factory.informer_with::<Pod>(self.options())?;
                self.measure(&factory, &informer, |recorder, pod| {
                    let meta = &pod.metadata;
                    let sent = meta.annotations.as_ref().and_then(|annotations| annotations.get(SENT));
                    recorder.record(meta.name.as_deref().unwrap_or_default(), sent.map(String::as_str));
                })
                .await
            }
            Kept::Lazy => {
                let informer = factory.lazy_with::<Pod>(self.options())?;
                self.measure(&factory, &informer, |recorder, pod: &Lazy<Pod>| {
                    recorder.record(&pod.name(), pod.annotation(SENT).as_deref());
                })
                .await
            }
            _ => bail!("events are measured for typed and lazy Pods"),
        }
    }

    fn options<T>(&self) -> InformerOptions<T> {
        InformerOptions::new().wire_format(match self.wire {
            Wire::Json => WireFormat::Json,
            Wire::Protobuf => WireFormat::Protobuf,
        })
    }

    async fn measure<T: Send + Sync + 'static>(
        &self,
        factory: &SharedInformerFactory,
        informer: &SharedInformer<T>,
        record: impl Fn(&Recorder, &T) + Send + 'static,
    ) -> Result<()> {
        let (recorder, mut figures) = Recorder::new();
        let recorder = Arc::new(recorder);
        let handle = {
            let recorder = recorder.clone();
            move |event: &Event<T>| {
                if let Event::Added { object, .. } | Event::Updated { new: object, .. } = event {
                    record(&recorder, object);
                }
            }
        };
        let handler = if self.stream {
            let mut events = informer.events()?;
            let registration = events.registration();
            tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    handle(&event);
                }
            });
            registration
        } else {
            informer.add_handler(|handlers| handlers.on_event(handle))?
        };
        let mut meter = Meter::start(true);
        factory.start();
        let objects = informer.synced_within(PATIENCE).await?.len();
        handler.synced_within(PATIENCE).await?;
        meter.stop();
        let first = meter.finish(Phase::First, objects).await?;
        recorder.begin(self.counted);
        print(&first)?;
        print_bursts(&recorder, &mut figures, self.bursts).await?;
        let counters = informer.status().counters;
        if counters.undecodable > 0 {
            bail!("undecodable: {}", counters.undecodable);
        }
        Ok(())
    }
}

impl EventsDrain {
    /// As [`Events::run`], and throws everything away.
    pub(super) async fn run(self) -> Result<()> {
        let client = self.target.client().await?;
        let fetch = Fetch { initial: Initial::WatchList, wire: self.wire, metadata: false, page_size: None };
        let (recorder, mut figures) = Recorder::new();
        let mut meter = Meter::start(true);
        let mut body = fetch.send(&client, INITIAL_EVENTS).await?.into_body().into_data_stream();
        let (mut tail, mut bytes) = (Vec::new(), 0);
        // Nothing follows what is waited for, so it is at the end of what has arrived.
        let mut until = async |found: &memmem::Finder<'_>| -> Result<u64> {
            loop {
                let chunk = body.next().await.context("the watch ended")??;
                recorder.received();
                bytes += chunk.len() as u64;
                keep_tail(&mut tail, &chunk);
                if found.find(&tail).is_some() {
                    tail.clear();
                    return Ok(bytes);
                }
            }
        };
        let received = until(&memmem::Finder::new(END)).await?;
        meter.stop();
        let first = meter.finish(Phase::Drain, 0).await?;
        recorder.begin(self.counted);
        print(&Figures { bytes: Some(received), ..first })?;
        let last = memmem::Finder::new(LAST);
        for _ in 0..self.bursts {
            until(&last).await?;
            recorder.end();
            print_bursts(&recorder, &mut figures, 1).await?;
        }
        Ok(())
    }
}
