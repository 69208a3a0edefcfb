//! What reviews cost the API server: many callers, each with a token of its own, at `serve` and at
//! kube-apiserver.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use informer_benches::client::callers::{Called, Read};
use informer_testkit::generate::Generator;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::cluster::Cluster;
use crate::programs::{self, argument};
use crate::rows::Limit;
use crate::serve::{self, Running, Server};
use crate::watch::{Findings, Tls, Usage, allow_files};

/// What the figures are for.
const MINUTE: f64 = 60.0;

/// What is asked of the API server, by its metrics.
const REVIEWS: [&str; 2] = ["tokenreviews", "subjectaccessreviews"];

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) pods: usize,
    callers: usize,
    /// Seconds between the gets of a caller, and between its lists.
    every: [u64; 2],
    window: Duration,
}

impl Sizes {
    /// What the table has, or less for a first look.
    pub(crate) fn new(quick: bool) -> Self {
        match quick {
            false => Self {
                pods: 1_000,
                callers: 1_000,
                every: [5, 50],
                window: Duration::from_secs(50),
            },
            true => {
                Self { pods: 100, callers: 50, every: [2, 10], window: Duration::from_secs(10) }
            }
        }
    }
}

/// Measures both servers in turn; the table.
pub(crate) async fn measure(rounds: usize, sizes: Sizes, cluster: &Cluster) -> Result<String> {
    allow_files();
    let program = programs::build_kubectl_informer().await?;
    let tls = Tls::new().await?;
    let admin = cluster.target().client().await?;
    let tokens = tokens(&admin, sizes.callers).await?;
    let mut flags = tls.flags()?;
    flags.extend(["--max-connections".to_owned(), (4 * sizes.callers).to_string()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let theirs = Running { target: cluster.target(), pid: cluster.apiserver_pid()? };
    let (_process, ours) = serve::start(&program, &theirs.target, &flags).await?;
    let token = theirs.target.config().await?.auth_info.token.context("no token")?;
    let ours = Running { target: tls.trusted(&ours.target, Some(token.expose_secret()))?, ..ours };
    serve::holds(&ours.target, sizes.pods).await?;
    let mut findings = Findings::default();
    for round in 0..rounds {
        for read in [Read::Get, Read::List] {
            let mut turns = [(Server::Ours, &ours), (Server::KubeApiserver, &theirs)];
            if round % 2 == 1 {
                turns.reverse();
            }
            for (server, running) in turns {
                let bench = Bench { admin: &admin, ours: ours.pid, theirs: theirs.pid, sizes };
                bench.measure(read, server, running, tokens.path(), &mut findings).await?;
            }
        }
    }
    Ok(findings.table())
}

struct Bench<'a> {
    admin: &'a kube::Client,
    ours: u32,
    theirs: u32,
    sizes: Sizes,
}

impl Bench<'_> {
    async fn measure(
        &self,
        read: Read,
        server: Server,
        running: &Running,
        tokens: &std::path::Path,
        findings: &mut Findings,
    ) -> Result<()> {
        let Sizes { callers, every, window, .. } = self.sizes;
        let namespace = Generator::default().namespace(0);
        let pods = Api::<Pod>::namespaced(self.admin.clone(), &namespace);
        let page = pods.list_metadata(&ListParams::default().limit(1)).await?;
        let pod = page.items.first().and_then(|it| it.metadata.name.clone());
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["callers", &argument(read), &running.target.argument()?]).arg(tokens);
        command.args([&namespace, &pod.context("there is no Pod")?]);
        let found = page.items.len() as i64 + page.metadata.remaining_item_count.unwrap_or(0);
        let (every, what) = match read {
            Read::Get => (every[0], "get of a Pod".to_owned()),
            Read::List => (every[1], format!("list of {found} Pods")),
        };
        command.args([every, window.as_secs()].map(|it| it.to_string()));
        let (mut process, mut orders) = programs::Running::start_ordered(command)?;
        let begun: usize = process.next().await?;
        ensure!(begun == callers, "{begun} of {callers} callers began");
        let before = self.reviews().await?;
        let (theirs, ours) = (Usage::start(self.theirs)?, Usage::start(self.ours)?);
        orders.write_all(b"\n").await?;
        let Called { reads, p50_us, p99_us, open } = process.next().await?;
        let (theirs, ours) = (theirs.spent()?, ours.spent()?);
        let after = self.reviews().await?;
        process.end().await?;
        ensure!(open == callers, "{} watches have ended", callers - open);
        let mut found = |of: &str, value| {
            let what = format!("{callers} callers, a {what} each {every} s: {of}");
            findings.add(what, Limit::None, server, value);
        };
        found(
            "kube-apiserver (ours: with `serve` between), CPU seconds a minute",
            theirs.rate() * MINUTE,
        );
        if server == Server::Ours {
            found("`serve`, CPU seconds a minute", ours.rate() * MINUTE);
        }
        let minutes = theirs.wall.as_secs_f64() / MINUTE;
        for ((name, before), after) in REVIEWS.iter().zip(before).zip(after) {
            if server == Server::Ours {
                found(&format!("{name} a minute"), (after - before) / minutes);
            }
        }
        found("reads a minute", reads as f64 / minutes);
        found("p50 latency, ms", p50_us as f64 / 1e3);
        found("p99 latency, ms", p99_us as f64 / 1e3);
        found("busy processors, %", theirs.busy * 100.0);
        Ok(())
    }

    /// How many of each the API server has answered.
    async fn reviews(&self) -> Result<[f64; 2]> {
        let text = self.admin.request_text(Request::get("/metrics").body(Vec::new())?).await?;
        Ok(REVIEWS.map(|resource| requests(&text, resource)))
    }
}

