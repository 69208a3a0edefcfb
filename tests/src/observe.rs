//! Observes an informer: what it gives a registration is checked event by event, and compared with
//! the server at the end.
//!
//! - [`History`] checks the events of one registration: G2 to G5, G8.
//! - [`Observer`] is a registration, handler or stream, with its history.
//! - [`Scene`] gives the informers of a scenario a runtime of their own, and ends the scenario:
//!   everything equals the server, the status is sane, and no task lives on.
//!
//! ```no_run
//! # use informer::InformerOptions;
//! # use informer_tests::{observe::Scene, on_both_arms};
//! # use k8s_openapi::api::core::v1::Pod;
//! on_both_arms!(a_pod_is_seen, |arm| async {
//!     let namespace = arm.namespace("seen").await?;
//!     let scene = Scene::new(&arm).await?;
//!     let pods = scene.informer(InformerOptions::<Pod>::new().namespace(&namespace))?;
//!     let seen = scene.observe(&pods, "the handler", |h| h)?;
//!     scene.start();
//!     // … change the cluster, cut connections …
//!     let path = format!("/api/v1/namespaces/{namespace}/pods");
//!     scene.settles(&pods, &path, &[&seen]).await?;
//!     assert_eq!(seen.text(), "*a#1 ~a#1 -a#1");
//!     scene.end().await
//! });
//! ```

mod gate;
mod history;
mod kept;
mod scene;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use informer::{InformerState, SharedInformer};
use tokio::time::timeout;

pub use gate::{Gate, GateKeeper};
pub use history::{Counts, History};
pub use kept::{Identified, Identity, Kept};
pub use scene::{Observer, Scene};

use crate::harness::Arm;
use crate::helpers::{differences, eventually_ok, hold_clock_for, raw_list};

/// Far above what anything takes: what is waited for comes, or something is broken.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A collection: for each object, by `namespace/name` (or `name`), its UID and version.
pub type Collection = BTreeMap<String, (String, String)>;

/// The store's keys, UIDs and versions, which must be those of the objects in it too.
///
/// # Errors
///
/// When an object is kept under another UID or version than its own.
pub fn store_of<T: Identified>(informer: &SharedInformer<T>) -> anyhow::Result<Collection> {
    let snapshot = informer.unsynced_store().snapshot();
    let entries = snapshot.iter().map(|entry| {
        let (uid, version) = (entry.record.uid.to_string(), entry.record.version.to_string());
        let object = entry.object();
        let of_object = object.identity();
        if (&*of_object.uid, &*of_object.version) != (uid.as_str(), version.as_str()) {
            bail!("{} is {uid} at {version}, but its object {of_object:?}", entry.key);
        }
        Ok((entry.key.to_string(), (uid, version)))
    });
    entries.collect()
}

/// Waits until the store holds exactly what the server lists at `path` (G1), and returns that. The
/// server must be quiet by now.
///
/// # Errors
///
/// When that does not come true within [`DEADLINE`], with the differences and the status.
pub async fn converges<T: Identified>(
    arm: &Arm,
    informer: &SharedInformer<T>,
    path: &str,
) -> anyhow::Result<Collection> {
    let list = async || raw_list(arm.direct(), path).await;
    let truth = eventually_ok("the server lists", DEADLINE, list).await?;
    let what = format!("the store is what the server lists at {path}");
    let equal = async || {
        let store = store_of(informer)?;
        ensure!(informer.has_synced(), "it has not synced");
        ensure!(store == truth, "{}", differences(&store, &truth));
        Ok(())
    };
    eventually_ok(&what, DEADLINE, equal)
        .await
        .with_context(|| format!("{:#?}", informer.status()))?;
    ensure!(
        truth == raw_list(arm.direct(), path).await?,
        "somebody still changes what is at {path}"
    );
    Ok(truth)
}

/// Waits until the informer watches, and checks that its status fits the store (G31).
///
/// # Errors
///
/// When it does not come to watch within [`DEADLINE`], or the status does not fit.
pub async fn watches<T: Send + Sync + 'static>(informer: &SharedInformer<T>) -> anyhow::Result<()> {
    let watching = async || {
        let state = informer.status().state;
        ensure!(matches!(state, InformerState::Watching { .. }), "{state}");
        Ok(())
    };
    eventually_ok("the informer watches", DEADLINE, watching).await?;
    let fits = async || {
        let (status, snapshot) = (informer.status(), informer.unsynced_store().snapshot());
        ensure!(status.has_synced && !informer.is_stopped(), "{status:#?}");
        ensure!(status.objects == snapshot.len(), "{} objects, but {status:#?}", snapshot.len());
        ensure!(
            status.version == *snapshot.version(),
            "at {}, but {status:#?}",
            snapshot.version()
        );
        ensure!(
            status.stale.len() == (status.undecodable - status.unreadable).min(64),
            "{status:#?}"
        );
        let panics: u64 = status.registrations.iter().map(|one| one.panics).sum();
        ensure!(panics <= status.counters.handler_panics, "{status:#?}");
        Ok(())
    };
    // Bookmarks move the version at any time, between two looks too.
    eventually_ok("the status fits the store", Duration::from_secs(10), fits).await
}

/// Waits until `condition`, which something makes true that cannot be waited for otherwise.
///
/// # Errors
///
/// When it does not come true within [`DEADLINE`].
pub async fn comes_true(what: &str, mut condition: impl FnMut() -> bool) -> anyhow::Result<()> {
    let check = async || {
        ensure!(condition(), "it does not hold");
        Ok(())
    };
    eventually_ok(what, DEADLINE, check).await
}

/// Fails instead of hanging.
///
/// # Errors
///
/// When `future` is not ready within [`DEADLINE`].
pub async fn soon<O>(what: &str, future: impl Future<Output = O>) -> anyhow::Result<O> {
    // A paused clock gives handlers' threads that much time of the system's.
    let _held = hold_clock_for(Duration::from_millis(250));
    timeout(DEADLINE, future).await.with_context(|| format!("not within {DEADLINE:?}: {what}"))
}
