//! The columns that a custom resource's definition names (`additionalPrinterColumns`).

use serde_json::Value;

use super::row::Row;
use crate::age;

/// One of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// What stands above it.
    pub name: String,
    /// `date` for an age; anything else is printed as it is.
    pub kind: String,
    /// Only in wide tables.
    pub wide: bool,
    path: Vec<Step>,
}

/// One step of a JSON path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
    Every,
    /// `[?(@.type=="Ready")]`: the elements whose member has this value.
    Where(String, String),
}

impl PrinterColumn {
    /// The columns of one version of a CustomResourceDefinition, given as JSON. Columns whose path
    /// is beyond what definitions usually have are left out.
    #[must_use]
    pub fn of_definition(definition: &Value, version: &str) -> Vec<Self> {
        let versions =
            definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let version = versions.iter().find(|it| it["name"] == version);
        let columns = version.and_then(|it| it["additionalPrinterColumns"].as_array());
        let Some(columns) = columns.filter(|it| !it.is_empty()) else { return Vec::new() };
        columns.iter().filter_map(Self::of_json).collect()
    }

    fn of_json(column: &Value) -> Option<Self> {
        let text = |key: &str| column[key].as_str().unwrap_or_default();
        Some(Self {
            name: text("name").to_owned(),
            kind: text("type").to_owned(),
            wide: column["priority"].as_i64().unwrap_or_default() > 0,
            path: parse(text("jsonPath"))?,
        })
    }

    /// What stands in the column for one object.
    pub(super) fn cell(&self, row: &Row<'_>) -> String {
        let metadata;
        let (root, path) = match self.path.split_first() {
            Some((Step::Member(first), rest)) if first == "metadata" => {
                metadata = serde_json::to_value(&row.object.metadata).unwrap_or_default();
                (&metadata, rest)
            }
            _ => (&row.object.data, self.path.as_slice()),
        };
        let mut found = Vec::new();
        follow(root, path, &mut found);
        if self.kind == "date" {
            return age::age_of(found.first().and_then(|it| it.as_str()), row.now);
        }
        let shown = |it: &&Value| match it {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        found.iter().map(shown).collect::<Vec<_>>().join(",")
    }
}

/// Those that a table shows.
pub(super) fn shown(columns: &[PrinterColumn], wide: bool) -> impl Iterator<Item = &PrinterColumn> {
    columns.iter().filter(move |it| wide || !it.wide)
}

fn follow<'a>(value: &'a Value, path: &[Step], found: &mut Vec<&'a Value>) {
    let Some((step, rest)) = path.split_first() else {
        if !value.is_null() {
            found.push(value);
        }
        return;
    };
    let elements = value.as_array().map(Vec::as_slice).unwrap_or_default();
    match step {
        Step::Member(name) => follow(&value[name], rest, found),
        Step::Element(at) => follow(&value[*at], rest, found),
        Step::Every => elements.iter().for_each(|it| follow(it, rest, found)),
        Step::Where(member, wanted) => {
            let matching = elements.iter().filter(|it| it[member] == wanted.as_str());
            matching.for_each(|it| follow(it, rest, found));
        }
    }
}

/// `.a.b[0].c`, `.a['b.c']`, `.a\.b`, `[*]` and `[?(@.type=="Ready")]`; `None` for anything else.
fn parse(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix("[") {
            let end = inner.find(']')?;
            steps.push(parse_bracket(&inner[..end])?);
            rest = &inner[end + 1..];
            continue;
        }
        rest = rest.strip_prefix('.')?;
        let mut name = String::new();
        let mut characters = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => name.push(characters.next()?.1),
                '.' | '[' => {
                    end = at;
                    break;
                }
                other => name.push(other),
            }
        }
        rest = &rest[end..];
        if !name.is_empty() {
            steps.push(Step::Member(name));
        } else if !rest.starts_with('[') {
            return None;
        }
    }
    Some(steps)
}

fn parse_bracket(inner: &str) -> Option<Step> {
    if inner == "*" {
        return Some(Step::Every);
    }
    if let Ok(at) = inner.parse() {
        return Some(Step::Element(at));
    }
    let unquoted = |text: &str| {
        let text = text.trim();
        let inner = |quote| text.strip_prefix(quote).and_then(|it: &str| it.strip_suffix(quote));
        inner('"').or_else(|| inner('\'')).map(str::to_owned)
    };
    if let Some(filter) = inner.strip_prefix("?(").and_then(|it| it.strip_suffix(')')) {
        let (member, value) = filter.split_once("==")?;
        let member = member.trim().strip_prefix("@.")?;
        return Some(Step::Where(member.to_owned(), unquoted(value)?));
    }
    unquoted(inner).map(Step::Member)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_paths_that_definitions_have() {
        let value = json!({"a": {"b": [{"c": 1}, {"c": 2}]}, "s": {"conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]}, "x": {"d.e": "f"}});
        for (path, expected) in [
            (".a.b[0].c", Some("1")),
            (".a.b[*].c", Some("1,2")),
            (".s.conditions[?(@.type==\"Ready\")].status", Some("True")),
            (".s.conditions[?(@.type == 'Synced')].status", Some("False")),
            (".x['d.e']", Some("\"f\"")),
            (".x.d\\.e", Some("\"f\"")),
            (".no.such", Some("")),
            ("a", None),
            (".a[?(x)]", None),
            ("..a", None),
        ] {
            let steps = parse(path);
            let found = steps.map(|steps| {
                let mut found = Vec::new();
                follow(&value, &steps, &mut found);
                found
                    .iter()
                    .map(|it| {
                        it.to_string().replace("\"True\"", "True").replace("\"False\"", "False")
                    })
                    .collect::<Vec<_>>()
                    .join(",")
            });
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }
}
