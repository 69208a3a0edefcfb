//! Tables of objects, as `kubectl get` prints them. The columns and cells are those of
//! [`k8s_serve::table`].

use std::borrow::Borrow;

use informer::Resource;
use jiff::Timestamp;
use k8s_serve::table::{ColumnDefinition, ColumnType, Columns};
use serde_json::Value;

/// How a table looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableOptions {
    /// More columns.
    pub wide: bool,
    /// The namespace as the first column.
    pub with_namespace: bool,
    /// The resource before the name: `pod/web-0`, for tables of several resources.
    pub with_kind: bool,
    /// No line of column names.
    pub no_headers: bool,
}

/// The table of `objects` of one resource, lines ending in a newline. Each is let go once its line
/// is made. `now` is what ages count from.
#[must_use]
pub fn table<V: Borrow<Value>>(
    resource: &Resource,
    objects: impl IntoIterator<Item = V>,
    columns: &Columns,
    options: TableOptions,
    now: Timestamp,
) -> String {
    let with_namespace = options.with_namespace && resource.namespaced;
    let definitions = columns.definitions();
    let is_shown = |it: &ColumnDefinition| options.wide || it.priority == 0;
    let mut lines = Vec::new();
    if !options.no_headers {
        let names = definitions.iter().filter(|it| is_shown(it)).map(|it| it.name.to_uppercase());
        lines.push(
            with_namespace.then(|| "NAMESPACE".to_owned()).into_iter().chain(names).collect(),
        );
    }
    let is_name =
        |it: &ColumnDefinition| it.format == "name" && it.column_type == ColumnType::String;
    let prefixed = definitions.iter().position(is_name).filter(|_| options.with_kind);
    let mut line = |object: &Value| {
        let mut cells = columns.row(object, now).cells;
        if let Some(name) = prefixed.and_then(|it| cells.get_mut(it)) {
            *name = format!("{}/{}", kind_name(resource), shown(name)).into();
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let namespace = with_namespace.then(|| namespace.to_owned());
        // There may be more cells than columns.
        let cells = definitions.iter().zip(&cells).filter(|it| is_shown(it.0));
        lines.push(namespace.into_iter().chain(cells.map(|it| shown(it.1))).collect());
    };
    match columns.order() {
        None => objects.into_iter().for_each(|it| line(it.borrow())),
        Some(order) => {
            let mut objects: Vec<V> = objects.into_iter().collect();
            objects.sort_by(|one, other| order(one.borrow(), other.borrow()));
            objects.iter().for_each(|it| line(it.borrow()));
        }
    }
    aligned(&lines)
}

/// The kind in lower case with its group, as `-o name` has it: `pod`, `deployment.apps`.
#[must_use]
pub fn kind_name(resource: &Resource) -> String {
    let kind = resource.kind.to_lowercase();
    if resource.group.is_empty() { kind } else { format!("{kind}.{}", resource.group) }
}

/// A cell as text. What comes from the server cannot move the cursor or start a new line.
fn shown(cell: &Value) -> String {
    let text = match cell {
        Value::Null => return String::new(),
        Value::String(text) => text,
        other => return other.to_string(),
    };
    let (line, is_cut) = match text.find(['\n', '\r', '\u{c}']) {
        Some(end) => (&text[..end], true),
        None => (text.as_str(), false),
    };
    let mut shown = String::new();
    for character in line.chars() {
        match character {
            '\u{1b}' => shown.push_str("^["),
            character if character.is_control() => shown.push(' '),
            character => shown.push(character),
        }
    }
    if is_cut {
        shown.push_str("...");
    }
    shown
}

/// Columns as wide as their widest cell and three spaces apart, and of six characters at least.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|it| it.get(column));
        cells.map(|it| it.chars().count() + 3).max().unwrap_or_default().max(6)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        for (position, (cell, width)) in line.iter().zip(&widths).enumerate() {
            text.push_str(cell);
            // Only the last cell needs nothing after it.
            if position + 1 < line.len() {
                text.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
