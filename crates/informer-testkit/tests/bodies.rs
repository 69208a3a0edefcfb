//! Faults that happen to what is being sent, and requests that are chosen by more than their verb.

mod support;

use std::io::Read;
use std::time::Duration;

use http_body_util::BodyExt;
use informer_testkit::{ApiService, Cut, Fault, TestServer, Verb, generate};
use serde_json::{Value, json};
use support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

const PODS: &str = "/api/v1/pods";

/// A watch from now on.
async fn watch_now(server: &TestServer) -> Lines<informer_testkit::Body> {
    watch(
        &server.service(),
        &format!("{PODS}?watch=1&resourceVersion={}", server.cluster().version()),
    )
    .await
}

fn streaming_list() -> String {
    format!(
        "{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    )
}

/// The raw body of a GET, as far as it comes, and whether it came to its end.
async fn body(service: &ApiService, path: &str) -> (String, bool) {
    let mut body = call(service, request("GET", path, "", &Value::Null)).await.unwrap().into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(&frame.into_data().unwrap()),
            Err(_) => return (String::from_utf8(bytes).unwrap(), false),
        }
    }
    (String::from_utf8(bytes).unwrap(), true)
}

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn requests_are_chosen_by_page() {
    let (server, service) = with_pods().await;
    for page in 1..=3 {
        let fault = server.faults().inject(Fault::expired().on(Verb::List).page(page));
        let mut path = format!("{PODS}?limit=1");
        for asked in 1..=3 {
            let (code, list) = get(&service, &path).await;
            if asked == page {
                assert_eq!((code, &list["reason"]), (410, &json!("Expired")), "page {asked}");
                assert_eq!(list["metadata"]["continue"].is_string(), page > 1, "{list}");
                break;
            }
            assert_eq!(code, 200, "page {asked}");
            path = format!(
                "{PODS}?limit=1&continue={}",
                list["metadata"]["continue"].as_str().unwrap()
            );
        }
        assert_eq!(fault.hits(), 1);
        fault.lift();
    }
    // The token in the refusal goes on where the list was, and counts its pages on.
    let (_, first) = get(&service, &format!("{PODS}?limit=1")).await;
    let fault = server.faults().inject(Fault::expired().page(2));
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, refused) = get(&service, &format!("{PODS}?limit=1&continue={token}")).await;
    fault.lift();
    let third = server.faults().inject(Fault::unavailable().page(3));
    let token = refused["metadata"]["continue"].as_str().unwrap();
    let (_, second) = get(&service, &format!("{PODS}?limit=1&continue={token}")).await;
    assert_eq!(names(&second), ["b"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    assert_eq!(get(&service, &format!("{PODS}?limit=1&continue={token}")).await.0, 503);
    assert_eq!(third.hits(), 1);
}

#[tokio::test]
async fn requests_are_chosen_by_whether_they_are_streaming_lists() {
    let (server, service) = with_pods().await;
    server.faults().inject(Fault::streaming_lists_refused());
    let (code, status) = get(&service, &streaming_list()).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    assert!(status["message"].as_str().unwrap().contains("sendInitialEvents"), "{status}");
    assert_eq!(get(&service, PODS).await.0, 200);
    server.cluster().create(&pod("default", "d")).unwrap();
    let version = server.cluster().version() - 1;
    let mut plain = watch(&service, &format!("{PODS}?watch=1&resourceVersion={version}")).await;
    assert!(plain.short().await.unwrap().starts_with("ADDED d@"));
}

#[tokio::test]
async fn refusals_have_the_codes_and_reasons_of_a_server() {
    let (server, service) = with_pods().await;
    for (fault, code, reason) in [
        (Fault::internal_error(), 500, "InternalError"),
        (Fault::unavailable(), 503, "ServiceUnavailable"),
        (Fault::not_found(), 404, "NotFound"),
    ] {
        server.faults().inject(fault.on(Verb::List).times(1));
        let (got, status) = get(&service, PODS).await;
        assert_eq!((got, &status["reason"]), (code, &json!(reason)));
    }
    server.faults().inject(Fault::too_large_version().times(1));
    let (code, status) = get(&service, &format!("{PODS}?resourceVersion=77")).await;
    assert_eq!((code, &status["reason"]), (504, &json!("Timeout")));
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(status["message"], "Timeout: Too large resource version: 77, current: 76");
    assert_eq!(get(&service, PODS).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn bytes_drip() {
    let (server, service) = with_pods().await;
    let (whole, _) = body(&service, PODS).await;
    let fault = server.faults().inject(Fault::drip(10, Duration::from_secs(1)));
    let begun = Instant::now();
    assert_eq!(body(&service, PODS).await, (whole.clone(), true));
    assert_eq!(begun.elapsed().as_secs(), whole.len().div_ceil(10) as u64);
    let mut open = watch_now(&server).await;
    server.cluster().create(&pod("default", "d")).unwrap();
    let (begun, line) = (Instant::now(), open.line().await.unwrap().unwrap());
    assert_eq!(begun.elapsed().as_secs(), (line.len() + 1).div_ceil(10) as u64);
    assert_eq!(fault.hits(), 2);
    server.cluster().create(&pod("default", "e")).unwrap();
    fault.lift();
    let begun = Instant::now();
    assert!(open.short().await.unwrap().starts_with("ADDED e@"));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_drips_can_be_cut() {
    let (server, _) = with_pods().await;
    let mut open = watch_now(&server).await;
    server.faults().inject(Fault::drip(10, Duration::from_secs(1)).on(Verb::Watch));
    server.faults().cut_watches(Cut::Reset, None);
    assert!(open.line().await.is_err());
    assert!(open.rest().starts_with(b"{\"type\":\"MODIFIED\""), "half an event was sent");
}

#[tokio::test]
async fn bodies_end_or_break_after_some_bytes() {
    let (server, service) = with_pods().await;
    let (whole, _) = body(&service, PODS).await;
    for (fault, ends_well) in [(Fault::close_after(100), true), (Fault::reset_after(100), false)] {
        server.faults().inject(fault.clone().on(Verb::List).times(1));
        assert_eq!(body(&service, PODS).await, (whole[..100].to_owned(), ends_well));
        assert_eq!(body(&service, PODS).await.0, whole, "only once");
    }
    // A watch with nothing to send ends, too.
    let looping = server.faults().inject(Fault::close_after(0).on(Verb::Watch));
    for _ in 0..5 {
        assert_eq!(watch_now(&server).await.line().await, Ok(None));
    }
    assert_eq!(looping.hits(), 5);
    server.faults().lift_all();
    let mut open = watch_now(&server).await;
    server.faults().inject(Fault::reset_after(0).on(Verb::Watch));
    server.cluster().create(&pod("default", "d")).unwrap();
    assert!(open.line().await.is_err());
}

#[tokio::test]
async fn a_reset_is_one_on_a_socket_too() {
    let (server, _) = with_pods().await;
    server.faults().inject(Fault::reset_after(100).times(1));
    let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(format!("GET {PODS} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    let error = stream.read_to_end(&mut seen).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(
        String::from_utf8_lossy(&seen).contains("PodList"),
        "{}",
        String::from_utf8_lossy(&seen)
    );
}

#[tokio::test]
async fn open_watches_are_told_that_their_version_has_expired() {
    let (server, _) = with_pods().await;
    let mut open = watch_now(&server).await;
    server.faults().cut_watches(Cut::Expired, Some("pods"));
    let event = open.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(open.line().await, Ok(None));
}

#[tokio::test]
async fn bodies_are_compressed_though_nobody_asked() {
    let (server, service) = with_pods().await;
    let (whole, _) = body(&service, PODS).await;
    let fault = server.faults().inject(Fault::gzip());
    let response = call(&service, request("GET", PODS, "", &Value::Null)).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut plain).unwrap();
    assert_eq!(plain, whole);

    // What a watch has sent can be read before it ends.
    let path = format!("{PODS}?watch=1&resourceVersion={}", server.cluster().version());
    let mut open =
        call(&service, request("GET", &path, "", &Value::Null)).await.unwrap().into_body();
    let mut decoder = flate2::write::GzDecoder::new(Vec::new());
    for name in ["d", "e"] {
        server.cluster().create(&pod("default", name)).unwrap();
        let chunk = open.frame().await.unwrap().unwrap().into_data().unwrap();
        std::io::Write::write_all(&mut decoder, &chunk).unwrap();
        std::io::Write::flush(&mut decoder).unwrap();
        let line = String::from_utf8(std::mem::take(decoder.get_mut())).unwrap();
        assert!(line.contains(&format!("\"name\":\"{name}\"")) && line.ends_with('\n'), "{line}");
    }
    fault.lift();
    let response = call(&service, request("GET", PODS, "", &Value::Null)).await.unwrap();
    assert_eq!(response.headers().get("content-encoding"), None);
}

#[tokio::test]
async fn lists_are_truncated_malformed_oversized_or_something_else() {
    let (server, service) = with_pods().await;
    let (whole, _) = body(&service, PODS).await;
    let faults = server.faults();

    faults.inject(Fault::truncated().object("b").times(1));
    let (cut, ended) = body(&service, PODS).await;
    assert!(
        ended
            && whole.starts_with(&cut)
            && cut.contains("\"name\":\"b\"")
            && cut.len() < whole.len()
    );
    assert!(!cut.contains("\"name\":\"c\""));

    faults.inject(Fault::malformed().object("b").times(1));
    let (corrupt, _) = body(&service, PODS).await;
    assert_eq!(corrupt.len(), whole.len());
    assert!(serde_json::from_str::<Value>(&corrupt).is_err());

    faults.inject(Fault::oversized(10_000).times(1));
    let (big, _) = body(&service, PODS).await;
    let big: Value = serde_json::from_str(&big).unwrap();
    let sizes: Vec<bool> = big["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.to_string().len() >= 10_000)
        .collect();
    assert_eq!(sizes, [true, false, false]);

    faults.inject(Fault::instead("<html>").times(1));
    assert_eq!(body(&service, PODS).await.0, "<html>");
    assert_eq!(body(&service, PODS).await.0, whole, "each of them once");
}

#[tokio::test]
async fn one_event_is_truncated_malformed_oversized_or_something_else() {
    let (server, _) = with_pods().await;
    let (faults, cluster) = (server.faults(), server.cluster());
    let touch = |name: &str, round: u32| {
        let mut object = pod("default", name);
        object["metadata"]["labels"]["round"] = json!(round.to_string());
        cluster.apply(&object).unwrap();
    };
    let mut open = watch_now(&server).await;
    for (round, fault) in [Fault::malformed(), Fault::oversized(10_000), Fault::instead("<html>\n")]
        .into_iter()
        .enumerate()
    {
        let fault = faults.inject(fault.object("b").times(1));
        for (step, name) in (0..).zip(["a", "b", "b"]) {
            touch(name, round as u32 * 3 + step);
        }
        let mut lines = Vec::new();
        for _ in 0..3 {
            lines.push(open.line().await.unwrap().unwrap());
        }
        assert!(
            lines[0].contains("\"name\":\"a\"") && lines[2].contains("\"name\":\"b\""),
            "{lines:?}"
        );
        match round {
            0 => assert!(serde_json::from_str::<Value>(&lines[1]).is_err(), "{}", lines[1]),
            1 => {
                assert!(lines[1].len() > 10_000 && serde_json::from_str::<Value>(&lines[1]).is_ok())
            }
            _ => assert_eq!(lines[1], "<html>"),
        }
        assert!(
            lines[2].len() < 2000 && serde_json::from_str::<Value>(&lines[2]).is_ok(),
            "only one"
        );
        assert_eq!(fault.hits(), 1);
    }
    faults.inject(Fault::truncated().times(1));
    touch("a", 100);
    assert_eq!(open.line().await, Ok(None), "a clean end");
    assert!(open.rest().starts_with(b"{\"type\":\"MODIFIED\"") && open.rest().len() > 20);
}

#[tokio::test]
async fn an_object_cannot_be_decoded_wherever_it_comes() {
    let (server, service) = with_pods().await;
    let undecodable = |object: &Value| {
        assert!(object["metadata"]["uid"].is_string(), "{object}");
        serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object.clone()).is_err()
    };
    server.faults().inject(Fault::undecodable("b").resource("pods"));
    let (_, list) = get(&service, PODS).await;
    let items: Vec<bool> = list["items"].as_array().unwrap().iter().map(undecodable).collect();
    assert_eq!(items, [false, true, false]);
    let mut open = watch_now(&server).await;
    let mut changed = pod("default", "b");
    changed["metadata"]["labels"] = json!({ "changed": "yes" });
    server.cluster().apply(&changed).unwrap();
    server.cluster().delete("pods", "default", "b").unwrap();
    server.cluster().create(&pod("default", "b")).unwrap();
    for kind in ["MODIFIED", "DELETED", "ADDED"] {
        let event = open.event().await.unwrap();
        assert_eq!(event["type"], kind);
        assert!(undecodable(&event["object"]), "{event}");
    }
    // Without other fields, the labels.
    server.faults().inject(Fault::undecodable("bare"));
    let bare = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "bare" } });
    server.cluster().create(&bare).unwrap();
    let (_, list) = get(&service, "/api/v1/configmaps").await;
    assert!(
        serde_json::from_value::<k8s_openapi::api::core::v1::ConfigMap>(list["items"][0].clone())
            .is_err()
    );
}

#[tokio::test]
async fn everything_comes_twice() {
    let (server, service) = with_pods().await;
    server.cluster().load(generate::nodes(1)).unwrap();
    server.faults().inject(Fault::duplicates());
    assert_eq!(names(&get(&service, PODS).await.1), ["a", "b", "c", "a", "b", "c"]);
    assert_eq!(names(&get(&service, "/api/v1/nodes").await.1).len(), 2);
    assert_eq!(
        get(&service, "/api/v1/services").await.1["items"],
        json!([]),
        "nothing twice is nothing"
    );
    let mut open = watch_now(&server).await;
    server.cluster().create(&pod("default", "d")).unwrap();
    assert_eq!(open.line().await, open.line().await);
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_do_not_tell_their_end() {
    let (server, service) = with_pods().await;
    let fault = server.faults().inject(Fault::without_end_bookmark());
    let mut open = watch(&service, &streaming_list()).await;
    for name in ["a", "b", "c"] {
        assert!(open.short().await.unwrap().starts_with(&format!("ADDED {name}@")));
    }
    server.cluster().create(&pod("default", "d")).unwrap();
    assert!(open.short().await.unwrap().starts_with("ADDED d@"), "no bookmark came, changes do");
    let event = open.event().await.unwrap();
    assert_eq!(event["type"], "BOOKMARK");
    assert_eq!(
        event["object"]["metadata"]["annotations"],
        Value::Null,
        "not the one that ends the list"
    );
    assert_eq!(fault.hits(), 1);
}

#[tokio::test]
async fn several_faults_add_up() {
    let (server, service) = with_pods().await;
    server.faults().inject(Fault::undecodable("a"));
    server.faults().inject(Fault::duplicates());
    server.faults().inject(Fault::close_after(400));
    let (cut, _) = body(&service, PODS).await;
    assert!(cut.len() == 400 && cut.contains("of another type"), "{cut}");
}
