//! Selecting objects by labels and fields, with and without indexes (G12).

#[macro_use]
mod common;

use std::sync::Arc;

use common::soon;
use informer::{InformerOptions, Scope, SharedInformerFactory};
use informer_testkit::TestServer;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

run_tests! {
    on_both_runtimes:
        g12_selectors_use_label_indexes_and_agree_with_a_scan,
        g12_any_selection_finds_what_a_look_at_every_object_finds_with_and_without_indexes,
        g12_the_selectors_of_an_informer_work_on_the_server;
}

fn factory(server: &TestServer) -> SharedInformerFactory {
    SharedInformerFactory::builder(kube::Client::new(server.service(), "default")).build()
}

fn pod(name: &str, app: &str, node: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": app } },
        "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] },
    })
}

async fn g12_selectors_use_label_indexes_and_agree_with_a_scan() {
    let server = TestServer::start().await.unwrap();
    // More than an index files before others have their turn.
    for n in 0..600 {
        server
            .cluster()
            .create(&pod(&format!("p{n}"), ["web", "db", "job"][n % 3], &format!("node-{}", n % 2)))
            .unwrap();
    }
    let factory = factory(&server);
    let pods = factory.informer::<Pod>().unwrap();
    factory.start();
    let lister = soon(pods.synced()).await.unwrap();
    let selectors =
        ["app=web", "app in (db,web)", "app!=web", "app,!missing", "app=web,app!=web", ""];
    let names = |selector: &str| -> Vec<_> {
        lister.select(selector).unwrap().entries().map(|entry| entry.key.clone()).collect()
    };
    let scanned: Vec<_> = selectors.iter().map(|selector| names(selector)).collect();
    let (first, second) = tokio::join!(pods.add_label_index("app"), pods.add_label_index("app"));
    assert_eq!(first.unwrap().name(), second.unwrap().name());
    let indexed: Vec<_> = selectors.iter().map(|selector| names(selector)).collect();
    assert_eq!(indexed, scanned);
    assert_eq!(scanned.iter().map(Vec::len).collect::<Vec<_>>(), [200, 400, 400, 600, 0, 600]);
    assert_eq!(lister.namespace("default").select("app=db").unwrap().count(), 200);
    assert_eq!(lister.namespace("other").select("app=db").unwrap().count(), 0);
    let error = lister.select("app in web").unwrap_err();
    assert!(!error.to_string().is_empty());

    let by_node = pods.add_field_index("spec.nodeName").await.unwrap();
    assert_eq!(pods.add_field_index("spec.nodeName").await.unwrap().name(), by_node.name());
    assert_eq!(lister.by_index(&by_node, "node-1").unwrap().len(), 300);
}

/// What is selected, by the plainest means: every object is looked at.
fn naive(pods: &[Arc<Pod>], scope: &Scope) -> Vec<String> {
    let selects = |pod: &&Arc<Pod>| {
        let value = serde_json::to_value(&***pod).unwrap();
        let field = |label: &str| {
            let path = if label == "spec.host" { "spec.nodeName" } else { label };
            match (label, informer::selector::field_value(&value, path)) {
                ("spec.hostNetwork", value) if value.is_empty() => "false".to_owned(),
                (_, value) => value.into_owned(),
            }
        };
        let here =
            scope.namespace.as_ref().is_none_or(|it| Some(it) == pod.metadata.namespace.as_ref());
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        here && scope.labels.matches_map(&labels)
            && scope.fields.matches(|label| Some(field(label).into()))
    };
    pods.iter().filter(selects).map(|pod| full_name(pod)).collect()
}

fn full_name(pod: &Pod) -> String {
    format!(
        "{}/{}",
        pod.metadata.namespace.as_deref().unwrap(),
        pod.metadata.name.as_deref().unwrap()
    )
}

