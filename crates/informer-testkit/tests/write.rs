//! Create, update, patch and delete, by kube's client and by hand.

mod support;

use http::Request;
use informer_testkit::{Cluster, ClusterOptions, TestServer, Verb, Write};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams, Preconditions,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use support::*;

fn code(result: Result<impl Sized, kube::Error>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone()),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it succeeded"),
    }
}

fn typed(value: Value) -> Pod {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn objects_live_from_create_to_delete() {
    let server = server().await;
    let pods: Api<Pod> = Api::default_namespaced(server.client().unwrap());
    let created = pods.create(&PostParams::default(), &typed(pod("default", "a"))).await.unwrap();
    assert_eq!(created.status.unwrap().phase.as_deref(), Some("Pending"));
    assert!(created.metadata.uid.is_some() && created.metadata.creation_timestamp.is_some());
    assert_eq!(
        code(pods.create(&PostParams::default(), &typed(pod("default", "a"))).await),
        (409, "AlreadyExists".into())
    );

    let mut changed = pods.get("a").await.unwrap();
    changed.labels_mut().insert("x".into(), "1".into());
    let stale = pods.get("a").await.unwrap();
    let changed = pods.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(changed.resource_version(), stale.resource_version());
    assert_eq!(
        code(pods.replace("a", &PostParams::default(), &stale).await),
        (409, "Conflict".into())
    );
    let same = pods.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_eq!(
        same.resource_version(),
        changed.resource_version(),
        "what changes nothing is no change"
    );

    let patch = json!({"metadata": {"labels": {"x": null, "y": "2"}}});
    let patched = pods.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert!(patched.labels().contains_key("y") && !patched.labels().contains_key("x"));
    let stale_patch = json!({"metadata": {"resourceVersion": "1", "labels": {"z": "3"}}});
    assert_eq!(
        code(pods.patch("a", &PatchParams::default(), &Patch::Merge(&stale_patch)).await),
        (409, "Conflict".into())
    );
    let operations = json!([
        {"op": "test", "path": "/metadata/labels/y", "value": "2"},
        {"op": "add", "path": "/metadata/labels/z", "value": "3"},
    ]);
    let path = "/api/v1/namespaces/default/pods/a";
    let answer =
        call(&server.service(), request("PATCH", path, "application/json-patch+json", &operations))
            .await;
    let patched: Pod = serde_json::from_str(&whole(answer.unwrap()).await.1).unwrap();
    assert_eq!(patched.labels()["z"], "3");
    assert_eq!(
        code(pods.patch("b", &PatchParams::default(), &Patch::Merge(&patch)).await),
        (404, "NotFound".into())
    );

    let wrong = DeleteParams {
        preconditions: Some(Preconditions { uid: Some("x".into()), resource_version: None }),
        ..DeleteParams::default()
    };
    assert_eq!(code(pods.delete("a", &wrong).await), (409, "Conflict".into()));
    let deleted = pods.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        deleted.left().map(|pod| pod.name_any()).as_deref(),
        Some("a"),
        "a Pod comes back as it was"
    );
    assert_eq!(code(pods.get("a").await), (404, "NotFound".into()));
    assert_eq!(code(pods.delete("a", &DeleteParams::default()).await), (404, "NotFound".into()));
}

#[tokio::test]
async fn some_resources_answer_a_delete_with_a_status() {
    let server = server().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client().unwrap());
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"generateName": "m-"}, "data": {"a": "b"}}))
            .unwrap();
    let one = maps.create(&PostParams::default(), &map).await.unwrap();
    let other = maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(one.name_any().starts_with("m-") && one.name_any().len() == 7);
    assert_ne!(one.name_any(), other.name_any());
    let status =
        maps.delete(&one.name_any(), &DeleteParams::default()).await.unwrap().right().unwrap();
    assert!(status.is_success());
    assert_eq!(status.details.unwrap().uid, one.uid().unwrap());
}

