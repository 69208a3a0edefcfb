//! The API server, in a process of its own: its memory is not the informer's.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use informer_testkit::{TestServer, generate};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A server process. It ends with its stdin.
pub(crate) struct Server {
    pub(crate) url: String,
    _process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts a server with so many Pods.
    pub(crate) async fn spawn(objects: usize) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["serve", &objects.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the server does not start")?;
        let (orders, answers) = (process.stdin.take(), process.stdout.take());
        let (orders, answers) = orders.zip(answers).context("the server has no pipes")?;
        let mut answers = BufReader::new(answers).lines();
        let url = answers.next_line().await?.context("the server ended before it was ready")?;
        Ok(Self { url, _process: process, orders, answers })
    }

    /// Changes so many Pods while all connections are down, and compacts: whoever comes back must
    /// list.
    pub(crate) async fn force_relist(&mut self, changed: usize) -> Result<()> {
        self.orders.write_all(format!("{changed}\n").as_bytes()).await?;
        let answer = self.answers.next_line().await?;
        ensure!(answer.as_deref() == Some("done"), "the server failed: {answer:?}");
        Ok(())
    }
}

/// The server process: prints its URL, then takes orders.
pub(crate) async fn serve(objects: usize) -> Result<()> {
    let server = TestServer::start().await?;
    server.cluster().load(generate::pods(objects))?;
    println!("{}", server.url());
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let mut round = 0;
    while let Some(order) = orders.next_line().await? {
        round += 1;
        change(&server, order.parse()?, round).await?;
        println!("done");
    }
    Ok(())
}

async fn change(server: &TestServer, changed: usize, round: u32) -> Result<()> {
    server.faults().refuse_connections();
    server.faults().reset_connections();
    // Or what changes now would still go out over them.
    while server.faults().open_watches(None) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let pods = server.cluster().list("pods");
    let step = (pods.len() / changed.max(1)).max(1);
    for pod in pods.iter().step_by(step).take(changed) {
        let patch = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        server.cluster().patch("pods", pod.key().namespace(), pod.key().name(), &patch)?;
    }
    server.cluster().compact();
    server.faults().accept_connections();
    Ok(())
}