/// The sum of `apiserver_request_total` for a resource.
fn requests(metrics: &str, resource: &str) -> f64 {
    let of = format!("resource=\"{resource}\"");
    let lines = metrics.lines().filter(|it| it.starts_with("apiserver_request_total{"));
    let values = lines.filter(|it| it.contains(&of)).filter_map(|it| it.rsplit(' ').next());
    values.flat_map(str::parse::<f64>).sum()
}

/// Service accounts that may read Pods, and a token of each, by lines.
async fn tokens(admin: &kube::Client, callers: usize) -> Result<NamedTempFile> {
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": "callers" },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "pods-viewer" },
        "subjects": [{ "apiGroup": group, "kind": "Group", "name": "system:serviceaccounts" }],
    });
    create(admin, &format!("/apis/{group}/v1/clusterrolebindings"), &binding).await?;
    let tokens: Vec<String> = stream::iter(0..callers)
        .map(async |number| {
            let accounts = "/api/v1/namespaces/default/serviceaccounts";
            let name = format!("caller-{number}");
            create(admin, accounts, &json!({ "metadata": { "name": name } })).await?;
            let request = json!({ "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest", "spec": {} });
            let answer = create(admin, &format!("{accounts}/{name}/token"), &request).await?;
            anyhow::Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
        })
        .buffer_unordered(16)
        .try_collect()
        .await?;
    let mut file = NamedTempFile::new()?;
    file.write_all(tokens.join("\n").as_bytes())?;
    Ok(file)
}

async fn create(client: &kube::Client, path: &str, body: &Value) -> Result<Value> {
    let request = Request::post(path).header("content-type", "application/json");
    Ok(client.request(request.body(serde_json::to_vec(body)?)?).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_resource_are_summed() {
        let text = "# TYPE apiserver_request_total counter\n\
            apiserver_request_total{code=\"201\",resource=\"tokenreviews\",verb=\"POST\"} 3\n\
            apiserver_request_total{code=\"503\",resource=\"tokenreviews\",verb=\"POST\"} 2\n\
            apiserver_request_total{code=\"200\",resource=\"pods\",verb=\"GET\"} 7\n";
        assert_eq!(requests(text, "tokenreviews"), 5.0);
        assert_eq!(requests(text, "nodes"), 0.0);
    }
}
