//! What an extension API server serves may differ from caller to caller, so it is not held.

use informer_testkit::{Cut, Verb};

use super::forwarding::forwarding;
use super::watches::end;
use super::*;

const V1: &str = "/apis/project.example.com/v1/projects";
const SHORT: &str = "/project.example.com/v1/projects";
const V2: &str = "/apis/project.example.com/v2/projects";
const PROJECTS: &str = "projects.project.example.com";

const API_SERVICES: &str = "apiservices.apiregistration.k8s.io";

/// A resource in two versions. The test kit serves both; it is the APIServices that count.
fn projects(server: &TestServer) {
    let version = |name: &str, is_stored: bool| {
        json!({"name": name, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": PROJECTS},
        "spec": {"group": "project.example.com", "scope": "Cluster",
            "names": {"plural": "projects", "singular": "project", "kind": "Project"},
            "versions": [version("v1", true), version("v2", false)]}});
    server.cluster().create(&definition).unwrap();
    server.cluster().create(&project("secret")).unwrap();
}

fn project(name: &str) -> Value {
    json!({"apiVersion": "project.example.com/v1", "kind": "Project", "metadata": {"name": name}})
}

/// An APIService of a version; `None` is what kube-apiserver makes for CustomResourceDefinitions.
fn api_service(version: &str, service: Option<&str>) -> Value {
    let service = service.map(|name| json!({"namespace": "default", "name": name, "port": 443}));
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{version}.project.example.com")},
        "spec": {"group": "project.example.com", "version": version, "service": service,
            "groupPriorityMinimum": 1000, "versionPriority": 15}})
}

impl Controlled {
    /// Who has listed or watched Projects.
    fn readers(&self) -> Vec<String> {
        let requests = self.server.requests().resource("projects").into_iter();
        requests.map(|it| it.user).collect()
    }

    fn is_held(&self) -> bool {
        let held = self.endpoint.inner.collections.now();
        held.iter().any(|it| it.own.plural == "projects" && !it.has_ended())
    }

    async fn follows(&self, services: &Value) {
        let written = self.server.cluster().apply(services).unwrap();
        self.endpoint.inner.collections.extensions.reached(written.version()).await;
    }
}

#[tokio::test]
async fn what_an_extension_server_serves_is_asked_with_the_callers_token() {
    let it = forwarding(Options::default()).await;
    projects(&it.server);
    it.server.cluster().create(&api_service("v1", Some("projects"))).unwrap();
    for _ in 0..2 {
        assert_eq!(it.get("root-token", V1).await.items(), ["secret"]);
    }
    assert_eq!(it.get("root-token", &format!("{V1}/secret")).await.code, StatusCode::OK);
    assert!(!it.is_held());
    assert_eq!(it.readers(), ["root"; 3]);
    let message = it.get("root-token", SHORT).await.refusal(403, "Forbidden");
    assert!(message.contains("extension API server") && message.contains("--allow"), "{message}");
    assert_eq!(it.readers(), ["root"; 3], "short paths cannot be passed on");
}

#[tokio::test]
async fn the_version_that_kube_apiserver_serves_is_held() {
    let it = forwarding(Options::default()).await;
    projects(&it.server);
    it.server.cluster().create(&api_service("v1", Some("projects"))).unwrap();
    it.server.cluster().create(&api_service("v2", None)).unwrap();
    assert_eq!(it.get("root-token", V2).await.items(), ["secret"]);
    assert!(it.is_held());
    assert!(it.readers().iter().all(|it| it == "informer"), "{:?}", it.readers());
    it.get("root-token", V1).await.items();
    assert!(it.readers().contains(&"root".to_owned()));
}

#[tokio::test]
async fn what_the_configuration_names_is_held_whoever_serves_it() {
    let allow = vec!["*".to_owned(), PROJECTS.to_owned()];
    let cache = vec!["projects".to_owned()];
    for options in
        [Options { allow, ..Options::default() }, Options { cache, ..Options::default() }]
    {
        let it = forwarding(options).await;
        projects(&it.server);
        it.server.cluster().create(&api_service("v1", Some("projects"))).unwrap();
        it.get("root-token", V1).await.items();
        assert!(it.is_held());
        it.endpoint.sweep().await;
        assert!(it.is_held());
    }
}

