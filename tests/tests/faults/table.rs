//! The table of this test names tests that exist, all of them, and every fault of the guarantees.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The faults, as the last paragraph of the guarantees counts them up; some of them in parts.
const FAULTS: [(&str, &[&str]); 27] = [
    ("Connection refused", &["connection refused"]),
    ("reset in the middle of a frame", &["reset in the middle of a frame"]),
    ("clean close in a loop", &["clean close in a loop"]),
    ("a socket that stalls", &["a socket that stalls"]),
    ("slow-drip bytes", &["slow-drip bytes"]),
    ("410 in the stream and as a status", &["410 in the stream", "410 as a status"]),
    ("429 with and without `Retry-After`", &["429 with and without `Retry-After`"]),
    ("500, 503", &["500", "503"]),
    ("too large version", &["too large version"]),
    ("expired continue token on each page", &["expired continue token on each page"]),
    ("WatchList refused, stalled", &["WatchList refused", "WatchList stalled"]),
    ("its bookmark never sent", &["the bookmark of a WatchList never sent"]),
    ("a compressed body although not asked for", &["a compressed body although not asked for"]),
    ("truncated, malformed, oversized frames", &["truncated frames", "malformed frames", "oversized frames"]),
    (
        "an undecodable object among good ones, in each of list, ADDED, MODIFIED and DELETED",
        &["an undecodable object among good ones: in a list", "… in ADDED", "… in MODIFIED", "… in DELETED"],
    ),
    ("duplicate keys in a list", &["duplicate keys in a list"]),
    ("a version that goes back (history replaced)", &["a version that goes back (history replaced)"]),
    (
        "a transient 404 and a real CRD removal and return",
        &["a transient 404", "a real CRD removal and return"],
    ),
    ("server restart", &["server restart"]),
    ("etcd compaction", &["etcd compaction (on a real server: `tests/real_cluster.rs`)"]),
    ("delete+recreate across a gap", &["delete+recreate across a gap"]),
    ("handler that panics", &["handler that panics"]),
    ("blocks", &["handler that blocks"]),
    ("is slow", &["handler that is slow"]),
    ("index function that panics", &["index function that panics"]),
    ("token expiry (401)", &["token expiry (401)"]),
    ("the clock jumping", &["the clock jumping"]),
];

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
                let name = lines.next().unwrap().trim_start_matches("async fn ").trim_end_matches("() {");
                tests.insert(format!("{module}::{name}"));
            }
        }
    }
    tests
}

#[test]
fn every_fault_of_the_guarantees_has_its_tests() {
    let rows = rows();
    let guarantees =
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/informer/src/manual/guarantees.md"));
    let text = guarantees.split("## Faults that the tests inject").nth(1).expect("the list of faults");
    let text = text.split("After each:").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    // What is left of the list, once everything that is known is taken out, are the words between.
    let mut left = text.clone();
    for (words, faults) in FAULTS {
        assert!(left.contains(words), "{words:?} is not in the list: {text}");
        left = left.replacen(words, "", 1);
        for fault in faults {
            assert!(rows.iter().any(|(row, _)| row == fault), "{fault:?} is not in the table");
        }
    }
    let unknown: String =
        left.replace(" and ", " ").replace("(real server)", "").replace([',', ';', '.', ' '], "");
    assert!(unknown.is_empty(), "faults that no row stands for: {unknown:?} of {text}");
}

#[test]
fn the_table_names_every_test_and_no_other() {
    let named: BTreeSet<String> = rows().into_iter().flat_map(|(_, tests)| tests).collect();
    assert_eq!(named, tests());
}
