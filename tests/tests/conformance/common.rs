//! How the scenarios of syncing, lifecycle, server and status wait and compare.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use informer::{Error, InformerState, SharedInformer, Status};
use informer_tests::harness::Arm;
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::observe::DEADLINE;
use tokio::time::timeout;

/// For what waits for backoffs, probes or discoveries.
pub(crate) const LONG: Duration = Duration::from_secs(240);

/// The collection that the user `viewer` may read.
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// Waits for the first status that fits, from now on.
pub(crate) async fn status_where<T: Send + Sync + 'static>(
    informer: &SharedInformer<T>,
    fits: impl Fn(&Status) -> bool,
) -> anyhow::Result<Status> {
    let fitting = |status: Status| futures_util::future::ready(fits(&status).then_some(status));
    let mut found = std::pin::pin!(informer.status_changes().filter_map(fitting));
    let found = timeout(LONG, found.next()).await;
    found.with_context(|| format!("{:#?}", informer.status()))?.context("it stopped")
}

pub(crate) fn is_watching(status: &Status) -> bool {
    matches!(status.state, InformerState::Watching { .. })
}

pub(crate) fn is_backing_off(status: &Status) -> bool {
    matches!(status.state, InformerState::BackingOff { .. })
}

/// Whether a recent error has this text.
pub(crate) fn tells(status: &Status, text: &str) -> bool {
    status.recent_errors.iter().any(|error| error.message.contains(text))
}

pub(crate) async fn reaches<T: Send + Sync + 'static>(
    informer: &SharedInformer<T>,
    version: &str,
) -> anyhow::Result<()> {
    let reached = timeout(LONG, informer.wait_for(version)).await;
    Ok(reached
        .with_context(|| format!("version {version} is not reached: {:#?}", informer.status()))??)
}

pub(crate) fn error_text<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn says(text: &str, parts: &[&str]) -> anyhow::Result<()> {
    for part in parts {
        ensure!(text.contains(part), "{part:?} is missing in: {text}");
    }
    Ok(())
}

/// After a restart the test's own client may have dead connections in its pool.
pub(crate) async fn is_back(arm: &Arm) -> anyhow::Result<()> {
    let list = async || raw_list(arm.direct(), PODS).await.map(drop);
    eventually_ok("the server is back", DEADLINE, list).await
}
