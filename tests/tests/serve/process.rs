//! A program that runs beside a test, and what it prints.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(60);

/// A program that runs; dropping it kills it.
pub(crate) struct Process {
    shown: String,
    child: Child,
    lines: watch::Receiver<Vec<String>>,
    reader: JoinHandle<()>,
    said: JoinHandle<String>,
}

/// What a program that has ended printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printed {
    /// Without one it was ended by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Printed {
    pub(crate) fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When there is no such program.
    pub(crate) fn start<I: IntoIterator<Item: AsRef<OsStr>>>(
        program: &Path,
        arguments: I,
    ) -> anyhow::Result<Self> {
        Self::start_with(program, arguments, Stdio::null())
    }

    /// Starts a program that [reads](Self::tell) its stdin.
    ///
    /// # Errors
    ///
    /// When there is no such program.
    pub(crate) fn start_reading<I: IntoIterator<Item: AsRef<OsStr>>>(
        program: &Path,
        arguments: I,
    ) -> anyhow::Result<Self> {
        Self::start_with(program, arguments, Stdio::piped())
    }

    /// Writes a line to its stdin.
    ///
    /// # Errors
    ///
    /// When it reads none.
    pub(crate) async fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let stdin = self.child.stdin.as_mut().context("it reads nothing")?;
        Ok(stdin.write_all(format!("{line}\n").as_bytes()).await?)
    }

    fn start_with<I: IntoIterator<Item: AsRef<OsStr>>>(
        program: &Path,
        arguments: I,
        stdin: Stdio,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(stdin);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let shown = format!("{:?}", command.as_std());
        let mut child = command.spawn().with_context(|| format!("{shown} does not run"))?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        let (sender, lines) = watch::channel(Vec::new());
        let reader = tokio::spawn(read(stdout, sender));
        let said = tokio::spawn(async move {
            let mut text = String::new();
            let mut stderr = stderr;
            // What is no text is not compared.
            drop(stderr.read_to_string(&mut text).await);
            text
        });
        Ok(Self { shown, child, lines, reader, said })
    }

    /// What it has printed until now.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.borrow().clone()
    }

    /// Waits until what it has printed is enough, and returns that.
    ///
    /// # Errors
    ///
    /// When it ends before, or a minute passes.
    pub(crate) async fn until(
        &self,
        is_enough: impl Fn(&[String]) -> bool,
    ) -> anyhow::Result<Vec<String>> {
        let mut lines = self.lines.clone();
        match timeout(SOON, lines.wait_for(|lines| is_enough(lines))).await {
            Ok(Ok(lines)) => Ok(lines.clone()),
            _ => bail!("{} printed only:\n{}", self.shown, self.lines.borrow().join("\n")),
        }
    }

    /// Kills it, and returns what it had printed.
    ///
    /// # Errors
    ///
    /// When it does not end within a minute.
    pub(crate) async fn kill(mut self) -> anyhow::Result<Printed> {
        self.child.start_kill()?;
        self.end().await
    }

    /// Closes its stdin and waits for its end.
    ///
    /// # Errors
    ///
    /// When it does not end within a minute.
    pub(crate) async fn end(mut self) -> anyhow::Result<Printed> {
        let Ok(status) = timeout(SOON, self.child.wait()).await else {
            bail!("{} does not end:\n{}", self.shown, self.lines.borrow().join("\n"));
        };
        self.reader.await?;
        let lines = self.lines.borrow().clone();
        let stdout = lines.into_iter().map(|line| line + "\n").collect();
        Ok(Printed { code: status?.code(), stdout, stderr: self.said.await? })
    }
}

async fn read(output: impl AsyncRead + Unpin, lines: watch::Sender<Vec<String>>) {
    let mut output = BufReader::new(output).lines();
    while let Ok(Some(line)) = output.next_line().await {
        lines.send_modify(|lines| lines.push(line));
    }
}
