//! Tables compared with those of kube-apiserver's own printers.
//!
//! `tests/real-cluster/printers` runs the printers, with a clock that stands at [`NOW`]. What they
//! print of objects written by hand is checked in; what they print of the corpus of k8s-protobuf,
//! and of random JSONPaths, is found with `K8S_SERVE_PRINTED=DIR`, made by
//! `tests/real-cluster/printed DIR`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_serve::table::{Columns, Row};
use serde::Deserialize;
use serde_json::{Value, json};

const NOW: &str = "2026-06-01T00:00:00Z";

/// An object of a built-in kind.
#[derive(Deserialize)]
struct Printed {
    group: String,
    kind: String,
    columns: Vec<String>,
    cells: Vec<Value>,
    #[serde(default)]
    conditions: Value,
    object: Value,
}

/// A custom resource.
#[derive(Deserialize)]
struct PrintedCustom {
    columns: Value,
    definitions: Value,
    cells: Vec<Value>,
    object: Value,
}

#[test]
fn built_in_kinds_have_the_rows_of_kube_apiserver() {
    let lines = [lines("rows.jsonl"), made_lines("corpus.jsonl")].concat();
    let mut differences = Vec::new();
    let mut kinds = BTreeSet::new();
    for line in &lines {
        let printed: Printed = serde_json::from_str(line).expect("a row");
        let columns = Columns::of_kind(&printed.group, &printed.kind);
        let names: Vec<&str> = columns.definitions().iter().map(|it| it.name.as_ref()).collect();
        // As objects are read: without what is not needed.
        let Row { cells, conditions } = columns.row(&columns.read(printed.object).unwrap(), now());
        let conditions = match conditions {
            [] => Value::Null,
            some => json!(some),
        };
        let same = (&names, &cells, &conditions)
            == (
                &printed.columns.iter().map(String::as_str).collect::<Vec<_>>(),
                &printed.cells,
                &printed.conditions,
            );
        if !same {
            differences.push(format!(
                "{}/{}\n  theirs {}\n  ours   {}\n  object {}",
                printed.group,
                printed.kind,
                json!([printed.columns, printed.cells, printed.conditions]),
                json!([names, cells, conditions]),
                line,
            ));
        }
        kinds.insert((printed.group, printed.kind));
    }
    assert!(
        differences.is_empty(),
        "{} of {} rows differ:\n{}",
        differences.len(),
        lines.len(),
        differences.join("\n"),
    );
}

#[test]
fn custom_resources_have_the_rows_of_kube_apiserver() {
    let lines = [lines("custom.jsonl"), made_lines("paths.jsonl")].concat();
    let mut differences = Vec::new();
    for line in &lines {
        let printed: PrintedCustom = serde_json::from_str(line).expect("a row");
        let definition = json!({"spec": {"versions": [
            {"name": "v1", "additionalPrinterColumns": printed.columns},
        ]}});
        let columns = Columns::of_definition(&definition, "v1").expect("the version is there");
        let cells = columns.row(&columns.read(printed.object).unwrap(), now()).cells;
        let definitions = json!(columns.definitions());
        if (&cells, &definitions) != (&printed.cells, &printed.definitions) {
            differences.push(format!(
                "{}\n  theirs {}\n  ours   {}",
                printed.columns,
                json!(printed.cells),
                json!(cells),
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {} rows differ:\n{}",
        differences.len(),
        lines.len(),
        differences.join("\n"),
    );
}

#[test]
fn columns_are_defined_as_in_kube_apiserver() {
    #[derive(Deserialize)]
    struct Line {
        group: String,
        kind: String,
        definitions: Value,
    }
    for line in made_lines("columns.jsonl") {
        let line: Line = serde_json::from_str(&line).expect("definitions");
        let columns = Columns::of_kind(&line.group, &line.kind);
        assert_eq!(json!(columns.definitions()), line.definitions, "{}/{}", line.group, line.kind);
    }
}

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

/// The lines of a file that is checked in.
fn lines(file: &str) -> Vec<String> {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/printed").join(file))
}

/// The lines of a file that is made; none without it.
fn made_lines(file: &str) -> Vec<String> {
    let Some(folder) = std::env::var_os("K8S_SERVE_PRINTED").map(PathBuf::from) else {
        eprintln!(
            "skipped {file}: make it with `tests/real-cluster/printed DIR`, then set \
             K8S_SERVE_PRINTED=DIR"
        );
        return Vec::new();
    };
    read(&folder.join(file))
}

fn read(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}
