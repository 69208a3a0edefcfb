use super::*;

use informer_testkit::TestServer;
use serde_json::json;

const PODS: &str = "/api/v1/namespaces/default/pods";
const STREAMING: &str = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&\
    resourceVersionMatch=NotOlderThan&timeoutSeconds=1&resourceVersion=";

#[tokio::test]
async fn what_passes_is_taken_down_in_both_encodings() {
    let (_server, tap, record) = a_tap().await;
    for accepted in ["application/json", "application/vnd.kubernetes.protobuf"] {
        let from = record.read(<[Note]>::len);
        get(&tap, PODS, accepted).await.unwrap();
        get(&tap, &format!("{PODS}?{STREAMING}"), accepted).await.unwrap();
        // Ended by a drop, on another task.
        record
            .until(|notes| notes[from..].iter().any(|it| matches!(it.what, What::Ended { .. })))
            .await;
        let notes: Vec<_> = record.read(|notes| notes[from..].iter().map(shown).collect());
        let expected = [
            "asked List None",
            "answered 200",
            "listed 5",
            "asked StreamingList None",
            "answered 200",
            "Added default/one 5",
            "InitialEventsEnd / 5",
            "ended",
        ];
        assert_eq!(notes, expected, "{accepted}");
    }
}

#[tokio::test]
async fn a_watch_expires_once_and_frames_are_held() {
    let (server, tap, record) = a_tap().await;
    let json = "application/json";
    tap.expire_next_watch();
    let watch = format!("{PODS}?watch=1&timeoutSeconds=1&resourceVersion=1");
    let expired = get(&tap, &watch, json).await.unwrap();
    assert!(String::from_utf8_lossy(&expired).contains("Expired"));
    tap.hold();
    let watching = tokio::spawn({
        let url = tap.url();
        async move { get_from(&url, &watch, json).await }
    });
    let answers = |notes: &[Note]| {
        notes.iter().filter(|it| matches!(it.what, What::Answered { code: 200, .. })).count()
    };
    record.until(|notes| answers(notes) == 1).await;
    create(&server, "two");
    let is_frame = |note: &Note| matches!(note.what, What::Frame { .. });
    assert!(!record.read(|notes| notes.iter().any(is_frame)));
    tap.release();
    let body = watching.await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&body).contains("two"));
    assert!(record.read(|notes| notes.iter().any(is_frame)));
}

#[tokio::test]
async fn connections_go_to_the_targets_in_turn_and_break() {
    let (_server, tap, record) = a_tap().await;
    let other = TestServer::start().await.unwrap();
    let first = tap.shared.next_target().unwrap();
    tap.set_targets(vec![Arc::clone(&first), target("b", &other)]);
    for _ in 0..2 {
        get(&tap, PODS, "application/json").await.unwrap();
    }
    let asked = record.read(|notes| {
        let asked = notes.iter().filter(|it| matches!(it.what, What::Asked { .. }));
        asked.map(|it| it.target.clone()).collect::<Vec<_>>()
    });
    assert!(asked.contains(&"a".to_owned()) && asked.contains(&"b".to_owned()), "{asked:?}");

    let url = tap.url();
    let watch = format!("{PODS}?watch=1&timeoutSeconds=60&resourceVersion=1");
    let watching = tokio::spawn(async move { get_from(&url, &watch, "application/json").await });
    record
        .until(|notes| matches!(notes.last().map(|it| &it.what), Some(What::Answered { .. })))
        .await;
    tap.cut();
    assert!(watching.await.unwrap().is_err());
}

async fn a_tap() -> (TestServer, Tap, Arc<Record>) {
    let server = TestServer::start().await.unwrap();
    create(&server, "one");
    let record = Arc::new(Record::new());
    let targets = vec![target("a", &server)];
    let tap = Tap::start(Side::Downstream, Arc::clone(&record), targets).await.unwrap();
    (server, tap, record)
}

fn target(name: &str, server: &TestServer) -> Arc<Target> {
    Target::new(name, kube::Config::new(server.url().parse().unwrap())).unwrap()
}

fn create(server: &TestServer, name: &str) {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name } });
    server.cluster().create(&pod).unwrap();
}

async fn get(tap: &Tap, path: &str, accepted: &str) -> anyhow::Result<Bytes> {
    get_from(&tap.url(), path, accepted).await
}

async fn get_from(url: &str, path: &str, accepted: &str) -> anyhow::Result<Bytes> {
    let client = Client::try_from(kube::Config::new(url.parse()?))?;
    let request = Request::get(path).header("accept", accepted).body(Body::empty())?;
    Ok(client.send(request).await?.into_body().collect().await?.to_bytes())
}

fn shown(note: &Note) -> String {
    match &note.what {
        What::Asked { query, .. } => format!("asked {:?} {:?}", query.asked, query.version),
        What::Answered { code, .. } => format!("answered {code}"),
        What::Listed { version, .. } => format!("listed {version}"),
        What::Frame { frame, .. } => format!("{:?} {} {}", frame.event, frame.key, frame.version),
        What::Ended { .. } => "ended".to_owned(),
        What::Cut => "cut".to_owned(),
        What::Reached(what) => what.clone(),
    }
}
