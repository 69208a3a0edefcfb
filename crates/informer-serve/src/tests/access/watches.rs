//! Watches outlive no permission.

use std::time::Duration;

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use kube::Config;
use tokio::time::Instant;

use super::*;
use crate::Upstream;

pub(super) const WATCH: &str = "/api/v1/namespaces/shop/pods?watch=1&resourceVersion=0";

pub(super) fn watch_pods() -> Value {
    json!({"verb": "watch", "version": "v1", "resource": "pods", "namespace": "shop"})
}

impl Controlled {
    pub(super) async fn watch(&self, token: &str, path: &str) -> BodyDataStream {
        self.watch_with(token, path, &[]).await
    }

    async fn watch_with(
        &self,
        token: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> BodyDataStream {
        let mut asked = request(Method::GET, "localhost", path);
        for (name, value) in headers {
            asked.headers_mut().append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let bearer = format!("Bearer {token}").parse().unwrap();
        asked.headers_mut().insert("authorization", bearer);
        let response = self.router().oneshot(asked).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body().into_data_stream()
    }
}

/// How long a watch goes on, and the last event.
pub(super) async fn end(watch: BodyDataStream) -> (Duration, Value) {
    let started = Instant::now();
    let chunks: Vec<_> = watch.map(Result::unwrap).collect().await;
    let text = String::from_utf8(chunks.concat()).unwrap();
    let last = text.lines().last().map(|it| serde_json::from_str(it).unwrap());
    (started.elapsed(), last.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_the_permission_is_taken_away() {
    let it = Controlled::start().await;
    it.judge.allows("alice", watch_pods());
    let watch = it.watch("alice-token", WATCH).await;
    it.judge.forbids("alice", &watch_pods());
    let (after, last) = end(watch).await;
    assert!(after <= Duration::from_secs(60), "{after:?}");
    assert_eq!(last["type"], "ERROR");
    assert_eq!(last["object"]["code"], 403);
    assert_eq!(
        last["object"]["message"],
        r#"pods is forbidden: User "alice" cannot watch resource "pods" in API group "" in the namespace "shop""#
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_the_token_is_gone_or_somebody_elses() {
    let it = Controlled::start().await;
    it.judge.allows("alice", watch_pods());
    let watch = it.watch("alice-token", WATCH).await;
    it.judge.forgets("alice-token");
    let (after, last) = end(watch).await;
    assert!(after <= Duration::from_secs(60), "{after:?}");
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(401)));

    it.judge.knows("alice-token", "alice", &[]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let watch = it.watch("alice-token", WATCH).await;
    it.judge.knows("alice-token", "mallory", &[]);
    let (_, last) = end(watch).await;
    assert!(last["object"]["message"].as_str().unwrap().contains(r#"User "mallory""#), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_watch_ends_too() {
    let it = Controlled::start().await;
    it.judge.allows("alice", watch_pods());
    let watch = it.watch("alice-token", WATCH).await;
    it.judge.forbids("alice", &watch_pods());
    let cluster = it.server.cluster().clone();
    let busy = tokio::spawn(async move {
        for number in 0.. {
            cluster.create(&pod("shop", &format!("busy-{number}"), "busy", "node-1")).unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let (after, last) = end(watch).await;
    busy.abort();
    assert!(after <= Duration::from_secs(60), "{after:?}");
    assert_eq!(last["object"]["code"], 403);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_equal_watches_ask_once() {
    let it = Controlled::start().await;
    it.judge.allows("alice", watch_pods());
    let mut watches = Vec::new();
    for _ in 0..1000 {
        let watch = it.watch("alice-token", WATCH).await;
        watches.push(tokio::spawn(end(watch)));
    }
    let asked = |it: &Controlled| it.judge.tokens().len() + it.judge.accesses().len();
    assert_eq!(asked(&it), 2);
    tokio::time::sleep(Duration::from_secs(55)).await;
    // One round of reviews is spread over ten seconds, for which an answer lasts.
    assert!((4..=6).contains(&asked(&it)), "{}", asked(&it));
    it.judge.forbids("alice", &watch_pods());
    for watch in watches {
        assert_eq!(watch.await.unwrap().1["object"]["code"], 403);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_outlives_failing_reviews_by_two_minutes() {
    let it = Controlled::start().await;
    it.judge.allows("alice", watch_pods());
    let watch = it.watch("alice-token", WATCH).await;
    it.judge.is_away(true);
    let (after, last) = end(watch).await;
    assert!((160..=180).contains(&after.as_secs()), "{after:?}");
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(503)));

    it.judge.is_away(false);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let watch = tokio::spawn(end(it.watch("alice-token", WATCH).await));
    it.judge.is_away(true);
    tokio::time::sleep(Duration::from_secs(140)).await;
    it.judge.is_away(false);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert!(!watch.is_finished(), "the reviews went on in time");
    watch.abort();
}

/// An endpoint that forwards watches to the API server.
async fn forwarding(options: Options) -> Controlled {
    let mut it = Controlled::start().await;
    let upstream = Upstream::of(&Config::new(it.server.url().parse().unwrap())).unwrap();
    it.endpoint = Endpoint::new(it.judge.client(&it.server), options).with_upstream(upstream);
    it
}

#[tokio::test]
async fn a_watch_that_the_api_server_answers_ends_with_the_permission_too() {
    let options = Options { strict: vec!["pods".to_owned()], ..Options::default() };
    let it = forwarding(options).await;
    it.judge.allows("alice", watch_pods());
    let watch = it.watch("alice-token", WATCH).await;
    // The socket is open: nothing but the reviews is waited for from now on.
    tokio::time::pause();
    it.judge.forbids("alice", &watch_pods());
    let (after, last) = end(watch).await;
    assert!(after <= Duration::from_secs(60), "{after:?}");
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(403)));
}

/// kube-apiserver ignores such headers, and goes by the caller's own rights.
#[tokio::test]
async fn a_watch_whose_headers_name_nobody_ends_with_the_callers_right() {
    let it = forwarding(Options::default()).await;
    for header in [("impersonate-user", ""), ("impersonate-foo", "x")] {
        it.judge.allows("alice", watch_pods());
        let watch = it.watch_with("alice-token", WATCH, &[header]).await;
        // The socket is open: nothing but the reviews is waited for from now on.
        tokio::time::pause();
        it.judge.forbids("alice", &watch_pods());
        let ended = tokio::time::timeout(Duration::from_secs(70), end(watch)).await;
        tokio::time::resume();
        let (_, last) = ended.unwrap_or_else(|_| panic!("{header:?}: it went on"));
        assert_eq!(last["object"]["code"], 403, "{last}");
    }
}

#[tokio::test]
async fn a_watch_in_another_name_ends_with_each_of_its_rights() {
    let it = forwarding(Options::default()).await;
    let as_jane =
        json!({"verb": "impersonate", "version": "v1", "resource": "users", "name": "jane"});
    let in_team =
        json!({"verb": "impersonate", "version": "v1", "resource": "groups", "name": "team"});
    let headers = [("impersonate-user", "jane"), ("impersonate-group", "team")];
    let rights = [("alice", as_jane), ("alice", in_team), ("jane", watch_pods())];
    for (user, right) in &rights {
        for (user, right) in &rights {
            it.judge.allows(user, right.clone());
        }
        let watch = it.watch_with("alice-token", WATCH, &headers).await;
        // The socket is open: nothing but the reviews is waited for from now on.
        tokio::time::pause();
        it.judge.forbids(user, right);
        let (after, last) = end(watch).await;
        tokio::time::resume();
        assert!(after <= Duration::from_secs(60), "{after:?}");
        assert_eq!(last["object"]["code"], 403, "{last}");
        let message = last["object"]["message"].as_str().unwrap();
        let named = [format!("User {user:?} cannot"), right["resource"].to_string()];
        assert!(named.iter().all(|it| message.contains(it)), "{message}");
    }
    // Constrained impersonation suffices.
    let constrained = |resource: &str, name: &str| {
        json!({"verb": "impersonate:user-info", "group": "authentication.k8s.io", "version": "v1",
            "resource": resource, "name": name})
    };
    let mut on = watch_pods();
    on["verb"] = "impersonate-on:user-info:watch".into();
    for right in [on, constrained("users", "jane"), constrained("groups", "team")] {
        it.judge.allows("alice", right);
    }
    it.judge.allows("jane", watch_pods());
    it.judge.forbids("alice", &rights[0].1);
    let watch = it.watch_with("alice-token", WATCH, &headers).await;
    tokio::time::pause();
    let goes_on = tokio::time::timeout(Duration::from_secs(200), end(watch)).await;
    assert!(goes_on.is_err(), "nothing was taken away");
}
