//! Discovery, get, list and watch: what the bytes are, and which state they show.

mod support;

use std::time::Duration;

use informer_testkit::{Cluster, ClusterOptions, TestServer, generate};
use informer_testkit::{ReadOptions, WatchListSupport};
use serde_json::{Value, json};
use support::*;

#[tokio::test]
async fn discovery_lists_every_resource_in_both_forms() {
    let server = server().await;
    let service = server.service();
    let (code, core) = get(&service, "/api/v1").await;
    assert_eq!(code, 200);
    let pods = core["resources"].as_array().unwrap().iter().find(|r| r["name"] == "pods").unwrap();
    assert_eq!(
        *pods,
        json!({
            "name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "shortNames": ["po"],
            "categories": ["all"],
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        })
    );
    assert!(core["resources"].as_array().unwrap().iter().any(|r| r["name"] == "pods/status"));
    let (_, groups) = get(&service, "/apis").await;
    let autoscaling =
        groups["groups"].as_array().unwrap().iter().find(|g| g["name"] == "autoscaling").unwrap();
    assert_eq!(autoscaling["preferredVersion"]["version"], "v2");
    assert_eq!(get(&service, "/apis/apps").await.1["kind"], "APIGroup");
    assert_eq!(get(&service, "/apis/nonsense").await.0, 404);
    assert_eq!(get(&service, "/version").await.1["minor"], "36");
    assert_eq!(get(&service, "/readyz").await.1, "ok");

    let accept =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let aggregated: Value =
        serde_json::from_str(&get_as(&service, "/apis", accept).await.1).unwrap();
    let legacy: usize = groups["groups"].as_array().unwrap().len();
    assert_eq!(aggregated["items"].as_array().unwrap().len(), legacy);
}

#[tokio::test]
async fn kube_discovers_and_reads_every_resource() {
    let server = server().await;
    let client = server.client().unwrap();
    for discovery in [
        kube::discovery::Discovery::new(client.clone()).run().await.unwrap(),
        kube::discovery::Discovery::new(client.clone()).run_aggregated().await.unwrap(),
    ] {
        let mut seen = 0;
        for group in discovery.groups() {
            for (resource, capabilities) in group.resources_by_stability() {
                assert!(
                    capabilities.supports_operation(kube::discovery::verbs::WATCH),
                    "{resource:?}"
                );
                let api =
                    kube::Api::<kube::api::DynamicObject>::all_with(client.clone(), &resource);
                api.list(&kube::api::ListParams::default()).await.unwrap();
                seen += 1;
            }
        }
        assert!(seen > 55, "{seen} resources");
    }
}

#[tokio::test]
async fn a_list_of_a_built_in_kind_has_its_metadata_first_and_bare_items() {
    let server = server().await;
    let created = server.cluster().create(&pod("default", "a")).unwrap();
    let (code, body) =
        send(&server.service(), "GET", "/api/v1/namespaces/default/pods", &Value::Null).await;
    assert_eq!(code, 200);
    let (uid, version) = (created.uid(), created.version());
    let timestamp: String = created.field("metadata.creationTimestamp").into_owned();
    assert_eq!(
        body,
        format!(
            "{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"}},\"items\":[\
             {{\"metadata\":{{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"{uid}\",\"resourceVersion\":\"{version}\",\
             \"generation\":1,\"creationTimestamp\":\"{timestamp}\",\"labels\":{{\"app\":\"web\"}}}},\
             \"spec\":{{\"containers\":[{{\"image\":\"example\",\"name\":\"main\"}}],\"nodeName\":\"n1\"}}}}]}}\n"
        )
    );
    let (_, body) =
        send(&server.service(), "GET", "/api/v1/pods?labelSelector=app=db", &Value::Null).await;
    assert_eq!(
        body,
        format!(
            "{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"}},\"items\":[]}}\n"
        )
    );
}

