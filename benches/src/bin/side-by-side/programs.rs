//! The programs that are measured.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use informer_benches::client::Target;
use informer_benches::figures::Initial;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::runs::{Library, Run};
use crate::warm::warm;

/// How long one measurement may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The feature with which the programs of this workspace have the allocator of this one.
const ALLOCATOR: Option<&str> = if cfg!(feature = "mimalloc") { Some("mimalloc") } else { None };

/// Where they are.
pub(crate) struct Programs {
    ours: PathBuf,
    pub(crate) in_process: PathBuf,
    pub(crate) client_go: PathBuf,
    kube_runtime: PathBuf,
    pub(crate) etcd_writer: PathBuf,
}

/// A program that runs.
pub(crate) struct Running {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Programs {
    /// Builds the peers, and `in-process`.
    pub(crate) async fn build() -> Result<Self> {
        let ours = std::env::current_exe()?;
        let client_go = go_build("client-go").await?;
        let etcd_writer = build_etcd_writer().await?;
        let profile = profile(&ours);
        let in_process =
            cargo_build(&ours, &profile, "informer-benches", "in-process", ALLOCATOR).await?;
        let kube_runtime = cargo_build(
            &ours,
            &profile,
            "informer-peer-kube-runtime",
            "informer-peer-kube-runtime",
            ALLOCATOR,
        )
        .await?;
        Ok(Self { ours, in_process, client_go, kube_runtime, etcd_writer })
    }

    /// Starts an informer. If its heap is counted, it goes on until a relist.
    pub(crate) fn sync(&self, run: Run, target: &Target, counted: bool) -> Result<Running> {
        let target = target.argument()?;
        let (wire, initial) = (argument(run.wire), argument(run.initial));
        let mut command = match run.library {
            Library::ClientGo => {
                let mut command = Command::new(&self.client_go);
                command.arg("sync").args(go_target(&target)).args(["--wire", &wire]);
                command.args((run.initial == Initial::List).then_some("--initial=list"));
                command
            }
            Library::KubeRuntime => {
                let mut command = Command::new(&self.kube_runtime);
                command.args([&initial, &target]);
                command
            }
            Library::Informer(kept) => {
                let mut command = Command::new(&self.ours);
                command.args(["sync", &argument(kept), &initial, &wire, &target]);
                command
            }
        };
        command.args(counted.then_some("--counted"));
        if !counted {
            warm();
        }
        Running::start(command)
    }

    /// Starts an informer that goes on until the last of the updates.
    pub(crate) fn events(&self, run: Run, target: &Target) -> Result<Running> {
        let target = target.argument()?;
        let command = match run.library {
            Library::ClientGo => {
                let mut command = Command::new(&self.client_go);
                command.arg("events").args(go_target(&target));
                command
            }
            Library::KubeRuntime => {
                let mut command = Command::new(&self.kube_runtime);
                command.args([&argument(run.initial), &target, "--events"]);
                command
            }
            Library::Informer(kept) => {
                let mut command = Command::new(&self.ours);
                command.args(["events", &argument(kept), &target]);
                command
            }
        };
        Running::start(command)
    }
}

/// Builds the program that people run, with the allocator that it has; its path.
pub(crate) async fn build_kubectl_informer() -> Result<PathBuf> {
    let ours = std::env::current_exe()?;
    cargo_build(&ours, &profile(&ours), "kubectl-informer", "kubectl-informer", None).await
}

/// Builds the program that changes Pods; its path.
pub(crate) async fn build_etcd_writer() -> Result<PathBuf> {
    go_build("etcd-writer").await
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().with_context(|| format!("{command:?} does not start"))?;
        let lines = BufReader::new(process.stdout.take().context("no pipe")?).lines();
        Ok(Self { process, lines })
    }

    /// Starts a program that takes orders on stdin.
    pub(crate) fn start_ordered(mut command: Command) -> Result<(Self, ChildStdin)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().with_context(|| format!("{command:?} does not start"))?;
        let (orders, lines) =
            process.stdin.take().zip(process.stdout.take()).context("no pipes")?;
        Ok((Self { process, lines: BufReader::new(lines).lines() }, orders))
    }

    /// The next line of figures.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line =
            timeout(PATIENCE, self.lines.next_line()).await.context("it takes too long")??;
        Ok(serde_json::from_str(&line.context("it ended early")?)?)
    }

    /// Waits for its end.
    pub(crate) async fn end(mut self) -> Result<()> {
        let status = timeout(PATIENCE, self.process.wait()).await.context("it does not end")??;
        ensure!(status.success(), "it failed: {status}");
        Ok(())
    }
}

/// The profile that a program was built with, which names the folder that it is in.
pub(crate) fn profile(program: &Path) -> String {
    match program.parent().and_then(Path::file_name) {
        Some(folder) if folder != "debug" => folder.to_string_lossy().into_owned(),
        _ => "dev".to_owned(),
    }
}

/// Builds a program beside ours, with the same profile; its path.
async fn cargo_build(
    ours: &Path,
    profile: &str,
    package: &str,
    program: &str,
    feature: Option<&str>,
) -> Result<PathBuf> {
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--profile", profile]);
    build.args(["-p", package, "--bin", program]);
    // What `cargo run` sets would have build scripts run again that look at it.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|of| name.to_string_lossy().starts_with(of))
        {
            build.env_remove(name);
        }
    }
    if let Some(feature) = feature {
        build.args(["--features", &format!("{package}/{feature}")]);
    }
    succeed(build).await.with_context(|| format!("cargo build, of {program}"))?;
    let path = ours.with_file_name(program);
    ensure!(path.exists(), "{} was not built", path.display());
    Ok(path)
}

/// Builds a peer in Go, and tells where it is.
async fn go_build(name: &str) -> Result<PathBuf> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let (folder, binary) = (peers.join(name), format!("bin/{name}"));
    let mut build = Command::new("go");
    build.current_dir(&folder).args(["build", "-o", &binary, "."]);
    succeed(build).await.with_context(|| format!("go build, of the peer {name}"))?;
    Ok(folder.join(binary))
}

async fn succeed(mut command: Command) -> Result<()> {
    let status = command.status().await?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// As Go's flags have it.
fn go_target(target: &str) -> [&str; 2] {
    match target.strip_prefix("recording:") {
        Some(path) => ["--recording", path],
        None => ["--kubeconfig", target],
    }
}

/// As clap has it.
pub(crate) fn argument<V: ValueEnum + Copy>(value: V) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