#[tokio::test]
async fn status_is_written_through_its_subresource_alone() {
    let server = server().await;
    let deployments: Api<Deployment> = Api::default_namespaced(server.client().unwrap());
    let body = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {}, "template": {"spec": {"containers": []}}},
        "status": {"replicas": 9},
    });
    let created = deployments
        .create(&PostParams::default(), &serde_json::from_value(body).unwrap())
        .await
        .unwrap();
    assert_eq!(created.status.unwrap().replicas, None, "a status is not created");
    assert_eq!(created.metadata.generation, Some(1));
    let both = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 2}, "status": {"replicas": 5}});
    let main =
        deployments.patch("web", &PatchParams::default(), &Patch::Merge(&both)).await.unwrap();
    assert_eq!((main.spec.unwrap().replicas, main.status.unwrap().replicas), (Some(2), None));
    assert_eq!(main.metadata.generation, Some(2));
    let both = json!({"metadata": {"labels": {"c": "d"}}, "spec": {"replicas": 3}, "status": {"replicas": 5}});
    let status = deployments
        .patch_status("web", &PatchParams::default(), &Patch::Merge(&both))
        .await
        .unwrap();
    assert!(!status.metadata.labels.unwrap().contains_key("c"));
    assert_eq!(
        (status.spec.unwrap().replicas, status.status.unwrap().replicas),
        (Some(2), Some(5))
    );
    assert_eq!(
        status.metadata.generation,
        Some(2),
        "the status does not count as a new generation"
    );
    assert_eq!(deployments.get_status("web").await.unwrap().status.unwrap().replicas, Some(5));
    let service = server.service();
    assert_eq!(get(&service, "/api/v1/namespaces/default/configmaps/x/status").await.0, 404);
}

#[tokio::test]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let server = server().await;
    let mut body = pod("default", "a");
    body["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.cluster().create(&body).unwrap();
    let from = server.cluster().version();
    let pods: Api<Pod> = Api::default_namespaced(server.client().unwrap());
    let mut lines =
        watch(&server.service(), &format!("/api/v1/pods?watch=1&resourceVersion={from}")).await;
    let held = pods.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(held.metadata.deletion_timestamp.is_some());
    assert!(lines.short().await.unwrap().starts_with("MODIFIED a@"));
    pods.delete("a", &DeleteParams::default()).await.unwrap();
    let release = json!({"metadata": {"finalizers": null}});
    let released = pods.patch("a", &PatchParams::default(), &Patch::Merge(&release)).await.unwrap();
    assert!(lines.short().await.unwrap().starts_with("DELETED a@"));
    assert_eq!(server.cluster().count("pods"), 0);
    assert_eq!(
        (released.finalizers(), released.resource_version()),
        (&[][..], held.resource_version()),
        "the object as it was sent, with the version before the deletion"
    );
}

#[tokio::test]
async fn namespaces_come_as_needed_and_take_their_content_with_them() {
    let server = server().await;
    let client = server.client().unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "new");
    pods.create(&PostParams::default(), &typed(pod("new", "a"))).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client);
    assert_eq!(
        namespaces.get("new").await.unwrap().status.unwrap().phase.as_deref(),
        Some("Active")
    );
    namespaces.delete("new", &DeleteParams::default()).await.unwrap();
    assert_eq!(server.cluster().count("pods"), 0);

    let cluster = Cluster::with_options(&ClusterOptions {
        strict_namespaces: true,
        ..ClusterOptions::default()
    });
    let strict = TestServer::builder().cluster(cluster).start().await.unwrap();
    let pods: Api<Pod> = Api::namespaced(strict.client().unwrap(), "new");
    assert_eq!(
        code(pods.create(&PostParams::default(), &typed(pod("new", "a"))).await),
        (404, "NotFound".into())
    );
    assert_eq!(strict.cluster().count("namespaces"), 4);
}

#[tokio::test]
async fn a_selected_part_of_a_collection_can_be_deleted() {
    let server = server().await;
    let cluster = server.cluster();
    for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "z")] {
        cluster.create(&pod(namespace, name)).unwrap();
    }
    cluster.patch("pods", "a", "y", &json!({"metadata": {"labels": {"app": "db"}}})).unwrap();
    let pods: Api<Pod> = Api::namespaced(server.client().unwrap(), "a");
    let selected = ListParams::default().labels("app=web");
    let before = cluster.version().to_string();
    let list =
        pods.delete_collection(&DeleteParams::default(), &selected).await.unwrap().left().unwrap();
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.metadata.resource_version, Some(before), "as listed for the deletion");
    let left: Vec<String> = cluster.list("pods").iter().map(|pod| pod.key().to_string()).collect();
    assert_eq!(left, ["a/y", "b/z"]);
}

