//! The kinds that kube-apiserver has.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use super::definitions::{CREATED_AT, NAME};
use super::keep::{Keep, keep};
use super::view::View;
use super::{
    ColumnDefinition, Row, RowCondition, access, admission, apps, autoscaling, batch, core,
    devices, events, machinery, networking, nodes, pods, policy, storage,
};

/// The columns of a kind.
#[derive(Debug)]
pub(super) struct BuiltIn {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) definitions: &'static [ColumnDefinition],
    pub(super) cells: fn(View<'_>) -> Vec<Value>,
    pub(super) conditions: fn(View<'_>) -> &'static [RowCondition],
    pub(super) order: Option<fn(&Value, &Value) -> Ordering>,
    /// The fields that are looked at.
    pub(super) keep: &'static Keep,
}

/// What has no columns of its own.
pub(super) static DEFAULT: BuiltIn =
    BuiltIn::new("", "", &DEFAULT_COLUMNS, |it| cells![it.name(), it.created_at()])
        .keeping(&DEFAULT_FIELDS);
static DEFAULT_FIELDS: Keep = keep! { metadata { name namespace creationTimestamp } };
static DEFAULT_COLUMNS: [ColumnDefinition; 2] = [NAME, CREATED_AT];

/// All that have.
static KINDS: [&[BuiltIn]; 15] = [
    &access::KINDS,
    &admission::KINDS,
    &apps::KINDS,
    &autoscaling::KINDS,
    &batch::KINDS,
    &core::KINDS,
    &devices::KINDS,
    &events::KINDS,
    &machinery::KINDS,
    &networking::KINDS,
    &nodes::KINDS,
    &pods::KINDS,
    &policy::KINDS,
    &storage::KINDS,
    &storage::CLASSES,
];

/// The columns of a kind, if it has other than the default.
pub(super) fn find(group: &str, kind: &str) -> Option<&'static BuiltIn> {
    // Where kinds were before they moved.
    let groups: &[&str] = match (group, kind) {
        ("apps" | "extensions", "Scale") => &["autoscaling"],
        ("extensions", _) => &["apps", "networking.k8s.io"],
        _ => &[group],
    };
    KINDS.iter().copied().flatten().find(|it| it.kind == kind && groups.contains(&it.group))
}

impl BuiltIn {
    pub(super) const fn new(
        group: &'static str,
        kind: &'static str,
        definitions: &'static [ColumnDefinition],
        cells: fn(View<'_>) -> Vec<Value>,
    ) -> Self {
        Self {
            group,
            kind,
            definitions,
            cells,
            conditions: |_| &[],
            order: None,
            keep: &Keep::Typed,
        }
    }

    /// With the fields that are looked at, for kinds that are large or many, or hold JSON of clients.
    pub(super) const fn keeping(mut self, keep: &'static Keep) -> Self {
        self.keep = keep;
        self
    }

    pub(super) fn row(&self, object: &Value, now: Timestamp) -> Row {
        let object = View::new(object, now);
        Row { cells: (self.cells)(object), conditions: (self.conditions)(object) }
    }
}

/// Cells of texts, numbers and booleans.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => {
        vec![$(serde_json::Value::from($cell)),*]
    };
}
pub(super) use cells;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_compared_with_kube_apiserver() {
        let printed = include_str!("../../tests/printed/rows.jsonl");
        for kind in KINDS.iter().copied().flatten() {
            let start = format!(r#"{{"group":"{}","kind":"{}","#, kind.group, kind.kind);
            assert!(printed.lines().any(|it| it.starts_with(&start)), "{start}");
        }
    }
}
