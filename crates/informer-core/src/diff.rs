//! What changed between two states of an object, field by field.
//!
//! [`between`] compares two states as JSON and answers with a [`Diff`]: a bounded list of
//! [`Change`]s for a person to read. [`Diff::write_text`] writes it for a terminal; `Serialize`
//! gives the documented JSON for other programs.
//!
//! # Lists
//! Elements of lists are matched by the key that Kubernetes merges them by, such as the name of a
//! container, the type of a condition or the port and protocol of a port; lists of custom resources
//! by `name`, `id` and the like where these tell the elements apart. Lists of distinct scalars are
//! sets, but for `args` and `command`. Other lists are compared by position, after the elements
//! that are equal at both ends.
//!
//! # What is not shown
//! - Noise is only counted ([`Diff::folded`]): `metadata.managedFields`,
//!   `metadata.resourceVersion`, the annotation
//!   `kubectl.kubernetes.io/last-applied-configuration`, the `renewTime` of a Lease, and
//!   `lastHeartbeatTime`, `lastProbeTime` and `lastUpdateTime` of conditions;
//!   `metadata.generation` too, unless nothing else changed.
//! - Values in `data` and `stringData` of Secrets are never shown, only how many bytes they have;
//!   nor are annotations of Secrets that are long or contain JSON, as these may hold a copy.
//!   An object that does not say its kind is treated as a Secret.
//! - Long values are cut, around the first difference if they are texts; after a number of changes
//!   the rest is counted ([`Diff::more`]).
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
//! | `changes` | in the order of the fields of the old object, then of the new one |
//! | `changes[].op` | `added` (has `new`), `removed` (has `old`), `changed` (has both), `reordered` (has neither: a list has the same elements in another order) |
//! | `changes[].path` | such as `spec.containers[app].image`, `metadata.labels["app.kubernetes.io/name"]`; elements of lists without keys by position, `args[0]`; elements of sets as `metadata.finalizers[]` |
//! | `old`, `new` | one of `{"value": JSON}`; `{"text": TEXT, "from": BYTES, "bytes": BYTES}`, a part of a long text (or of the JSON of a large value) that begins at `from` of `bytes`; `{"hiddenBytes": BYTES}` |
//! | `more` | how many changes are not in the list |
//! | `folded` | how many fields of noise changed |

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

/// Compares two states of an object. The time is linear in their size.
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

/// What changed between two states of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The changes, up to the limit of the options.
    pub changes: Vec<Change>,
    /// How many changes there are beyond them.
    pub more: usize,
    /// How many fields changed that are noise.
    pub folded: usize,
}

/// One change of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub enum Change {
    /// The new state has a field, or an element of a list, that the old one has not.
    Added {
        /// Where.
        path: Path,
        /// What.
        new: Shown,
    },
    /// The old state has a field, or an element of a list, that the new one has not.
    Removed {
        /// Where.
        path: Path,
        /// What.
        old: Shown,
    },
    /// A field has another value.
    Changed {
        /// Where.
        path: Path,
        /// What it was.
        old: Shown,
        /// What it is.
        new: Shown,
    },
    /// The elements of a list stand in another order.
    Reordered {
        /// Where.
        path: Path,
        /// Where each element of the new list stands among those that stayed, in their old order,
        /// followed by those that were added. Only with [`DiffOptions::exact`], for
        /// [`Diff::apply`].
        #[serde(skip)]
        order: Option<Vec<usize>>,
    },
}

/// What of the changes is shown, and how much.
///
/// The default is for people: noise folded, Secrets hidden, limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffOptions {
    /// What becomes of noise.
    pub noise: Noise,
    /// What becomes of the values of Secrets.
    pub secrets: Secrets,
    /// How much is shown.
    pub limits: Limits,
}

/// What becomes of fields that change without saying anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// Their changes are counted.
    #[default]
    Folded,
    /// They are like other fields.
    Shown,
}

/// What becomes of the values of Secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Secrets {
    /// Their length is shown.
    #[default]
    Hidden,
    /// They are like other fields.
    Shown,
}

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Changes that are listed; others are counted.
    pub changes: usize,
    /// Bytes that are shown of a value.
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
    /// Everything: no noise, no Secrets, no limits, and the order of all lists. [`Diff::apply`]
    /// makes the new state of the old one with it.
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

    /// Whether nothing changed, or only noise.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.changes.is_empty() && self.more == 0
    }
}

impl Change {
    /// The field, or the list whose order changed.
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
