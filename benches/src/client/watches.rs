//! A process that keeps many watches open, each over a connection of its own, and counts what
//! comes. It takes orders from the process that measures.
//!
//! It speaks HTTP/1.1 by itself, or HTTP/2, on one thread: it shares the processors with the servers that are
//! measured.

mod connection;
mod frames;
mod tally;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::connection::{Pace, Server};
pub use self::tally::Counts;
use self::tally::Tally;
use super::Target;
use crate::HEAP;
use crate::figures::Wire;
use crate::meter::print;

/// How many connections are being opened at a time.
const OPENING: usize = 64;

/// The interval at which the generator checks whether all events have arrived.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Watches, opened and closed as stdin says.
#[derive(Debug, Args)]
pub struct Watches {
    wire: Wire,
    /// A URL or the path of a kubeconfig
    target: Target,
    /// A file with a path and query on each line, which the watches take in turn
    paths: PathBuf,
    /// Speak HTTP/2
    #[arg(long, conflicts_with_all = ["piece", "unread"])]
    http2: bool,
    /// Tell how late events are
    #[arg(long)]
    latencies: bool,
    /// Read only so many bytes at a time
    #[arg(long, requires = "pause")]
    piece: Option<usize>,
    /// Rest so many milliseconds after each read
    #[arg(long, requires = "piece")]
    pause: Option<u64>,
    /// Read nothing
    #[arg(long, conflicts_with = "piece")]
    unread: bool,
}

/// What the process that measures asks for, as a line of JSON. Each is answered by one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Open so many more watches after this version; answered by [`Opened`].
    Open {
        /// How many.
        count: usize,
        /// The `resourceVersion` of all of them.
        version: String,
    },
    /// Wait until so many changes have come since the last [`Counts`], or none has come for a
    /// while; answered by [`Counts`].
    Wait {
        /// How many.
        changes: u64,
        /// How long none may come.
        quiet_ms: u64,
    },
    /// Tell what has come since the last time; answered by [`Counts`].
    Count,
    /// From now on, read all that there is; answered by [`Counts`].
    Hurry,
    /// Close all watches; answered by [`Counts`].
    Close,
}

/// What became of [`Order::Open`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// How many were answered with a stream.
    pub opened: usize,
    /// What one of the others was answered.
    pub failure: Option<String>,
    /// Until all were answered, in microseconds.
    pub took_us: u64,
}

impl Watches {
    /// Obeys until stdin ends.
    pub(super) async fn run(self) -> Result<()> {
        HEAP.stop();
        let paths = std::fs::read_to_string(&self.paths)?.lines().map(str::to_owned).collect();
        let pace = match (self.unread, self.piece.zip(self.pause)) {
            (true, _) => Pace::Never,
            (false, Some((piece, millis))) => {
                Pace::Slow { piece, pause: Duration::from_millis(millis) }
            }
            (false, None) => Pace::Full,
        };
        let server = Server::new(&self.target, self.wire, pace, self.http2).await?;
        let tally = Tally::new(self.latencies);
        let generator = Generator {
            server: Arc::new(server),
            tally: Arc::new(tally),
            paths,
            watches: JoinSet::new(),
            started: 0,
        };
        // Tasks that wake each other across threads would cost more than one thread saves.
        let all = move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(generator.obey())
        };
        tokio::task::spawn_blocking(all).await?
    }
}

struct Generator {
    server: Arc<Server>,
    tally: Arc<Tally>,
    paths: Vec<String>,
    watches: JoinSet<()>,
    started: usize,
}

impl Generator {
    async fn obey(mut self) -> Result<()> {
        let mut orders = BufReader::new(tokio::io::stdin()).lines();
        while let Some(order) = orders.next_line().await? {
            match serde_json::from_str(&order)? {
                Order::Open { count, version } => print(&self.open(count, &version).await?)?,
                Order::Wait { changes, quiet_ms } => {
                    self.wait(changes, Duration::from_millis(quiet_ms)).await;
                    print(&self.tally.take())?;
                }
                Order::Count => print(&self.tally.take())?,
                Order::Hurry => {
                    self.server.hurry();
                    print(&self.tally.take())?;
                }
                Order::Close => {
                    self.watches.shutdown().await;
                    print(&self.tally.take())?;
                }
            }
        }
        Ok(())
    }

    async fn open(&mut self, count: usize, version: &str) -> Result<Opened> {
        let began = Instant::now();
        let slots = Arc::new(Semaphore::new(OPENING));
        let mut opening = JoinSet::new();
        for number in self.started..self.started + count {
            let slot = Arc::clone(&slots).acquire_owned().await?;
            let path = &self.paths[number % self.paths.len()];
            let path = format!("{path}&resourceVersion={version}");
            let server = Arc::clone(&self.server);
            opening.spawn(async move {
                let opened = server.open(&path).await;
                drop(slot);
                opened
            });
            while let Some(opened) = opening.try_join_next() {
                self.follow(opened?);
            }
        }
        while let Some(opened) = opening.join_next().await {
            self.follow(opened?);
        }
        self.started += count;
        let (opened, failure) = self.tally.take_opened();
        let took_us = u64::try_from(began.elapsed().as_micros()).context("it took ages")?;
        Ok(Opened { opened, failure, took_us })
    }

    fn follow(&mut self, opened: Result<connection::Watch>) {
        match opened {
            Err(error) => self.tally.failed(format!("{error:#}")),
            Ok(watch) => {
                self.tally.opened();
                let (server, tally) = (Arc::clone(&self.server), Arc::clone(&self.tally));
                self.watches.spawn(async move { watch.follow(&server, &tally).await });
            }
        }
    }

    async fn wait(&self, changes: u64, quiet: Duration) {
        let (mut before, mut since) = (self.tally.changes(), Instant::now());
        while before < changes && since.elapsed() < quiet {
            sleep(LOOK_AGAIN).await;
            let now = self.tally.changes();
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
    }
}
