//! Whole runs with their outputs caught.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use clap::Parser;
use informer_testkit::{TestServer, Verb};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::connect::Environment;

/// A writer whose text can be waited for.
#[derive(Clone)]
struct Caught(Arc<watch::Sender<String>>);

impl Caught {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(String::new())))
    }

    fn text(&self) -> String {
        self.0.borrow().clone()
    }

    async fn until(&self, fits: impl Fn(&str) -> bool) -> String {
        self.0.subscribe().wait_for(|it| fits(it)).await.unwrap().clone()
    }
}

impl Write for Caught {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_modify(|text| text.push_str(std::str::from_utf8(bytes).unwrap()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader that has gone.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server with a kubeconfig file, and the outputs of a run.
struct Setup {
    server: TestServer,
    folder: TempDir,
    out: Caught,
    err: Caught,
    io: Io,
}

impl Setup {
    async fn new() -> Self {
        let server = TestServer::start().await.unwrap();
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("config"), server.kubeconfig()).unwrap();
        let (out, err) = (Caught::new(), Caught::new());
        let io = Io {
            out: Output::new(out.clone()),
            err: Output::new(err.clone()),
            terminal: false,
            stop: CancellationToken::new(),
            environment: Environment {
                kubeconfig: Some(folder.path().join("config").into_os_string()),
                ..Environment::default()
            },
        };
        for name in ["a", "b"] {
            server.cluster().create(&pod(name)).unwrap();
        }
        Self { server, folder, out, err, io }
    }

    /// Runs to the end.
    async fn run(&self, line: &str) -> anyhow::Result<()> {
        run(&parsed(line), &self.io).await
    }

    /// Runs until it is stopped.
    fn start(&self, line: &str) -> JoinHandle<anyhow::Result<()>> {
        let (args, io) = (parsed(line), self.io.clone());
        tokio::spawn(async move { run(&args, &io).await })
    }

    async fn error(&self, line: &str) -> String {
        format!("{:#}", self.run(line).await.unwrap_err())
    }
}

fn parsed(line: &str) -> Args {
    Args::try_parse_from(std::iter::once("kubectl-informer").chain(line.split(' '))).unwrap()
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "i"}]}, "status": {"phase": "Pending"}})
}

#[tokio::test]
async fn watch_prints_adds_updates_and_deletes_and_ends_well() {
    let it = Setup::new().await;
    let watching = it.start("watch pods");
    it.out.until(|text| text.lines().count() == 2).await;
    let cluster = it.server.cluster();
    cluster.create(&pod("c")).unwrap();
    it.out.until(|text| text.contains("add default/c\n")).await;
    cluster.patch("pods", "default", "c", &json!({"status": {"phase": "Running"}})).unwrap();
    it.out.until(|text| text.contains("update default/c\n")).await;
    cluster.delete("pods", "default", "c").unwrap();
    it.out.until(|text| text.contains("delete default/c\n")).await;
    it.io.stop.cancel();
    watching.await.unwrap().unwrap();
    let text = it.out.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "add default/a (initial)",
            "add default/b (initial)",
            "add default/c",
            "update default/c",
            "delete default/c"
        ]
    );
    assert_eq!(it.err.text(), "");
    // Nothing is left behind; the server notices it a moment later.
    while it.server.faults().open_watches(None) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn watch_of_several_resources_with_selectors_and_resyncs() {
    let it = Setup::new().await;
    it.server
        .cluster()
        .create(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a",
            "namespace": "other", "labels": {"app": "a"}}, "spec": {}}))
        .unwrap();
    let watching = it.start("watch po,Deployment pods -A -l app=a --resync 1s");
    let text = it
        .out
        .until(|text| {
            text.contains("update default/a pods (resync)\n")
                && text.contains("update other/a deployments.apps (resync)\n")
        })
        .await;
    assert!(text.contains("add default/a pods (initial)\n"), "{text}");
    assert!(!text.contains("default/b"), "{text}");
    it.io.stop.cancel();
    watching.await.unwrap().unwrap();
}

