//! Discovery against canned documents over a real connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::{Client, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Discovery, DiscoveryError, FailedGroup};

const AGGREGATED_CORE: &str = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
 {"metadata":{"creationTimestamp":null},"versions":[{"version":"v1","freshness":"Current","resources":[
  {"resource":"nodes","responseKind":{"group":"","version":"","kind":"Node"},"scope":"Cluster","singularResource":"node","verbs":["get","list","watch"],"shortNames":["no"]},
  {"resource":"pods","responseKind":{"group":"","version":"","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["get","list","watch"],"shortNames":["po"],"categories":["all"],
   "subresources":[{"subresource":"log","responseKind":{"kind":"Pod"},"verbs":["get"]}]},
  {"resource":"bindings","responseKind":{"kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]},
  {"resource":"events","responseKind":{"kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["list","watch"],"shortNames":["ev"]}]}]}]}"#;

const AGGREGATED_GROUPS: &str = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
 {"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
  {"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["list","watch"],"shortNames":["deploy"]}]}]},
 {"metadata":{"name":"events.k8s.io"},"versions":[{"version":"v1","resources":[
  {"resource":"events","responseKind":{"kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["list","watch"],"shortNames":["ev"]}]}]},
 {"metadata":{"name":"example.com"},"versions":[
  {"version":"v2","resources":[{"resource":"gadgets","responseKind":{"kind":"Gadget"},"scope":"Cluster","singularResource":"gadget","verbs":["list","watch"],"shortNames":["po"]}]},
  {"version":"v1","resources":[{"resource":"gadgets","responseKind":{"kind":"Gadget"},"scope":"Cluster","singularResource":"gadget","verbs":["list","watch"]},
   {"resource":"pod","responseKind":{"kind":"Peapod"},"scope":"Cluster","singularResource":"peapod","verbs":["list","watch"]},
   {"resource":"relics","responseKind":{"kind":"Relic"},"scope":"Cluster","singularResource":"relic","verbs":["list","watch"]}]}]},
 {"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale","resources":[]}]}]}"#;

fn aggregated() -> Vec<(&'static str, u16, &'static str)> {
    vec![("/api", 200, AGGREGATED_CORE), ("/apis", 200, AGGREGATED_GROUPS)]
}

fn older() -> Vec<(&'static str, u16, &'static str)> {
    vec![
        (
            "/api",
            200,
            r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}"#,
        ),
        (
            "/api/v1",
            200,
            r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[
             {"name":"pods","singularName":"","namespaced":true,"kind":"Pod","verbs":["list","watch"],"shortNames":["po"]},
             {"name":"pods/log","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]}]}"#,
        ),
        (
            "/apis",
            200,
            r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[
             {"name":"apps","versions":[{"groupVersion":"apps/v1beta1","version":"v1beta1"},{"groupVersion":"apps/v1","version":"v1"}],
              "preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},
             {"name":"broken.io","versions":[{"groupVersion":"broken.io/v1","version":"v1"}],"preferredVersion":{"version":"v1"}}]}"#,
        ),
        (
            "/apis/apps/v1",
            200,
            r#"{"kind":"APIResourceList","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":[]}]}"#,
        ),
        (
            "/apis/apps/v1beta1",
            200,
            r#"{"kind":"APIResourceList","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":[]}]}"#,
        ),
        ("/apis/broken.io/v1", 503, "down for repairs"),
    ]
}

#[tokio::test]
async fn aggregated_documents_tell_everything_in_two_requests() {
    let server = Canned::start(aggregated()).await;
    let discovery = Discovery::fetch(&server.client()).await.unwrap();

    let names: Vec<String> =
        discovery.resources().iter().map(|it| it.resource.to_string()).collect();
    assert_eq!(names[..4], ["nodes.v1", "pods.v1", "bindings.v1", "events.v1"]);
    assert_eq!(names.len(), 10, "{names:?}");
    let pods = discovery.find("", "v1", "pods").unwrap();
    assert!(pods.resource.namespaced && pods.can_be_watched() && pods.preferred);
    assert_eq!((pods.resource.kind.as_str(), pods.singular.as_str()), ("Pod", "pod"));
    assert_eq!(
        (pods.short_names.clone(), pods.categories.clone()),
        (vec!["po".to_owned()], vec!["all".to_owned()])
    );
    assert!(!discovery.find("", "v1", "bindings").unwrap().can_be_watched());
    assert!(!discovery.find("", "v1", "nodes").unwrap().resource.namespaced);
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn older_documents_are_read_one_by_one_and_a_broken_group_is_kept_apart() {
    let server = Canned::start(older()).await;
    let discovery = Discovery::fetch(&server.client()).await.unwrap();

    let names: Vec<String> =
        discovery.resources().iter().map(|it| it.resource.to_string()).collect();
    assert_eq!(names, ["pods.v1", "deployments.v1.apps", "deployments.v1beta1.apps"]);
    assert_eq!(discovery.resources()[0].singular, "pod");
    let cause = "/apis/broken.io/v1: the server answered 503: Service Unavailable, with the body \"down for repairs\"".to_owned();
    assert_eq!(
        discovery.failed(),
        [FailedGroup { group_version: "broken.io/v1".to_owned(), cause }]
    );
    let unknown = discovery.find_by_arg("widgets").unwrap_err().to_string();
    assert!(unknown.contains("broken.io/v1"), "{unknown}");
}

#[tokio::test]
async fn names_mean_what_they_mean_to_kubectl() {
    let server = Canned::start(aggregated()).await;
    let discovery = Discovery::fetch(&server.client()).await.unwrap();
    for (arg, expected) in [
        ("pods", "pods.v1"),
        ("Pods", "pods.v1"),
        ("PO", "pods.v1"),
        ("pod", "pods.v1"),
        ("Pod", "pods.v1"),
        ("pods.v1", "pods.v1"),
        ("pods.v1.", "pods.v1"),
        ("deploy", "deployments.v1.apps"),
        ("deploy.apps", "deployments.v1.apps"),
        ("deployments.v1.apps", "deployments.v1.apps"),
        ("Deployment.v1.apps", "deployments.v1.apps"),
        ("ev", "events.v1"),
        ("events", "events.v1"),
        ("events.events.k8s.io", "events.v1.events.k8s.io"),
        ("events.events", "events.v1.events.k8s.io"),
        ("events.v1.events.k8s.io", "events.v1.events.k8s.io"),
        ("gadgets", "gadgets.v2.example.com"),
        ("gadgets.v1.example.com", "gadgets.v1.example.com"),
        ("po.example.com", "gadgets.v2.example.com"),
        ("relics", "relics.v1.example.com"),
    ] {
        let found = discovery.find_by_arg(arg).map(|it| it.resource.to_string());
        assert_eq!(found.as_deref(), Ok(expected), "{arg}");
    }
    assert!(discovery.find("example.com", "v1", "relics").unwrap().preferred);
    assert!(!discovery.find("example.com", "v1", "gadgets").unwrap().preferred);
}

#[tokio::test]
async fn unknown_names_come_back_with_similar_ones() {
    let server = Canned::start(aggregated()).await;
    let discovery = Discovery::fetch(&server.client()).await.unwrap();
    for (arg, expected) in [
        ("pdos", &["pods"][..]),
        ("deploymnets", &["deployments.apps"]),
        ("gadget.v3.example.com", &["gadgets.example.com"]),
        ("evnts", &["events", "events.events.k8s.io"]),
        ("zzz", &[]),
        ("", &[]),
        (".", &[]),
    ] {
        let unknown = discovery.find_by_arg(arg).unwrap_err();
        assert_eq!(unknown.suggestions, expected, "{arg}");
        assert_eq!(unknown.asked, arg);
    }
    let unknown = discovery.find_by_arg("pdos").unwrap_err().to_string();
    assert!(
        unknown.starts_with("the server has no resource \"pdos\"; did you mean pods?"),
        "{unknown}"
    );
    assert!(unknown.contains("metrics.k8s.io/v1beta1 (its server does not answer)"), "{unknown}");

    let wrong_version = discovery.require("apps", "v2", "deployments").unwrap_err();
    assert_eq!(wrong_version.asked, "deployments.v2.apps");
    assert_eq!(wrong_version.suggestions[0], "deployments.v1.apps");
}

#[tokio::test]
async fn one_group_and_version_costs_one_request() {
    let server = Canned::start(older()).await;
    let client = server.client();
    let apps = Discovery::fetch_group_version(&client, "apps", "v1").await.unwrap();
    assert_eq!(apps.resources().len(), 1);
    assert_eq!(server.requests(), 1);
    let missing = Discovery::fetch_group_version(&client, "apps", "v7").await;
    assert_eq!(missing, Err(DiscoveryError::NotFound { path: "/apis/apps/v7".to_owned() }));
    // What cannot be a path is not there either.
    assert!(Discovery::fetch_group_version(&client, "a b", "v7").await.is_err());
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let status =
        r#"{"kind":"Status","message":"forbidden: User \"eve\" cannot get path \"/api\""}"#;
    let server = Canned::start(vec![("/api", 403, status), ("/apis", 403, status)]).await;
    let error = Discovery::fetch(&server.client()).await.unwrap_err();
    assert!(
        error.to_string().contains("eve") && error.to_string().contains("system:discovery"),
        "{error}"
    );

    let server = Canned::start(vec![("/api", 401, "{}"), ("/apis", 401, "{}")]).await;
    let error = Discovery::fetch(&server.client()).await.unwrap_err();
    assert_eq!(error, DiscoveryError::Unauthorized { message: "Unauthorized".to_owned() });

    let server = Canned::start(vec![("/api", 200, "<html>"), ("/apis", 200, "<html>")]).await;
    let error = Discovery::fetch(&server.client()).await.unwrap_err();
    assert!(matches!(error, DiscoveryError::Malformed { .. }), "{error}");

    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = Discovery::fetch(&client_of(nobody)).await.unwrap_err();
    assert!(matches!(error, DiscoveryError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

/// Answers GET requests with canned documents, and anything else with 404.
struct Canned {
    address: std::net::SocketAddr,
    requests: Arc<std::sync::atomic::AtomicUsize>,
}

impl Canned {
    async fn start(documents: Vec<(&'static str, u16, &'static str)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let documents: Arc<BTreeMap<_, _>> = Arc::new(
            documents.into_iter().map(|(path, code, body)| (path, (code, body))).collect(),
        );
        let requests = Arc::default();
        let counter = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer(connection, Arc::clone(&documents), Arc::clone(&counter)));
            }
        });
        Self { address, requests }
    }

    fn client(&self) -> Client {
        client_of(self.address)
    }

    fn requests(&self) -> usize {
        self.requests.load(std::sync::atomic::Ordering::SeqCst)
    }
}

fn client_of(address: std::net::SocketAddr) -> Client {
    let mut config = Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

async fn answer(
    mut connection: TcpStream,
    documents: Arc<BTreeMap<&'static str, (u16, &'static str)>>,
    requests: Arc<std::sync::atomic::AtomicUsize>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match connection.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap();
    let (code, body) = documents.get(path).copied().unwrap_or((404, "{}"));
    let text = format!(
        "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = connection.write_all(text.as_bytes()).await;
}
