use super::*;

use std::convert::Infallible;

use informer_testkit::TestServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};

#[tokio::test]
async fn writes_are_recorded_and_their_answers_may_be_lost() {
    let (_server, relay, api) = a_relay().await;
    let made = api.create(&PostParams::default(), &child()).await.unwrap();
    relay.set_trouble(Trouble { lost_answers: 1.0, ..Trouble::default() });
    api.create(&PostParams::default(), &child()).await.unwrap_err();
    relay.set_trouble(Trouble::default());
    api.delete(made.metadata.name.as_deref().unwrap(), &DeleteParams::default()).await.unwrap();
    let writes = relay.writes("me");
    let lost: Vec<_> = writes.iter().map(|write| write.lost).collect();
    assert_eq!(lost, [false, true, false]);
    assert_eq!(api.list(&Default::default()).await.unwrap().items.len(), 1, "it was made");
    assert_eq!(writes[0].uid, made.metadata.uid.unwrap());
    assert_eq!(writes[2].uid, writes[0].uid);
    assert_eq!((&*writes[0].resource, writes[0].method.as_str()), ("configmaps", "POST"));
    assert_eq!(relay.counts("me"), Counts { reads: 1, writes: 3, ..Counts::default() });
}

#[tokio::test(start_paused = true)]
async fn frames_are_held_back_in_order() {
    let shared = Arc::clone(&a_relay().await.1.shared);
    shared.state().trouble.hold = Duration::from_secs(3);
    let frames = stream::iter((0..100_u8).map(|n| Ok::<_, Infallible>(Bytes::from(vec![n]))));
    let began = Instant::now();
    let out: Vec<_> = held(frames, shared).map(|frame| frame.unwrap()[0]).collect().await;
    assert_eq!(out, (0..100).collect::<Vec<_>>());
    let took = began.elapsed();
    assert!(took > Duration::from_secs(2) && took <= Duration::from_secs(3), "{took:?}");
}

#[test]
fn paths_name_resources() {
    let of = |path: &str| {
        let head = Request::post(path).body(()).unwrap().into_parts().0;
        Path::of(&head).map(|path| (path.resource, path.subresource))
    };
    let named = |resource: &str, sub: &str| (resource.to_owned(), sub.to_owned());
    assert_eq!(of("/api/v1/namespaces/a/pods").unwrap(), named("pods", ""));
    assert_eq!(of("/apis/x.io/v1/namespaces/a/sets/b/status").unwrap(), named("sets", "status"));
    assert_eq!(of("/api/v1/namespaces").unwrap(), named("namespaces", ""));
    of("/version").unwrap_err();
}

async fn a_relay() -> (TestServer, Relay, Api<ConfigMap>) {
    let server = TestServer::start().await.unwrap();
    let config = kube::Config::new(server.url().parse().unwrap());
    let relay = Relay::start(config, 1).await.unwrap();
    let mut config = kube::Config::new(format!("http://{}", relay.address()).parse().unwrap());
    config.headers.push((USER_AGENT, HeaderValue::from_static("me")));
    let client = Client::try_from(config).unwrap();
    (server, relay, Api::namespaced(client, "default"))
}

fn child() -> ConfigMap {
    let metadata = ObjectMeta { generate_name: Some("child-".to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}
