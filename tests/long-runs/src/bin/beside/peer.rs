//! One side: a process with an informer of Pods, the lines that it writes, and the orders that it
//! takes.
//!
//! `benches/peers/client-go` writes the same lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// The subcommand of both programs that runs an informer and tells what its handler is told.
pub(crate) const HISTORY: &str = "history";

/// How long an answer to an order may take.
const ANSWER: Duration = Duration::from_secs(120);

/// What a program writes, one line each.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(crate) enum Line {
    /// The first line.
    Hello { library: String, version: String },
    /// A call of the handler.
    Added(Call),
    /// A call of the handler.
    Updated(Call),
    /// A call of the handler.
    Deleted(Call),
    /// The answer to `report`.
    Report(Report),
    /// The answer to `handled`: the version that the handler was last given for each key.
    Handled { versions: BTreeMap<String, String> },
}

/// What a handler was given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Call {
    pub(crate) key: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    /// The old state of an update.
    #[serde(default)]
    pub(crate) from_uid: String,
    /// The old state of an update.
    #[serde(default)]
    pub(crate) from_resource_version: String,
    #[serde(default)]
    pub(crate) initial: bool,
    /// Of a deletion that was found out later.
    #[serde(default)]
    pub(crate) final_state_unknown: bool,
}

/// How a side is doing; counts are since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) synced: bool,
    pub(crate) stored: usize,
    pub(crate) added: u64,
    pub(crate) updated: u64,
    /// Updates whose old and new state have the same UID and version.
    pub(crate) updated_unchanged: u64,
    pub(crate) deleted: u64,
    /// After what is free was collected.
    pub(crate) heap_bytes: usize,
    pub(crate) resident_bytes: usize,
    /// Events that wait for the handler; client-go does not tell.
    #[serde(default)]
    pub(crate) waiting: usize,
    /// Objects of relists that were known already; client-go does not tell.
    #[serde(default)]
    pub(crate) unchanged: u64,
    /// Log lines, or errors of the status.
    pub(crate) said: Vec<String>,
}

/// A running side. Dropping it ends its process.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) version: String,
    calls: Arc<Mutex<Vec<Line>>>,
    answers: mpsc::UnboundedReceiver<Line>,
    orders: ChildStdin,
    _process: Child,
}

impl Peer {
    /// Starts `program history` with `arguments`.
    pub(crate) async fn start(program: &Path, arguments: &[String]) -> Result<Self> {
        let mut process = Command::new(program)
            .arg(HISTORY)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let orders = process.stdin.take().context("stdin is piped")?;
        let mut lines = BufReader::new(process.stdout.take().context("stdout is piped")?).lines();
        let first = lines.next_line().await?.context("it ended at once, see stderr")?;
        let Line::Hello { version, .. } = serde_json::from_str(&first)? else {
            bail!("it begins with {first}")
        };
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (sender, answers) = mpsc::unbounded_channel();
        tokio::spawn(read(lines, Arc::clone(&calls), sender));
        Ok(Self { version, calls, answers, orders, _process: process })
    }

    /// The calls of its handler so far, unless it is quiet.
    pub(crate) fn calls(&self) -> Vec<Line> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn report(&mut self) -> Result<Report> {
        match self.ask("report").await? {
            Line::Report(report) => Ok(report),
            other => bail!("no report: {other:?}"),
        }
    }

    /// The version that its handler was last given for each key.
    pub(crate) async fn handled(&mut self) -> Result<BTreeMap<String, String>> {
        match self.ask("handled").await? {
            Line::Handled { versions } => Ok(versions),
            other => bail!("not what was handled: {other:?}"),
        }
    }

    /// Lets a blocked handler go on.
    pub(crate) async fn release(&mut self) -> Result<()> {
        Ok(self.orders.write_all(b"release\n").await?)
    }

    async fn ask(&mut self, order: &str) -> Result<Line> {
        self.orders.write_all(format!("{order}\n").as_bytes()).await?;
        let answer = tokio::time::timeout(ANSWER, self.answers.recv()).await;
        answer
            .with_context(|| format!("no answer to {order}"))?
            .context("the process ended, see stderr")
    }
}

async fn read(
    mut lines: Lines<BufReader<ChildStdout>>,
    calls: Arc<Mutex<Vec<Line>>>,
    answers: mpsc::UnboundedSender<Line>,
) {
    while let Ok(Some(text)) = lines.next_line().await {
        match serde_json::from_str(&text) {
            Ok(call @ (Line::Added(_) | Line::Updated(_) | Line::Deleted(_))) => {
                calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
            }
            // Nobody may wait for it any more.
            Ok(answer) => _ = answers.send(answer),
            Err(error) => eprintln!("beside: {error} in {text}"),
        }
    }
}
