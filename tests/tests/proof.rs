//! The manual's table of guarantees, tests and planted bugs is made from the sources, and is
//! complete.
//!
//! `INFORMER_WRITE_PROOF=1 cargo test -p informer-tests --test proof` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const GUARANTEES: &str = "crates/informer/src/manual/guarantees.md";
const PROOF: &str = "crates/informer/src/manual/proof.md";

const PREFACE: &str = "\
The tests of each guarantee, where they run, and the planted bugs: faults put into the code by hand, each of which
makes one of these tests fail.

`tests/tests/proof.rs` writes this table from the sources. Where tests run:
- *core*: on `informer-core` alone, with a clock that the test owns;
- *library*: on this crate, with a scripted source or the test kit, mostly under tokio's paused clock;
- *test kit*: end to end on the in-memory API server, with its faults;
- *both*: the same test, on the in-memory API server and on a real etcd and kube-apiserver; tests that depend on the
  encoding run with protobuf and with JSON, and with objects kept decoded and as bytes;
- *real*: on a real API server only, because they need what the test kit lacks.

`informer-core/tests/simulation` also runs ten thousand random histories of the whole core against a model server with
faults, and checks the guarantees after every step. `tests/planted/run` plants the bugs one by one and expects a test
to fail for each.

| guarantee | tests | planted bugs |
|---|---|---|
";

#[test]
fn every_guarantee_has_tests_and_planted_bugs_and_the_manual_lists_them() {
    let guarantees = guarantees();
    assert_eq!(guarantees.len(), 35, "{guarantees:?}");
    let (tests, bugs) = (tests(), planted_bugs());
    for number in tests.keys().chain(bugs.keys()) {
        assert!(guarantees.contains_key(number), "there is no G{number}");
    }
    let mut table = PREFACE.to_owned();
    for (number, title) in &guarantees {
        let tests = tests.get(number).unwrap_or_else(|| panic!("no test is named g{number:02}_"));
        let bugs = bugs.get(number).unwrap_or_else(|| panic!("no bug is planted for G{number}"));
        let mut cells = Vec::new();
        for place in Place::ALL {
            let names: Vec<_> = tests
                .iter()
                .filter(|(at, _)| *at == place)
                .map(|(_, name)| format!("`{name}`"))
                .collect();
            if !names.is_empty() {
                cells.push(format!("*{}*: {}", place.name(), names.join(", ")));
            }
        }
        let bugs: Vec<_> = bugs.iter().cloned().collect();
        writeln!(
            table,
            "| **G{number}** {title} | {} | {} |",
            cells.join("<br>"),
            bugs.join("<br>")
        )
        .expect("a String takes all");
    }
    let path = root().join(PROOF);
    if std::env::var_os("INFORMER_WRITE_PROOF").is_some() {
        fs::write(&path, &table).expect("a writable manual");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == table,
        "{PROOF} is not what the sources say: run this test with INFORMER_WRITE_PROOF=1"
    );
}

/// Where a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Core,
    Library,
    TestKit,
    Both,
    Real,
}

impl Place {
    const ALL: [Self; 5] = [Self::Core, Self::Library, Self::TestKit, Self::Both, Self::Real];

    fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Library => "library",
            Self::TestKit => "test kit",
            Self::Both => "both",
            Self::Real => "real",
        }
    }

    fn of(file: &Path, on_both_arms: bool) -> Self {
        let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        match () {
            () if on_both_arms => Self::Both,
            () if name.starts_with("real") => Self::Real,
            () if file.starts_with(root().join("crates/informer-core")) => Self::Core,
            () if file.starts_with(root().join("tests")) => Self::TestKit,
            () => Self::Library,
        }
    }
}

/// The titles by number.
fn guarantees() -> BTreeMap<u8, String> {
    let text = fs::read_to_string(root().join(GUARANTEES)).expect("the guarantees");
    let titles = text.lines().filter_map(|line| line.strip_prefix("- **G"));
    titles
        .map(|line| {
            let (number, rest) = line.split_once(' ').expect("a number and a title");
            let (title, _) = rest.split_once("**").expect("a title in bold");
            let title = title.replace("(beyond)", "").trim().trim_end_matches('.').to_owned();
            (number.parse().expect("a number"), title)
        })
        .collect()
}

/// The tests by the number that their names begin with.
fn tests() -> BTreeMap<u8, BTreeSet<(Place, String)>> {
    let mut found: BTreeMap<u8, BTreeSet<(Place, String)>> = BTreeMap::new();
    for file in rust_files() {
        let text = fs::read_to_string(&file).expect("a readable file");
        for (at, _) in text.match_indices('g') {
            let Some((number, name)) = test_name(&text[at..]) else { continue };
            let before = text[..at].trim_end();
            let kind = ["own", "flavours"].into_iter().find_map(|kind| before.strip_suffix(kind));
            let before = kind.map_or(before, str::trim_end);
            let place = if before.ends_with("on_both_arms!(") {
                Place::of(&file, true)
            } else if before.ends_with("!(") || before.ends_with("fn") {
                Place::of(&file, false)
            } else {
                continue;
            };
            found.entry(number).or_default().insert((place, name.to_owned()));
        }
    }
    found
}

/// `g05_name` at the beginning of the text.
fn test_name(text: &str) -> Option<(u8, &str)> {
    let number = text.get(1..3)?.parse().ok()?;
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    (text.get(3..4)? == "_").then(|| (number, &text[..end]))
}

/// What was planted, by the number of the guarantee.
fn planted_bugs() -> BTreeMap<u8, BTreeSet<String>> {
    let mut found: BTreeMap<u8, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(root().join("tests/planted")).expect("planted bugs").flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "patch") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a readable patch");
        let field = |name: &str| {
            let line = text
                .lines()
                .take_while(|line| *line != "---")
                .find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{:?} has no line {name}", entry.file_name()))
                .trim()
                .to_owned()
        };
        let bug = field("Bug:").trim_end_matches('.').to_owned();
        for guarantee in field("Guarantee:").split(',').map(str::trim) {
            if let Some(number) = guarantee.strip_prefix('G') {
                let number =
                    number.parse().unwrap_or_else(|_| panic!("{guarantee} is no guarantee"));
                found.entry(number).or_default().insert(bug.clone());
            }
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

fn rust_files() -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a readable folder").flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != "target" {
                collect(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    for folder in ["crates", "tests"] {
        collect(&root().join(folder), &mut files);
    }
    files
}
