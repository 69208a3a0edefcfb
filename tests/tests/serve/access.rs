//! Who may read through the endpoint's TLS address: whom the API server allows it, in its words.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::stream::{self, TryStreamExt};
use http::Request;
use http_body_util::BodyExt;
use informer_tests::helpers::eventually_ok;
use informer_tests::real::{RealCluster, config_of};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::accounts::token;
use crate::endpoint::Endpoint;

pub(crate) const SOON: Duration = Duration::from_secs(30);
pub(crate) const LONG: Duration = Duration::from_secs(90);
/// How long an open watch may outlive its permission.
const WATCH_ENDS: Duration = Duration::from_secs(70);

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";

/// What is asked of both.
const PATHS: [&str; 34] = [
    "/api/v1/pods",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/kube-system/pods",
    "/api/v1/namespaces/kube-system/pods?watch=1&timeoutSeconds=1",
    "/api/v1/pods?watch=true&timeoutSeconds=1",
    "/api/v1/namespaces/default/pods/none",
    "/api/v1/namespaces/kube-system/pods/none",
    "/api/v1/namespaces/kube-system/pods/none/status",
    "/api/v1/namespaces/default/pods/none/log",
    "/api/v1/namespaces/kube-system/pods?fieldSelector=metadata.name=none",
    "/api/v1/namespaces/kube-system/pods?labelSelector=a%20in%20(b,c),!d&fieldSelector=spec.nodeName=n",
    "/api/v1/namespaces/kube-system/pods?fieldSelector=metadata.name=none&watch=1&timeoutSeconds=1",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/mine",
    "/api/v1/namespaces/default/configmaps/other",
    "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=mine",
    "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dother",
    "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name!=other",
    "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=mine&limit=x",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/status",
    "/api/v1/nodes/none",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/deployments/none/scale",
    "/apis/nope.example.com/v1/nopes",
    "/api/v1/nopes",
    "/api/v1/watch/pods",
    "/metrics",
    "/",
    "/openapi/v3",
    "/version",
];

#[tokio::test(flavor = "multi_thread")]
async fn callers_read_what_the_api_server_allows_them_and_no_longer() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let admin = cluster.client().await?;
    grant(&admin).await?;
    let token = token(&admin, "reader").await?;
    let endpoint = serve(&cluster, &[]).await?;
    let mut failures = Vec::new();
    let mut refused = 0;
    let callers = ["viewer", "nobody", "certified", "reader"];
    for caller in callers {
        let direct = client_of(&cluster, caller, &token, None).await?;
        let through = client_of(&cluster, caller, &token, Some(endpoint.url())).await?;
        for path in PATHS {
            for accept in ["application/json", TABLE, METADATA, PROTOBUF] {
                let wanted = ask(&direct, path, accept).await?;
                let got = ask(&through, path, accept).await?;
                let is_refused = wanted.0 == 403;
                refused += usize::from(is_refused);
                // A certificate cannot be passed on, so what is not cached is refused.
                let words = String::from_utf8_lossy(&got.1);
                if caller == "certified" && words.contains("client certificate cannot be passed") {
                    continue;
                }
                if wanted.0 != got.0 || (is_refused && wanted.1 != got.1) {
                    let texts = [&wanted.1, &got.1].map(|it| String::from_utf8_lossy(it));
                    failures.push(format!(
                        "{caller} {path} {accept}: {} {:.300}\n  through the endpoint: {} {:.300}",
                        wanted.0, texts[0], got.0, texts[1]
                    ));
                }
            }
        }
    }
    ensure!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    ensure!(refused > 200, "only {refused} were refused");

    short_paths(&cluster, &endpoint, &token).await?;
    without_credentials(&cluster, &endpoint).await?;
    watches_end(&cluster, &endpoint, &token).await?;
    endpoint.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_may_not_review_answers_nobody_and_does_not_say_why() -> anyhow::Result<()>
{
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let endpoint = serve(&cluster, &["--context", "viewer"]).await?;
    let caller = client_of(&cluster, "viewer", "", Some(endpoint.url())).await?;
    let path = "/api/v1/namespaces/default/pods";
    let (code, body) = ask(&caller, path, "application/json").await?;
    let text = String::from_utf8_lossy(&body);
    ensure!(code == 503 && text.contains("cannot be looked up"), "{code} {text}");
    ensure!(!text.contains("review"), "{text}");
    endpoint.stop().await
}

