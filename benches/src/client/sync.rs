//! One informer, measured from the inside.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt;
use informer::{InformerOptions, InformerState, Resource, SharedInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;

use super::Sync;
use super::ten_fields::TenFields;
use crate::figures::{Figures, Initial, Kept, Phase};
use crate::meter::{Meter, print};

/// How long an informer may take to list.
const PATIENCE: Duration = Duration::from_secs(300);

impl Sync {
    /// Syncs and prints the figures, once for the first list and, if asked for, once for the relist that
    /// somebody forces after that.
    pub(super) async fn run(self) -> Result<()> {
        let factory = SharedInformerFactory::builder(self.target.client().await?).build();
        let pods = Resource::of::<Pod>();
        match self.kept {
            Kept::Typed => self.measure(&factory, |options| factory.informer_with::<Pod>(options)).await,
            Kept::Metadata => self.measure(&factory, |options| factory.metadata::<Pod>(options)).await,
            Kept::TenFields => {
                self.measure(&factory, |options| factory.informer_as::<TenFields>(pods, options)).await
            }
            Kept::Dynamic => {
                self.measure(&factory, |options| factory.informer_as::<DynamicObject>(pods, options)).await
            }
        }
    }

    async fn measure<T: Send + std::marker::Sync + 'static>(
        &self,
        factory: &SharedInformerFactory,
        informer: impl FnOnce(InformerOptions<T>) -> Result<SharedInformer<T>, informer::Error>,
    ) -> Result<()> {
        let options = InformerOptions::new().page_size(None);
        let options = options.streaming_lists(self.initial == Initial::WatchList);
        let mut meter = Meter::start(self.counted);
        let informer = informer(options)?;
        factory.start();
        informer.synced_within(PATIENCE).await?;
        meter.stop();
        let first = listed(&informer, &mut meter, Phase::First, 0).await?;
        print(&first)?;
        if self.relist {
            let seen = first.decoded.unwrap_or_default();
            print(&listed(&informer, &mut meter, Phase::Relist, seen).await?)?;
        }
        Ok(())
    }
}

/// Waits for a list of the phase and the watch after it, and measures. `seen` objects were decoded before it.
async fn listed<T: Send + std::marker::Sync + 'static>(
    informer: &SharedInformer<T>,
    meter: &mut Meter,
    phase: Phase,
    seen: u64,
) -> Result<Figures> {
    let mut changes = informer.status_changes();
    let status = loop {
        let status = tokio::time::timeout(PATIENCE, changes.next()).await;
        let status = status.context("no progress for 5 minutes")?.context("the informer stopped")?;
        let counters = status.counters;
        let listed = counters.decoded + counters.unchanged - seen;
        if matches!(status.state, InformerState::Watching { .. }) && listed >= status.objects as u64 {
            break status;
        }
        if matches!(status.state, InformerState::Stopped | InformerState::Degraded { .. })
            && phase == Phase::First
        {
            bail!("the informer does not sync: {:?}", status.recent_errors);
        }
    };
    drop(changes);
    if phase == Phase::Relist {
        meter.stop();
    }
    let counters = status.counters;
    ensure!(counters.undecodable == 0, "undecodable: {:?}", status.stale);
    let figures = meter.finish(phase, status.objects).await?;
    Ok(Figures { bytes: Some(counters.bytes), decoded: Some(counters.decoded - seen), ..figures })
}
