//! The table of this test names tests that exist, and all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of the table: the fault, and its tests.
fn rows() -> Vec<(String, Vec<String>)> {
    let text = read(&folder().join("main.rs"));
    let row = |line: &str| {
        let line = line.strip_prefix("//! | ")?.strip_suffix(" |")?;
        let (fault, tests) = line.split_once(" | ")?;
        let tests = tests.split(", ").map(|test| test.trim_matches('`').to_owned()).collect();
        (fault != "fault").then(|| (fault.to_owned(), tests))
    };
    text.lines().filter_map(row).collect()
}

/// The tests of this folder, as `module::name`.
fn tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = read(&path);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("#[tokio::test") {
                let name =
                    lines.next().unwrap().trim_start_matches("async fn ").trim_end_matches("() {");
                tests.insert(format!("{module}::{name}"));
            }
        }
    }
    tests
}

#[test]
fn the_table_names_every_test_and_no_other() {
    let named: BTreeSet<String> = rows().into_iter().flat_map(|(_, tests)| tests).collect();
    assert_eq!(named, tests());
}
