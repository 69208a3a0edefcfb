//! The `kubectl-informer` processes that run beside the informers: `watch` and `serve`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use http::Request;
use http::header::WARNING;
use informer::ResourceVersion;
use informer_tests::helpers::{current_version, differences, eventually_ok, raw_list};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// `kubectl-informer watch pods -A -o wide`.
pub(crate) struct Watch {
    printed: watch::Receiver<Printed>,
    said: watch::Receiver<Vec<String>>,
    _child: Child,
}

/// What its lines come to.
#[derive(Default)]
struct Printed {
    collection: BTreeMap<String, (String, String)>,
    lines: usize,
    /// The first line that does not fit the lines before it.
    fault: Option<String>,
}

/// `kubectl-informer serve`.
pub(crate) struct Gateway {
    /// Asks it; its answers are lists as the API server's are.
    client: Client,
    said: watch::Receiver<Vec<String>>,
    _child: Child,
}

impl Watch {
    pub(crate) async fn start(program: &Path, kubeconfig: &Path) -> anyhow::Result<Self> {
        let mut child = start(program, kubeconfig, &["watch", "pods", "-A", "-o", "wide"])?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let printed = follow(stdout, Printed::default(), |printed, line| {
            printed.lines += 1;
            if let Err(fault) = printed.read(&line)
                && printed.fault.is_none()
            {
                printed.fault = Some(format!("line {}, {line:?}: {fault:#}", printed.lines));
            }
        });
        let said = follow(child.stderr.take().context("stderr is piped")?, Vec::new(), Vec::push);
        Ok(Self { printed, said, _child: child })
    }

    /// Waits until the lines come to exactly `expected`, by a history that is legal.
    pub(crate) async fn reaches(
        &self,
        expected: &BTreeMap<String, (String, String)>,
        deadline: Duration,
    ) -> anyhow::Result<()> {
        let mut printed = self.printed.clone();
        let settled =
            |printed: &Printed| printed.collection == *expected || printed.fault.is_some();
        let reached = matches!(timeout(deadline, printed.wait_for(settled)).await, Ok(Ok(_)));
        let printed = self.printed.borrow();
        if let Some(fault) = &printed.fault {
            bail!("`watch` printed an illegal history: {fault}");
        }
        let differences = || differences(&printed.collection, expected);
        ensure!(
            reached,
            "`watch` is not there after {} lines: {}\n{:?}",
            printed.lines,
            differences(),
            self.said()
        );
        Ok(())
    }

    /// How many lines it has written on stderr.
    pub(crate) fn lines_said(&self) -> usize {
        self.said.borrow().len()
    }

    /// Waits until it says `words` on stderr, in a line after the first `before`.
    pub(crate) async fn says(
        &self,
        words: &str,
        before: usize,
        deadline: Duration,
    ) -> anyhow::Result<()> {
        let mut said = self.said.clone();
        let says = said.wait_for(|said| said[before..].iter().any(|line| line.contains(words)));
        let says = matches!(timeout(deadline, says).await, Ok(Ok(_)));
        ensure!(says, "`watch` does not say {words:?} on stderr, only {:?}", self.said());
        Ok(())
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.said.borrow().clone()
    }
}

impl Printed {
    /// Reads `add namespace/name … version=1 … uid=… …`.
    fn read(&mut self, line: &str) -> anyhow::Result<()> {
        let mut words = line.split(' ');
        let (Some(word), Some(key)) = (words.next(), words.next()) else { bail!("too short") };
        let columns: HashMap<_, _> =
            words.clone().filter_map(|word| word.split_once('=')).collect();
        let column = |name| columns.get(name).copied().with_context(|| format!("no {name}"));
        let (uid, version) = (column("uid")?, column("version")?);
        let before = match word {
            "delete" => self.collection.remove(key),
            _ => self.collection.insert(key.to_owned(), (uid.to_owned(), version.to_owned())),
        };
        match (word, before) {
            ("add", None) => {}
            ("update" | "delete", Some((before, _))) if before == uid => {}
            ("add" | "update" | "delete", before) => bail!("after {before:?}"),
            _ => bail!("neither add, update nor delete"),
        }
        Ok(())
    }
}

