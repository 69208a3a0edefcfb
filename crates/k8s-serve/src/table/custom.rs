//! Custom resources: the columns that their definitions name (`additionalPrinterColumns`).

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::definitions::{AGE, NAME};
use super::jsonpath::JsonPath;
use super::keep::{Keep, Kept};
use super::text::age_of;
use super::{ColumnDefinition, ColumnType, go};

/// The columns of a version of a CustomResourceDefinition.
#[derive(Debug, PartialEq)]
pub(super) struct Custom {
    /// With the name, which has no path.
    definitions: Vec<ColumnDefinition>,
    paths: Vec<JsonPath>,
    /// The members of objects that the paths begin at, if all begin at some.
    members: Option<Vec<String>>,
}

/// As a definition has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PrinterColumn {
    name: String,
    #[serde(rename = "type")]
    column_type: ColumnType,
    #[serde(default)]
    format: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: i32,
    json_path: String,
}

impl Custom {
    pub(super) fn of_definition(definition: &Value, version: &str) -> Option<Self> {
        let versions = definition["spec"]["versions"].as_array()?;
        let version = versions.iter().find(|it| it["name"] == version)?;
        let (mut definitions, mut paths) = (vec![NAME], Vec::new());
        let columns = version["additionalPrinterColumns"].as_array().map_or(&[][..], Vec::as_slice);
        for column in columns {
            // Those from the first that cannot be read on are left out, as kube-apiserver does.
            let Ok(column) = PrinterColumn::deserialize(column) else { break };
            let Ok(path) = column.json_path.parse() else { break };
            paths.push(path);
            definitions.push(column.into());
        }
        Some(match columns {
            [] => Self::name_and_age(),
            _ => Self::new(definitions, paths),
        })
    }

    fn new(definitions: Vec<ColumnDefinition>, paths: Vec<JsonPath>) -> Self {
        let members = paths.iter().map(|it| it.member().map(str::to_owned)).collect();
        Self { definitions, paths, members }
    }

    pub(super) fn name_and_age() -> Self {
        let age = ColumnDefinition { column_type: ColumnType::Date, ..AGE };
        let path = JsonPath::of_fields(["metadata", "creationTimestamp"]);
        Self::new(vec![NAME, age], vec![path])
    }

    pub(super) fn definitions(&self) -> &[ColumnDefinition] {
        &self.definitions
    }

    /// What the paths lead to.
    pub(super) fn kept(&self) -> Kept<'_> {
        match &self.members {
            Some(members) => Kept::Top(members),
            None => Kept::Of(&Keep::All),
        }
    }

    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let cell = |(definition, path): (&ColumnDefinition, &JsonPath)| {
            path.first(object).map_or(Value::Null, |it| cell(definition.column_type, &it, now))
        };
        let cells = self.definitions[1..].iter().zip(&self.paths).map(cell);
        std::iter::once(Value::from(name)).chain(cells).collect()
    }
}

impl From<PrinterColumn> for ColumnDefinition {
    fn from(column: PrinterColumn) -> Self {
        let description = match column.description.as_str() {
            "" => format!(
                "Custom resource definition column (in JSONPath format): {}",
                column.json_path
            ),
            _ => column.description,
        };
        Self {
            name: Cow::Owned(column.name),
            column_type: column.column_type,
            format: Cow::Owned(column.format),
            description: Cow::Owned(description),
            priority: column.priority,
        }
    }
}

/// A value as a cell of a type; `null` if it cannot be one.
fn cell(column_type: ColumnType, value: &Value, now: Timestamp) -> Value {
    match column_type {
        ColumnType::String => Value::String(go::text(value)),
        ColumnType::Boolean if value.is_boolean() => value.clone(),
        ColumnType::Integer => match (value.as_i64(), value.as_f64()) {
            (Some(integer), _) => Value::from(integer),
            #[expect(clippy::cast_possible_truncation, reason = "as in Go")]
            (None, Some(number)) => Value::from(number as i64),
            (None, None) => Value::Null,
        },
        // Go writes whole numbers without a fraction.
        ColumnType::Number => match value.as_f64() {
            Some(number) if number.fract() == 0.0 && number.abs() < 1e15 =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
                Value::from(number as i64)
            }
            Some(number) => Value::from(number),
            None => Value::Null,
        },
        ColumnType::Date => match value.as_str() {
            Some(text) if text.is_empty() || text.parse::<Timestamp>().is_ok() => {
                Value::from(age_of(text, now))
            }
            Some(_) => Value::from("<invalid>"),
            None => Value::Null,
        },
        ColumnType::Boolean => Value::Null,
    }
}
