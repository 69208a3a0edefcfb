//! A process of many callers, each with a token and connections of its own: each watches the Pods
//! of a namespace, and reads one of them, or all of them, again and again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::AuthInfo;
use serde::{Deserialize, Serialize};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant as Moment, interval_at};

use super::Target;
use crate::HEAP;
use crate::meter::print;

/// How many callers begin at a time.
const BEGINNING: usize = 32;

/// Callers, as many as there are tokens. They begin, print a line, and read for a while once stdin
/// says so.
#[derive(Debug, Args)]
pub struct Callers {
    read: Read,
    /// Path of a kubeconfig; its credentials are replaced by the tokens
    target: Target,
    /// A file with a token on each line
    tokens: PathBuf,
    /// The namespace of the Pods
    namespace: String,
    /// The Pod that is read
    pod: String,
    /// Seconds between the reads of a caller
    every: u64,
    /// Seconds of reading
    seconds: u64,
}

/// What a caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Read {
    /// One Pod.
    Get,
    /// The Pods of the namespace.
    List,
}

/// What was read, by all callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Called {
    /// How many reads were answered.
    pub reads: usize,
    /// The median of their times, in microseconds.
    pub p50_us: u64,
    /// Of the latest hundredth, the first.
    pub p99_us: u64,
    /// How many watches are still open.
    pub open: usize,
}

impl Callers {
    /// Prints a line when all callers have begun, and one at the end.
    pub(super) async fn run(self) -> Result<()> {
        HEAP.stop();
        let tokens = std::fs::read_to_string(&self.tokens)?;
        let config = self.target.config().await?;
        let pods = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let begun = stream::iter(tokens.lines())
            .map(|token| Caller::begin(&config, token, &pods))
            .buffer_unordered(BEGINNING)
            .try_collect::<Vec<_>>()
            .await?;
        print(&begun.len())?;
        let mut order = String::new();
        tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut order)).await??;
        let path: Arc<str> = match self.read {
            Read::Get => format!("{pods}/{}", self.pod).into(),
            Read::List => format!("{pods}?resourceVersion=0").into(),
        };
        let every = Duration::from_secs(self.every);
        let (now, count) = (Moment::now(), u32::try_from(begun.len())?);
        let end = now + Duration::from_secs(self.seconds);
        let mut reading = JoinSet::new();
        for (number, caller) in (0..count).zip(&begun) {
            // They take turns.
            let first = now + every * number / count;
            reading.spawn(read(caller.client.clone(), Arc::clone(&path), first, every, end));
        }
        let mut times = Vec::new();
        while let Some(read) = reading.join_next().await {
            times.extend(read??);
        }
        times.sort_unstable();
        let at = |part: usize| times.get(times.len() * part / 100).copied();
        let (p50_us, p99_us) = at(50).zip(at(99)).context("nothing was read")?;
        let open = begun.iter().filter(|it| !it.watch.is_finished()).count();
        print(&Called { reads: times.len(), p50_us, p99_us, open })
    }
}

struct Caller {
    client: kube::Client,
    watch: JoinHandle<()>,
}

impl Caller {
    async fn begin(config: &kube::Config, token: &str, pods: &str) -> Result<Self> {
        let mut config = config.clone();
        config.auth_info = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
        let client = kube::Client::try_from(config)?;
        let watch = format!("{pods}?watch=true&allowWatchBookmarks=true&resourceVersion=0");
        let response = client.send(Request::get(watch).body(Body::empty())?).await?;
        ensure!(response.status().is_success(), "a watch is answered {}", response.status());
        let mut body = response.into_body().into_data_stream();
        let watch = tokio::spawn(async move { while let Some(Ok(_)) = body.next().await {} });
        Ok(Self { client, watch })
    }
}

/// Reads again and again; the times that it took, in microseconds.
async fn read(
    client: kube::Client,
    path: Arc<str>,
    first: Moment,
    every: Duration,
    end: Moment,
) -> Result<Vec<u64>> {
    let (mut turns, mut times) = (interval_at(first, every), Vec::new());
    while turns.tick().await < end {
        let began = Instant::now();
        let request = Request::get(&*path).body(Body::empty())?;
        let response = client.send(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{status} {}", String::from_utf8_lossy(&body));
        times.push(u64::try_from(began.elapsed().as_micros())?);
    }
    Ok(times)
}
