//! The clients of `serve`: our informers, and those of client-go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use http::HeaderValue;
use http::header::USER_AGENT;
use informer::source::WireFormat;
use informer::{InformerOptions, SharedInformer, SharedInformerFactory};
use informer_tests::harness::Arm;
use informer_tests::helpers::{differences, eventually_ok, raw_list};
use informer_tests::observe::{Collection, History, store_of};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Config};
use serde::Deserialize;

use super::churn::{LABEL, NODES, TIERS};
use super::judge::READER;
use crate::client_go::program;
use crate::process::Process;

const SOON: Duration = Duration::from_secs(60);

/// How the user agents of our informers begin, and of client-go's.
const OURS: &str = "ours";
const CLIENT_GO: &str = "client-go";

/// What a client follows.
#[derive(Debug, Clone, Copy)]
enum Scope {
    Whole,
    Labelled,
    OnNode,
    InNamespace,
}

const SCOPES: [Scope; 4] = [Scope::Whole, Scope::Labelled, Scope::OnNode, Scope::InNamespace];

/// All clients, and what they follow.
pub(crate) struct Clients {
    ours: Vec<Ours>,
    client_go: Vec<ClientGo>,
    namespace: String,
}

struct Ours {
    name: String,
    scope: Scope,
    factory: SharedInformerFactory,
    informer: SharedInformer<Pod>,
    history: Arc<History<Pod>>,
}

/// A process with one informer for each scope.
struct ClientGo {
    initial: &'static str,
    process: Process,
    followed: Mutex<Followed>,
}

/// What its lines come to.
#[derive(Default)]
struct Followed {
    read: usize,
    held: BTreeMap<String, Collection>,
    goes_back: bool,
    faults: Vec<String>,
}

/// A client of this name.
pub(crate) fn client(url: &str, name: &str) -> anyhow::Result<Client> {
    let mut config = Config::new(url.parse()?);
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_str(name)?));
    Ok(Client::try_from(config)?)
}

/// Whether a user agent is that of an informer of client-go.
pub(crate) fn is_client_go(agent: &str) -> bool {
    agent.starts_with(CLIENT_GO)
}

/// Whether a user agent is that of a client here, and not of a replica.
pub(crate) fn is_of_client(agent: &str) -> bool {
    agent.starts_with(OURS) || is_client_go(agent) || agent == READER
}

impl Clients {
    /// Starts them before the endpoint at `url`; those of client-go only if there is Go.
    pub(crate) async fn start(url: &str, namespace: &str, has_go: bool) -> anyhow::Result<Self> {
        let mut clients =
            Self { ours: Vec::new(), client_go: Vec::new(), namespace: namespace.to_owned() };
        for (streaming, format) in [(true, WireFormat::Protobuf), (false, WireFormat::Json)] {
            for scope in SCOPES {
                clients.ours.push(Ours::start(url, scope, namespace, streaming, format)?);
            }
        }
        if has_go {
            let program = program().await?;
            for (initial, wire) in [("stream", "json"), ("list", "protobuf")] {
                let options =
                    ["--server", url, "--histories", "--initial", initial, "--wire", wire];
                let scopes = SCOPES.map(|scope| scope.of_client_go(initial, namespace));
                let arguments = options.into_iter().map(str::to_owned).chain(scopes);
                let process = Process::start_reading(&program, arguments)?;
                clients.client_go.push(ClientGo { initial, process, followed: Mutex::default() });
            }
        }
        Ok(clients)
    }

    /// How many there are, each with a user agent of its own.
    pub(crate) fn count(&self) -> usize {
        self.ours.len() + self.client_go.len() * SCOPES.len()
    }

    /// The server's history is about to be replaced.
    pub(crate) fn expect_older_versions(&self) {
        for one in &self.ours {
            one.history.expect_older_versions();
        }
        for one in &self.client_go {
            one.lock().goes_back = true;
        }
    }

    /// Waits until every client has what the server lists, and was told so.
    pub(crate) async fn have_all(&self, arm: &Arm) -> anyhow::Result<()> {
        let mut truths = Vec::new();
        for scope in SCOPES {
            let path = scope.path(&self.namespace);
            let list = async || raw_list(arm.direct(), &path).await;
            truths.push(eventually_ok("the server lists", SOON, list).await?);
        }
        for one in &self.ours {
            let truth = &truths[one.scope as usize];
            let equal = async || {
                let store = store_of(&one.informer)?;
                ensure!(store == *truth, "{}", differences(&store, truth));
                Ok(())
            };
            eventually_ok("the store is what the server lists", SOON, equal)
                .await
                .with_context(|| format!("{}: {:#?}", one.name, one.informer.status()))?;
            one.history.reaches(truth, SOON).await?;
        }
        for one in &self.client_go {
            one.has_all(&truths).await?;
        }
        Ok(())
    }

    /// Ends those of client-go that take a minute to notice that the server's history was replaced:
    /// they send what is answered with 504 and `Retry-After` ten times before they list at the
    /// newest version. The test kit answers a streaming list with an event instead.
    pub(crate) async fn end_the_slow(&mut self, arm: &Arm) -> anyhow::Result<()> {
        let is_slow = |it: &mut ClientGo| it.initial == "list" || arm.real_cluster().is_some();
        end_client_go(self.client_go.extract_if(.., is_slow).collect()).await
    }

    /// Compares the stores of client-go, which so far have told of themselves, and ends all.
    pub(crate) async fn end(self, arm: &Arm) -> anyhow::Result<()> {
        self.have_all(arm).await?;
        end_client_go(self.client_go).await?;
        for one in self.ours {
            one.history.forget_store();
            one.factory.shutdown().await;
        }
        Ok(())
    }
}