#[tokio::test]
async fn lists_select_by_labels_fields_and_namespace() {
    let server = server().await;
    let cluster = server.cluster();
    cluster.load(generate::pods(250)).unwrap();
    let service = server.service();
    for (path, count) in [
        ("/api/v1/pods", 250),
        ("/api/v1/namespaces/ns-01/pods", 100),
        ("/api/v1/namespaces/nowhere/pods", 0),
        ("/api/v1/pods?labelSelector=app%3Dapp-0002", 50),
        ("/api/v1/pods?labelSelector=app%20in%20(app-0001,app-0002),tier!=batch", 100),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-0001", 83),
        ("/api/v1/pods?fieldSelector=status.phase!%3DRunning", 0),
        ("/api/v1/namespaces/ns-00/pods?fieldSelector=metadata.namespace%3Dns-01", 0),
    ] {
        let (code, list) = get(&service, path).await;
        assert_eq!((code, list["items"].as_array().unwrap().len()), (200, count), "{path}");
    }
    for (path, code) in [
        ("/api/v1/pods?labelSelector=app%20in%20(", 400),
        ("/api/v1/pods?fieldSelector=spec.image%3Dx", 400),
        ("/api/v1/namespaces/x/nodes", 404),
        ("/apis/nonsense.io/v1/things", 404),
        ("/api/v1/pods/a", 404),
        ("/api/v1/namespaces/default/pods/a", 404),
        ("/api/v1/pods?resourceVersion=x", 400),
        ("/api/v1/pods?resourceVersionMatch=Exact", 422),
    ] {
        assert_eq!(get(&service, path).await.0, code, "{path}");
    }
}

