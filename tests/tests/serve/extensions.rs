//! What an extension API server shows to each caller: the endpoint shows it to no other.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::{Context, ensure};
use http::{Request, Response, StatusCode};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use informer_tests::helpers::eventually_ok;
use informer_tests::real::RealCluster;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::access::{SOON, client_of, serve};
use crate::accounts::{RBAC, binding, create};

const GROUP: &str = "projects.example.com";
const PROJECTS: &str = "/apis/projects.example.com/v1/projects";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/kept.example.com/v1/widgets";

#[tokio::test(flavor = "multi_thread")]
async fn callers_see_what_an_extension_server_shows_them_and_nothing_else() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let admin = cluster.client().await?;
    extend(&cluster, &admin).await?;
    let endpoint = serve(&cluster, &[]).await?;
    let through = |caller: &'static str| client_of(&cluster, caller, "", Some(endpoint.url()));
    let viewer = client_of(&cluster, "viewer", "", None).await?;
    eventually_ok("the extension server answers", SOON, async || {
        ensure!(names(&admin, PROJECTS).await? == ["hidden", "open"]);
        ensure!(names(&viewer, PROJECTS).await? == ["open"]);
        Ok(())
    })
    .await?;
    for _ in 0..2 {
        ensure!(names(&through("admin").await?, PROJECTS).await? == ["hidden", "open"]);
        let seen = names(&through("viewer").await?, PROJECTS).await?;
        ensure!(seen == ["open"], "{seen:?}");
    }

    // Custom resources that kube-apiserver serves are held nevertheless.
    create(&admin, DEFINITIONS, &definition()).await?;
    let through = through("admin").await?;
    eventually_ok("custom resources are held", SOON, async || {
        names(&through, WIDGETS).await?;
        let request = Request::get("/metrics").body(Vec::new())?;
        let metrics = through.request_text(request).await?;
        let mut lines = metrics.lines().filter(|it| it.contains("kept.example.com"));
        ensure!(lines.any(|it| it.contains(r#"from="cache""#)), "none from the cache");
        Ok(())
    })
    .await?;
    endpoint.stop().await
}

/// Starts an extension server, and has the API server ask it for its group; the viewer may list it.
async fn extend(cluster: &RealCluster, admin: &Client) -> anyhow::Result<()> {
    let port = start(cluster).await?;
    let service = json!({ "metadata": { "name": "projects" },
        "spec": { "type": "ExternalName", "externalName": "localhost" } });
    create(admin, "/api/v1/namespaces/default/services", &service).await?;
    let api_service = json!({ "metadata": { "name": format!("v1.{GROUP}") },
        "spec": { "group": GROUP, "version": "v1", "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": { "namespace": "default", "name": "projects", "port": port } } });
    create(admin, "/apis/apiregistration.k8s.io/v1/apiservices", &api_service).await?;
    let rules =
        json!([{ "apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "watch"] }]);
    let role = json!({ "metadata": { "name": "projects" }, "rules": rules });
    create(admin, &format!("{RBAC}/clusterroles"), &role).await?;
    let viewer =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer" });
    let binding = binding("projects", "ClusterRole", "projects", &viewer);
    create(admin, &format!("{RBAC}/clusterrolebindings"), &binding).await.map(drop)
}

/// Starts a server that shows `hidden` to nobody but the user `admin`; returns its port.
async fn start(cluster: &RealCluster) -> anyhow::Result<u16> {
    let (certificate, key) = cluster.server_certificate();
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)?.collect();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(chain?, PrivateKeyDer::from_pem_file(key)?)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("localhost:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Whoever hangs up is not missed.
                let Ok(socket) = acceptor.accept(socket).await else { return };
                let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request)));
                let server = hyper::server::conn::http1::Builder::new();
                drop(server.serve_connection(TokioIo::new(socket), service).await);
            });
        }
    });
    Ok(port)
}

fn answer(request: &Request<Incoming>) -> Response<http_body_util::Full<Bytes>> {
    let sees_all = request.headers().get("x-remote-user").is_some_and(|it| it == "admin");
    let project = |name: &str, version: &str| {
        json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Project",
            "metadata": { "name": name, "uid": name, "resourceVersion": version } })
    };
    let shown =
        [("hidden", "7"), ("open", "8")].into_iter().filter(|it| sees_all || it.0 == "open");
    let query = request.uri().query().unwrap_or_default();
    let (code, body) = match request.uri().path() {
        "/apis/projects.example.com/v1" => (
            StatusCode::OK,
            json!({ "kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": format!("{GROUP}/v1"), "resources": [{ "name": "projects",
                    "singularName": "project", "namespaced": false, "kind": "Project",
                    "verbs": ["get", "list", "watch"] }] }),
        ),
        // As a server without streaming lists; other watches end at once.
        PROJECTS if query.contains("sendInitialEvents=") => (
            StatusCode::UNPROCESSABLE_ENTITY,
            json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422,
                "reason": "Invalid", "message": "sendInitialEvents is forbidden" }),
        ),
        PROJECTS if query.contains("watch=") => (StatusCode::OK, Value::Null),
        PROJECTS => (
            StatusCode::OK,
            json!({ "kind": "ProjectList", "apiVersion": format!("{GROUP}/v1"),
                "metadata": { "resourceVersion": "9" },
                "items": Vec::from_iter(shown.map(|it| project(it.0, it.1))) }),
        ),
        _ => (
            StatusCode::NOT_FOUND,
            json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404 }),
        ),
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut response = Response::new(http_body_util::Full::from(body));
    *response.status_mut() = code;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

fn definition() -> Value {
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.kept.example.com" },
        "spec": { "group": "kept.example.com", "scope": "Cluster",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }] } })
}

async fn names(client: &Client, path: &str) -> anyhow::Result<Vec<String>> {
    let list: Value = client.request(Request::get(path).body(Vec::new())?).await?;
    let items = list["items"].as_array().context("no items")?;
    Ok(items.iter().filter_map(|it| Some(it["metadata"]["name"].as_str()?.to_owned())).collect())
}
