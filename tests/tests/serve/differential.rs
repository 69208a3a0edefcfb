//! The same answers: a few hundred reads, valid and not, to the API server and to the endpoint
//! before it, at one quiet version.

mod answer;
mod differences;
mod requests;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use informer::discovery::Discovery;
use informer_tests::helpers::current_version;
use informer_tests::real::{RealCluster, config_of};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::answer::Answer;
use self::differences::{DIFFERENCES, ORDER_OF_FIELDS, page};
use self::requests::{Facts, Request, requests};
use crate::endpoint::Endpoint;
use crate::scene::{change_objects, create_objects};

/// For one answer.
const SOON: Duration = Duration::from_secs(30);

/// How many requests are under way at a time.
const AT_ONCE: usize = 48;

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_answers_as_the_api_server() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let client = client_without_retries(&cluster).await?;
    create_objects(&client).await?;
    let endpoint = Endpoint::start(&cluster.kubeconfig_path(), &[]).await?;
    let requests = requests(&Discovery::fetch(&client).await?);
    let before = endpoint.client()?;
    // The endpoint remembers changes from its first list on.
    let started = current_version(&before, "/api/v1/pods").await?;
    current_version(&before, "/apis/differences.example.com/v1/gauges").await?;
    change_objects(&client).await?;
    let facts = facts(&client, started).await?;
    for path in ["/api/v1/pods", "/apis/differences.example.com/v1/gauges"] {
        let now = current_version(&client, path).await?;
        let path = format!("{path}?resourceVersion={now}&resourceVersionMatch=NotOlderThan");
        current_version(&before, &path).await?;
    }
    let compared = stream::iter(requests.iter().enumerate()).map(async |(number, request)| {
        let ask = |client| ask(client, request, &facts);
        let (direct, through) = tokio::join!(ask(&client), ask(&before));
        (number, request, direct, through)
    });
    let mut report = Report::default();
    let mut compared: Vec<_> = compared.buffer_unordered(AT_ONCE).collect().await;
    compared.sort_by_key(|(number, ..)| *number);
    for (_, request, direct, through) in compared {
        report.compare(request, direct?, through);
    }
    report.finish(requests.len())
}

/// Pages are the same whichever of the two gives them.
#[tokio::test(flavor = "multi_thread")]
async fn pages_begun_at_one_are_continued_at_the_other() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::shared().await? else { return Ok(()) };
    let client = cluster.client().await?;
    create_objects(&client).await?;
    let endpoint = Endpoint::start(&cluster.kubeconfig_path(), &[]).await?;
    let through = endpoint.client()?;
    for path in [
        "/api/v1/namespaces/team/pods",
        "/api/v1/namespaces/odd/configmaps",
        "/api/v1/namespaces/team/events",
        "/apis/differences.example.com/v1/gauges",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ] {
        let whole = keys(&get(&client, path).await?)?;
        ensure!(whole.len() >= 2 || path.ends_with("events"), "{path}: {whole:?}");
        ensure!(keys(&get(&through, path).await?)? == whole, "{path}");
        for servers in [[&client, &through], [&through, &client]] {
            let (mut paged, mut version, mut token) = (Vec::new(), None, String::new());
            for server in servers.into_iter().cycle() {
                let page = get(server, &format!("{path}?limit=1&continue={token}")).await?;
                let of = page["metadata"]["resourceVersion"].clone();
                ensure!(*version.get_or_insert_with(|| of.clone()) == of, "{path}: {of}");
                paged.extend(keys(&page)?);
                page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
                if token.is_empty() {
                    break;
                }
            }
            ensure!(paged == whole, "{path}: {paged:?}, not {whole:?}");
        }
    }
    endpoint.stop().await
}

#[test]
fn the_known_differences_are_documented() -> anyhow::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/serve-differences.md");
    if std::env::var_os("INFORMER_WRITE_DIFFERENCES").is_some() {
        std::fs::write(&path, page())?;
    }
    ensure!(
        std::fs::read_to_string(&path)? == page(),
        "docs/serve-differences.md is not what the list says: run this test with \
         INFORMER_WRITE_DIFFERENCES=1"
    );
    Ok(())
}

async fn get(client: &Client, path: &str) -> anyhow::Result<Value> {
    let request = http::Request::get(path).body(Vec::new())?;
    client.request(request).await.with_context(|| path.to_owned())
}

/// Namespaces and names of a list, in its order.
fn keys(list: &Value) -> anyhow::Result<Vec<String>> {
    let items = list["items"].as_array().context("a list")?;
    let key = |item: &Value| {
        let metadata = &item["metadata"];
        format!("{}/{}", metadata["namespace"].as_str().unwrap_or_default(), metadata["name"])
    };
    Ok(items.iter().map(key).collect())
}

