//! The handler that is registered in the middle of everything, and removed again, for ever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use informer::SharedInformer;
use k8s_openapi::api::core::v1::Pod;

use crate::copies::of_metadata;
use crate::history::{Counts, Faults, History};

/// What the handler is called.
pub(crate) const NAME: &str = "Pods, late and removed again";

/// How long it stays, and how long it stays away.
const STAYS: Duration = Duration::from_secs(11);
const IS_AWAY: Duration = Duration::from_secs(3);

/// How long its initial set may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// The handler that comes late and is removed again and again.
#[derive(Default)]
pub(crate) struct Late {
    here: Mutex<Option<Arc<History<Pod>>>>,
    registrations: AtomicU64,
    counts: Mutex<Counts>,
}

impl Late {
    /// Registers, stays for a while once it was given everything, and is removed, for ever.
    pub(crate) async fn come_and_go(
        self: Arc<Self>,
        pods: SharedInformer<Pod>,
        faults: Arc<Faults>,
    ) {
        loop {
            let done = self.come(&pods, &faults).await;
            if pods.is_stopped() {
                return;
            }
            if let Err(error) = done {
                faults.add(format!("{NAME}: {error:#}"));
            }
            tokio::time::sleep(IS_AWAY).await;
        }
    }

    /// How often it came.
    pub(crate) fn registrations(&self) -> u64 {
        self.registrations.load(Ordering::Relaxed)
    }

    async fn come(&self, pods: &SharedInformer<Pod>, faults: &Arc<Faults>) -> anyhow::Result<()> {
        let history = History::new(NAME, of_metadata::<Pod>, false, pods.unsynced_store(), faults);
        let record = Arc::clone(&history);
        let registration =
            pods.add_handler(|h| h.name(NAME).on_event(move |event| record.record(event)))?;
        registration.synced_within(DEADLINE).await?;
        self.registrations.fetch_add(1, Ordering::Relaxed);
        *self.here.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&history));
        tokio::time::sleep(STAYS).await;
        *self.here.lock().unwrap_or_else(PoisonError::into_inner) = None;
        registration.remove().await;
        let given = history.counts();
        ensure!(given.initial > 0, "it was given nothing at first");
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts = counts.sum(given);
        Ok(())
    }

    pub(crate) fn here(&self) -> Option<Arc<History<Pod>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn counts(&self) -> Counts {
        let before = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        self.here().map_or(before, |late| before.sum(late.counts()))
    }
}
