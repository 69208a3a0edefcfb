//! Pages and long lists of the short paths.

use std::collections::BTreeSet;

use super::*;

#[tokio::test]
async fn pages_are_of_one_snapshot_however_the_cluster_changes() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    let first = get(&gateway, "/pods?limit=2").await;
    assert_eq!(names(&first), ["cart-0", "web-0"]);
    let metadata = first.json()["metadata"].clone();
    let (token, version) =
        (metadata["continue"].as_str().unwrap(), metadata["resourceVersion"].clone());

    let cluster = server.cluster();
    cluster.create(&pod("shop", "x", "web", "n")).unwrap();
    let newest = cluster.delete("pods", "web", "web-0").unwrap();
    wait_for(&gateway, &newest.version().to_string()).await;
    assert_eq!(names(&get(&gateway, "/pods").await), ["cart-0", "web-0", "web-1", "x"]);

    let second = get(&gateway, &format!("/pods?limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["web-1", "web-0"]);
    assert_eq!(second.json()["metadata"], json!({"resourceVersion": version}));
    // By another name of the same resource, and again.
    let again = get(&gateway, &format!("/core/v1/pods?continue={token}")).await;
    assert_eq!(names(&again), ["web-1", "web-0"]);

    let other = get(&gateway, &format!("/pods?continue={token}&namespace=web")).await;
    assert!(other.refusal(400, "BadRequest").contains("another request"));
    let garbage = get(&gateway, "/pods?continue=garbage").await;
    assert!(garbage.refusal(400, "BadRequest").contains("metadata.continue"));
    // Selected pages end where the selection ends.
    let exact = get(&gateway, "/pods?limit=1&labels[app]=cart").await;
    assert_eq!(names(&exact), ["cart-0"]);
    assert_eq!(exact.json()["metadata"]["continue"], Value::Null);
}

#[tokio::test]
async fn pages_of_a_snapshot_that_is_gone_are_gone() {
    let server = server().await;
    let gateway = endpoint(&server, Options { kept_snapshots: 1, ..Options::default() });
    let token =
        |answer: &Answer| answer.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let first = token(&get(&gateway, "/pods?limit=1").await);
    let second = token(&get(&gateway, "/pods?limit=1").await);
    let gone =
        get(&gateway, &format!("/pods?limit=1&continue={first}")).await.refusal(410, "Expired");
    assert!(gone.contains("without continue="), "{gone}");
    assert_eq!(names(&get(&gateway, &format!("/pods?limit=9&continue={second}")).await).len(), 3);
}

#[tokio::test]
async fn big_answers_are_whole() {
    let server = server().await;
    for at in 0..500 {
        let mut pod = pod("big", &format!("p-{at:04}"), "big", "n");
        pod["metadata"]["annotations"] = json!({"padding": "x".repeat(700)});
        server.cluster().create(&pod).unwrap();
    }
    let gateway = endpoint(&server, Options::default());
    let answer = get(&gateway, "/pods?namespace=big").await;
    assert!(answer.text.len() > 5 * 64 * 1024);
    assert_eq!(names(&answer).into_iter().collect::<BTreeSet<_>>().len(), 500);
    // All pages together are the list.
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let page = get(&gateway, &format!("/pods?namespace=big&limit=99&continue={token}")).await;
        all.extend(names(&page));
        match page.json()["metadata"]["continue"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(all, names(&answer));
}

/// Waits until the gateway's Pods have reached `version`.
async fn wait_for(gateway: &Endpoint, version: &str) {
    let pods = informer::Resource::of::<k8s_openapi::api::core::v1::Pod>();
    let factory = gateway.inner.collections.factory();
    let informer = factory.informer_as::<Object>(pods, informer::InformerOptions::new()).unwrap();
    informer.wait_for(version).await.unwrap();
}