fn widgets() -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wi"]},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1beta1", "served": true, "storage": false},
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                 "selectableFields": [{"jsonPath": ".spec.color"}]},
                {"name": "v1alpha1", "served": false, "storage": false},
            ],
        },
    }))
    .unwrap()
}

fn widget_api(client: Client, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("example.com", version, "Widget"),
        "widgets",
    );
    Api::namespaced_with(client, "default", &resource)
}

#[tokio::test]
async fn a_definition_serves_its_resource_until_it_is_deleted() {
    let server = server().await;
    let client = server.client().unwrap();
    let service = server.service();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    assert_eq!(
        get(&service, "/apis/example.com/v1/widgets").await,
        (404, json!("404 page not found\n"))
    );
    let created = definitions.create(&PostParams::default(), &widgets()).await.unwrap();
    let conditions = created.status.unwrap().conditions.unwrap();
    assert!(conditions.iter().any(|c| c.type_ == "Established" && c.status == "True"));
    let (_, group) = get(&service, "/apis/example.com").await;
    assert_eq!(group["preferredVersion"]["version"], "v1");
    assert_eq!(group["versions"].as_array().unwrap().len(), 2, "v1alpha1 is not served");

    let api = widget_api(client.clone(), "v1");
    let widget: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": "red"},
    }))
    .unwrap();
    let created = api.create(&PostParams::default(), &widget).await.unwrap();
    let beta = widget_api(client, "v1beta1").get("w").await.unwrap();
    assert_eq!(beta.types.unwrap().api_version, "example.com/v1beta1");
    let red = |color: &str| ListParams::default().fields(&format!("spec.color={color}"));
    assert_eq!(api.list(&red("red")).await.unwrap().items.len(), 1);
    assert_eq!(api.list(&red("blue")).await.unwrap().items.len(), 0);
    assert_eq!(
        code(api.replace("w", &PostParams::default(), &widget).await),
        (422, "Invalid".into())
    );

    // As a real server writes custom resources: fields in alphabetical order, so the version of the
    // list comes behind the items, and items say what they are.
    let (uid, version) = (created.uid().unwrap(), created.resource_version().unwrap());
    let timestamp = serde_json::to_value(created.creation_timestamp().unwrap()).unwrap();
    let (_, body) = send(&service, "GET", "/apis/example.com/v1/widgets", &Value::Null).await;
    assert_eq!(
        body,
        format!(
            "{{\"apiVersion\":\"example.com/v1\",\"items\":[{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{{\"creationTimestamp\":{timestamp},\"generation\":1,\"name\":\"w\",\"namespace\":\"default\",\"resourceVersion\":\"{version}\",\"uid\":\"{uid}\"}},\"spec\":{{\"color\":\"red\"}}}}],\"kind\":\"WidgetList\",\"metadata\":{{\"continue\":\"\",\"resourceVersion\":\"{version}\"}}}}\n"
        )
    );

    let mut lines =
        watch(&service, &format!("/apis/example.com/v1/widgets?watch=1&resourceVersion={version}"))
            .await;
    definitions.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
    assert!(lines.short().await.unwrap().starts_with("DELETED w@"));
    assert_eq!(lines.short().await, None, "the watch ends with the resource");
    assert_eq!(get(&service, "/apis/example.com/v1/widgets").await.0, 404);
    definitions.create(&PostParams::default(), &widgets()).await.unwrap();
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 0);
    api.create(&PostParams::default(), &widget).await.unwrap();
}

