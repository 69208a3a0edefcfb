//! The reviews of an API server whose rules a test sets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use informer_testkit::TestServer;
use serde_json::{Value, json};
use tower::{ServiceExt, service_fn};

/// Answers reviews; all else is answered by a test server.
#[derive(Clone, Default)]
pub(super) struct Judge(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    users: HashMap<String, Value>,
    /// Users, and the attributes that they are allowed: these and no others.
    allowed: Vec<(String, Value)>,
    tokens: Vec<Value>,
    accesses: Vec<Value>,
    is_away: bool,
    refuses: bool,
    /// Tokens that begin like this are never answered.
    held: Option<&'static str>,
}

/// What a list of Pods in a namespace asks.
pub(super) fn list_pods(namespace: &str) -> Value {
    json!({"verb": "list", "version": "v1", "resource": "pods", "namespace": namespace})
}

impl Judge {
    /// A client of the endpoint.
    pub(super) fn client(&self, server: &TestServer) -> kube::Client {
        let (judge, service) = (self.clone(), server.service());
        let answer = service_fn(move |mut request: Request<kube::client::Body>| {
            let own = HeaderValue::from_static("Bearer own-token");
            request.headers_mut().insert(AUTHORIZATION, own);
            let (judge, service) = (judge.clone(), service.clone());
            async move {
                let kind = match request.uri().path() {
                    "/apis/authentication.k8s.io/v1/tokenreviews" => "TokenReview",
                    "/apis/authorization.k8s.io/v1/subjectaccessreviews" => "SubjectAccessReview",
                    _ => return service.oneshot(request).await,
                };
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let review: Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(review["kind"], kind);
                if judge.holds(&review) {
                    std::future::pending::<()>().await;
                }
                let (code, answer) = judge.answer(review);
                let body = k8s_serve::Body::full(Bytes::from(answer.to_string()));
                let response = Response::builder().status(code).body(body).unwrap();
                Ok(response)
            }
        });
        kube::Client::new(answer, "default")
    }

    pub(super) fn knows(&self, token: &str, user: &str, groups: &[&str]) {
        let groups = [groups, &["system:authenticated"]].concat();
        self.knows_as(token, json!({"username": user, "groups": groups}));
    }

    pub(super) fn knows_as(&self, token: &str, user: Value) {
        self.lock().users.insert(token.to_owned(), user);
    }

    pub(super) fn forgets(&self, token: &str) {
        self.lock().users.remove(token);
    }

    pub(super) fn allows(&self, user: &str, attributes: Value) {
        self.lock().allowed.push((user.to_owned(), attributes));
    }

    pub(super) fn forbids(&self, user: &str, attributes: &Value) {
        self.lock().allowed.retain(|(of, it)| of != user || it != attributes);
    }

    /// Whether the server answers reviews with 500.
    pub(super) fn is_away(&self, is_away: bool) {
        self.lock().is_away = is_away;
    }

    /// Whether the endpoint's account may not create reviews.
    pub(super) fn refuses_to_review(&self, refuses: bool) {
        self.lock().refuses = refuses;
    }

    /// Never answers reviews of tokens that begin like this.
    pub(super) fn holds_back(&self, prefix: &'static str) {
        self.lock().held = Some(prefix);
    }

    fn holds(&self, review: &Value) -> bool {
        let held = self.lock().held;
        held.is_some_and(|it| review["spec"]["token"].as_str().is_some_and(|of| of.starts_with(it)))
    }

    /// The token reviews so far.
    pub(super) fn tokens(&self) -> Vec<Value> {
        self.lock().tokens.clone()
    }

    /// The access reviews so far.
    pub(super) fn accesses(&self) -> Vec<Value> {
        self.lock().accesses.clone()
    }

    fn answer(&self, mut review: Value) -> (u16, Value) {
        let mut state = self.lock();
        let failure = |code: u16, reason: &str| {
            (
                code,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "no", "reason": reason, "code": code}),
            )
        };
        if state.is_away {
            return failure(500, "InternalError");
        }
        if state.refuses {
            return failure(403, "Forbidden");
        }
        let spec = review["spec"].clone();
        if let Some(token) = spec["token"].as_str() {
            let user = state.users.get(token).cloned();
            state.tokens.push(spec);
            review["status"] = match user {
                Some(user) => json!({"authenticated": true, "user": user}),
                None => json!({"error": "invalid bearer token"}),
            };
        } else {
            let attributes = ["resourceAttributes", "nonResourceAttributes"].map(|it| &spec[it]);
            let allowed = state
                .allowed
                .iter()
                .any(|(user, allowed)| spec["user"] == **user && attributes.contains(&allowed));
            state.accesses.push(spec);
            review["status"] = json!({"allowed": allowed});
        }
        (201, review)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}