#[tokio::test]
async fn pages_show_one_state_even_while_it_changes() {
    let server = server().await;
    let cluster = server.cluster();
    cluster.load(generate::pods(95)).unwrap();
    let service = server.service();
    let before: Vec<String> = names(&get(&service, "/api/v1/pods").await.1);
    let mut seen = Vec::new();
    let mut token = String::new();
    let mut remaining = Vec::new();
    loop {
        let (_, page) = get(&service, &format!("/api/v1/pods?limit=20&continue={token}")).await;
        seen.extend(names(&page));
        remaining.push(page["metadata"]["remainingItemCount"].as_u64());
        // Whatever happens between two pages is not seen.
        let victim = cluster.list("pods").pop().unwrap();
        cluster.delete("pods", victim.key().namespace(), victim.key().name()).unwrap();
        cluster.create(&pod("aaa", &format!("new-{}", seen.len()))).unwrap();
        match page["metadata"]["continue"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(seen, before);
    assert_eq!(remaining, [Some(75), Some(55), Some(35), Some(15), None]);
    let (_, page) = get(&service, "/api/v1/pods?limit=2&labelSelector=app%3Dapp-0000").await;
    assert!(
        page["metadata"]["continue"].is_string()
            && page["metadata"]["remainingItemCount"].is_null()
    );
    let (_, all) = get(&service, "/api/v1/pods?limit=2&resourceVersion=0").await;
    assert!(all["items"].as_array().unwrap().len() > 2, "version 0 ignores the limit");
}

#[tokio::test]
async fn an_expired_token_says_how_to_go_on_inconsistently() {
    let server = server().await;
    let cluster = server.cluster();
    cluster.load(generate::pods(10)).unwrap();
    let service = server.service();
    let (_, page) = get(&service, "/api/v1/pods?limit=4").await;
    let token = page["metadata"]["continue"].as_str().unwrap().to_owned();
    cluster.compact();
    // A token for exactly the compacted version still works.
    assert_eq!(get(&service, &format!("/api/v1/pods?limit=4&continue={token}")).await.0, 200);
    cluster.create(&pod("zzz", "new")).unwrap();
    cluster.compact();
    let (code, status) = get(&service, &format!("/api/v1/pods?limit=4&continue={token}")).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let other = status["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = get(&service, &format!("/api/v1/pods?continue={other}")).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), 7, "the rest, and what is new");
    assert_eq!(get(&service, "/api/v1/pods?continue=nonsense").await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn versions_mean_exactly_or_not_older_than() {
    let server = server().await;
    let cluster = server.cluster();
    let first = cluster.create(&pod("default", "a")).unwrap().version();
    let second = cluster.create(&pod("default", "b")).unwrap().version();
    let service = server.service();
    let list = async |query: String| {
        let (code, list) = get(&service, &format!("/api/v1/pods?{query}")).await;
        (
            code,
            names(&list),
            list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let (both, one) = (vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned()]);
    assert_eq!(
        list(format!("resourceVersion={first}")).await,
        (200, both.clone(), second.to_string())
    );
    let exact = format!("resourceVersion={first}&resourceVersionMatch=Exact");
    assert_eq!(list(exact.clone()).await, (200, one.clone(), first.to_string()));
    assert_eq!(
        list(format!("resourceVersion={first}&limit=9")).await,
        (200, one, first.to_string())
    );
    cluster.compact();
    assert_eq!(list(exact).await.0, 410);

    let asked = tokio::time::Instant::now();
    let (code, status) =
        get(&service, &format!("/api/v1/pods?resourceVersion={}", second + 5)).await;
    assert_eq!(asked.elapsed(), Duration::from_secs(3));
    assert_eq!((code, &status["reason"]), (504, &json!("Timeout")));
    assert_eq!(
        status["details"],
        json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        })
    );
    // One that is reached in time is waited for.
    let query = format!("resourceVersion={}", second + 1);
    let (answer, _) = tokio::join!(list(query), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cluster.create(&pod("default", "c")).unwrap();
    });
    assert_eq!((answer.0, answer.1.len()), (200, 3));
}

#[tokio::test]
async fn metadata_alone_is_served_on_request() {
    let server = server().await;
    server.cluster().create(&pod("default", "a")).unwrap();
    let service = server.service();
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let (_, object) = get_as(&service, "/api/v1/namespaces/default/pods/a", one).await;
    assert!(object.starts_with(
        "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
    ));
    assert!(!object.contains("spec"));
    let objects: Value =
        serde_json::from_str(&get_as(&service, "/api/v1/pods", list).await.1).unwrap();
    assert_eq!(objects["kind"], "PartialObjectMetadataList");
    assert_eq!(objects["items"][0]["kind"], "PartialObjectMetadata");
    assert!(objects["items"][0]["spec"].is_null());
    let (_, lines) = get_as(&service, "/api/v1/pods?watch=1&timeoutSeconds=1", one).await;
    assert!(
        lines.starts_with("{\"type\":\"ADDED\",\"object\":{\"kind\":\"PartialObjectMetadata\","),
        "{lines}"
    );
    assert_eq!(get_as(&service, "/api/v1/pods", one).await.0, 406);
    assert_eq!(get_as(&service, "/api/v1/pods", "application/cbor").await.0, 406);
}

#[tokio::test]
async fn a_watch_continues_after_its_version_with_every_change_in_order() {
    let server = server().await;
    let cluster = server.cluster();
    let from = cluster.create(&pod("default", "a")).unwrap().version();
    cluster.patch("pods", "default", "a", &json!({"metadata": {"labels": {"x": "1"}}})).unwrap();
    let mut lines =
        watch(&server.service(), &format!("/api/v1/pods?watch=1&resourceVersion={from}")).await;
    cluster.create(&pod("other", "b")).unwrap();
    cluster.delete("pods", "default", "a").unwrap();
    let b = from + 3; // the namespace took one
    assert_eq!(lines.short().await.unwrap(), format!("MODIFIED a@{}", from + 1));
    assert_eq!(lines.short().await.unwrap(), format!("ADDED b@{b}"));
    let deleted = lines.event().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"]["kind"], "Pod");
    assert_eq!(deleted["object"]["metadata"]["resourceVersion"], (b + 1).to_string());
    assert_eq!(deleted["object"]["metadata"]["labels"]["x"], "1", "the final state");
}

#[tokio::test]
async fn a_watch_that_lags_behind_misses_nothing() {
    let server = server().await;
    let cluster = server.cluster();
    let from = cluster.create(&pod("default", "a")).unwrap().version();
    let mut lines =
        watch(&server.service(), &format!("/api/v1/pods?watch=1&resourceVersion={from}")).await;
    for round in 0..300 {
        let patch = json!({"metadata": {"labels": {"round": round.to_string()}}});
        cluster.patch("pods", "default", "a", &patch).unwrap();
    }
    for version in from + 1..=from + 300 {
        assert_eq!(lines.short().await.unwrap(), format!("MODIFIED a@{version}"));
    }
}

#[tokio::test]
async fn a_selected_watch_sees_objects_enter_and_leave() {
    let server = server().await;
    let cluster = server.cluster();
    cluster.create(&pod("default", "a")).unwrap();
    let mut web = watch(&server.service(), "/api/v1/pods?watch=1&labelSelector=app%3Dweb").await;
    let mut node =
        watch(&server.service(), "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn2").await;
    assert!(web.short().await.unwrap().starts_with("ADDED a@"));
    let relabel = |app: &str, node: &str| {
        let patch = json!({"metadata": {"labels": {"app": app}}, "spec": {"nodeName": node}});
        cluster.patch("pods", "default", "a", &patch).unwrap().version()
    };
    let left = relabel("db", "n1");
    let gone = web.event().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"]["app"], "web", "as it last was");
    assert_eq!(
        gone["object"]["metadata"]["resourceVersion"],
        left.to_string(),
        "at the version it left"
    );
    let back = relabel("web", "n2");
    assert_eq!(web.short().await.unwrap(), format!("ADDED a@{back}"));
    assert_eq!(node.short().await.unwrap(), format!("ADDED a@{back}"));
    cluster.delete("pods", "default", "a").unwrap();
    assert!(node.short().await.unwrap().starts_with("DELETED a@"));
}

#[tokio::test]
async fn a_streaming_list_ends_with_an_annotated_bookmark() {
    let server = server().await;
    let cluster = server.cluster();
    cluster.load(generate::pods(150)).unwrap();
    let version = cluster.version();
    let path = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut lines = watch(&server.service(), path).await;
    for _ in 0..150 {
        assert!(lines.short().await.unwrap().starts_with("ADDED "));
    }
    assert_eq!(
        lines.line().await.unwrap().unwrap(),
        format!(
            "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}},\"spec\":{{\"containers\":null}},\"status\":{{}}}}}}"
        )
    );
    cluster.create(&pod("default", "a")).unwrap();
    assert!(lines.short().await.unwrap().starts_with("ADDED a@"));
    // Without a version every watch is one; the old form, without bookmarks, has no end.
    let mut plain =
        watch(&server.service(), "/api/v1/namespaces/default/pods?watch=1&resourceVersion=0").await;
    assert!(plain.short().await.unwrap().starts_with("ADDED a@"));
    cluster.create(&pod("default", "b")).unwrap();
    assert!(plain.short().await.unwrap().starts_with("ADDED b@"));
}

#[tokio::test]
async fn servers_that_do_not_know_streaming_lists_refuse_or_ignore_them() {
    let path = "/api/v1/namespaces?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    let refusing = TestServer::builder().disable_watch_list().start().await.unwrap();
    let (code, status) = get(&refusing.service(), path).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    let options = ReadOptions { watch_list: WatchListSupport::Ignored, ..ReadOptions::default() };
    let ignoring = TestServer::builder().read_options(options).start().await.unwrap();
    let (code, lines) = send(&ignoring.service(), "GET", path, &Value::Null).await;
    assert_eq!(code, 200);
    assert!(lines.contains("ADDED") && !lines.contains("initial-events-end"), "{lines}");
    let served = server().await;
    let no_match = path.replace("&resourceVersionMatch=NotOlderThan", "");
    assert_eq!(get(&served.service(), &no_match).await.0, 422);
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_is_an_error_within_the_stream() {
    let server = server().await;
    let cluster = server.cluster();
    cluster.create(&pod("default", "a")).unwrap();
    let open = cluster.version();
    let mut lines =
        watch(&server.service(), &format!("/api/v1/pods?watch=1&resourceVersion={open}")).await;
    cluster.create(&pod("default", "b")).unwrap();
    cluster.compact();
    let current = cluster.version();
    let (code, body) =
        send(&server.service(), "GET", "/api/v1/pods?watch=1&resourceVersion=1", &Value::Null)
            .await;
    assert_eq!(code, 200);
    assert_eq!(
        body,
        format!(
            "{{\"type\":\"ERROR\",\"object\":{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\"message\":\"too old resource version: 1 ({current})\",\"reason\":\"Expired\",\"code\":410}}}}\n"
        )
    );
    assert!(lines.short().await.unwrap().starts_with("ADDED b@"), "a watch that is open goes on");
    let mut newest =
        watch(&server.service(), &format!("/api/v1/pods?watch=1&resourceVersion={current}")).await;
    cluster.create(&pod("default", "c")).unwrap();
    assert!(
        newest.short().await.unwrap().starts_with("ADDED c@"),
        "the newest version is never too old"
    );
}

#[tokio::test]
async fn history_is_bounded() {
    let cluster =
        Cluster::with_options(&ClusterOptions { history: 5, ..ClusterOptions::default() });
    let server = TestServer::builder().cluster(cluster.clone()).start().await.unwrap();
    let first = cluster.create(&pod("default", "a")).unwrap().version();
    for round in 0..10 {
        let patch = json!({"metadata": {"labels": {"round": round.to_string()}}});
        cluster.patch("pods", "default", "a", &patch).unwrap();
    }
    let mut old =
        watch(&server.service(), &format!("/api/v1/pods?watch=1&resourceVersion={first}")).await;
    assert_eq!(old.event().await.unwrap()["object"]["code"], 410);
    let mut recent =
        watch(&server.service(), &format!("/api/v1/pods?watch=1&resourceVersion={}", first + 5))
            .await;
    assert_eq!(recent.short().await.unwrap(), format!("MODIFIED a@{}", first + 6));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_before_the_end() {
    let server = server().await;
    let from = server.cluster().version();
    let start = tokio::time::Instant::now();
    let path = format!(
        "/api/v1/pods?watch=1&resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=130"
    );
    let mut lines = watch(&server.service(), &path).await;
    let mut times = Vec::new();
    server
        .cluster()
        .create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
        .unwrap();
    while let Some(line) = lines.short().await {
        assert_eq!(line, format!("BOOKMARK @{}", from + 1), "changes of other resources count");
        times.push(start.elapsed().as_secs());
    }
    assert_eq!(times, [60, 120, 128]);
    assert_eq!(start.elapsed(), Duration::from_secs(130));
    let mut without = watch(&server.service(), &path.replace("allowWatchBookmarks=true", "")).await;
    assert_eq!(without.short().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_the_future_is_silent() {
    let server = server().await;
    let from = server.cluster().version() + 5;
    let path = format!(
        "/api/v1/pods?watch=1&resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=100"
    );
    let mut lines = watch(&server.service(), &path).await;
    server.cluster().create(&pod("default", "a")).unwrap();
    assert_eq!(lines.short().await, None);
}

#[tokio::test]
async fn a_large_list_is_streamed() {
    let server = server().await;
    server.cluster().load(generate::pods(2000)).unwrap();
    let response =
        call(&server.service(), request("GET", "/api/v1/pods", "", &Value::Null)).await.unwrap();
    let mut body = response.into_body();
    let mut largest = 0;
    let mut total = 0;
    while let Some(frame) = http_body_util::BodyExt::frame(&mut body).await {
        let length = frame.unwrap().into_data().unwrap().len();
        largest = largest.max(length);
        total += length;
    }
    assert!(total > 14_000_000 && largest < 1_000_000, "{total} bytes, {largest} in one chunk");
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}
