//! One informer, measured from the inside.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures_util::StreamExt;
use informer::source::WireFormat;
use informer::{
    InformerOptions, InformerState, Representation, SharedInformer, SharedInformerFactory, Status,
};
use k8s_openapi::api::core::v1::Pod;

use super::Target;
use crate::figures::{Figures, Initial, Kept, Phase, Wire};
use crate::meter::{Meter, print};

/// How long an informer may take to list.
const PATIENCE: Duration = Duration::from_secs(300);

/// An informer of Pods without a handler.
#[derive(Debug, Args)]
pub struct Sync {
    kept: Kept,
    initial: Initial,
    wire: Wire,
    /// A URL, the path of a kubeconfig, or `recording:` and the path of one
    target: Target,
    /// Count the heap, and go on until a relist, which the parent must force
    #[arg(long)]
    counted: bool,
}

impl Sync {
    /// Syncs and prints the figures. If the heap is counted, does so again after the relist that
    /// the parent forces.
    pub(super) async fn run(self) -> Result<()> {
        let factory = SharedInformerFactory::builder(self.target.client().await?).build();
        match self.kept {
            Kept::Typed => self.measure(&factory, |with| factory.informer_with::<Pod>(with)).await,
            Kept::Lazy => self.measure(&factory, |with| factory.lazy_with::<Pod>(with)).await,
            Kept::Metadata => self.measure(&factory, |with| factory.metadata::<Pod>(with)).await,
        }
    }

    fn options<T>(&self) -> InformerOptions<T>
    where
        Representation<T>: Default,
    {
        InformerOptions::new()
            .page_size(None)
            .streaming_lists(self.initial == Initial::WatchList)
            .wire_format(match self.wire {
                Wire::Json => WireFormat::Json,
                Wire::Protobuf => WireFormat::Protobuf,
            })
    }

    async fn measure<T: Send + std::marker::Sync + 'static>(
        &self,
        factory: &SharedInformerFactory,
        informer: impl FnOnce(InformerOptions<T>) -> Result<SharedInformer<T>, informer::Error>,
    ) -> Result<()>
    where
        Representation<T>: Default,
    {
        let mut meter = Meter::start(self.counted);
        let informer = informer(self.options())?;
        factory.start();
        informer.synced_within(PATIENCE).await?;
        meter.stop();
        let first = listed(&informer, &mut meter, Phase::First, 0).await?;
        print(&first)?;
        if self.counted {
            let seen = first.decoded.unwrap_or_default();
            print(&listed(&informer, &mut meter, Phase::Relist, seen).await?)?;
        }
        Ok(())
    }
}

/// Waits for a list of the phase and the watch after it, and measures. `seen` objects were decoded
/// before it.
async fn listed<T: Send + std::marker::Sync + 'static>(
    informer: &SharedInformer<T>,
    meter: &mut Meter,
    phase: Phase,
    seen: u64,
) -> Result<Figures> {
    let status = tokio::time::timeout(PATIENCE, status_after(informer, phase, seen)).await;
    let status = status
        .with_context(|| format!("no {phase:?} after 5 minutes: {:?}", informer.status()))??;
    if phase == Phase::Relist {
        meter.stop();
    }
    let counters = status.counters;
    ensure!(counters.undecodable == 0, "undecodable: {:?}", status.stale);
    let figures = meter.finish(phase, status.objects).await?;
    Ok(Figures { bytes: Some(counters.bytes), decoded: Some(counters.decoded - seen), ..figures })
}

async fn status_after<T: Send + std::marker::Sync + 'static>(
    informer: &SharedInformer<T>,
    phase: Phase,
    seen: u64,
) -> Result<Status> {
    let mut changes = informer.status_changes();
    loop {
        let status = changes.next().await.context("the informer stopped")?;
        let listed = status.counters.decoded + status.counters.unchanged - seen;
        if matches!(status.state, InformerState::Watching { .. }) && listed >= status.objects as u64
        {
            return Ok(status);
        }
        let failed =
            matches!(status.state, InformerState::Stopped { .. } | InformerState::Degraded { .. });
        if failed && phase == Phase::First {
            bail!("the informer does not sync: {:?}", status.recent_errors);
        }
    }
}
