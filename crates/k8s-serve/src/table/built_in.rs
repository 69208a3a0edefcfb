//! The kinds that kube-apiserver has.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use super::definitions::{CREATED_AT, NAME};
use super::view::View;
use super::{ColumnDefinition, Row, RowCondition, apps, core, pods};

/// The columns of a kind.
#[derive(Debug)]
pub(super) struct BuiltIn {
    pub(super) definitions: &'static [ColumnDefinition],
    pub(super) cells: fn(View<'_>) -> Vec<Value>,
    pub(super) conditions: fn(View<'_>) -> &'static [RowCondition],
    pub(super) order: Option<fn(&Value, &Value) -> Ordering>,
}

/// What has no columns of its own.
pub(super) static DEFAULT: BuiltIn =
    BuiltIn::new(&DEFAULT_COLUMNS, |it| cells![it.name(), it.created_at()]);
static DEFAULT_COLUMNS: [ColumnDefinition; 2] = [NAME, CREATED_AT];

/// The columns of a kind, if it has other than the default.
pub(super) fn find(group: &str, kind: &str) -> Option<&'static BuiltIn> {
    match group {
        "" => match kind {
            "Pod" => Some(&pods::POD),
            _ => core::find(kind),
        },
        "apps" => apps::find(kind),
        _ => None,
    }
}

impl BuiltIn {
    pub(super) const fn new(
        definitions: &'static [ColumnDefinition],
        cells: fn(View<'_>) -> Vec<Value>,
    ) -> Self {
        Self { definitions, cells, conditions: |_| &[], order: None }
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
