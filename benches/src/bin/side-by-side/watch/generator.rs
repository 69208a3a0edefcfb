//! The process that holds the watches, as seen from here.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use informer_benches::client::Target;
use informer_benches::client::watches::{Counts, Opened, Order};
use informer_benches::figures::Wire;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::programs::{PATIENCE, argument};

/// All Pods, as client-go watches them.
pub(super) const ALL_PODS: &str =
    "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=3600";

/// How its watches are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// At once.
    Full,
    /// At once, and it is told how late they are.
    Timed,
    /// So many bytes, then a pause.
    Slow { piece: usize, pause: Duration },
    /// Not.
    Never,
}

/// How its watches ask. Those that are not read at once speak HTTP/1.1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) wire: Wire,
    pub(super) http2: bool,
}

/// A process with watches of one server.
pub(super) struct Generator {
    process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    _paths: NamedTempFile,
}

impl Generator {
    /// One whose watches take these paths in turn.
    pub(super) fn start(
        target: &Target,
        asked: Asked,
        pace: Pace,
        paths: &[String],
    ) -> Result<Self> {
        let file = NamedTempFile::new()?;
        fs::write(&file, paths.join("\n"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["watches", &argument(asked.wire), &target.argument()?]).arg(file.path());
        match pace {
            Pace::Full => drop(command.args(asked.http2.then_some("--http2"))),
            Pace::Timed => {
                command.arg("--latencies").args(asked.http2.then_some("--http2"));
            }
            Pace::Slow { piece, pause } => {
                command.args(["--piece", &piece.to_string()]);
                command.args(["--pause", &pause.as_millis().to_string()]);
            }
            Pace::Never => drop(command.arg("--unread")),
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let (orders, answers) =
            process.stdin.take().zip(process.stdout.take()).context("no pipes")?;
        let answers = BufReader::new(answers).lines();
        Ok(Self { process, orders, answers, _paths: file })
    }

    /// Opens so many more; how long that took.
    pub(super) async fn open(&mut self, count: usize, version: &str) -> Result<Duration> {
        let order = Order::Open { count, version: version.to_owned() };
        let Opened { opened, failure, took_us } = self.order(&order).await?;
        ensure!(opened == count, "{opened} of {count} watches were opened: {failure:?}");
        Ok(Duration::from_micros(took_us))
    }

    /// Waits until so many changes have come since the last counts, or none has for a while.
    pub(super) async fn wait(&mut self, changes: usize, quiet: Duration) -> Result<Counts> {
        let (changes, quiet_ms) = (changes as u64, quiet.as_millis().try_into()?);
        self.order(&Order::Wait { changes, quiet_ms }).await
    }

    /// What has come since the last counts.
    pub(super) async fn count(&mut self) -> Result<Counts> {
        self.order(&Order::Count).await
    }

    /// From now on, all that there is is read.
    pub(super) async fn hurry(&mut self) -> Result<Counts> {
        self.order(&Order::Hurry).await
    }

    /// Closes all watches and ends.
    pub(super) async fn close(mut self) -> Result<()> {
        let _: Counts = self.order(&Order::Close).await?;
        let Self { mut process, orders, answers: _answers, _paths } = self;
        drop(orders);
        let status = timeout(PATIENCE, process.wait()).await.context("it does not end")??;
        ensure!(status.success(), "the process with the watches failed: {status}");
        Ok(())
    }

    async fn order<T: DeserializeOwned>(&mut self, order: &Order) -> Result<T> {
        self.orders.write_all(format!("{}\n", serde_json::to_string(order)?).as_bytes()).await?;
        let line = timeout(PATIENCE, self.answers.next_line())
            .await
            .context("the process with the watches takes too long")??;
        Ok(serde_json::from_str(&line.context("the process with the watches ended early")?)?)
    }
}
