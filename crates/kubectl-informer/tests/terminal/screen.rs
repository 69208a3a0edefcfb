//! What the screen shows.

use std::time::Duration;

use informer_testkit::{Cluster, Fault, TestServer};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Screen, Terminal};

/// So that a test that fails ends, however slow the machine is.
const DEADLINE: Duration = Duration::from_secs(60);

const COMMAND: &str = "watch deployments,secrets,nodes,configmaps -A -o diff";

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app.kubernetes.io/name": "web"}},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [
            {"name": "log", "image": "registry.example/log:1"},
            {"name": "app", "image": "registry.example/shop:1.4.0",
             "env": [{"name": "MODE", "value": "plain"}]}]}}}})
}

fn node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
        "status": {"conditions": [{"type": "Ready", "status": "True",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

/// Something that happens, and what the screen shows when it has arrived.
type Step<'a> = (Box<dyn Fn() + 'a>, &'static str);

/// What happens, and what the screen shows when it has arrived: objects of several resources come
/// in no order otherwise.
fn story(cluster: &Cluster) -> Vec<Step<'_>> {
    let patch =
        |resource: &'static str, namespace: &'static str, name: &'static str, patch: Value| {
            move || drop(cluster.patch(resource, namespace, name, &patch).unwrap())
        };
    let create = |object: Value| move || drop(cluster.create(&object).unwrap());
    let containers = json!([{"name": "log", "image": "registry.example/log:1"},
        {"name": "app", "image": "registry.example/shop:1.5.0",
         "env": [{"name": "MODE", "value": "fancy"}, {"name": "NEW", "value": "1"}]}]);
    vec![
        (Box::new(create(deployment())), "add shop/web"),
        (
            Box::new(patch(
                "deployments",
                "shop",
                "web",
                json!({
                "metadata": {"labels": {"app.kubernetes.io/name": "shop", "tier": "front"}},
                "spec": {"replicas": 5, "template": {"spec": {"containers": containers}}}}),
            )),
            "replicas",
        ),
        (
            Box::new(create(json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "login", "namespace": "shop"},
                "data": {"password": "aHVudGVyMg=="}}))),
            "add shop/login",
        ),
        (
            Box::new(patch(
                "secrets",
                "shop",
                "login",
                json!({"data": {"password": "Y29ycmVjdCBob3JzZQ==", "user": "bWU="}}),
            )),
            "data.user",
        ),
        (Box::new(create(node())), "add node-1"),
        (
            Box::new(patch(
                "nodes",
                "",
                "node-1",
                json!({"status": {"conditions": [{
                "type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:05:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
            )),
            "update node-1",
        ),
        (
            Box::new(create(json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "site", "namespace": "shop"},
                "data": {"index.html": format!("{}<p>old</p>{}", "x".repeat(400), "y".repeat(400))}}))),
            "add shop/site",
        ),
        (
            Box::new(patch(
                "configmaps",
                "shop",
                "site",
                json!({
                "data": {"index.html": format!("{}<p>new</p>{}", "x".repeat(400), "y".repeat(400)),
                    "\u{1b}[2Jkey": "\u{1b}]0;title\u{7}\u{202e}\u{9b}31mhostile"}}),
            )),
            "hostile",
        ),
        (
            Box::new(|| drop(cluster.delete("deployments", "shop", "web").unwrap())),
            "delete shop/web",
        ),
    ]
}

/// The screen after the story.
async fn shown(size: (u16, u16), environment: &[(&str, &str)], flags: &str) -> (String, String) {
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster();
    let kinds = [("apps/v1", "Deployment"), ("v1", "Secret"), ("v1", "Node"), ("v1", "ConfigMap")];
    for (version, kind) in kinds {
        let metadata = json!({"name": "first", "namespace": "shop"});
        let metadata = if kind == "Node" { json!({"name": "first"}) } else { metadata };
        let first = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        cluster.create(&first).unwrap();
    }
    let terminal = Terminal::start(&server, size, environment, &format!("{COMMAND}{flags}"));
    let mut screen = terminal.on_screen();
    // Each resource is watched now.
    screen.wait_for(|it| it.text.matches("(initial)").count() == kinds.len()).await.unwrap();
    for (happens, appears) in story(cluster) {
        happens();
        until(&mut screen, appears).await;
    }
    let shown = until(&mut screen, "").await;
    terminal.interrupt();
    server.shutdown().await;
    shown
}

async fn until(screen: &mut watch::Receiver<Screen>, appears: &str) -> (String, String) {
    let arrives = screen.wait_for(|it| it.text.contains(appears));
    let arrived = tokio::time::timeout(DEADLINE, arrives).await.is_ok_and(|it| it.is_ok());
    let screen = screen.borrow();
    assert!(arrived, "{appears:?} does not appear: {}", screen.text());
    (screen.text(), screen.painted.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_shown_field_by_field_in_color() {
    let (_, painted) = shown((40, 110), &[], "").await;
    insta::assert_snapshot!(painted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrow_terminal_has_values_on_lines_of_their_own() {
    let (text, _) = shown((60, 60), &[], " --color never").await;
    insta::assert_snapshot!(text);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_color_is_honoured_and_overruled_by_the_flag() {
    let environment = [("NO_COLOR", "1")];
    let (text, painted) = shown((40, 110), &environment, "").await;
    assert_eq!(text, painted);
    let (_, painted) = shown((40, 110), &environment, " --color always").await;
    assert!(painted.contains("<red>3</> -> <green>5</>"), "{painted}");
}

/// What is still listed has its bars below the lines, not over them.
#[tokio::test(flavor = "multi_thread")]
async fn lines_stay_while_other_resources_are_listed() {
    const WRITES: usize = 40;
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster();
    for resource in ["nodes", "pods", "secrets"] {
        server.faults().inject(Fault::stall().resource(resource));
    }
    let site = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "site", "namespace": "shop"}, "data": {"n": "0"}});
    cluster.create(&site).unwrap();
    let command = "watch configmaps,nodes,pods,secrets -A -o diff --color never";
    let terminal = Terminal::start(&server, (100, 70), &[], command);
    let mut screen = terminal.on_screen();
    let bars = |it: &Screen| it.text.matches(": listing").count();
    screen.wait_for(|it| it.text.contains("(initial)") && bars(it) == 3).await.unwrap();
    let mut expected = Vec::new();
    for number in 1..=WRITES {
        let patch = json!({"data": {"n": number.to_string()}});
        cluster.patch("configmaps", "shop", "site", &patch).unwrap();
        let line = format!("  ~ data.n: \"{}\" -> \"{number}\"", number - 1);
        until(&mut screen, &line).await;
        expected.extend(["HH:MM:SSZ update shop/site configmaps".to_owned(), line]);
    }
    screen.wait_for(|it| bars(it) == 3).await.unwrap();
    server.faults().lift_all();
    screen.wait_for(|it| bars(it) == 0).await.unwrap();
    let (text, _) = until(&mut screen, "").await;
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    terminal.interrupt();
    server.shutdown().await;
}
