//! A synced informer while its objects change.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use informer::source::WireFormat;
use informer::{
    Event, InformerOptions, Lazy, Representation, SharedInformer, SharedInformerFactory,
};
use k8s_openapi::api::core::v1::Pod;

use super::Target;
use crate::events::{Recorder, SENT};
use crate::figures::{Kept, Phase};
use crate::meter::{Meter, print};

/// How long an informer may take to list.
const PATIENCE: Duration = Duration::from_secs(300);

/// An informer of Pods whose handler takes the time.
#[derive(Debug, Args)]
pub struct Events {
    kept: Kept,
    /// A URL or the path of a kubeconfig
    target: Target,
}

impl Events {
    /// Prints the figures of the first list, once it is at rest, then those of the updates.
    pub(super) async fn run(self) -> Result<()> {
        let factory = SharedInformerFactory::builder(self.target.client().await?).build();
        match self.kept {
            Kept::Typed => {
                let informer = factory.informer_with::<Pod>(options())?;
                measure(&factory, &informer, |recorder, pod| {
                    let meta = &pod.metadata;
                    let sent =
                        meta.annotations.as_ref().and_then(|annotations| annotations.get(SENT));
                    recorder
                        .record(meta.name.as_deref().unwrap_or_default(), sent.map(String::as_str));
                })
                .await
            }
            Kept::Lazy => {
                let informer = factory.lazy_with::<Pod>(options())?;
                measure(&factory, &informer, |recorder, pod: &Lazy<Pod>| {
                    recorder.record(&pod.name(), pod.annotation(SENT).as_deref());
                })
                .await
            }
            Kept::Metadata => bail!("events are measured for typed and lazy Pods"),
        }
    }
}

fn options<T>() -> InformerOptions<T>
where
    Representation<T>: Default,
{
    InformerOptions::new().wire_format(WireFormat::Protobuf)
}

async fn measure<T: Send + Sync + 'static>(
    factory: &SharedInformerFactory,
    informer: &SharedInformer<T>,
    record: impl Fn(&Recorder, &T) + Send + 'static,
) -> Result<()> {
    let (recorder, figures) = Recorder::new();
    let recorder = Arc::new(recorder);
    let recording = Arc::clone(&recorder);
    let handler = informer.add_handler(|handlers| {
        handlers.on_event(move |event: &Event<T>| {
            if let Event::Added { object, .. } | Event::Updated { new: object, .. } = event {
                record(&recording, object);
            }
        })
    })?;
    let mut meter = Meter::start(true);
    factory.start();
    let objects = informer.synced_within(PATIENCE).await?.len();
    handler.synced_within(PATIENCE).await?;
    meter.stop();
    let first = meter.finish(Phase::First, objects).await?;
    recorder.begin();
    print(&first)?;
    print(&figures.await?)?;
    let counters = informer.status().counters;
    if counters.undecodable > 0 {
        bail!("undecodable: {}", counters.undecodable);
    }
    Ok(())
}
