//! What the documents point to is there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        // The manual is rustdoc, which checks its links itself.
        if path.is_dir()
            && !["target", "bin", "manual", ".git", "node_modules"].iter().any(|not| name == *not)
        {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The targets of a document's links, but for those outside the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target).filter(|target| !target.contains("://"))
}

/// The anchor that a heading has.
fn anchor(heading: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || c == ' ' || c == '-' || c == '_';
    let text: String =
        heading.trim_start_matches('#').trim().chars().filter(|c| kept(*c)).collect();
    text.to_lowercase().replace(' ', "-")
}

#[test]
fn links_lead_somewhere() {
    let mut files = Vec::new();
    documents(&root(), &mut files);
    let (mut checked, mut broken) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable document");
        for link in links(&text) {
            let (path, part) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => file.clone(),
                path => file.with_file_name("").join(path),
            };
            let has_part = || {
                let text = fs::read_to_string(&target).unwrap_or_default();
                text.lines().any(|line| line.starts_with('#') && anchor(line) == part)
            };
            if !target.exists() || !part.is_empty() && !has_part() {
                broken.push(format!("{}: {link}", file.display()));
            }
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} links were found");
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn the_readmes_commands_are_those_that_ci_runs() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let ci = fs::read_to_string(root().join(".ci/run")).expect("CI's script");
    for mark in ["ci:first", "ci:test", "ci:doc"] {
        let comment = format!("<!-- {mark} -->");
        let (_, rest) =
            readme.split_once(&comment).unwrap_or_else(|| panic!("the README has no {comment}"));
        let block = rest.split("```").nth(1).unwrap_or_default();
        let commands = block.lines().filter(|line| line.starts_with("cargo ")).count();
        assert_eq!(commands, 1, "CI runs the one cargo command of the block behind {comment}");
        assert!(ci.contains(&format!(" {mark}")), "CI does not read the command behind {comment}");
    }
}
