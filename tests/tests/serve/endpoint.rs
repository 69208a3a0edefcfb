//! `kubectl-informer serve`, in this process, before a server.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use kube::{Client, Config};
use kubectl_informer::{Args, Io, Output};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(30);

/// An endpoint that runs until it is dropped.
pub(crate) struct Endpoint {
    url: String,
    folder: TempDir,
    stop: CancellationToken,
    said: Caught,
    run: JoinHandle<anyhow::Result<()>>,
}

impl Endpoint {
    /// Starts `serve` with these arguments before the server of a kubeconfig. Secrets are served
    /// too.
    ///
    /// # Errors
    ///
    /// When it does not say within half a minute where it listens.
    pub(crate) async fn start(kubeconfig: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let kubeconfig = kubeconfig.to_string_lossy();
        let command = ["kubectl-informer", "serve", "--addr", "127.0.0.1:0"];
        let options = ["--allow", "*,secrets", "--max-collections", "200"];
        let more = ["--shutdown-spread", "0", "--kubeconfig", &kubeconfig];
        let command = command.iter().chain(&options).chain(&more).chain(arguments).copied();
        let args = Args::try_parse_from(command)?;
        let (printed, said, stop) = (Caught::new(), Caught::new(), CancellationToken::new());
        let io = Io {
            out: Output::new(printed.clone()),
            err: Output::new(said.clone()),
            stop: stop.clone(),
            ..Io::of_process()
        };
        let mut run = tokio::spawn(async move { kubectl_informer::run(&args, &io).await });
        // `serving SERVER on ADDRESS; …`
        let line = tokio::select! {
            line = timeout(SOON, printed.line()) => line.context("`serve` says nothing")?,
            ended = &mut run => bail!("`serve` ended: {ended:?}; it said {:?}", said.text()),
        };
        let address = || Some(line.split_once(" on ")?.1.split(';').next()?.to_owned());
        let url = address().with_context(|| format!("`serve` prints no address: {line:?}"))?;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig_of(&url))?;
        Ok(Self { url, folder, stop, said, run })
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A kubeconfig with the endpoint as its server.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// A client that gives every answer as it comes.
    ///
    /// # Errors
    ///
    /// When the address is none.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let mut config = Config::new(self.url.parse()?);
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// What it said on stderr.
    pub(crate) fn said(&self) -> String {
        self.said.text()
    }

    /// Ends it as SIGTERM would.
    ///
    /// # Errors
    ///
    /// When it fails, or takes longer than half a minute.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        timeout(SOON, &mut self.run).await.context("`serve` does not end")??
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.run.abort();
    }
}

pub(crate) fn kubeconfig_of(url: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "endpoint",
        "clusters": [{ "name": "endpoint", "cluster": { "server": url } }],
        "contexts": [
            { "name": "endpoint", "context": { "cluster": "endpoint", "namespace": "default" } },
        ],
    })
    .to_string()
}

/// An output whose text can be waited for.
#[derive(Clone)]
struct Caught(Arc<watch::Sender<String>>);

impl Caught {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(String::new())))
    }

    fn text(&self) -> String {
        self.0.borrow().clone()
    }

    /// The first line, once it is whole.
    async fn line(&self) -> String {
        let mut text = self.0.subscribe();
        let whole = text.wait_for(|text| text.contains('\n')).await;
        whole.map(|text| text.lines().next().unwrap_or_default().to_owned()).unwrap_or_default()
    }
}

impl Write for Caught {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_modify(|text| text.push_str(&String::from_utf8_lossy(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
