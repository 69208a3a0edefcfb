//! Who may see what: through `kubectl proxy` at a TLS address, before a real API server.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, ensure};
use http::Request;
use informer_serve::Tls;
use informer_tests::real::{RealCluster, config_of, kubectl_path};
use kube::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::browser::Page;
use crate::served::Served;
use crate::shows;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

#[tokio::test(flavor = "multi_thread")]
async fn through_kubectl_proxy_it_shows_what_the_user_may_see_and_no_more() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let admin = cluster.client().await?;
    let token = grant(&admin).await?;
    let (certificate, key) = cluster.server_certificate();
    let config = config_of(&cluster.kubeconfig_path(), Some("admin")).await?;
    let served = Served::start_tls(&config, Tls::load(&certificate, &key)?).await?;

    // A browser by itself has no credentials, and is told so. It would not know the certificate.
    let by_itself = curl(&served.url(), &certificate).await?;
    ensure!(by_itself.contains("401"), "{by_itself}");
    ensure!(by_itself.contains("kubectl --server") && by_itself.contains("proxy"), "{by_itself}");

    let mut proxy = Proxy::start(&served.url(), &certificate, &token).await?;
    page.open(&proxy.url).await?;
    page.until(&shows("live as system:serviceaccount:default:reader")).await?;
    // Nothing may be listed in all namespaces.
    page.until("document.querySelector('#rows').children.length === 0").await?;
    let seen = page.eval("document.body.innerText").await?;
    ensure!(!seen.as_str().unwrap_or_default().contains("kube-system"), "{seen}");
    page.fill("kind", "configmaps").await?;
    page.until(&shows("cannot watch resource")).await?;

    // In the own namespace they may. What is not held is listed nevertheless, by its short name.
    page.fill("namespace", "default").await?;
    page.fill("kind", "sa").await?;
    page.until(&shows("does not hold sa")).await?;
    page.press("o").await?;
    page.until(
        "[...document.querySelectorAll('#list .object bdi')].some((it) => it.textContent === 'reader')",
    )
    .await?;
    page.press("o").await?;
    page.fill("kind", "configmaps").await?;
    page.until("document.querySelector('#notice').hidden && changes.versions.size > 0").await?;
    for (namespace, value) in [("kube-system", "theirs"), ("default", "mine")] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/watched");
        let patch = json!({"data": {"a": value}}).to_string().into_bytes();
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        admin.request::<Value>(request.body(patch)?).await?;
    }
    page.until(
        "[...document.querySelectorAll('#list .new')].some((it) => it.textContent === 'mine')",
    )
    .await?;
    let all = page.eval("JSON.stringify(changes.all)").await?;
    ensure!(!all.as_str().unwrap_or_default().contains("theirs"), "{all}");
    page.press("j").await?;
    page.press("Enter").await?;
    page.press("y").await?;
    page.until(&shows("a: mine")).await?;
    page.press("Escape").await?;
    page.press("o").await?;
    page.until("document.querySelector('#list .object')").await?;

    // Secrets may not be read, whoever asks.
    page.fill("kind", "secrets").await?;
    page.until("!document.querySelector('#notice').hidden").await?;
    // A proxy without an endpoint answers 500.
    served.stop().await?;
    page.until(&shows("The endpoint does not answer")).await?;
    page.until(&shows("not connected")).await?;
    proxy.child.kill().await?;
    Ok(())
}

/// `kubectl proxy` before the endpoint, with a token.
struct Proxy {
    child: Child,
    url: String,
}

impl Proxy {
    async fn start(server: &str, ca: &Path, token: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(kubectl_path()?);
        command.args(["--kubeconfig", "/dev/null", "--server", server, "--token", token]);
        command.arg("--certificate-authority").arg(ca).args(["proxy", "--port", "0"]);
        command.stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("piped")?).lines();
        let line = lines.next_line().await?.context("kubectl proxy says nothing")?;
        let address = line.rsplit(' ').next().context("no address")?;
        Ok(Self { url: format!("http://{address}/"), child })
    }
}

/// What curl shows of the page, headers and all.
async fn curl(url: &str, ca: &Path) -> anyhow::Result<String> {
    let mut command = Command::new("curl");
    command.args(["-sS", "-i", "-H", "Accept: text/html"]).arg("--cacert").arg(ca).arg(url);
    let output = command.output().await.context("curl")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A service account that may open the page, and read ConfigMaps of one namespace; its token.
async fn grant(admin: &Client) -> anyhow::Result<String> {
    let account = json!({"kind": "ServiceAccount", "name": "reader", "namespace": "default"});
    let group = "rbac.authorization.k8s.io";
    let core = "/api/v1/namespaces/default";
    let page = json!({"metadata": {"name": "page"}, "rules": [{"nonResourceURLs": ["/"], "verbs": ["get"]}]});
    let read = json!({"metadata": {"name": "read"}, "rules": [{"apiGroups": [""], "resources": ["configmaps", "serviceaccounts"], "verbs": ["get", "list", "watch"]}]});
    let may = |kind: &str, name: &str| json!({"metadata": {"name": name}, "roleRef": {"apiGroup": group, "kind": kind, "name": name}, "subjects": [account]});
    for (path, body) in [
        (format!("{core}/serviceaccounts"), json!({"metadata": {"name": "reader"}})),
        (format!("{RBAC}/clusterroles"), page),
        (format!("{RBAC}/clusterrolebindings"), may("ClusterRole", "page")),
        (format!("{RBAC}/namespaces/default/roles"), read),
        (format!("{RBAC}/namespaces/default/rolebindings"), may("Role", "read")),
        (
            format!("{core}/configmaps"),
            json!({"metadata": {"name": "watched"}, "data": {"a": "old"}}),
        ),
        (
            "/api/v1/namespaces/kube-system/configmaps".to_owned(),
            json!({"metadata": {"name": "watched"}, "data": {"a": "old"}}),
        ),
    ] {
        let request = Request::post(&path).header("content-type", "application/json");
        admin.request::<Value>(request.body(body.to_string().into_bytes())?).await.context(path)?;
    }
    let path = format!("{core}/serviceaccounts/reader/token");
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let request = Request::post(path).header("content-type", "application/json");
    let answer = admin.request::<Value>(request.body(body.to_string().into_bytes())?).await?;
    Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
}
