//! What `--version` says of the build: the commit, the compiler and the target.
//!
//! No time and no path, so that building the same sources again gives the same program.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// How much of a commit's hash is shown.
const SHOWN: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=INFORMER_COMMIT");
    let commit = commit().unwrap_or_else(|| "unknown".to_owned());
    let compiler = output(Command::new(env::var_os("RUSTC").unwrap_or_default()).arg("--version"));
    let compiler = compiler.unwrap_or_else(|| "rustc".to_owned());
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=INFORMER_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=INFORMER_BUILD_COMPILER={compiler}");
    println!("cargo::rustc-env=INFORMER_BUILD_TARGET={target}");
}

/// The commit that is built, with `-dirty` behind it if something is not committed. The first that
/// knows it answers: the environment, the file that cargo adds to published packages, git.
fn commit() -> Option<String> {
    if let Some(given) = env::var("INFORMER_COMMIT").ok().filter(|it| !it.is_empty()) {
        return Some(shortened(&given));
    }
    if let Ok(package) = fs::read_to_string(".cargo_vcs_info.json") {
        let hash = package.split("\"sha1\"").nth(1)?.split('"').nth(1)?;
        let dirty = if package.contains("\"dirty\": true") { "-dirty" } else { "" };
        return Some(shortened(hash) + dirty);
    }
    // A build for debugging would be compiled anew after every commit.
    if env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    // Sources that lie in the repository of another project are not its commit.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let described = git(&["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"])?;
    for changed in ["logs/HEAD", "HEAD"] {
        let file = git(&["rev-parse", "--git-path", changed])?;
        if Path::new(&file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    // Whether something is not committed changes with the sources. Those of the other crates are in
    // this program too.
    for sources in ["..", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={sources}");
    }
    let (hash, dirty) = described.split_at(described.find('-').unwrap_or(described.len()));
    Some(shortened(hash) + dirty)
}

fn shortened(hash: &str) -> String {
    hash.trim().chars().take(SHOWN).collect()
}

fn git(arguments: &[&str]) -> Option<String> {
    output(Command::new("git").args(arguments))
}

/// What a command prints, in one line, if it succeeds.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|it| it.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
