//! A controller in a process of its own, which says in lines of JSON what it does.

use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use informer_peer_controllers::Line;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, sleep};

/// Which library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Library {
    /// This one
    Informer,
    /// kube-runtime
    KubeRuntime,
    /// controller-runtime, as it comes
    ControllerRuntime,
    /// controller-runtime with `EnableReadYourWritesConsistency`
    ControllerRuntimeConsistent,
}

/// A running controller. Dropping it kills the process.
pub(crate) struct Peer {
    pub(crate) version: String,
    said: Arc<Mutex<Said>>,
    process: Child,
}

/// What it has said so far.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) reconciles: Vec<Reconcile>,
    pub(crate) failed: Vec<(u64, String)>,
    pub(crate) five: Option<u64>,
}

/// What a reconcile acted on.
#[derive(Debug, Clone)]
pub(crate) struct Reconcile {
    pub(crate) at: u64,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) generation: i64,
    pub(crate) wanted: usize,
    pub(crate) children: Vec<String>,
}

impl Library {
    /// The heading of its column.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Informer => "informer",
            Self::KubeRuntime => "kube-runtime",
            Self::ControllerRuntime => "controller-runtime",
            Self::ControllerRuntimeConsistent => "controller-runtime, experiment",
        }
    }

    /// Its name in requests and namespaces.
    pub(crate) const fn agent(self) -> &'static str {
        match self {
            Self::Informer => "informer",
            Self::KubeRuntime => "kube-runtime",
            Self::ControllerRuntime => "controller-runtime",
            Self::ControllerRuntimeConsistent => "consistent",
        }
    }
}

impl Peer {
    /// Starts a program.
    pub(crate) async fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().with_context(|| format!("{command:?} does not start"))?;
        let mut lines = BufReader::new(process.stdout.take().context("stdout is piped")?).lines();
        let first = lines.next_line().await?.context("it ended at once, see stderr")?;
        let Line::Hello { version, .. } = serde_json::from_str(&first)? else {
            bail!("it begins with {first}")
        };
        let said = Arc::new(Mutex::new(Said::default()));
        tokio::spawn(read(lines, Arc::clone(&said)));
        Ok(Self { version, said, process })
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> Result<usize> {
        let id = self.process.id().context("it has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kibibytes.context("no VmRSS")?.parse::<usize>()? * 1024)
    }

    /// Waits until what it has said is so; how long that took, or nothing after `most`.
    pub(crate) async fn until(
        &self,
        most: Duration,
        mut is_so: impl FnMut(&Said) -> bool,
    ) -> Option<Duration> {
        let began = Instant::now();
        while !is_so(&self.said()) {
            if began.elapsed() >= most {
                return None;
            }
            sleep(Duration::from_millis(1)).await;
        }
        Some(began.elapsed())
    }

    /// Sends a signal.
    pub(crate) async fn signal(&self, name: &str) -> Result<()> {
        let id = self.process.id().context("it has ended")?.to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().await?;
        ensure!(status.success(), "kill: {status}");
        Ok(())
    }

    /// Ends the process.
    pub(crate) async fn stop(mut self) -> Result<Said> {
        ensure!(!self.has_ended(), "the controller has ended by itself: {:?}", self.said().failed);
        self.process.kill().await?;
        Ok(std::mem::take(&mut *self.said()))
    }
}

async fn read(mut lines: Lines<BufReader<ChildStdout>>, said: Arc<Mutex<Said>>) {
    while let Ok(Some(text)) = lines.next_line().await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::from_str(&text) {
            Ok(Line::Hello { .. }) => {}
            Ok(Line::Reconcile { at, name, uid, version, generation, wanted, children }) => {
                let reconcile = Reconcile { at, name, uid, version, generation, wanted, children };
                said.reconciles.push(reconcile);
            }
            Ok(Line::Failed { at, message }) => said.failed.push((at, message)),
            Ok(Line::Five { at }) => said.five = Some(at),
            Err(error) => eprintln!("controllers: {error} in {text}"),
        }
    }
}
