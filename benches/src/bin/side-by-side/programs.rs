//! The programs that are measured.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use informer_benches::client::Target;
use informer_benches::events::EventFigures;
use informer_benches::figures::{Figures, Initial};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::runs::{Drain, HttpClient, Library, Run};
use crate::warm::warm;

/// How long one measurement may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Where they are.
pub(crate) struct Programs {
    ours: PathBuf,
    pub(crate) client_go: PathBuf,
    kube_runtime: PathBuf,
    pub(crate) etcd_writer: PathBuf,
}

/// How an informer runs, other than to be timed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mode {
    /// The heap is counted, which takes time.
    pub(crate) counted: bool,
    /// It goes on until a relist.
    pub(crate) relist: bool,
    /// It writes and decodes what it keeps, if that is bytes.
    pub(crate) access: bool,
}

/// A program that runs.
pub(crate) struct Running {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Programs {
    /// Builds the peers.
    pub(crate) async fn build() -> Result<Self> {
        let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
        let ours = std::env::current_exe()?;
        let client_go = go_build(&benches.join("peers"), "client-go").await?;
        let etcd_writer = go_build(&benches.join("peers"), "etcd-writer").await?;
        let profile = profile(&ours);
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.current_dir(benches).args(["build", "--quiet", "--profile", &profile]);
        build.args(["-p", "informer-peer-kube-runtime"]);
        // What `cargo run` sets would have build scripts run again that look at it.
        for (name, _) in std::env::vars_os() {
            if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|of| name.to_string_lossy().starts_with(of)) {
                build.env_remove(name);
            }
        }
        if cfg!(feature = "mimalloc") {
            build.args(["--features", "informer-peer-kube-runtime/mimalloc"]);
        }
        succeed(build).await.context("cargo build, of the peer kube-runtime")?;
        let kube_runtime = ours.with_file_name("informer-peer-kube-runtime");
        ensure!(kube_runtime.exists(), "{} was not built", kube_runtime.display());
        Ok(Self { ours, client_go, kube_runtime, etcd_writer })
    }

    /// Starts an informer.
    pub(crate) fn start(&self, run: Run, target: &Target, mode: Mode) -> Result<Running> {
        let target = target.argument()?;
        let mut command = match run.library {
            Library::ClientGo => {
                let mut command = Command::new(&self.client_go);
                command.arg("sync").args(go_target(&target)).args(["--kind", &argument(run.kept)]);
                command.args(["--wire", &argument(run.wire)]).args(as_list(run.initial));
                command
            }
            Library::KubeRuntime => {
                let mut command = Command::new(&self.kube_runtime);
                command.args([&argument(run.kept), &argument(run.initial), &target]);
                command
            }
            Library::Informer | Library::InformerStream => {
                let mut command = Command::new(&self.ours);
                command.args(["sync", &argument(run.kept), &argument(run.initial), &target]);
                command.args(["--wire", &argument(run.wire)]).args(mode.access.then_some("--access"));
                command
            }
        };
        command.args(run.stripped.then_some("--strip"));
        command.args(mode.counted.then_some("--counted")).args(mode.relist.then_some("--relist"));
        if !mode.counted {
            warm();
        }
        Running::start(command)
    }

    /// Runs an informer until it has synced.
    pub(crate) async fn sync(&self, run: Run, target: &Target) -> Result<Figures> {
        self.start(run, target, Mode::default())?.only().await
    }

    /// Runs a drain.
    pub(crate) async fn drain(&self, drain: Drain, target: &Target) -> Result<Figures> {
        let target = target.argument()?;
        let mut command = match drain.client {
            HttpClient::Go => {
                let mut command = Command::new(&self.client_go);
                command.arg("drain").args(go_target(&target)).args(["--wire", &argument(drain.wire)]);
                command.args(as_list(drain.initial));
                command
            }
            HttpClient::Rust => {
                let mut command = Command::new(&self.ours);
                command.args(["drain", &argument(drain.initial), &argument(drain.wire), &target]);
                command.args(drain.paged.then_some("--page-size=500"));
                command
            }
        };
        command.args(drain.metadata.then_some("--metadata"));
        Running::start(command)?.only().await
    }

    /// Starts an informer that goes on for so many bursts of updates.
    pub(crate) fn start_events(
        &self,
        run: Run,
        target: &Target,
        bursts: usize,
        counted: bool,
    ) -> Result<Running> {
        let target = target.argument()?;
        let mut command = match run.library {
            Library::ClientGo => {
                let mut command = Command::new(&self.client_go);
                command.arg("events").args(go_target(&target)).args(["--wire", &argument(run.wire)]);
                command
            }
            Library::KubeRuntime => {
                let mut command = Command::new(&self.kube_runtime);
                command.args([&argument(run.kept), &argument(run.initial), &target]);
                command
            }
            Library::Informer | Library::InformerStream => {
                let mut command = Command::new(&self.ours);
                command.args(["events", &argument(run.kept), &argument(run.wire), &target]);
                command.args((run.library == Library::InformerStream).then_some("--stream"));
                command
            }
        };
        command.args(["--bursts", &bursts.to_string()]).args(counted.then_some("--counted"));
        Running::start(command)
    }

    /// Starts a drain of the same.
    pub(crate) fn start_events_drain(
        &self,
        drain: Drain,
        target: &Target,
        bursts: usize,
        counted: bool,
    ) -> Result<Running> {
        let target = target.argument()?;
        let mut command = match drain.client {
            HttpClient::Go => {
                let mut command = Command::new(&self.client_go);
                command.args(["events", "--drain"]).args(go_target(&target));
                command.args(["--wire", &argument(drain.wire)]);
                command
            }
            HttpClient::Rust => {
                let mut command = Command::new(&self.ours);
                command.args(["events-drain", &argument(drain.wire), &target]);
                command
            }
        };
        command.args(["--bursts", &bursts.to_string()]).args(counted.then_some("--counted"));
        Running::start(command)
    }
}

impl Running {
    fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().with_context(|| format!("{command:?} does not start"))?;
        let lines = BufReader::new(process.stdout.take().context("no pipe")?).lines();
        Ok(Self { process, lines })
    }

    /// The figures of the next phase.
    pub(crate) async fn next(&mut self) -> Result<Figures> {
        self.line().await
    }

    /// The figures of the next burst of updates.
    pub(crate) async fn next_events(&mut self) -> Result<EventFigures> {
        self.line().await
    }

    async fn line<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = timeout(PATIENCE, self.lines.next_line()).await.context("it takes too long")??;
        Ok(serde_json::from_str(&line.context("it ended early")?)?)
    }

    /// Waits for its end.
    pub(crate) async fn end(mut self) -> Result<()> {
        let status = timeout(PATIENCE, self.process.wait()).await.context("it does not end")??;
        ensure!(status.success(), "it failed: {status}");
        Ok(())
    }

    async fn only(mut self) -> Result<Figures> {
        let figures = self.next().await?;
        self.end().await?;
        Ok(figures)
    }
}

/// The profile that a program was built with, which names the folder that it is in.
pub(crate) fn profile(program: &Path) -> String {
    match program.parent().and_then(Path::file_name) {
        Some(folder) if folder != "debug" => folder.to_string_lossy().into_owned(),
        _ => "dev".to_owned(),
    }
}

/// Builds a peer in Go, and tells where it is.
async fn go_build(peers: &Path, name: &str) -> Result<PathBuf> {
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

fn as_list(initial: Initial) -> Option<&'static str> {
    (initial == Initial::List).then_some("--initial=list")
}

/// As clap has it.
fn argument<V: ValueEnum + Copy>(value: V) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
