//! What the documents say of the repository is true.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != "bin" {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The names of all functions and two-armed bodies in the repository.
fn functions() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates", "tests", "benches"] {
        rust_files(&root().join(folder), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable file");
        for start in ["fn ", "on_both_arms!(own ", "on_both_arms!("] {
            for (at, _) in text.match_indices(start) {
                let rest = &text[at + start.len()..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                names.insert(rest[..end].to_owned());
            }
        }
    }
    names
}

#[test]
fn every_test_that_the_map_names_exists() {
    let map = fs::read_to_string(root().join("docs/client-go-map.md")).expect("the map");
    let functions = functions();
    let mut rows = 0;
    for row in map.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| client-go")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let test = cells.last().expect("a row has cells").trim_matches('|').trim();
        rows += 1;
        if test == "—" || test.starts_with("example of") {
            continue;
        }
        let name = test.trim_matches('`');
        assert!(functions.contains(name), "no test is named {name:?}: {row}");
    }
    assert!(rows > 50, "only {rows} rows were found");
}

#[test]
fn the_readmes_commands_are_those_that_ci_runs() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let ci = fs::read_to_string(root().join(".ci/run")).expect("CI's script");
    for mark in ["<!-- ci:first -->", "<!-- ci:test -->"] {
        let (_, rest) = readme.split_once(mark).unwrap_or_else(|| panic!("the README has no {mark}"));
        let block = rest.split("```").nth(1).unwrap_or_default();
        let commands = block.lines().filter(|line| line.starts_with("cargo ")).count();
        assert_eq!(commands, 1, "CI runs the one cargo command of the block behind {mark}");
        assert!(ci.contains(mark), "CI does not read the command behind {mark}");
    }
}

#[test]
fn examples_fit_on_a_screen_or_two() {
    let mut files = Vec::new();
    rust_files(&root().join("crates/informer/examples"), &mut files);
    assert!(files.len() >= 5);
    for file in files {
        let lines = fs::read_to_string(&file).expect("a readable file").lines().count();
        assert!(lines <= 80, "{} has {lines} lines", file.display());
    }
}
