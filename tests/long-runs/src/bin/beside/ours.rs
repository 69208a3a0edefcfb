//! This library's side: a process with a factory and one handler, as a user would write it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use clap::Parser;
use informer::{Event, InformerOptions, SharedInformerFactory};
use informer_benches::resident::Resident;
use informer_tests::real::client_of;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Config};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

use crate::HEAP;
use crate::peer::{Call, Line, Report};

/// The same as those of the peer, whose `main.go` explains them.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    #[arg(long)]
    server: Option<String>,
    #[arg(long)]
    namespace: String,
    #[arg(long)]
    initial: Option<String>,
    #[arg(long)]
    quiet: bool,
    #[arg(long)]
    block: bool,
}

/// Runs until stdin ends.
pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode> {
    let client = match (&arguments.kubeconfig, &arguments.server) {
        (Some(path), _) => client_of(path, None).await?,
        (None, Some(url)) => Client::try_from(Config::new(url.parse()?))?,
        (None, None) => bail!("--kubeconfig or --server is needed"),
    };
    let factory = SharedInformerFactory::builder(client).namespace(&arguments.namespace).build();
    let options = match arguments.initial.as_deref() {
        Some("list") => InformerOptions::new().streaming_lists(false),
        _ => InformerOptions::new(),
    };
    let pods = factory.informer_with::<Pod>(options)?;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let gate = Arc::new((Mutex::new(arguments.block), Condvar::new()));
    let (recorder, door, quiet) = (Arc::clone(&seen), Arc::clone(&gate), arguments.quiet);
    let handler = pods.add_handler(|h| {
        h.on_event(move |event| {
            if matches!(event, Event::Updated { .. }) {
                let blocked = door.0.lock().unwrap_or_else(PoisonError::into_inner);
                drop(door.1.wait_while(blocked, |blocked| *blocked));
            }
            let line = recorder.lock().unwrap_or_else(PoisonError::into_inner).take(event);
            if !quiet {
                print(&line);
            }
        })
    })?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    print(&Line::Hello { library: "informer".to_owned(), version });
    factory.start();

    let mut orders = BufReader::new(stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        match order.as_str() {
            "report" => {
                let (status, resident) = (pods.status(), Resident::read()?);
                let counters = status.counters;
                let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                print(&Line::Report(Report {
                    synced: pods.has_synced(),
                    stored: status.objects,
                    heap_bytes: HEAP.live(),
                    resident_bytes: resident.now,
                    waiting: handler.status().depth,
                    said: status.recent_errors.iter().map(|error| error.message.clone()).collect(),
                    unchanged: counters.unchanged,
                    ..seen.counts.clone()
                }));
            }
            "handled" => {
                let versions = seen.lock().unwrap_or_else(PoisonError::into_inner).versions.clone();
                print(&Line::Handled { versions });
            }
            "release" => {
                *gate.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
                gate.1.notify_all();
            }
            other => bail!("unknown order {other}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the handler was given.
#[derive(Default)]
struct Seen {
    counts: Report,
    versions: BTreeMap<String, String>,
}

impl Seen {
    fn take(&mut self, event: &Event<Pod>) -> Line {
        let (uid, resource_version) = identity(event.object());
        let mut call =
            Call { key: event.key().to_string(), uid, resource_version, ..Call::default() };
        self.versions.insert(call.key.clone(), call.resource_version.clone());
        match event {
            Event::Added { initial, .. } => {
                self.counts.added += 1;
                Line::Added(Call { initial: *initial, ..call })
            }
            Event::Updated { old, .. } => {
                (call.from_uid, call.from_resource_version) = identity(old);
                self.counts.updated += 1;
                if (&call.from_uid, &call.from_resource_version)
                    == (&call.uid, &call.resource_version)
                {
                    self.counts.updated_unchanged += 1;
                }
                Line::Updated(call)
            }
            Event::Deleted(deleted) => {
                self.counts.deleted += 1;
                self.versions.remove(&call.key);
                let unknown = deleted.final_state == informer::FinalState::Unknown;
                Line::Deleted(Call { final_state_unknown: unknown, ..call })
            }
        }
    }
}

fn identity(pod: &Pod) -> (String, String) {
    let meta = &pod.metadata;
    (meta.uid.clone().unwrap_or_default(), meta.resource_version.clone().unwrap_or_default())
}

fn print(line: &Line) {
    match serde_json::to_string(line).context("a line is JSON") {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("beside: {error:#}"),
    }
}