async fn end_client_go(processes: Vec<ClientGo>) -> anyhow::Result<()> {
    for mut one in processes {
        one.process.tell("dump").await?;
        let is_whole = |lines: &[String]| lines.last().is_some_and(|it| it.contains("\"dumped\""));
        let lines = one.process.until(is_whole).await?;
        let mut stores: BTreeMap<String, Collection> = BTreeMap::new();
        for line in &lines {
            let told: Told = serde_json::from_str(line)?;
            if told.line == "object" {
                let store = stores.entry(told.informer).or_default();
                store.insert(told.key, (told.uid, told.version));
            }
        }
        let mut told = one.lock().held.clone();
        told.retain(|_, collection| !collection.is_empty());
        ensure!(stores == told, "client-go holds {stores:?}, and told {told:?}");
    }
    Ok(())
}

impl Ours {
    fn start(
        url: &str,
        scope: Scope,
        namespace: &str,
        streaming: bool,
        format: WireFormat,
    ) -> anyhow::Result<Self> {
        let how = if streaming { "stream" } else { "list" };
        let name = format!("{OURS} {how} {scope:?}");
        let factory =
            SharedInformerFactory::builder(client(url, &name)?).wire_format(format).build();
        let options = InformerOptions::new().streaming_lists(streaming);
        let options = match scope {
            Scope::Whole => options,
            Scope::Labelled => options.labels(format!("{LABEL}={}", TIERS[0]).as_str())?,
            Scope::OnNode => options.fields(format!("spec.nodeName={}", NODES[0]).as_str())?,
            Scope::InNamespace => options.namespace(namespace),
        };
        let informer = factory.informer_with::<Pod>(options)?;
        let history = History::new(&*name).reading(informer.unsynced_store());
        let record = Arc::clone(&history);
        informer.add_handler(|h| h.on_event(move |event| record.record(event)))?;
        factory.start();
        Ok(Self { name, scope, factory, informer, history })
    }
}

impl Scope {
    fn path(self, namespace: &str) -> String {
        match self {
            Self::Whole => "/api/v1/pods".to_owned(),
            Self::Labelled => format!("/api/v1/pods?labelSelector={LABEL}%3D{}", TIERS[0]),
            Self::OnNode => format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", NODES[0]),
            Self::InNamespace => format!("/api/v1/namespaces/{namespace}/pods"),
        }
    }

    fn of_client_go(self, initial: &str, namespace: &str) -> String {
        let of = match self {
            Self::Whole => ";;".to_owned(),
            Self::Labelled => format!(";{LABEL}={};", TIERS[0]),
            Self::OnNode => format!(";;spec.nodeName={}", NODES[0]),
            Self::InNamespace => format!("{namespace};;"),
        };
        format!("{}={of}", self.agent(initial))
    }

    /// The user agent of client-go's informer of it.
    fn agent(self, initial: &str) -> String {
        format!("{CLIENT_GO} {initial} {self:?}")
    }
}

/// A line of client-go.
#[derive(Deserialize)]
struct Told {
    line: String,
    #[serde(default)]
    informer: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    version: String,
}

impl ClientGo {
    async fn has_all(&self, truths: &[Collection]) -> anyhow::Result<()> {
        let is_there = |lines: &[String]| {
            let mut followed = self.lock();
            followed.read(lines);
            SCOPES.iter().all(|it| followed.of(&it.agent(self.initial)) == truths[*it as usize])
        };
        let told = self.process.until(is_there).await.map(drop);
        let followed = self.lock();
        ensure!(followed.faults.is_empty(), "client-go: {}", followed.faults.join("\n"));
        told.map_err(|_| {
            let differ = SCOPES.iter().map(|scope| {
                let agent = scope.agent(self.initial);
                let held = followed.of(&agent);
                format!("{agent}: {}", differences(&held, &truths[*scope as usize]))
            });
            anyhow::anyhow!("client-go has not all: {}", differ.collect::<Vec<_>>().join("\n"))
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followed {
    fn of(&self, informer: &str) -> Collection {
        self.held.get(informer).cloned().unwrap_or_default()
    }

    /// Takes in the lines that it has not read yet.
    fn read(&mut self, lines: &[String]) {
        for line in &lines[self.read..] {
            if let Err(fault) = self.take(line) {
                self.faults.push(format!("{fault:#}"));
            }
        }
        self.read = lines.len();
    }

    fn take(&mut self, line: &str) -> anyhow::Result<()> {
        let Told { line: what, informer, key, uid, version } = serde_json::from_str(line)?;
        let goes_back = self.goes_back;
        let held = self.held.entry(informer.clone()).or_default();
        let before = match &*what {
            "initial" | "add" | "update" => {
                held.insert(key.clone(), (uid.clone(), version.clone()))
            }
            "delete" | "delete-unknown" => held.remove(&key),
            _ => return Ok(()),
        };
        let fault = || format!("{informer}: {what} of {key}, {uid} at {version}, after {before:?}");
        let is_new = matches!(&*what, "initial" | "add");
        ensure!(before.is_none() == is_new, fault());
        if let Some((old_uid, old_version)) = &before
            && !goes_back
        {
            let (old, new) = (old_version.parse::<u64>()?, version.parse::<u64>()?);
            // After a list client-go tells of what has not changed, too.
            ensure!(old <= new, "back in time: {}", fault());
            let is_deletion = what.starts_with("delete");
            ensure!(*old_uid == uid || !is_deletion, "another object: {}", fault());
        }
        Ok(())
    }
}