/// The same in the words of short paths.
async fn short_paths(
    cluster: &RealCluster,
    endpoint: &Endpoint,
    token: &str,
) -> anyhow::Result<()> {
    for (caller, short, path) in [
        ("viewer", "/pods", "/api/v1/pods"),
        ("viewer", "/po?namespace=kube-system", "/api/v1/namespaces/kube-system/pods"),
        ("viewer", "/core/v1/pods/kube-system/x", "/api/v1/namespaces/kube-system/pods/x"),
        ("nobody", "/apps/v1/deployments", "/apis/apps/v1/deployments"),
        ("certified", "/deploy", "/apis/apps/v1/deployments"),
        ("reader", "/core/v1/nodes/n", "/api/v1/nodes/n"),
        ("nobody", "/nope", "/nope"),
        ("viewer", "/pods?namespace=default", "/api/v1/namespaces/default/pods"),
    ] {
        let direct = client_of(cluster, caller, token, None).await?;
        let through = client_of(cluster, caller, token, Some(endpoint.url())).await?;
        let (wanted, words) = ask(&direct, path, "application/json").await?;
        let (got, text) = ask(&through, short, "application/json").await?;
        ensure!(wanted == got, "{caller} {short}: {got} for {wanted}");
        ensure!(wanted != 403 || words == text, "{short}: {}", String::from_utf8_lossy(&text));
    }
    Ok(())
}

/// Neither nobody nor a stranger is answered.
async fn without_credentials(cluster: &RealCluster, endpoint: &Endpoint) -> anyhow::Result<()> {
    let mut config = config_of(&cluster.kubeconfig_path(), Some("admin")).await?;
    config.cluster_url = endpoint.url().parse()?;
    config.default_retry = false;
    for token in [None, Some("a stranger's"), Some("eyJhbGciOiJub25lIn0.e30.")] {
        let mut config = config.clone();
        config.auth_info.token = token.map(|it| it.to_owned().into());
        let client = Client::try_from(config.clone())?;
        for path in ["/api/v1/pods", "/metrics", "/", "/pods", "/api"] {
            let (code, body) = ask(&client, path, "application/json").await?;
            let status: Value = serde_json::from_slice(&body)?;
            ensure!(code == 401 && status["message"] == "Unauthorized", "{path}: {code} {status}");
        }
        for path in ["/livez", "/readyz", "/healthz"] {
            let (code, _) = ask(&client, path, "*/*").await?;
            ensure!(code == 200, "{path}: {code}");
        }
    }
    Ok(())
}

/// Open watches end when the right or the token is taken away, and no others.
async fn watches_end(
    cluster: &RealCluster,
    endpoint: &Endpoint,
    token: &str,
) -> anyhow::Result<()> {
    let admin = cluster.client().await?;
    let open_as =
        async |caller: &str, path: &str, other: &[(&str, &str)]| -> anyhow::Result<JoinHandle<_>> {
            let client = client_of(cluster, caller, token, Some(endpoint.url())).await?;
            let mut request = Request::get(format!("{path}?watch=1"));
            for (name, value) in other {
                request = request.header(*name, *value);
            }
            let request = request.body(kube::client::Body::empty())?;
            let response = client.send(request).await?;
            ensure!(response.status() == 200, "{caller} {path}: {}", response.status());
            Ok(tokio::spawn(async move {
                let body = response.into_body().collect().await.map(|it| it.to_bytes());
                // Without the client the connection would end.
                drop(client);
                body
            }))
        };
    let open = async |caller: &str, path: &str| open_as(caller, path, &[]).await;
    let pods = "/api/v1/namespaces/default/pods";
    let mine = "/api/v1/namespaces/default/configmaps";
    let by_right = open("viewer", pods).await?;
    let by_certificate = open("certified", mine).await?;
    let by_token = open("reader", pods).await?;
    let masters = [("impersonate-user", "other"), ("impersonate-group", "system:masters")];
    let in_another_name = open_as("admin", pods, &[("impersonate-user", "viewer")]).await?;
    let stays = open("admin", pods).await?;
    let stays_in_another_name = open_as("admin", pods, &masters).await?;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    for path in [
        format!("{rbac}/viewer"),
        format!("{rbac}/team"),
        "/api/v1/namespaces/default/serviceaccounts/reader".to_owned(),
    ] {
        admin.request::<Value>(Request::delete(path).body(Vec::new())?).await?;
    }
    let ended = [(by_right, 403), (by_certificate, 403), (by_token, 401), (in_another_name, 403)];
    stream::iter(ended.map(Ok))
        .try_for_each_concurrent(None, async |(watch, code)| {
            let body = timeout(WATCH_ENDS, watch).await.context("the watch goes on")???;
            let text = String::from_utf8_lossy(&body);
            let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
            ensure!(last["type"] == "ERROR" && last["object"]["code"] == code, "{code}: {last}");
            Ok(())
        })
        .await?;
    for stays in [stays, stays_in_another_name] {
        ensure!(!stays.is_finished(), "another's watch has ended");
        stays.abort();
    }
    Ok(())
}

