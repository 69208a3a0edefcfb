//! `kubectl informer serve` beside the kube-apiserver that it relieves: lists of all Pods.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use informer_benches::client::Target;
use informer_benches::client::read::{Answers, Form, count};
use informer_benches::cpu;
use informer_benches::resident::Resident;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::cluster::Cluster;
use crate::numbers::Spread;
use crate::programs::{self, PATIENCE};
use crate::warm::warm;

/// How often it is looked whether the cache is filled.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What is asked for: any state, and the newest.
pub(crate) const QUESTIONS: [Question; 6] = [
    Question { form: Form::Json, version: "0" },
    Question { form: Form::Json, version: "" },
    Question { form: Form::Protobuf, version: "0" },
    Question { form: Form::Protobuf, version: "" },
    Question { form: Form::Table, version: "0" },
    Question { form: Form::Table, version: "" },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) form: Form,
    /// That of `resourceVersion`.
    pub(crate) version: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Server {
    Ours,
    KubeApiserver,
}

impl Server {
    /// How often a list is read in a round: CPU time is told in hundredths of a second.
    fn times(self) -> usize {
        match self {
            Self::Ours => 10,
            Self::KubeApiserver => 3,
        }
    }
}

/// What was measured, by rounds.
#[derive(Default)]
pub(crate) struct Served {
    lists: HashMap<(Question, Server), Vec<List>>,
    /// Of our process once it holds the Pods, and after the last answer, in bytes.
    pub(crate) resident: [usize; 2],
    /// What it holds: the bytes of the Pods, which are those of their list in protobuf.
    pub(crate) held: usize,
}

/// One list: the median of a round's requests, in milliseconds.
struct List {
    cpu: f64,
    first_byte: f64,
    whole: f64,
    bytes: usize,
}

/// A server whose process is known.
pub(crate) struct Running {
    pub(crate) target: Target,
    pub(crate) pid: u32,
}

/// Measures both servers in turn.
pub(crate) async fn measure(rounds: usize, objects: usize, cluster: &Cluster) -> Result<Served> {
    let program = programs::build_kubectl_informer().await?;
    let theirs = Running { target: cluster.target(), pid: cluster.apiserver_pid()? };
    warm();
    let (_process, ours) = start(&program, &theirs.target, &[]).await?;
    holds(&ours.target, objects).await?;
    let mut served = Served::default();
    served.resident[0] = Resident::of_other(ours.pid)?.now;
    let mut steps = Vec::new();
    for question in QUESTIONS {
        for (server, running) in [(Server::Ours, &ours), (Server::KubeApiserver, &theirs)] {
            if question.form != Form::Protobuf {
                let found = count(&running.target, question.form).await?;
                ensure!(found == objects, "{server:?} has {found} of {objects} Pods");
            }
            steps.push((question, server, running));
        }
    }
    for round in 0..rounds {
        for &(question, server, running) in &steps {
            let list = lists(question, running, server.times()).await?;
            let List { cpu, first_byte, whole, bytes } = &list;
            eprintln!(
                "round {}/{rounds}: {} at {:?} of {server:?}: {cpu:.0} ms of CPU, first byte after {first_byte:.1} ms, {bytes} bytes in {whole:.0} ms",
                round + 1,
                question.form.name(),
                question.version,
            );
            served.lists.entry((question, server)).or_default().push(list);
        }
        // There and back, so that neither always comes after the other.
        steps.reverse();
    }
    served.resident[1] = Resident::of_other(ours.pid)?.now;
    let protobuf = Question { form: Form::Protobuf, version: "0" };
    let list = served.lists.get(&(protobuf, Server::Ours)).and_then(|lists| lists.first());
    served.held = list.context("there was no round")?.bytes;
    Ok(served)
}

impl Served {
    /// CPU time of the server for a list, ms.
    pub(crate) fn cpu(&self, question: Question, server: Server) -> Vec<Option<f64>> {
        self.each(question, server, |list| list.cpu)
    }

    /// Until the first byte of a list, ms.
    pub(crate) fn first_byte(&self, question: Question, server: Server) -> Vec<Option<f64>> {
        self.each(question, server, |list| list.first_byte)
    }

    /// Until the last byte, ms.
    pub(crate) fn whole(&self, question: Question, server: Server) -> Vec<Option<f64>> {
        self.each(question, server, |list| list.whole)
    }

    /// How long a list is, MB.
    pub(crate) fn bytes(&self, question: Question, server: Server) -> Vec<Option<f64>> {
        self.each(question, server, |list| list.bytes as f64 / 1e6)
    }

    fn each(
        &self,
        question: Question,
        server: Server,
        value: impl Fn(&List) -> f64,
    ) -> Vec<Option<f64>> {
        let lists = self.lists.get(&(question, server)).map_or(&[][..], Vec::as_slice);
        lists.iter().map(|list| Some(value(list))).collect()
    }
}

/// Starts ours; it ends with the process.
pub(crate) async fn start(
    program: &Path,
    upstream: &Target,
    flags: &[&str],
) -> Result<(Child, Running)> {
    let mut command = Command::new(program);
    command.args(["--kubeconfig", &upstream.argument()?]);
    command.args(["serve", "--addr", "127.0.0.1:0", "--cache", "pods"]);
    command.args(flags);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().with_context(|| format!("{command:?} does not start"))?;
    let pid = process.id().context("it ended early")?;
    let mut lines = BufReader::new(process.stdout.as_mut().context("no pipe")?).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.context("it takes too long")??;
    let line = line.context("it ended early")?;
    // `serving URL on http://ADDRESS; …`
    let url = line.split_once(" on ").and_then(|(_, rest)| rest.split_once(';'));
    let (url, _) = url.with_context(|| format!("it names no address: {line}"))?;
    Ok((process, Running { target: Target::Url(url.to_owned()), pid }))
}

/// Waits until so many Pods are answered.
pub(crate) async fn holds(target: &Target, objects: usize) -> Result<()> {
    let pods = Api::<Pod>::all(target.client().await?);
    let filled = async {
        loop {
            // It says so while the first list is on its way.
            if let Ok(page) = pods.list_metadata(&ListParams::default().limit(1)).await {
                let rest = page.metadata.remaining_item_count.unwrap_or_default();
                return page.items.len() + rest as usize;
            }
            sleep(LOOK_AGAIN).await;
        }
    };
    let found = timeout(PATIENCE, filled).await.context("the cache does not fill")?;
    ensure!(found == objects, "it holds {found} of {objects} Pods");
    Ok(())
}

/// Has a process of its own read a list several times.
async fn lists(question: Question, server: &Running, times: usize) -> Result<List> {
    let form = programs::argument(question.form);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["read", &form, question.version, &times.to_string()]);
    command.arg(server.target.argument()?);
    let before = cpu::of_other(server.pid)?;
    let mut reader = programs::Running::start(command)?;
    let Answers { bytes, first_byte_us, whole_us } = reader.next().await?;
    let took = cpu::of_other(server.pid)?.saturating_sub(before);
    reader.end().await?;
    let median = |micros: Vec<u64>| {
        let spread: Spread = micros.into_iter().map(|micros| micros as f64 / 1000.0).collect();
        spread.median().context("nothing was read")
    };
    Ok(List {
        cpu: took.as_secs_f64() * 1000.0 / times as f64,
        first_byte: median(first_byte_us)?,
        whole: median(whole_us)?,
        bytes: bytes.into_iter().max().unwrap_or_default(),
    })
}
