//! The API server dies under the readers and watches of a TLS endpoint, and comes back.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::stream::StreamExt;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use informer_tests::fixtures::pod;
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::real::RealCluster;
use k8s_openapi::api::core::v1::Pod;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, timeout};

use crate::access::{LONG, SOON};
use crate::accounts::{Account, serve_as_reader};
use crate::client_go::program;
use crate::endpoint::Endpoint;
use crate::process::Process;

const PODS: &str = "/api/v1/namespaces/default/pods";
/// How long answers to reviews are believed, less what the machine may lose.
const BELIEVED: Duration = Duration::from_secs(8);
const READERS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn readers_and_watches_outlive_the_api_server_as_promised() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(cluster.client().await?, "default");
    pods.create(&Default::default(), &pod("default", "before", &[])).await?;
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"],
        "verbs": ["get", "list", "watch"] }]);
    let account = Account::create(&cluster, "watcher", &["default"], &rules).await?;
    let late = Account::create(&cluster, "late", &["default"], &rules).await?;
    let endpoint = serve_as_reader(&cluster, &["--cache", "pods"]).await?;
    let refused = Account::stranger(&cluster, "refused")?.client(endpoint.url()).await?;
    let stranger = Account::stranger(&cluster, "new")?.client(endpoint.url()).await?;

    let open = Watch::open(account.client(endpoint.url()).await?).await?;
    open.until(|events| has(events, "ADDED", "before")).await?;
    let informer = informer(&account, &endpoint).await?;
    let late = late.client(endpoint.url()).await?;
    let asked = Instant::now();
    ensure!(ask(&late, PODS).await?.0 == 200);
    ensure!(ask(&refused, PODS).await?.0 == 401);
    cluster.kill_apiserver().await?;

    // What was answered a moment ago is answered again, and nothing else.
    let answers = [ask(&late, PODS).await?, ask(&refused, PODS).await?];
    if asked.elapsed() < BELIEVED {
        let codes = answers.each_ref().map(|it| it.0);
        ensure!(codes == [200, 401] && names(&answers[0].1) == ["before"], "{answers:?}");
    }
    for (client, path) in [(&stranger, PODS), (&late, &*format!("{PODS}/before"))] {
        unavailable(&ask(client, path).await?).with_context(|| path.to_owned())?;
    }
    let readers = Readers::start(&late);
    eventually_ok("answers are believed no longer", SOON, async || {
        unavailable(&ask(&late, PODS).await?)?;
        unavailable(&ask(&refused, PODS).await?)
    })
    .await?;
    readers.end().await?;
    let (code, _) = ask(&stranger, "/livez").await?;
    ensure!(code == 200, "{code}");
    ensure!(!open.has_ended(), "{:?}", open.events());

    cluster.start_apiserver().await?;
    eventually_ok("readers are answered", LONG, async || {
        let (code, body) = ask(&late, PODS).await?;
        ensure!(code == 200, "{code} {body}");
        Ok(())
    })
    .await?;
    eventually_ok("strangers are told so", LONG, async || {
        for client in [&stranger, &refused] {
            let (code, body) = ask(client, PODS).await?;
            ensure!(code == 401, "{code} {body}");
        }
        Ok(())
    })
    .await?;
    let admin = cluster.client().await?;
    pods.create(&Default::default(), &pod("default", "after", &[])).await?;
    let events = open.until(|events| has(events, "ADDED", "after")).await?;
    // Not everything again: the gap had no changes.
    ensure!(events.len() == 2, "{events:?}");
    ensure!(!open.has_ended(), "the watch has ended");

    let mut informer = informer;
    informer.until(|lines| lines.iter().any(|it| it.contains("default/after"))).await?;
    informer.tell("dump").await?;
    let lines = informer.until(|lines| lines.iter().any(|it| it.contains("\"dumped\""))).await?;
    let lines = lines.iter().map(|line| serde_json::from_str(line));
    let lines = lines.collect::<Result<Vec<Value>, _>>()?;
    for (key, (uid, version)) in raw_list(&admin, PODS).await? {
        let is_it = |line: &&Value| line["line"] == "object" && line["key"] == key.as_str();
        let held = lines.iter().find(is_it).with_context(|| format!("{key} is not held"))?;
        ensure!(held["uid"] == uid.as_str() && held["version"] == version.as_str(), "{held}");
    }
    ensure!(!lines.iter().any(|line| line["line"] == "delete"), "{lines:?}");
    ensure!(informer.end().await?.success());
    endpoint.stop().await
}