async fn g12_any_selection_finds_what_a_look_at_every_object_finds_with_and_without_indexes() {
    let server = TestServer::start().await.unwrap();
    let mut random = fastrand::Rng::with_seed(12);
    for n in 0..300 {
        let app = ["web", "db", "job"][n % 3];
        let mut pod = pod(&format!("p{n}"), app, &format!("node-{}", n % 7));
        pod["metadata"]["namespace"] = ["default", "shop", "kube-system"][random.usize(..3)].into();
        match random.u8(..4) {
            0 => _ = pod["spec"].as_object_mut().unwrap().remove("nodeName"),
            1 => _ = pod["metadata"].as_object_mut().unwrap().remove("labels"),
            2 => pod["spec"]["hostNetwork"] = true.into(),
            _ => pod["spec"]["hostNetwork"] = false.into(),
        }
        server.cluster().create(&pod).unwrap();
    }
    let factory = factory(&server);
    let (typed, lazy) = (factory.informer::<Pod>().unwrap(), factory.lazy::<Pod>().unwrap());
    factory.start();
    let (typed_lister, lazy_lister) =
        (soon(typed.synced()).await.unwrap(), soon(lazy.synced()).await.unwrap());
    let all = typed_lister.list();
    let label_parts = ["app=web", "app in (db,job)", "app!=web", "!app", "app", "app=none"];
    let field_parts = [
        "spec.nodeName=node-1",
        "spec.nodeName=",
        "spec.nodeName!=node-2",
        "spec.host=node-3",
        "spec.hostNetwork=false",
        "spec.hostNetwork=true",
        "metadata.name=p7",
        "metadata.name!=p7",
        "metadata.namespace=shop",
        "metadata.namespace!=shop",
        "status.podIPs=",
        "spec.no.such=",
    ];
    let mut scopes = Vec::new();
    for _ in 0..150 {
        let mut some = |parts: &[&str]| {
            let count = random.usize(..3);
            (0..count).map(|_| parts[random.usize(..parts.len())]).collect::<Vec<_>>().join(",")
        };
        let (labels, fields) = (some(&label_parts), some(&field_parts));
        let scope = Scope::all().labels(labels).unwrap().fields(fields).unwrap();
        let namespace =
            ["default", "shop", "nowhere"].get(random.usize(..6)).map(|&it| it.to_owned());
        scopes.push(Scope { namespace, ..scope });
    }
    let expected: Vec<_> = scopes.iter().map(|scope| naive(&all, scope)).collect();
    assert!(expected.iter().filter(|it| !it.is_empty()).count() > 60);
    // Without indexes, then with one of each kind, then with all.
    for step in 0..3 {
        for (scope, expected) in scopes.iter().zip(&expected) {
            let of_typed: Vec<_> =
                typed_lister.select_with(scope).iter().map(|it| full_name(it)).collect();
            assert_eq!(of_typed, *expected, "{step}: {scope}");
            let selection = lazy_lister.select_with(scope);
            let of_lazy: Vec<_> = selection.entries().map(|it| it.key.to_string()).collect();
            assert_eq!(of_lazy, *expected, "{step}: {scope}");
            // A page goes on where the one before ended.
            for entry in selection.entries().step_by(37) {
                let at = of_lazy.iter().position(|it| *it == entry.key.to_string()).unwrap();
                let rest = selection.entries_after(entry.key).map(|it| it.key.to_string());
                assert!(
                    rest.eq(of_lazy[at + 1..].iter().cloned()),
                    "{step}: {scope} after {}",
                    entry.key
                );
            }
        }
        typed.add_label_index("app").await.unwrap();
        lazy.add_label_index("app").await.unwrap();
        for field in [&["spec.nodeName"][..], &["spec.hostNetwork", "spec.no.such"], &[]][step] {
            typed.add_field_index(field).await.unwrap();
            lazy.add_field_index(field).await.unwrap();
        }
    }
}

async fn g12_the_selectors_of_an_informer_work_on_the_server() {
    let server = TestServer::start().await.unwrap();
    for n in 0..9 {
        server.cluster().create(&pod(&format!("p{n}"), ["web", "db"][n % 2], "node-1")).unwrap();
    }
    let factory = factory(&server);
    let options = || InformerOptions::<Pod>::new();
    let web = factory.informer_with(options().labels("app=web").unwrap()).unwrap();
    let one = factory.informer_with(options().fields("metadata.name=p3").unwrap()).unwrap();
    factory.start();
    assert_eq!(soon(web.synced()).await.unwrap().len(), 5);
    let one = soon(one.synced()).await.unwrap();
    assert_eq!(one.len(), 1);
    // An object that ceases to match is gone for this informer.
    let mut changed = pod("p0", "db", "node-1");
    changed["metadata"]["namespace"] = "default".into();
    server.cluster().apply(&changed).unwrap();
    soon(web.wait_for(server.cluster().version().to_string().as_str())).await.unwrap();
    assert_eq!(web.unsynced_store().len(), 4);
}
