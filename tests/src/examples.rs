//! The examples of the informer crate, built once for each test process and run as processes.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Child;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::helpers::eventually_ok;

/// For what takes milliseconds, or a resync of five seconds.
const SOON: Duration = Duration::from_secs(60);

/// An example that runs. Dropping it kills it.
#[derive(Debug)]
pub struct Example {
    name: String,
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    readers: [JoinHandle<()>; 2],
}

/// How an example ended, and what it printed.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// The lines of its stdout and stderr, as they came.
    pub lines: Vec<String>,
}

impl Example {
    /// Runs the example `name` against the cluster of a kubeconfig.
    ///
    /// # Errors
    ///
    /// When the examples do not build, or there is none of this name.
    pub async fn run(name: &str, kubeconfig: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let executable = spawn_blocking(built).await??.folder.join(name);
        let mut child = tokio::process::Command::new(&executable)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} does not run", executable.display()))?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stdout = child.stdout.take().context("stdout is piped")?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        let readers = [read(stdout, Arc::clone(&lines)), read(stderr, Arc::clone(&lines))];
        Ok(Self { name: name.to_owned(), child, lines, readers })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has printed so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it has printed such a line, and returns the first.
    ///
    /// # Errors
    ///
    /// When it has not within a minute, with all that it printed.
    pub async fn line(&self, is_it: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let find = async || {
            let lines = self.lines();
            let found = lines.iter().find(|line| is_it(line)).cloned();
            found.with_context(|| format!("{} printed only:\n{}", self.name, lines.join("\n")))
        };
        eventually_ok("it prints what is expected", SOON, find).await
    }

    /// Sends it what Ctrl-C sends, and waits for its end.
    ///
    /// # Errors
    ///
    /// When it does not end within a minute.
    pub async fn interrupt(self) -> anyhow::Result<Ended> {
        let id = self.child.id().with_context(|| format!("{} has ended already", self.name))?;
        let kill = move || Command::new("kill").arg("-INT").arg(id.to_string()).status();
        ensure!(spawn_blocking(kill).await??.success(), "{} cannot be interrupted", self.name);
        self.end().await
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// When it does not end within a minute.
    pub async fn end(mut self) -> anyhow::Result<Ended> {
        let Ok(status) = timeout(SOON, self.child.wait()).await else {
            bail!("{} does not end; it printed:\n{}", self.name, self.lines().join("\n"));
        };
        let status = status?;
        for reader in &mut self.readers {
            reader.await?;
        }
        Ok(Ended { status, lines: self.lines() })
    }
}

/// The source files of all examples, by name.
///
/// # Errors
///
/// When they cannot be read.
pub fn sources() -> anyhow::Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(crate_folder().join("examples"))? {
        let path = entry?.path();
        let name = path.file_stem().context("a file has a name")?.to_string_lossy().into_owned();
        sources.push((name, std::fs::read_to_string(&path)?));
    }
    sources.sort();
    Ok(sources)
}

/// The libraries that the examples are linked with, to compile something else with them.
#[derive(Debug)]
pub struct Libraries(Vec<(String, PathBuf)>);

/// Builds the examples, and returns the libraries that they are linked with.
///
/// # Errors
///
/// When the examples do not build.
pub fn libraries() -> anyhow::Result<Libraries> {
    Ok(Libraries(built()?.libraries))
}

impl Libraries {
    /// The library of this name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn path(&self, name: &str) -> anyhow::Result<&Path> {
        let found = self.0.iter().find(|(library, _)| library == name);
        Ok(&found.with_context(|| format!("the examples are not linked with {name}"))?.1)
    }

    /// The folder with the libraries that those are linked with.
    #[must_use]
    pub fn dependencies(&self) -> &Path {
        self.0.first().and_then(|(_, path)| path.parent()).unwrap_or_else(|| Path::new("."))
    }
}

/// The examples, built with the profile of this test.
#[derive(Clone)]
struct Built {
    /// The folder that they are in.
    folder: PathBuf,
    libraries: Vec<(String, PathBuf)>,
}

fn built() -> anyhow::Result<Built> {
    static BUILT: OnceLock<Result<Built, String>> = OnceLock::new();
    BUILT
        .get_or_init(|| build().map_err(|error| format!("{error:#}")))
        .clone()
        .map_err(anyhow::Error::msg)
}

fn build() -> anyhow::Result<Built> {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "build",
        "-p",
        "informer",
        "--examples",
        "--message-format=json-render-diagnostics",
    ]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    // What cargo says of this package to its tests would make the build scripts of others run
    // again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    let output = command
        .current_dir(crate_folder())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not run")?;
    ensure!(output.status.success(), "the examples do not build, see above");
    let lines = output.stdout.split(|&byte| byte == b'\n');
    let artifacts: Vec<Artifact> =
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let executable = artifacts
        .iter()
        .filter(|artifact| artifact.target.kind.iter().any(|kind| kind == "example"))
        .find_map(|artifact| artifact.executable.as_ref())
        .context("cargo built no example")?;
    let folder = executable.parent().context("a file is in a folder")?.to_owned();
    let libraries = artifacts.into_iter().filter_map(|Artifact { target, filenames, .. }| {
        let library =
            filenames.into_iter().find(|file| file.extension().is_some_and(|it| it == "rlib"))?;
        // In the folder of the dependencies, where cargo keeps those of a library's own, too.
        let name = target.name.replace('-', "_");
        Some((name, library))
    });
    Ok(Built { folder, libraries: libraries.collect() })
}

fn crate_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/informer")
}

/// A line of cargo's output about something it built.
#[derive(Deserialize)]
struct Artifact {
    target: Target,
    filenames: Vec<PathBuf>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

fn read(
    output: impl AsyncRead + Unpin + Send + 'static,
    lines: Arc<Mutex<Vec<String>>>,
) -> JoinHandle<()> {
    let mut output = BufReader::new(output).lines();
    tokio::spawn(async move {
        while let Ok(Some(line)) = output.next_line().await {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    })
}
