//! Tables of objects, as `kubectl get` prints them.
//!
//! Common kinds have kubectl's columns; custom resources have those that their definition names
//! ([`PrinterColumn`]); anything else has name and age.

use std::borrow::Borrow;

use informer::Resource;
use jiff::Timestamp;
use kube::core::DynamicObject;

use crate::age;

mod kinds;
mod pods;
mod printer;
mod row;

pub use printer::PrinterColumn;
pub(crate) use row::Row;

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

/// One column of a kind.
pub(crate) struct Column {
    header: &'static str,
    /// Only in wide tables.
    wide: bool,
    cell: fn(&Row<'_>) -> String,
}

impl Column {
    const fn new(header: &'static str, cell: fn(&Row<'_>) -> String) -> Self {
        Self { header, wide: false, cell }
    }

    const fn wide(header: &'static str, cell: fn(&Row<'_>) -> String) -> Self {
        Self { header, wide: true, cell }
    }
}

/// The table of `objects` of one resource, lines ending in a newline. Each is let go once its line
/// is made. `printer` are the columns that a custom resource's definition names. `now` is what ages
/// count from.
#[must_use]
pub fn table(
    resource: &Resource,
    objects: impl IntoIterator<Item: Borrow<DynamicObject>>,
    printer: &[PrinterColumn],
    options: TableOptions,
    now: Timestamp,
) -> String {
    let columns = kinds::columns(resource);
    let with_namespace = options.with_namespace && resource.namespaced;
    let mut lines = Vec::new();
    if !options.no_headers {
        let mut headers: Vec<String> = Vec::new();
        if with_namespace {
            headers.push("NAMESPACE".to_owned());
        }
        headers.push("NAME".to_owned());
        match columns {
            Some(columns) => {
                let shown = columns.iter().filter(|it| options.wide || !it.wide);
                headers.extend(shown.map(|it| it.header.to_owned()));
            }
            None if !printer.is_empty() => {
                headers
                    .extend(printer::shown(printer, options.wide).map(|it| it.name.to_uppercase()));
            }
            None => headers.push("AGE".to_owned()),
        }
        lines.push(headers);
    }
    for object in objects {
        let object: &DynamicObject = object.borrow();
        let row = Row::new(object, now);
        let mut cells = Vec::new();
        if with_namespace {
            cells.push(object.metadata.namespace.clone().unwrap_or_default());
        }
        let name = object.metadata.name.clone().unwrap_or_default();
        cells.push(if options.with_kind {
            format!("{}/{name}", kind_name(resource))
        } else {
            name
        });
        match columns {
            Some(columns) => {
                let shown = columns.iter().filter(|it| options.wide || !it.wide);
                cells.extend(shown.map(|it| (it.cell)(&row)));
            }
            None if !printer.is_empty() => {
                cells.extend(printer::shown(printer, options.wide).map(|it| it.cell(&row)));
            }
            None => cells.push(row.age()),
        }
        lines.push(cells);
    }
    aligned(&lines)
}

/// The kind in lower case with its group, as `-o name` has it: `pod`, `deployment.apps`.
#[must_use]
pub fn kind_name(resource: &Resource) -> String {
    let kind = resource.kind.to_lowercase();
    if resource.group.is_empty() { kind } else { format!("{kind}.{}", resource.group) }
}

/// Columns as wide as their widest cell and three spaces apart.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        lines.iter().filter_map(|it| it.get(column)).map(|it| it.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for line in lines {
        let start = text.len();
        for (cell, width) in line.iter().zip(&widths) {
            // What comes from the server cannot move the cursor or start a new line.
            let cell: String =
                cell.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
            text.push_str(&cell);
            text.extend(std::iter::repeat_n(' ', width + 3 - cell.chars().count()));
        }
        let end = start + text[start..].trim_end().len();
        text.truncate(end);
        text.push('\n');
    }
    text
}

/// `<none>` for nothing.
pub(crate) fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}

impl Row<'_> {
    /// How old the object is.
    pub(crate) fn age(&self) -> String {
        let created = self.object.metadata.creation_timestamp.as_ref();
        created.map_or_else(|| "<unknown>".to_owned(), |it| age::age(it.0, self.now))
    }
}

#[cfg(test)]
mod tests;