/// Lets `team` and the service account `reader` read a little.
async fn grant(admin: &Client) -> anyhow::Result<()> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = |name: &str, rule: Value| {
        (format!("{rbac}/roles"), json!({ "metadata": { "name": name }, "rules": [rule] }))
    };
    let binding = |name: &str, role: &str, subject: Value| {
        let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role });
        let body = json!({ "metadata": { "name": name }, "roleRef": role, "subjects": [subject] });
        (format!("{rbac}/rolebindings"), body)
    };
    let read = ["get", "list", "watch"];
    let team = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "team" });
    let account = json!({ "kind": "ServiceAccount", "name": "reader", "namespace": "default" });
    let mine = json!({ "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": read });
    let configmaps = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": read });
    let core = "/api/v1/namespaces/default";
    for (path, body) in [
        role("configmaps", configmaps),
        role("mine", mine),
        binding("team", "configmaps", team),
        binding("reader", "mine", account.clone()),
        binding("reader-pods", "viewer", account),
        (format!("{core}/serviceaccounts"), json!({ "metadata": { "name": "reader" } })),
        (format!("{core}/configmaps"), json!({ "metadata": { "name": "mine" } })),
        (format!("{core}/configmaps"), json!({ "metadata": { "name": "other" } })),
    ] {
        let request = Request::post(&path).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(&body)?)?;
        admin.request::<Value>(request).await.with_context(|| path)?;
    }
    Ok(())
}

/// A client of a user of the kubeconfig, or of the service account, at the API server or elsewhere.
pub(crate) async fn client_of(
    cluster: &RealCluster,
    caller: &str,
    token: &str,
    url: Option<&str>,
) -> anyhow::Result<Client> {
    let context = if caller == "reader" { "nobody" } else { caller };
    let mut config: Config = config_of(&cluster.kubeconfig_path(), Some(context)).await?;
    if caller == "reader" {
        config.auth_info.token = Some(token.to_owned().into());
    }
    if let Some(url) = url {
        config.cluster_url = url.parse()?;
    }
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// The endpoint on a TLS address, with the certificate of the API server.
pub(crate) async fn serve(cluster: &RealCluster, arguments: &[&str]) -> anyhow::Result<Endpoint> {
    let (certificate, key) = cluster.server_certificate();
    let files = [certificate, key, cluster.client_ca()];
    let [certificate, key, ca] = files.each_ref().map(|it| it.to_string_lossy());
    let tls = ["--tls-cert-file", &certificate, "--tls-private-key-file", &key];
    let tls = [&tls[..], &["--client-ca-file", &ca], arguments].concat();
    let endpoint = Endpoint::start(&cluster.kubeconfig_path(), &tls).await?;
    eventually_ok("the endpoint answers", SOON, async || {
        let admin = client_of(cluster, "admin", "", Some(endpoint.url())).await?;
        let (code, _) = ask(&admin, "/livez", "*/*").await?;
        ensure!(code == 200, "{code}");
        Ok(())
    })
    .await?;
    Ok(endpoint)
}

/// Code and body of an answer.
async fn ask(client: &Client, path: &str, accept: &str) -> anyhow::Result<(u16, Vec<u8>)> {
    let request = Request::get(path).header("accept", accept).body(kube::client::Body::empty())?;
    let response = client.send(request).await?;
    let code = response.status().as_u16();
    let body = timeout(SOON, response.into_body().collect()).await.context(path.to_owned())??;
    Ok((code, body.to_bytes().to_vec()))
}