/// An answer of an endpoint that cannot ask the API server.
fn unavailable((code, body): &(u16, Value)) -> anyhow::Result<()> {
    ensure!(*code == 503, "{code} {body}");
    ensure!(body["kind"] == "Status" && body["reason"] == "ServiceUnavailable", "{body}");
    ensure!(body["details"]["retryAfterSeconds"] == 1, "{body}");
    Ok(())
}

/// An informer of client-go, which has seen the first Pod.
async fn informer(account: &Account, endpoint: &Endpoint) -> anyhow::Result<Process> {
    let kubeconfig = account.kubeconfig(endpoint.url())?;
    let server = ["--kubeconfig", &*kubeconfig.to_string_lossy()].map(str::to_owned);
    let what = ["--histories", "outage=default;;"].map(str::to_owned);
    let process = Process::start_reading(&program().await?, server.iter().chain(&what))?;
    process.until(|lines| lines.iter().any(|it| it.contains("default/before"))).await?;
    Ok(process)
}

/// Readers that read all the time: they are answered until answers are believed no longer, and not
/// again.
struct Readers {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<anyhow::Result<()>>>,
}

impl Readers {
    fn start(client: &Client) -> Self {
        let stop = watch::Sender::new(false);
        let task = |_| tokio::spawn(read_until(client.clone(), stop.subscribe()));
        let tasks = (0..READERS).map(task).collect();
        Self { stop, tasks }
    }

    async fn end(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        for task in self.tasks {
            timeout(SOON, task).await.context("a reader hangs")???;
        }
        Ok(())
    }
}

async fn read_until(client: Client, stop: watch::Receiver<bool>) -> anyhow::Result<()> {
    let mut pace = interval(Duration::from_millis(50));
    let mut is_over = false;
    while !*stop.borrow() {
        pace.tick().await;
        let answer = ask(&client, PODS).await?;
        if answer.0 != 200 {
            unavailable(&answer)?;
            is_over = true;
        }
        ensure!(answer.0 != 200 || !is_over, "answered again without the API server");
    }
    Ok(())
}

/// A watch that stays open.
struct Watch {
    events: watch::Receiver<Vec<Value>>,
    task: JoinHandle<()>,
}

impl Watch {
    async fn open(client: Client) -> anyhow::Result<Self> {
        let request = Request::get(format!("{PODS}?watch=1&resourceVersion=0"));
        let response = client.send(request.body(Body::empty())?).await?;
        ensure!(response.status() == StatusCode::OK, "{}", response.status());
        let (sender, events) = watch::channel(Vec::new());
        let task = tokio::spawn(async move {
            let mut chunks = response.into_body().into_data_stream();
            let mut text = Vec::new();
            while let Some(Ok(chunk)) = chunks.next().await {
                text.extend_from_slice(&chunk);
                while let Some(end) = text.iter().position(|&byte| byte == b'\n') {
                    let line: Vec<_> = text.drain(..=end).collect();
                    let event = serde_json::from_slice(&line).unwrap_or_default();
                    sender.send_modify(|events| events.push(event));
                }
            }
            // Without the client the connection would end.
            drop(client);
        });
        Ok(Self { events, task })
    }

    async fn until(&self, is_enough: impl Fn(&[Value]) -> bool) -> anyhow::Result<Vec<Value>> {
        let mut events = self.events.clone();
        match timeout(LONG, events.wait_for(|events| is_enough(events))).await {
            Ok(Ok(events)) => Ok(events.clone()),
            _ => anyhow::bail!("the watch brought only {:?}", self.events()),
        }
    }

    fn events(&self) -> Vec<Value> {
        self.events.borrow().clone()
    }

    fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

fn has(events: &[Value], kind: &str, name: &str) -> bool {
    events.iter().any(|it| it["type"] == kind && it["object"]["metadata"]["name"] == name)
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|it| it["metadata"]["name"].as_str()).collect()
}

/// Code and body of an answer.
async fn ask(client: &Client, path: &str) -> anyhow::Result<(u16, Value)> {
    let response = client.send(Request::get(path).body(Body::empty())?).await?;
    let code = response.status().as_u16();
    let body = timeout(SOON, response.into_body().collect()).await.context(path.to_owned())??;
    Ok((code, serde_json::from_slice(&body.to_bytes()).unwrap_or_default()))
}