/// What the comparison found.
#[derive(Default)]
struct Report {
    failures: Vec<String>,
    /// How often each known difference was met.
    met: BTreeMap<&'static str, usize>,
}

impl Report {
    fn compare(&mut self, request: &Request, mut direct: Answer, through: anyhow::Result<Answer>) {
        let mut through = match through {
            Ok(through) => through,
            Err(error) => {
                self.failures.push(format!("{}\n  {error:#}", request.name()));
                return;
            }
        };
        if request.waits_for_bookmarks() && !through.has_bookmark() {
            self.failures.push(format!("{}\n  no bookmark", request.name()));
        }
        if !direct.has_bookmark() {
            // The API server's comes in most cases.
            through.drop_bookmarks();
        }
        let as_told = direct.clone();
        for difference in DIFFERENCES.iter().filter(|it| (it.is_about)(request, &as_told)) {
            let before = direct.clone();
            (difference.rewrite)(request, &mut direct, &through);
            if before == direct {
                self.failures.push(format!("{}\n  no longer: {}", request.name(), difference.what));
            }
            *self.met.entry(difference.what).or_default() += 1;
        }
        let (plain, parsed) = (direct.body == through.body, direct.parsed());
        let differences = parsed.differences(&through.parsed());
        if !plain && differences.is_empty() {
            *self.met.entry(ORDER_OF_FIELDS.what).or_default() += 1;
        }
        if !differences.is_empty() {
            self.failures.push(format!("{}\n  {}", request.name(), differences.join("\n  ")));
        }
    }

    fn finish(mut self, requests: usize) -> anyhow::Result<()> {
        for difference in DIFFERENCES.iter().filter(|it| !self.met.contains_key(it.what)) {
            self.failures.push(format!("never met: {}", difference.what));
        }
        let failed = self.failures.len();
        ensure!(failed == 0, "{failed} of {requests}\n{}", self.failures.join("\n"));
        Ok(())
    }
}

/// A client that gives every answer as it comes.
async fn client_without_retries(cluster: &RealCluster) -> anyhow::Result<Client> {
    let mut config = config_of(&cluster.kubeconfig_path(), None).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

async fn ask(client: &Client, request: &Request, facts: &Facts) -> anyhow::Result<Answer> {
    let mut sent =
        http::Request::builder().method(request.method.clone()).uri(facts.fill(&request.path));
    for (name, value) in &request.headers {
        sent = sent.header(*name, facts.fill(value));
    }
    let sent = sent.body(Body::empty())?;
    let whole = async {
        let (head, body) = client.send(sent).await?.into_parts();
        anyhow::Ok((head, body.collect().await?.to_bytes()))
    };
    let (head, body) = timeout(SOON, whole).await.context("the answer does not end")??;
    Answer::read(head.status, &head.headers, &body, request)
}

/// What the requests' words in braces stand for.
async fn facts(client: &Client, before: String) -> anyhow::Result<Facts> {
    let token = async |path: &str| -> anyhow::Result<String> {
        let list = get(client, path).await?;
        Ok(list["metadata"]["continue"].as_str().context("a list goes on")?.to_owned())
    };
    let etag = async |path: &str, accept: &str| -> anyhow::Result<String> {
        let request = http::Request::get(path).header("accept", accept).body(Body::empty())?;
        let answer = client.send(request).await?;
        let etag = answer.headers().get("etag").with_context(|| format!("no ETag of {path}"))?;
        Ok(etag.to_str()?.to_owned())
    };
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let gone = json!({ "v": "meta.k8s.io/v1", "rv": 1, "start": "team/running\u{0}" });
    let root = get(client, "/openapi/v3").await?;
    let apps =
        root["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().context("apps")?.to_owned();
    let now = current_version(client, "/api/v1/pods").await?;
    Ok(Facts(vec![
        ("{now}", now),
        ("{before}", before),
        ("{token}", token("/api/v1/pods?limit=2").await?),
        ("{map-token}", token("/api/v1/namespaces/odd/configmaps?limit=3").await?),
        ("{gauge-token}", token("/apis/differences.example.com/v1/gauges?limit=1").await?),
        ("{gone}", BASE64_STANDARD_NO_PAD.encode(gone.to_string())),
        ("{api-etag}", etag("/api", aggregated).await?),
        ("{apis-etag}", etag("/apis", aggregated).await?),
        ("{openapi-apps-etag}", etag("/openapi/v3/apis/apps/v1", "application/json").await?),
        ("{openapi-apps}", apps),
    ]))
}