#[tokio::test]
async fn unusable_definitions_and_objects_are_refused() {
    let server = server().await;
    let service = server.service();
    let mut wrong_name = serde_json::to_value(widgets()).unwrap();
    wrong_name["metadata"]["name"] = "things.example.com".into();
    let mut no_storage = serde_json::to_value(widgets()).unwrap();
    no_storage["spec"]["versions"][1]["storage"] = false.into();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let pods = "/api/v1/namespaces/default/pods";
    for (path, body, expected) in [
        (crds, wrong_name, 422),
        (crds, no_storage, 422),
        (pods, json!({"metadata": {}}), 422),
        (pods, json!({"metadata": {"name": "a/b"}}), 422),
        (pods, json!({"kind": "Node", "metadata": {"name": "a"}}), 400),
        (pods, json!({"apiVersion": "v2", "metadata": {"name": "a"}}), 400),
        (pods, json!({"metadata": {"name": "a", "namespace": "other"}}), 400),
        (pods, json!({"metadata": {"name": "a", "resourceVersion": "1"}}), 400),
        (pods, json!({"metadata": {"name": 1}}), 422),
        (pods, json!({"metadata": {"name": "a", "labels": {"x": 1}}}), 400),
        (pods, json!([]), 400),
        ("/api/v1/pods", json!({"metadata": {"name": "a"}}), 405),
        ("/api/v1/namespaces/default/pods/a/exec", json!({}), 404),
        ("/version", json!({}), 405),
    ] {
        let (code, answer) = send(&service, "POST", path, &body).await;
        assert_eq!(code, expected, "{path} {body}: {answer}");
    }
    let protobuf = request("POST", pods, "application/vnd.kubernetes.protobuf", &json!({}));
    assert_eq!(whole(call(&service, protobuf).await.unwrap()).await.0, 415);
    let large = json!({"metadata": {"name": "a"}, "data": "x".repeat(4 << 20)});
    assert_eq!(send(&service, "POST", pods, &large).await.0, 413);
    assert_eq!(server.cluster().count("pods"), 0);
}

#[tokio::test]
async fn a_dry_run_and_an_apply_do_what_they_say() {
    let server = server().await;
    let service = server.service();
    let path = "/api/v1/namespaces/default/configmaps";
    let body = json!({"metadata": {"name": "m"}, "data": {"a": "1"}});
    assert_eq!(send(&service, "POST", &format!("{path}?dryRun=All"), &body).await.0, 201);
    assert_eq!(server.cluster().count("configmaps"), 0);
    for (data, code) in [("1", 200), ("2", 200)] {
        let apply = request(
            "PATCH",
            &format!("{path}/m?fieldManager=test"),
            "application/apply-patch+yaml",
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": data}}),
        );
        let (got, answer) = whole(call(&service, apply).await.unwrap()).await;
        assert_eq!(got, code, "{answer}");
    }
    assert_eq!(server.cluster().get("cm", "default", "m").unwrap().field("data.a"), "2");
}

#[tokio::test]
async fn writes_in_process_are_whole_and_seen_by_watches() {
    let server = server().await;
    let cluster = server.cluster();
    let from = cluster.version();
    let mut lines =
        watch(&server.service(), &format!("/api/v1/pods?watch=1&resourceVersion={from}")).await;
    cluster
        .write_many([
            Write::Apply(pod("default", "a")),
            Write::Apply(pod("default", "b")),
            Write::Delete {
                resource: "pods".into(),
                namespace: "default".into(),
                name: "a".into(),
            },
            Write::Delete {
                resource: "pods".into(),
                namespace: "default".into(),
                name: "none".into(),
            },
        ])
        .unwrap();
    assert_eq!(lines.short().await.unwrap(), format!("ADDED a@{}", from + 1));
    assert_eq!(lines.short().await.unwrap(), format!("ADDED b@{}", from + 2));
    assert_eq!(lines.short().await.unwrap(), format!("DELETED a@{}", from + 3));
    let mut with_status = typed(pod("default", "b"));
    with_status.status = Some(serde_json::from_value(json!({"phase": "Running"})).unwrap());
    cluster.apply(&with_status).unwrap();
    assert_eq!(cluster.get("po", "default", "b").unwrap().field("status.phase"), "Running");
    assert_eq!(cluster.create(&json!({"kind": "Nothing"})).map_err(|s| s.code), Err(400));
    assert_eq!(cluster.delete("nothings", "", "x").map_err(|s| s.code), Err(404));
}

#[tokio::test]
async fn the_request_log_says_what_was_asked() {
    let server = server().await;
    let client = server.client().unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.list(&ListParams::default().limit(7)).await.unwrap();
    let _ = pods.get("a").await;
    client.request_text(Request::get("/version").body(Vec::new()).unwrap()).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests.clone().verb(Verb::List).resource("pods").parameter("limit"), ["7"]);
    assert_eq!(requests[1].resource.as_ref().unwrap().name.as_deref(), Some("a"));
    assert_eq!(
        requests.iter().map(|r| r.status).collect::<Vec<_>>(),
        [Some(200), Some(404), Some(200)]
    );
    assert_eq!(requests.since(2).len(), 1);
    server.clear_requests();
    assert!(server.requests().is_empty());
}