#[tokio::test]
async fn watch_says_what_becomes_of_the_connection() {
    let it = Setup::new().await;
    let watching = it.start("watch pods -o name");
    it.out.until(|text| text.lines().count() == 2).await;
    it.server.faults().refuse_connections();
    it.server.faults().reset_connections();
    it.err.until(|text| text.contains("pods: ") && text.contains("trying again in ")).await;
    it.server.cluster().delete("pods", "default", "a").unwrap();
    it.server.faults().accept_connections();
    it.err.until(|text| text.contains("pods: watching again after ")).await;
    it.out.until(|text| text.ends_with("delete default/a\n")).await;
    it.io.stop.cancel();
    watching.await.unwrap().unwrap();
}

#[tokio::test]
async fn watch_ends_by_itself_when_told_and_when_the_reader_has_gone() {
    let it = Setup::new().await;
    it.run("watch pods --for 300ms").await.unwrap();
    assert!(it.out.text().contains("add default/a (initial)"));

    let io = Io { out: Output::new(Closed), ..it.io.clone() };
    run(&parsed("watch pods"), &io).await.unwrap();
    run(&parsed("get pods"), &io).await.unwrap();
}

#[tokio::test]
async fn watch_in_json() {
    let it = Setup::new().await;
    let watching = it.start("watch pods -o json --field-selector metadata.name=a");
    it.out.until(|text| text.lines().count() == 1).await;
    it.server
        .cluster()
        .patch("pods", "default", "a", &json!({"status": {"phase": "Running"}}))
        .unwrap();
    let text = it.out.until(|text| text.lines().count() == 2).await;
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!((&lines[0]["type"], &lines[0]["initial"]), (&json!("add"), &json!(true)));
    assert_eq!(lines[1]["old"]["status"]["phase"], "Pending");
    assert_eq!(lines[1]["object"]["status"]["phase"], "Running");
    it.io.stop.cancel();
    watching.await.unwrap().unwrap();
}

#[tokio::test]
async fn get_prints_tables_names_and_documents() {
    let it = Setup::new().await;
    it.run("get pods").await.unwrap();
    let table = it.out.text();
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(rows[1][..4], ["a", "0/1", "Pending", "0"]);
    assert_eq!(rows.len(), 3);

    let it = Setup::new().await;
    it.run("get pods,ns -A --no-headers").await.unwrap();
    let table = it.out.text();
    assert!(table.lines().next().unwrap().starts_with("default   pod/a"), "{table}");
    assert!(table.contains("\n\nnamespace/default"), "{table}");

    let it = Setup::new().await;
    it.run("get pods -o name").await.unwrap();
    assert_eq!(it.out.text(), "pod/a\npod/b\n");

    let it = Setup::new().await;
    it.run("get po a -o json").await.unwrap();
    let object: Value = serde_json::from_str(&it.out.text()).unwrap();
    assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!("Pod"), &json!("a")));

    let it = Setup::new().await;
    it.run("get pods -o json").await.unwrap();
    let list: Value = serde_json::from_str(&it.out.text()).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("List"), 2));

    let it = Setup::new().await;
    it.run("get pods/a -o yaml").await.unwrap();
    let object: Value = serde_saphyr::from_str(&it.out.text()).unwrap();
    assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!("Pod"), &json!("a")));
}

#[tokio::test]
async fn get_says_what_is_not_there() {
    let it = Setup::new().await;
    it.run("get pods -n empty").await.unwrap();
    assert_eq!(it.err.text(), "No resources found in empty namespace.\n");
    assert_eq!(it.out.text(), "");
    assert_eq!(it.error("get pods nobody").await, "pods \"nobody\" not found");
    assert_eq!(it.error("get pods a nobody").await, "pods \"nobody\" not found");
    assert!(it.out.text().contains("\na "));
    let unknown = it.error("get pdos").await;
    assert!(unknown.contains("did you mean pods?"), "{unknown}");
    let selector = it.error("get pods -l a=(").await;
    assert!(selector.contains("offset"), "{selector}");
    let both = it.error("get pods a -A").await;
    assert!(both.contains("leave out -A"), "{both}");
}

