//! Each fault, over a real socket where that makes a difference.

mod support;

use std::future::Future;
use std::time::Duration;

use http_body_util::BodyExt;
use informer_testkit::{ConnectionError, Cut, Fault, Status, TestServer, Verb, generate};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PODS: &str = "/api/v1/pods";

/// Whether a future is still waiting after everything that can happen has happened.
async fn is_waiting(future: impl Future) -> bool {
    tokio::time::timeout(Duration::from_secs(600), future).await.is_err()
}

async fn connect(server: &TestServer, path: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await?;
    Ok(stream)
}

/// Reads until a text has come.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(text) {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the stream ended before {text:?}");
        seen.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8(seen).unwrap()
}

#[tokio::test]
async fn refused_connections_come_back_on_the_same_port() {
    let server = server().await;
    let mut open = connect(&server, "/version").await.unwrap();
    read_until(&mut open, "gitVersion").await;
    for _ in 0..3 {
        server.faults().refuse_connections();
        // The socket closes in its own time; until then connections are reset.
        while TcpStream::connect(server.address()).await.is_ok() {}
        let refused = TcpStream::connect(server.address()).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let error =
            call(&server.service(), request("GET", PODS, "", &Value::Null)).await.unwrap_err();
        assert_eq!(error, ConnectionError::Refused);
        server.faults().accept_connections();
        while TcpStream::connect(server.address()).await.is_err() {}
    }
    open.write_all(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    read_until(&mut open, "gitVersion").await;
}

#[tokio::test]
async fn a_reset_breaks_every_connection() {
    let server = server().await;
    let mut idle = connect(&server, "/version").await.unwrap();
    read_until(&mut idle, "gitVersion").await;
    let mut watching = connect(&server, "/api/v1/namespaces?watch=1").await.unwrap();
    read_until(&mut watching, "kube-system").await;
    server.faults().reset_connections();
    for stream in [&mut idle, &mut watching] {
        assert_eq!(
            stream.read(&mut [0; 64]).await.unwrap_err().kind(),
            std::io::ErrorKind::ConnectionReset
        );
    }
    let mut next = connect(&server, "/version").await.unwrap();
    read_until(&mut next, "gitVersion").await;
}

#[tokio::test]
async fn watches_are_cut_cleanly_or_within_a_frame() {
    let server = server().await;
    let client = server.client().unwrap();
    let version = server.cluster().version();
    let open = async |resource: &str| {
        watch_by(&client, &format!("/api/v1/{resource}?watch=1&resourceVersion={version}")).await
    };
    let (mut pods, mut nodes) = (open("pods").await, open("nodes").await);
    assert_eq!(server.faults().open_watches(None), 2);
    assert_eq!(server.faults().cut_watches(Cut::Close, Some("pods")), 1);
    assert_eq!(pods.line().await, Ok(None));
    assert_eq!(server.faults().open_watches(Some("nodes")), 1);
    assert_eq!(server.faults().cut_watches(Cut::Reset, None), 1);
    assert!(nodes.line().await.is_err());
    assert!(nodes.rest().starts_with(b"{\"type\":\"MODIFIED\""), "half an event was sent");

    let mut raw = connect(&server, "/api/v1/namespaces?watch=1").await.unwrap();
    read_until(&mut raw, "kube-system").await;
    server.faults().cut_watches(Cut::Reset, None);
    let mut rest = Vec::new();
    let error = raw.read_to_end(&mut rest).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(rest.ends_with(b"\"kind\":\"\r\n"), "{}", String::from_utf8_lossy(&rest));
}

#[tokio::test]
async fn watches_that_end_are_no_longer_open() {
    let server = server().await;
    let lines = watch(&server.service(), "/api/v1/pods?watch=1").await;
    assert_eq!(server.faults().open_watches(Some("pods")), 1);
    drop(lines);
    assert_eq!(server.faults().open_watches(None), 0);
}

#[tokio::test]
async fn expiry_is_an_event_of_a_watch_and_the_status_of_a_list() {
    let server = server().await;
    let service = server.service();
    let version = server.cluster().version();
    let fault = server.faults().inject(Fault::expired().resource("pods").times(2));
    let watch_path = format!("{PODS}?watch=1&resourceVersion={version}&timeoutSeconds=1");
    let (code, line) = get(&service, &watch_path).await;
    assert_eq!((code, &line["type"], &line["object"]["code"]), (200, &json!("ERROR"), &json!(410)));
    let (code, status) = get(&service, PODS).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    assert_eq!(fault.hits(), 2);
    assert_eq!(get(&service, PODS).await.0, 200);
    server.faults().inject(Fault::answer(Status::expired("gone")).on(Verb::Watch).times(1));
    assert_eq!(get(&service, &watch_path).await.0, 410);
}

#[tokio::test]
async fn too_many_requests_with_and_without_an_advice() {
    let server = server().await;
    let service = server.service();
    let faults = server.faults();
    faults
        .inject(Fault::too_many_requests().retry_after(7).on(Verb::List).resource("pods").times(1));
    let response = call(&service, request("GET", PODS, "", &Value::Null)).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"7".parse().unwrap())
    );
    assert_eq!(get(&service, PODS).await.0, 200);
    let lasting = faults.inject(Fault::too_many_requests().on(Verb::List));
    for _ in 0..3 {
        let response = call(&service, request("GET", PODS, "", &Value::Null)).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers().get("retry-after")),
            (429, None)
        );
    }
    assert_eq!(get(&service, "/api/v1/namespaces/default").await.0, 200, "another verb");
    lasting.lift();
    assert_eq!(get(&service, PODS).await.0, 200);
    assert_eq!(lasting.hits(), 3);
    faults.inject(Fault::answer(Status::new(503, "ServiceUnavailable", "later")).resource("nodes"));
    assert_eq!(get(&service, "/api/v1/nodes").await.0, 503);
    faults.lift_all();
    assert_eq!(get(&service, "/api/v1/nodes").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_request_is_answered_when_the_fault_is_lifted() {
    let server = server().await;
    let service = server.service();
    let fault = server.faults().inject(Fault::stall().resource("pods"));
    let mut stalled = Box::pin(get(&service, PODS));
    assert!(is_waiting(&mut stalled).await);
    assert_eq!(get(&service, "/api/v1/nodes").await.0, 200);
    fault.lift();
    assert_eq!(stalled.await.0, 200);
    assert_eq!(fault.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_body_stops_in_the_middle_and_goes_on() {
    let server = server().await;
    server.cluster().load(generate::pods(20)).unwrap();
    let service = server.service();
    let fault = server.faults().inject(Fault::stall_after(10_000).on(Verb::List).times(1));
    let mut body =
        call(&service, request("GET", PODS, "", &Value::Null)).await.unwrap().into_body();
    let mut received = Vec::new();
    while let Ok(frame) = tokio::time::timeout(Duration::from_secs(3600), body.frame()).await {
        received.extend_from_slice(&frame.unwrap().unwrap().into_data().unwrap());
    }
    assert_eq!(received.len(), 10_000);
    assert_eq!(get(&service, PODS).await.0, 200, "only one was to be stalled");
    fault.lift();
    received.extend_from_slice(&body.collect().await.unwrap().to_bytes());
    assert_eq!(
        String::from_utf8(received).unwrap(),
        send(&service, "GET", PODS, &Value::Null).await.1
    );
}

#[tokio::test(start_paused = true)]
async fn open_watches_stall_too_and_can_still_be_cut() {
    let server = server().await;
    let service = server.service();
    let version = server.cluster().version();
    let path = format!("{PODS}?watch=1&resourceVersion={version}");
    let (mut first, mut second) = (watch(&service, &path).await, watch(&service, &path).await);
    let fault = server.faults().inject(Fault::stall_after(0).on(Verb::Watch).times(2));
    server.cluster().create(&pod("default", "a")).unwrap();
    assert!(is_waiting(first.line()).await);
    assert!(is_waiting(second.line()).await);
    assert_eq!(server.faults().cut_watches(Cut::Close, None), 2);
    assert_eq!(first.line().await, Ok(None));
    let mut third = watch(&service, &path).await;
    assert!(third.short().await.unwrap().starts_with("ADDED a@"), "two were to be stalled");
    fault.lift();
}

#[tokio::test]
async fn a_hang_up_resets_the_connection_instead_of_an_answer() {
    let server = server().await;
    server.faults().inject(Fault::hang_up().times(2));
    let mut stream = connect(&server, PODS).await.unwrap();
    assert_eq!(
        stream.read(&mut [0; 64]).await.unwrap_err().kind(),
        std::io::ErrorKind::ConnectionReset
    );
    let error = call(&server.service(), request("GET", PODS, "", &Value::Null)).await.unwrap_err();
    assert_eq!(error, ConnectionError::Reset);
    assert_eq!(get(&server.service(), PODS).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_write_may_be_served_and_its_answer_lost_late_or_another() {
    let server = server().await;
    let service = server.service();
    let create = |name: &str| {
        let body = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name } });
        request("POST", "/api/v1/namespaces/default/pods", "application/json", &body)
    };
    let count = || server.cluster().count("pods");
    let before = count();
    server.faults().inject(Fault::hang_up().after_serving().times(1));
    let error = call(&service, create("lost")).await.unwrap_err();
    assert_eq!((error, count()), (ConnectionError::Reset, before + 1));

    server.faults().inject(Fault::unavailable().after_serving().on(Verb::Create).times(1));
    assert_eq!(call(&service, create("another")).await.unwrap().status(), 503);
    assert_eq!(count(), before + 2);

    let late = server.faults().inject(Fault::stall().after_serving().on(Verb::Create));
    let mut answer = std::pin::pin!(call(&service, create("late")));
    assert!(is_waiting(&mut answer).await);
    assert_eq!(count(), before + 3);
    late.lift();
    assert_eq!(answer.await.unwrap().status(), 201);
}

#[tokio::test]
async fn tokens_expire_and_users_are_denied() {
    let server = server().await;
    server.auth().add_token("secret", "alice");
    server.auth().deny("alice", Verb::List, "secrets");
    server.auth().deny_all("alice", "deployments.apps");
    let client = server.client_for("secret").unwrap();
    let api = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        match client.request::<Value>(request).await {
            Ok(_) => (200, String::new()),
            Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(api(PODS).await.0, 200);
    assert_eq!(api("/apis").await.0, 200);
    let why = "secrets is forbidden: User \"alice\" cannot list resource \"secrets\" in API group \"\" in the namespace \"x\"";
    assert_eq!(api("/api/v1/namespaces/x/secrets").await, (403, why.to_owned()));
    let why = "deployments.apps is forbidden: User \"alice\" cannot list resource \"deployments\" in API group \"apps\" at the cluster scope";
    assert_eq!(api("/apis/apps/v1/deployments").await, (403, why.to_owned()));
    server.auth().allow("alice");
    assert_eq!(api("/apis/apps/v1/deployments").await.0, 200);
    server.auth().revoke_token("secret");
    assert_eq!(api(PODS).await.0, 401);
    let anonymous: Api<Pod> = Api::all(server.client().unwrap());
    assert!(anonymous.list(&ListParams::default()).await.is_err());
    server.auth().clear();
    assert_eq!(api(PODS).await.0, 200);
    assert_eq!(server.requests().resource("secrets")[0].user, "alice");
}

#[tokio::test]
async fn reviews_are_answered_by_the_same_rules() {
    let server = server().await;
    server.auth().add_token("own", "endpoint");
    server.auth().add_token("secret", "alice");
    server.auth().deny("alice", Verb::List, "deployments.apps");
    let client = server.client_for("own").unwrap();
    let review = async |path: &str, spec: Value| {
        let body = serde_json::to_vec(&json!({ "spec": spec })).unwrap();
        let request = http::Request::post(path).header("content-type", "application/json");
        client.request::<Value>(request.body(body).unwrap()).await.unwrap()["status"].take()
    };
    let tokens = "/apis/authentication.k8s.io/v1/tokenreviews";
    let user = json!({ "username": "alice", "groups": ["system:authenticated"] });
    assert_eq!(
        review(tokens, json!({ "token": "secret" })).await,
        json!({ "authenticated": true, "user": user })
    );
    server.auth().revoke_token("secret");
    assert!(review(tokens, json!({ "token": "secret" })).await["authenticated"].is_null());
    let access = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    for (user, verb, allowed) in
        [("alice", "list", false), ("alice", "get", true), ("bob", "list", true)]
    {
        let of =
            json!({ "verb": verb, "group": "apps", "version": "v1", "resource": "deployments" });
        let status = review(access, json!({ "user": user, "resourceAttributes": of })).await;
        assert_eq!(status, json!({ "allowed": allowed }), "{user} {verb}");
    }
}

#[tokio::test]
async fn a_restored_backup_takes_versions_back() {
    let server = server().await;
    let cluster = server.cluster();
    cluster.create(&pod("default", "a")).unwrap();
    let backup = cluster.checkpoint();
    let then = cluster.version();
    let lost = cluster.create(&pod("default", "b")).unwrap();
    let mut open =
        watch(&server.service(), &format!("{PODS}?watch=1&resourceVersion={}", lost.version()))
            .await;
    cluster.restore(&backup);
    assert_eq!(open.line().await, Ok(None), "watches end");
    assert_eq!((cluster.version(), cluster.count("pods")), (then, 1));
    let other = cluster.create(&pod("default", "c")).unwrap();
    assert_eq!(other.version(), lost.version(), "the same version, another change");
    assert_ne!(other.uid(), lost.uid());
    let (_, line) =
        get(&server.service(), &format!("{PODS}?watch=1&resourceVersion={}", then - 1)).await;
    assert_eq!(line["object"]["code"], 410);
}

#[tokio::test]
async fn a_server_ends_with_everything_it_started_and_can_start_again() {
    let server = server().await;
    let (address, cluster) = (server.address(), server.cluster().clone());
    let mut open = connect(&server, "/api/v1/namespaces?watch=1").await.unwrap();
    read_until(&mut open, "kube-system").await;
    assert!(TestServer::builder().port(address.port()).start().await.is_err(), "the port is taken");
    server.shutdown().await;
    assert!(matches!(open.read(&mut [0; 64]).await, Ok(0) | Err(_)));
    assert!(TcpStream::connect(address).await.is_err());
    let again = TestServer::builder().cluster(cluster).port(address.port()).start().await.unwrap();
    assert_eq!(again.address(), address);
    again.client().unwrap().apiserver_version().await.unwrap();
    drop(again);
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
