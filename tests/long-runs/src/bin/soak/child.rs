//! The process of the informers, as the other one sees it.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::process::Process;
use crate::protocol::Question;

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(60);

/// The running process. Dropping it kills it.
pub(crate) struct Informers {
    child: Child,
    questions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    id: u32,
}

impl Informers {
    /// Starts it; what it logs goes to `log`, or to stderr.
    pub(crate) fn start(kubeconfig: &Path, log: Option<&Path>) -> anyhow::Result<Self> {
        let log = match log {
            Some(path) => {
                Stdio::from(File::create(path).with_context(|| path.display().to_string())?)
            }
            None => Stdio::inherit(),
        };
        let mut child = Command::new(std::env::current_exe()?)
            .arg("informers")
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let questions = child.stdin.take().context("stdin is piped")?;
        let answers = BufReader::new(child.stdout.take().context("stdout is piped")?).lines();
        let id = child.id().context("it has ended already")?;
        Ok(Self { child, questions, answers, id })
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn process(&self) -> anyhow::Result<Process> {
        Process::read(self.id)
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask<A: DeserializeOwned>(
        &mut self,
        question: Question,
    ) -> anyhow::Result<A> {
        let mut line = serde_json::to_vec(&question)?;
        line.push(b'\n');
        let answer = async {
            self.questions.write_all(&line).await?;
            self.questions.flush().await?;
            anyhow::Ok(self.answers.next_line().await?)
        };
        let answer = timeout(ANSWER, answer)
            .await
            .with_context(|| format!("no answer to {question:?}"))??;
        let answer =
            answer.with_context(|| format!("the informers' process ended at {question:?}"))?;
        Ok(serde_json::from_str(&answer)?)
    }

    /// Waits for its end.
    pub(crate) async fn end(&mut self) -> anyhow::Result<()> {
        let status = timeout(ANSWER, self.child.wait()).await.context("it does not end")??;
        ensure!(status.success(), "the informers' process: {status}");
        Ok(())
    }
}
