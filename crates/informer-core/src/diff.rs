//! Compares two states of an object field by field.
//!
//! [`between`] compares two states as JSON and returns a [`Diff`]: a bounded list of [`Change`]s
//! that is meant for people. [`Diff::write_text`] writes it for a terminal. For other programs,
//! `Serialize` produces the documented JSON.
//!
//! # Lists
//! Elements of lists are matched by Kubernetes' merge key of the list, such as the name of a
//! container, the type of a condition, or the port and protocol of a port. In custom resources they
//! are matched by `name`, `id` and similar fields if these are unique. Lists of distinct scalars
//! are compared as sets, except `args` and `command`. All other lists are compared by position,
//! after removing the common elements at both ends.
//!
//! # Hidden and cut values
//! - Changes of noise are only counted ([`Diff::folded`]). Noise is `metadata.managedFields`,
//!   `metadata.resourceVersion`, the annotation
//!   `kubectl.kubernetes.io/last-applied-configuration`, the `renewTime` of a Lease, and
//!   `lastHeartbeatTime`, `lastProbeTime` and `lastUpdateTime` of conditions.
//!   `metadata.generation` is noise too, unless nothing else changed.
//! - Values in `data` and `stringData` of Secrets are hidden; only their length in bytes is shown.
//!   Annotations of Secrets are hidden if they are long or contain JSON, because they may hold a
//!   copy of the data. An object without a kind is treated as a Secret.
//! - Long values are cut; two long texts are cut around their first difference. Changes beyond the
//!   limit are only counted ([`Diff::more`]).
//!
//! # As JSON
//! ```
//! use informer_core::diff::{DiffOptions, between};
//! use serde_json::json;
//!
//! let state = |version: &str, replicas: u8| json!({
//!     "apiVersion": "apps/v1", "kind": "Deployment",
//!     "metadata": {"name": "web", "resourceVersion": version},
//!     "spec": {"replicas": replicas},
//! });
//! let diff = between(&state("1", 3), &state("2", 5), &DiffOptions::default());
//! assert_eq!(serde_json::to_value(&diff)?, json!({
//!     "changes": [
//!         {"op": "changed", "path": "spec.replicas", "old": {"value": 3}, "new": {"value": 5}},
//!     ],
//!     "more": 0,
//!     "folded": 1,
//! }));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! | member | |
//! |---|---|
//! | `changes` | in the order of the fields in the old object, then of the added ones in the new object |
//! | `changes[].op` | `added` (has `new`), `removed` (has `old`), `changed` (has both), `reordered` (has neither: a list has the same elements in another order) |
//! | `changes[].path` | such as `spec.containers[app].image` or `metadata.labels["app.kubernetes.io/name"]`; `args[0]` for an element of a list without keys; `metadata.finalizers[]` for an element of a set |
//! | `old`, `new` | one of `{"value": JSON}`; `{"text": TEXT, "from": BYTES, "bytes": BYTES}` for a part of a long text (or of the JSON of a large value), which begins at byte `from` of `bytes`; `{"hiddenBytes": BYTES}` |
//! | `more` | number of changes that are not in the list |
//! | `folded` | number of noise fields that changed |

mod apply;
mod list;
mod path;
mod place;
mod text;
mod value;
mod walk;

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::Value;

pub use self::apply::ApplyError;
pub use self::path::{Path, Segment};
pub use self::text::{Color, TextStyle, escape};
pub use self::value::Shown;

/// Compares two states of an object in time that is linear in their size.
///
/// # Examples
/// ```
/// use informer_core::diff::{DiffOptions, TextStyle, between};
/// use serde_json::json;
///
/// let pod = |image: &str| json!({
///     "kind": "Pod", "spec": {"containers": [{"name": "log"}, {"name": "app", "image": image}]},
/// });
/// let diff = between(&pod("shop:1"), &pod("shop:2"), &DiffOptions::default());
/// let mut text = String::new();
/// diff.write_text(&mut text, &TextStyle::default())?;
/// assert_eq!(text, "~ spec.containers[app].image: \"shop:1\" -> \"shop:2\"\n");
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[must_use]
pub fn between(old: &Value, new: &Value, options: &DiffOptions) -> Diff {
    walk::walk(old, new, options)
}

/// The changes between two states of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The changes, up to the limit of the options.
    pub changes: Vec<Change>,
    /// Number of changes beyond the limit.
    pub more: usize,
    /// Number of noise fields that changed.
    pub folded: usize,
}

/// One change of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub enum Change {
    /// A field, or an element of a list, that only the new state has.
    Added {
        /// The path of the field or element.
        path: Path,
        /// Its value.
        new: Shown,
    },
    /// A field, or an element of a list, that only the old state has.
    Removed {
        /// The path of the field or element.
        path: Path,
        /// Its value.
        old: Shown,
    },
    /// A field with a different value.
    Changed {
        /// The path of the field.
        path: Path,
        /// The value in the old state.
        old: Shown,
        /// The value in the new state.
        new: Shown,
    },
    /// A list whose elements have a different order.
    Reordered {
        /// The path of the list.
        path: Path,
        /// For each element of the new list, its position in the list that [`Diff::apply`] has
        /// before it reorders: the elements that stayed, in their old order, followed by the added
        /// ones. Set only with [`DiffOptions::exact`].
        #[serde(skip)]
        order: Option<Vec<usize>>,
    },
}

/// Options for comparing two states.
///
/// The default is for people: it folds noise, hides the values of Secrets, and has limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffOptions {
    /// How noise is handled.
    pub noise: Noise,
    /// How the values of Secrets are handled.
    pub secrets: Secrets,
    /// The limits of the diff.
    pub limits: Limits,
}

/// How noise is handled: fields whose changes carry no information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// Changes of noise are only counted.
    #[default]
    Folded,
    /// Noise is shown like other fields.
    Shown,
}

/// How the values of Secrets are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Secrets {
    /// Only their length is shown.
    #[default]
    Hidden,
    /// They are shown like other values.
    Shown,
}

/// Limits of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of changes in the list. Further changes are only counted.
    pub changes: usize,
    /// Maximum number of bytes that are shown of a value.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { changes: 100, bytes: 256 }
    }
}

impl Limits {
    const NONE: Self = Self { changes: usize::MAX, bytes: usize::MAX };
}

impl DiffOptions {
    /// Options for a complete diff: no folding, no hiding, no limits, and the order of all lists.
    /// [`Diff::apply`] needs such a diff.
    #[must_use]
    pub fn exact() -> Self {
        Self { noise: Noise::Shown, secrets: Secrets::Shown, limits: Limits::NONE }
    }

    fn is_exact(&self) -> bool {
        *self == Self::exact()
    }
}

impl Diff {
    /// Whether the states are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_quiet() && self.folded == 0
    }

    /// Whether nothing but noise changed.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.changes.is_empty() && self.more == 0
    }
}

impl Change {
    /// The path of the field, element or list that changed.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Added { path, .. }
            | Self::Removed { path, .. }
            | Self::Changed { path, .. }
            | Self::Reordered { path, .. } => path,
        }
    }
}