#[tokio::test]
async fn a_forbidden_resource_is_an_error_at_once() {
    let it = Setup::new().await;
    it.server.auth().add_token("t", "eve");
    for verb in [Verb::List, Verb::Watch] {
        it.server.auth().deny("eve", verb, "pods");
    }
    std::fs::write(it.folder.path().join("config"), it.server.kubeconfig_for("t")).unwrap();
    for line in ["get pods", "watch pods"] {
        let error = it.error(line).await;
        assert!(error.contains("403") && error.contains("eve"), "{error}");
    }
    it.server.auth().revoke_token("t");
    let error = it.error("get pods").await;
    assert!(error.contains("401") && error.contains("renew the token"), "{error}");
}

#[tokio::test]
async fn a_field_that_the_server_does_not_select_by_is_an_error_at_once() {
    let setup = Setup::new().await;
    let error = setup.error("get pods --field-selector no.such=x").await;
    assert!(error.contains("field label not supported: no.such"), "{error}");
    assert!(!error.contains("not synced in time"), "{error}");
}

#[tokio::test]
async fn an_unreachable_server_is_named() {
    let it = Setup::new().await;
    let error = it.error("get pods --server http://127.0.0.1:1").await;
    assert!(error.contains("http://127.0.0.1:1") && error.contains("refused"), "{error}");
    let error = it.error("get pods --kubeconfig /nowhere/x").await;
    assert!(error.contains("/nowhere/x"), "{error}");
    it.server.faults().inject(informer_testkit::Fault::stall());
    let error = it.error("get pods --request-timeout 100ms").await;
    assert!(error.contains("--request-timeout"), "{error}");
}

#[tokio::test]
async fn a_list_that_does_not_come_in_time_says_why() {
    let it = Setup::new().await;
    for verb in [Verb::List, Verb::Watch] {
        it.server.faults().inject(informer_testkit::Fault::stall().on(verb).resource("pods"));
    }
    let error = it.error("get pods --sync-timeout 100ms").await;
    assert!(error.contains("pods") && error.contains("listing"), "{error}");
}

#[tokio::test]
async fn custom_resources_have_the_columns_of_their_definition() {
    let it = Setup::new().await;
    let cluster = it.server.cluster();
    cluster
        .create(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}}))
        .unwrap();
    cluster
        .create(&json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "default"}, "spec": {"size": 3}}))
        .unwrap();
    it.run("get widgets").await.unwrap();
    assert_eq!(it.out.text(), "NAME   SIZE\nw      3\n");
}

#[tokio::test]
async fn serve_says_where_and_ends_when_told() {
    let it = Setup::new().await;
    let serving = it.start("serve --addr 127.0.0.1:0 --allow pods,nonsense");
    let text = it.out.until(|text| text.contains("serving ")).await;
    assert!(text.contains(&it.server.url()), "{text}");
    assert!(
        it.err.text().contains("--allow: the server has no resource \"nonsense\""),
        "{}",
        it.err.text()
    );
    it.io.stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn serve_names_no_address_that_clients_cannot_use() {
    let it = Setup::new().await;
    let serving = it.start("serve --addr [::]:0 --unprotected-api --for 10m --audit-log -");
    // Lines for people are none of the audit log.
    let text = it.err.until(|text| text.contains("serving ")).await;
    let (_, hint) = text.split_once("try kubectl --server ").unwrap();
    assert!(hint.starts_with("http://HOST:") && hint.contains("HOST is a name"), "{text}");
    assert!(!hint.contains("[::]") && it.out.text().is_empty(), "{text}");
    it.io.stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_demo_shows_everything_and_ends_by_itself() {
    let it = Setup::new().await;
    let demo = it.start("demo --addr 127.0.0.1:0 --resync 1s");
    it.out
        .until(|text| {
            ["add ", "update ", "delete ", "(resync)", "(initial)"]
                .iter()
                .all(|it| text.contains(it))
        })
        .await;
    assert!(it.out.text().contains("/deploy?labels[k8s-app]=kube-dns"));
    it.io.stop.cancel();
    demo.await.unwrap().unwrap();
    it.run("demo --addr 127.0.0.1:0 --for 50ms").await.unwrap();
}
