//! Doing something before an object goes.

use std::sync::Arc;

use serde_json::json;

use super::error::WriteError;
use super::{Action, Context};
use crate::HasMetadata;

/// What a reconcile under a [`finalizer`] is to do.
#[derive(Debug)]
pub enum FinalizerEvent<T> {
    /// Make the world as the object wants it; the finalizer is there.
    Apply(Arc<T>),
    /// The object is being deleted: remove what it leaves behind, and nothing else will. When this
    /// has succeeded the finalizer is removed. It may be called again, if that failed or the
    /// process ended just then, so what is removed already must be no error.
    Cleanup(Arc<T>),
}

/// Reconciles an object under a finalizer, which keeps it from going before `reconcile` has cleaned
/// up after it (kube-runtime's `finalizer`). `name` is the finalizer's, such as
/// `example.com/cleanup`; it stands in the object's `metadata.finalizers`.
///
/// - An object without the finalizer gets it, and is reconciled when the informer shows that.
/// - One that has it is reconciled, as [`FinalizerEvent::Apply`].
/// - One that is being deleted is cleaned up, as [`FinalizerEvent::Cleanup`]; when that has
///   succeeded the finalizer is removed, and the object goes.
/// - One that is being deleted and has not got the finalizer is left alone.
///
/// The finalizer is added with the version and the UID of the object that was looked at: if it was
/// changed meanwhile that is a conflict, and the key comes again. It is removed with the UID alone,
/// so that a cleanup may write the object.
///
/// Filters of the controller need not let the change pass that adds the finalizer. They must let
/// pass that the deletion begins, since the cleanup starts with it: those of changes here do, one's
/// own have to look at `metadata.deletionTimestamp`.
///
/// # Errors
/// What `reconcile` returns, and a [`WriteError`] if the finalizer cannot be written.
///
/// # Cancel safety
/// As that of `reconcile`; the finalizer is written before or after it, never meanwhile.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use informer::controller::{Action, Context, FinalizerEvent, finalizer};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// async fn reconcile(map: Arc<ConfigMap>, ctx: Context<()>) -> anyhow::Result<Action> {
///     finalizer(&ctx, "example.com/records", map, |event| async {
///         match event {
///             FinalizerEvent::Apply(map) => drop(map),   // … write its records
///             FinalizerEvent::Cleanup(map) => drop(map), // … remove them
///         }
///         Ok(Action::await_change())
///     })
///     .await
/// }
/// ```
pub async fn finalizer<T, S, R, E>(
    context: &Context<S>,
    name: &str,
    object: Arc<T>,
    reconcile: impl FnOnce(FinalizerEvent<T>) -> R,
) -> Result<Action, E>
where
    T: HasMetadata,
    R: Future<Output = Result<Action, E>>,
    E: From<WriteError>,
{
    let (finalizers, version, is_ending) = {
        let metadata = object.metadata();
        let finalizers = metadata.finalizers.clone().unwrap_or_default();
        (finalizers, metadata.resource_version.clone(), metadata.deletion_timestamp.is_some())
    };
    let has_it = finalizers.iter().any(|it| it == name);
    let uid = context.uid().to_string();
    match (is_ending, has_it) {
        (false, true) => reconcile(FinalizerEvent::Apply(object)).await,
        (false, false) => {
            let mut finalizers = finalizers;
            finalizers.push(name.to_owned());
            // A merge patch replaces lists as a whole, so it is of the version that was looked at.
            let metadata =
                json!({ "resourceVersion": version, "uid": uid, "finalizers": finalizers });
            context.patch_reconciled(&json!({ "metadata": metadata })).await?;
            // Not left to the event, which a filter of the controller may hide.
            Ok(Action::after_own_writes())
        }
        (true, true) => {
            let action = reconcile(FinalizerEvent::Cleanup(object)).await?;
            let mut finalizers = finalizers;
            finalizers.retain(|it| it != name);
            // Without the version, since the cleanup may have changed the object. An object that
            // is being deleted gets no new finalizers: the API server refuses a list that has one
            // which was removed meanwhile.
            let metadata = json!({ "uid": uid, "finalizers": finalizers });
            match context.patch_reconciled(&json!({ "metadata": metadata })).await {
                // Somebody has removed it, and the object is gone.
                Err(error) if error.is_not_found() => {}
                removed => removed?,
            }
            Ok(action)
        }
        (true, false) => Ok(Action::await_change()),
    }
}
