//! The process that changes Pods behind the API server's back.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::programs::PATIENCE;

/// `etcd-writer`, which obeys orders.
pub(crate) struct EtcdWriter {
    process: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl EtcdWriter {
    /// One that goes round over so many Pods. Compacts etcd.
    pub(crate) async fn start(program: &Path, etcd: &str, pods: usize) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["--endpoint", etcd, "--pods", &pods.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let (orders, lines) =
            process.stdin.take().zip(process.stdout.take()).context("no pipes")?;
        let mut writer = Self { process, orders, lines: BufReader::new(lines).lines() };
        let ready = writer.line().await?;
        ensure!(ready == "ready", "etcd-writer says {ready}");
        Ok(writer)
    }

    /// Writes so many updates, and behind them the last Pod.
    pub(crate) async fn write(&mut self, events: usize, per_second: usize) -> Result<()> {
        self.orders.write_all(format!("{events} {per_second}\n").as_bytes()).await?;
        // What it took is of no use here.
        self.line().await.map(drop)
    }

    /// Removes the last Pod.
    pub(crate) async fn end(self) -> Result<()> {
        let Self { mut process, orders, lines: _lines } = self;
        drop(orders);
        let status =
            timeout(PATIENCE, process.wait()).await.context("etcd-writer does not end")??;
        ensure!(status.success(), "etcd-writer failed: {status}");
        Ok(())
    }

    async fn line(&mut self) -> Result<String> {
        let line = timeout(PATIENCE, self.lines.next_line())
            .await
            .context("etcd-writer takes too long")??;
        line.context("etcd-writer ended early")
    }
}