impl Gateway {
    pub(crate) async fn start(
        program: &Path,
        kubeconfig: &Path,
        deadline: Duration,
    ) -> anyhow::Result<Self> {
        let mut child = start(program, kubeconfig, &["serve", "--addr", "127.0.0.1:0"])?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut printed = follow(stdout, Vec::new(), Vec::push);
        let said = follow(child.stderr.take().context("stderr is piped")?, Vec::new(), Vec::push);
        // `serving SERVER on ADDRESS; …`
        let address =
            |line: &String| Some(line.split_once(" on ")?.1.split(';').next()?.to_owned());
        let found = timeout(
            deadline,
            printed.wait_for(|lines| lines.iter().any(|line| address(line).is_some())),
        )
        .await;
        let found =
            found.ok().and_then(Result::ok).and_then(|lines| lines.iter().find_map(address));
        let url =
            found.with_context(|| format!("`serve` prints no address: {:?}", *said.borrow()))?;
        let origin = url.trim().parse().with_context(|| format!("the address {url:?}"))?;
        Ok(Self { client: Client::try_from(kube::Config::new(origin))?, said, _child: child })
    }

    /// The answer to a list, once it is of `version` or a later one: by key, UIDs and versions.
    pub(crate) async fn list(
        &self,
        path: &str,
        version: &str,
        deadline: Duration,
    ) -> anyhow::Result<BTreeMap<String, (String, String)>> {
        let wanted = ResourceVersion::from(version);
        let reached = eventually_ok("the gateway is up to date", deadline, async || {
            let version = current_version(&self.client, path).await?;
            ensure!(
                ResourceVersion::from(&*version).has_reached(&wanted),
                "{version}, not {wanted}"
            );
            Ok(())
        });
        reached.await.with_context(|| format!("{:?}", *self.said.borrow()))?;
        raw_list(&self.client, path).await
    }

    /// Waits until it answers, but warns that it may be behind.
    pub(crate) async fn warns(&self, path: &str, deadline: Duration) -> anyhow::Result<()> {
        eventually_ok("the gateway warns", deadline, async || {
            let answer = self.client.send(Request::get(path).body(Body::empty())?).await?;
            ensure!(answer.status().is_success(), "{}", answer.status());
            ensure!(answer.headers().contains_key(WARNING), "{:?}", answer.headers());
            Ok(())
        })
        .await
    }
}

/// What `kubectl get -o json` printed: by key, UIDs and versions.
pub(crate) fn parse_kubectl(json: &str) -> anyhow::Result<BTreeMap<String, (String, String)>> {
    let list: Value = serde_json::from_str(json)?;
    let items = list["items"].as_array().context("a list")?.iter().map(|item| {
        let text =
            |name: &str| item["metadata"][name].as_str().map(ToOwned::to_owned).context("metadata");
        let key = format!("{}/{}", text("namespace")?, text("name")?);
        Ok((key, (text("uid")?, text("resourceVersion")?)))
    });
    items.collect()
}

/// Builds `kubectl-informer` with the profile of this test and returns its path.
pub(crate) async fn build() -> anyhow::Result<PathBuf> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "-p", "kubectl-informer", "--bin", "kubectl-informer"]);
    command.arg("--message-format=json-render-diagnostics");
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).stderr(Stdio::inherit());
    // What `cargo test` says of this package would have build scripts run again, there and back.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            command.env_remove(&*name);
        }
    }
    let output = spawn_blocking(move || command.output()).await?.context("cargo does not run")?;
    ensure!(output.status.success(), "kubectl-informer does not build, see above");
    let artifacts = output.stdout.split(|&byte| byte == b'\n');
    let executable = artifacts
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .find_map(|artifact| artifact["executable"].as_str().map(PathBuf::from));
    executable.context("cargo built no program")
}

fn start(program: &Path, kubeconfig: &Path, arguments: &[&str]) -> anyhow::Result<Child> {
    tokio::process::Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} does not run", program.display()))
}

/// Reads all lines of an output into a value that can be watched.
fn follow<S: Send + Sync + 'static>(
    output: impl AsyncRead + Unpin + Send + 'static,
    initial: S,
    mut read: impl FnMut(&mut S, String) + Send + 'static,
) -> watch::Receiver<S> {
    let (sender, receiver) = watch::channel(initial);
    tokio::spawn(async move {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            sender.send_modify(|state| read(state, line));
        }
    });
    receiver
}
