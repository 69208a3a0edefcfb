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

/// The numbers of client-go's cases in `tests/CASES.md`; what is missing between them has no behaviour of its own.
#[rustfmt::skip]
const CASES: [u16; 143] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 21, 22,
    23, 24, 25, 26, 30, 31, 32, 34, 36, 39, 41, 43, 44, 45, 46, 49, 50, 52,
    53, 56, 60, 61, 63, 64, 66, 67, 69, 70, 72, 75, 76, 78, 79, 81, 85, 86,
    89, 90, 91, 93, 94, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108,
    110, 113, 122, 123, 124, 125, 127, 129, 130, 131, 132, 134, 136, 137, 138, 140, 141, 142,
    143, 144, 145, 147, 148, 149, 150, 151, 152, 153, 156, 158, 159, 160, 164, 165, 169, 174,
    175, 176, 177, 180, 189, 191, 192, 193, 198, 200, 201, 202, 205, 208, 210, 211, 213, 214,
    215, 218, 221, 222, 224, 226, 227, 228, 231, 232, 233, 234, 235, 237, 238, 239, 240,
];

/// What stands before the name of a two-armed body.
const BODIES: [&str; 3] = ["on_both_arms!(own ", "on_both_arms!(flavours ", "on_both_arms!("];

/// The names of all functions and two-armed bodies in the repository.
fn functions() -> BTreeSet<String> {
    functions_after(&["fn ", BODIES[0], BODIES[1], BODIES[2]])
}

/// The names in the repository's sources that stand after one of these words.
fn functions_after(starts: &[&str]) -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates", "tests", "benches"] {
        rust_files(&root().join(folder), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable file");
        for start in starts {
            for (at, _) in text.match_indices(*start) {
                let rest = text[at + start.len()..].trim_start();
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
fn every_case_of_client_go_has_a_test_or_a_reason() {
    let table = fs::read_to_string(root().join("tests/CASES.md")).expect("the table of cases");
    let (functions, bodies) = (functions(), functions_after(&BODIES));
    let mut numbers = Vec::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| case")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, number, what, test, _] = cells[..] else { panic!("not three columns: {row}") };
        numbers.push(number.parse::<u16>().expect("the first column is a number"));
        assert!(!what.is_empty(), "what does client-go do? {row}");
        assert!(!test.is_empty(), "neither a test nor a reason: {row}");
        let parts: Vec<&str> = test.split('`').collect();
        for name in parts.chunks(2).filter_map(|pair| pair.get(1)) {
            // Other code than names of tests may be there too: a path, a flag, a type.
            let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            if name.contains('_') && name.bytes().all(is_name) {
                assert!(functions.contains(*name), "no test is named {name:?}: {row}");
            }
        }
        for pair in parts.windows(2).filter(|pair| pair[1].starts_with(" *both*")) {
            assert!(bodies.contains(pair[0]), "{:?} does not run on both arms: {row}", pair[0]);
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, CASES);
}

#[test]
fn the_code_for_kube_runtime_is_that_of_a_test() {
    let page = fs::read_to_string(root().join("docs/kube-runtime.md")).expect("the page");
    let test = fs::read_to_string(root().join("tests/tests/controllers/kube_runtime.rs")).expect("the test");
    let blocks: Vec<_> =
        page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert!(test.contains(block.trim_end()), "not in the test:\n{block}");
    }
}

#[test]
fn the_readmes_commands_are_those_that_ci_runs() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let ci = fs::read_to_string(root().join(".ci/run")).expect("CI's script");
    for mark in ["ci:first", "ci:test", "ci:doc"] {
        let comment = format!("<!-- {mark} -->");
        let (_, rest) = readme.split_once(&comment).unwrap_or_else(|| panic!("the README has no {comment}"));
        let block = rest.split("```").nth(1).unwrap_or_default();
        let commands = block.lines().filter(|line| line.starts_with("cargo ")).count();
        assert_eq!(commands, 1, "CI runs the one cargo command of the block behind {comment}");
        assert!(ci.contains(&format!(" {mark}")), "CI does not read the command behind {comment}");
    }
}

#[test]
fn examples_fit_on_a_screen_or_two() {
    let mut files = Vec::new();
    rust_files(&root().join("crates/informer/examples"), &mut files);
    assert!(files.len() >= 5);
    for file in files {
        let lines = fs::read_to_string(&file).expect("a readable file").lines().count();
        let most = if file.ends_with("controller.rs") { 235 } else { 80 };
        assert!(lines <= most, "{} has {lines} lines", file.display());
    }
}