#[tokio::test]
async fn a_group_that_an_extension_server_takes_over_is_let_go_and_its_watches_end() {
    let it = forwarding(Options::default()).await;
    projects(&it.server);
    it.server.cluster().create(&api_service("v1", None)).unwrap();
    it.get("root-token", V1).await.items();
    let watch = it.watch("root-token", &format!("{V1}?watch=1&resourceVersion=0")).await;
    assert!(it.is_held());
    it.follows(&api_service("v1", Some("projects"))).await;
    let before = it.readers().len();
    it.get("root-token", V1).await.items();
    it.get("root-token", &format!("{V1}/secret")).await;
    assert_eq!(it.readers()[before..], ["root", "root"]);
    it.endpoint.sweep().await;
    assert!(!it.is_held());
    end(watch).await;
    it.follows(&api_service("v1", None)).await;
    it.get("root-token", V1).await.items();
    assert!(it.is_held(), "it is kube-apiserver's again");
}

#[tokio::test]
async fn while_nothing_is_known_of_a_group_it_is_passed_on() {
    let it = forwarding(Options::default()).await;
    projects(&it.server);
    it.get("root-token", V1).await.items();
    assert!(!it.is_held(), "there is no APIService of it yet");
    it.follows(&api_service("v1", None)).await;
    it.get("root-token", V1).await.items();
    assert!(it.is_held());
}

#[tokio::test]
async fn an_account_that_may_not_list_apiservices_holds_no_custom_resources_for_others() {
    let it = forwarding(Options::default()).await;
    projects(&it.server);
    it.server.cluster().create(&api_service("v1", None)).unwrap();
    it.server.auth().deny_all("informer", API_SERVICES);
    assert_eq!(it.get("root-token", V1).await.items(), ["secret"]);
    assert!(!it.is_held());
    assert_eq!(it.readers(), ["root"]);
    let message = it.get("root-token", SHORT).await.refusal(403, "Forbidden");
    assert!(message.contains(API_SERVICES), "{message}");
    // Built-in resources need no such right.
    it.get("root-token", "/api/v1/pods").await.items();
    assert!(it.server.requests().resource("pods").iter().all(|it| it.user == "informer"));
}

#[tokio::test]
async fn custom_resources_are_let_go_when_that_right_is_taken_away() {
    let it = forwarding(Options::default()).await;
    projects(&it.server);
    it.server.cluster().create(&api_service("v1", None)).unwrap();
    it.get("root-token", V1).await.items();
    assert!(it.is_held());
    it.server.auth().deny_all("informer", API_SERVICES);
    it.server.faults().cut_watches(Cut::Close, Some(API_SERVICES));
    let let_go = async {
        while it.is_held() {
            it.endpoint.sweep().await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), let_go).await.expect("it is held for ever");
    let before = it.readers().len();
    it.get("root-token", V1).await.items();
    assert_eq!(it.readers()[before..], ["root"]);
}

/// An API server that has just started may refuse requests that it allows a moment later.
#[tokio::test]
async fn custom_resources_stay_held_through_one_refusal() {
    let it = forwarding(Options::default()).await;
    projects(&it.server);
    it.server.cluster().create(&api_service("v1", None)).unwrap();
    it.get("root-token", V1).await.items();
    let requests = || it.server.requests().resource(API_SERVICES).len();
    let before = requests();
    it.server.auth().deny_all("informer", API_SERVICES);
    it.server.faults().cut_watches(Cut::Close, Some(API_SERVICES));
    let refused = async {
        while requests() == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), refused).await.expect("it is not tried again");
    for _ in 0..1000 {
        it.endpoint.sweep().await;
        tokio::task::yield_now().await;
    }
    assert!(it.is_held());
}

#[tokio::test]
async fn without_access_control_only_known_extension_servers_are_passed_on() {
    let server = server().await;
    projects(&server);
    let endpoint = Endpoint::new(server.client().unwrap(), Options::default());
    assert_eq!(get(&endpoint, V1).await.items(), ["secret"]);
    assert_eq!(endpoint.inner.collections.now().len(), 1, "nobody else reads it");
    let service = server.cluster().create(&api_service("v1", Some("projects"))).unwrap();
    endpoint.inner.collections.extensions.reached(service.version()).await;
    let lists = || server.requests().resource("projects").verb(Verb::List).len();
    let before = lists();
    assert_eq!(get(&endpoint, V1).await.items(), ["secret"]);
    assert_eq!(get(&endpoint, V1).await.items(), ["secret"]);
    assert_eq!(lists(), before + 2);
    get(&endpoint, SHORT).await.refusal(403, "Forbidden");
}
