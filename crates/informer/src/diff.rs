//! What changed between two states of an object, field by field: [`objects`] for what informers
//! hold, and all of [`informer_core::diff`].

pub use informer_core::diff::*;

use serde::Serialize;

/// Compares two states of an object in any representation that can be serialised: [`Lazy`], every
/// kind of k8s-openapi, `DynamicObject`. Typical are those of an [`Event::Updated`].
///
/// Both are converted into JSON values. Of what the representation left out, such as managedFields,
/// no change is seen.
///
/// # Errors
/// When one of them cannot be serialised, such as a [`Lazy`] whose bytes are no object.
///
/// # Examples
/// ```
/// use informer::diff::{self, DiffOptions};
/// use informer::Lazy;
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// let state = |replicas: u8| Lazy::<Deployment>::from_json(format!(
///     r#"{{"kind": "Deployment", "metadata": {{"name": "web"}}, "spec": {{"replicas": {replicas}}}}}"#
/// ).as_bytes());
/// let diff = diff::objects(&state(3)?, &state(5)?, &DiffOptions::default())?;
/// assert_eq!(diff.changes[0].path().to_string(), "spec.replicas");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Lazy`]: crate::Lazy
/// [`Event::Updated`]: crate::Event::Updated
pub fn objects<T: Serialize>(
    old: &T,
    new: &T,
    options: &DiffOptions,
) -> Result<Diff, serde_json::Error> {
    Ok(between(&serde_json::to_value(old)?, &serde_json::to_value(new)?, options))
}
