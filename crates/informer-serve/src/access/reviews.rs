//! Reviews: the API server is asked who a caller is, and what they may do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use k8s_serve::Status;
use kube::Client;
use ring::{hmac, rand};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::answers::{Answers, Bounds, Fresh, TooMany};
use super::attributes::Attributes;
use super::caller::Identity;

/// How long an answer is believed.
pub(super) const LIFETIME: Duration = Duration::from_secs(10);
/// How long a review that failed is not tried again.
const FAILURE_LIFETIME: Duration = Duration::from_secs(1);
/// How long the API server may take for a review.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Answers to each of the two questions.
const BOUNDS: Bounds = Bounds { entries: 4096, bytes: 16 << 20, asking: 1024 };
/// What is asked with more bytes is asked each time: a request may be as long as its caller wants.
const MAX_REMEMBERED_QUESTION: usize = 16 * 1024;
/// How many reviews are under way at a time.
const MAX_CONCURRENT: usize = 64;
/// How often a warning about reviews that fail is logged, at the most.
const WARN_INTERVAL: Duration = Duration::from_secs(10);
/// Longer tokens are nobody's, and are not sent to the API server.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

const TOKEN_REVIEWS: &str = "tokenreviews.authentication.k8s.io";
const ACCESS_REVIEWS: &str = "subjectaccessreviews.authorization.k8s.io";

/// Asks the API server, with the endpoint's own account, and remembers its answers for 10 s.
pub(crate) struct Reviews {
    /// By a hash with a key of this process: tokens are not kept.
    tokens: Answers<[u8; 32], Result<Option<Arc<Identity>>, Failure>>,
    access: Answers<Question, Result<Decision, Failure>>,
    key: hmac::Key,
    upstream: Upstream,
}

/// How the API server is asked; a cheap handle.
#[derive(Clone)]
struct Upstream {
    client: Client,
    places: Arc<Semaphore>,
    /// What the API server does not let the endpoint ask.
    missing: Arc<Mutex<BTreeMap<&'static str, String>>>,
    warned: Arc<Mutex<Option<Instant>>>,
}

/// Why a caller is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There are no credentials, or they are not accepted.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden(Box<Status>),
    /// The API server does not say.
    Unknown(Failure),
}

/// Why there is no answer to a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

/// Whether somebody may do something: all of both is the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    caller: Arc<Identity>,
    attributes: Arc<Attributes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Allowed,
    Refused { reason: String },
}

impl Reviews {
    pub(crate) fn new(client: Client) -> Self {
        let random = rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random);
        let upstream = Upstream {
            client,
            places: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            missing: Arc::default(),
            warned: Arc::default(),
        };
        Self {
            upstream,
            tokens: Answers::new(BOUNDS),
            access: Answers::new(BOUNDS),
            key: key.expect("the system has random numbers"),
        }
    }

    /// Whose token it is.
    ///
    /// # Errors
    /// If it is nobody's, or the API server does not say.
    ///
    /// # Cancel safety
    /// The question is asked to its end.
    pub(super) async fn whose(&self, token: &Arc<SecretString>) -> Result<Arc<Identity>, Refused> {
        let text = token.expose_secret();
        if text.len() > MAX_TOKEN_BYTES {
            return Err(Refused::Unauthenticated);
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(hmac::sign(&self.key, text.as_bytes()).as_ref());
        let answer = self.tokens.get(&hash, || {
            let (upstream, token) = (self.upstream.clone(), Arc::clone(token));
            async move {
                let answer = upstream.review_token(&token).await;
                let whose = answer.as_ref().ok().and_then(Option::as_ref);
                let weight = 128 + whose.map_or(0, |it| it.weight());
                Fresh { lifetime: lifetime(&answer), answer, weight }
            }
        });
        answer.await??.ok_or(Refused::Unauthenticated)
    }

    /// Whether a caller may do this.
    ///
    /// # Errors
    /// If not, or if the API server does not say.
    ///
    /// # Cancel safety
    /// The question is asked to its end.
    pub(super) async fn check(
        &self,
        caller: &Arc<Identity>,
        attributes: &Arc<Attributes>,
    ) -> Result<(), Refused> {
        if caller.is_privileged() {
            return Ok(());
        }
        let question = Question { caller: Arc::clone(caller), attributes: Arc::clone(attributes) };
        let decision = self.access.get(&question, || {
            let (upstream, question) = (self.upstream.clone(), question.clone());
            async move {
                let answer = upstream.review_access(&question).await;
                let asked = question.attributes.weight();
                let lifetime = match asked <= MAX_REMEMBERED_QUESTION {
                    true => lifetime(&answer),
                    false => Duration::ZERO,
                };
                Fresh { lifetime, answer, weight: 256 + question.caller.weight() + asked }
            }
        });
        match decision.await?? {
            Decision::Allowed => Ok(()),
            Decision::Refused { reason } => {
                Err(Refused::Forbidden(Box::new(attributes.forbidden(caller, &reason))))
            }
        }
    }

    /// Asks both questions about nobody, to find out whether they may be asked.
    pub(crate) async fn try_out(&self) {
        let token = Arc::new(SecretString::from("none"));
        let nobody = Identity { user: "system:anonymous".to_owned(), ..Identity::default() };
        let attributes = Attributes::of_path(&Method::GET, "/readyz");
        drop(self.whose(&token).await);
        drop(self.check(&Arc::new(nobody), &Arc::new(attributes)).await);
    }

    /// What the endpoint's account may not ask the API server, as far as it was tried; tries
    /// again.
    pub(crate) async fn missing_right(&self) -> Option<String> {
        if self.upstream.missing().is_empty() {
            return None;
        }
        self.try_out().await;
        self.upstream.missing().values().next().cloned()
    }
}

impl Refused {
    /// What the caller is told.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Unauthenticated => Status::new(401, "Unauthorized", "Unauthorized"),
            Self::Forbidden(status) => (**status).clone(),
            Self::Unknown(Failure(message)) => {
                let mut status = Status::new(503, "ServiceUnavailable", message.clone());
                status.details.retry_after_seconds = 1;
                status
            }
        }
    }
}

impl From<TooMany> for Refused {
    fn from(_: TooMany) -> Self {
        Self::Unknown(Failure("too many callers are being looked up".to_owned()))
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Unknown(failure)
    }
}

impl Upstream {
    async fn review_token(&self, token: &SecretString) -> Result<Option<Arc<Identity>>, Failure> {
        let review = || {
            json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                "spec": { "token": token.expose_secret() },
            })
        };
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let status: TokenReviewStatus = self.create(TOKEN_REVIEWS, path, review).await?;
        let identity = status.user.filter(|_| status.authenticated).map(|it| {
            let User { username, uid, groups, extra } = it;
            Identity { user: username, uid, groups, extra }
        });
        Ok(identity.filter(|it| !it.is_anonymous()).map(Arc::new))
    }

    async fn review_access(&self, question: &Question) -> Result<Decision, Failure> {
        let review = || {
            let Identity { user, groups, uid, extra } = &*question.caller;
            let (field, attributes) = question.attributes.to_review();
            let mut spec = json!({ "user": user, "groups": groups, "uid": uid, "extra": extra });
            spec[field] = attributes;
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
            })
        };
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let status: AccessReviewStatus = self.create(ACCESS_REVIEWS, path, review).await?;
        Ok(match status.allowed && !status.denied {
            true => Decision::Allowed,
            false => Decision::Refused { reason: status.reason },
        })
    }

    /// Creates a review and returns its status. Neither is logged. The review is built once there
    /// is a place for it.
    async fn create<S: DeserializeOwned>(
        &self,
        resource: &'static str,
        path: &str,
        review: impl FnOnce() -> Value + Send,
    ) -> Result<S, Failure> {
        let asking = async {
            let _place = self.places.acquire().await;
            let body = serde_json::to_vec(&review()).map_err(|error| error.to_string())?;
            let request = Request::post(path).header("content-type", "application/json");
            let request = request.body(body).map_err(|error| error.to_string())?;
            match self.client.request::<Review<S>>(request).await {
                Ok(review) => {
                    self.missing().remove(resource);
                    Ok(review.status)
                }
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    let message = format!(
                        "this endpoint's account may not create {resource}: bind the ClusterRole system:auth-delegator to it"
                    );
                    self.missing().insert(resource, message.clone());
                    Err(message)
                }
                Err(kube::Error::Api(status)) => Err(format!(
                    "the API server does not review who asks: {} ({})",
                    status.reason, status.code
                )),
                // The text of others may quote the answer.
                Err(kube::Error::SerdeError(_)) => {
                    Err("the API server's answer to a review cannot be read".to_owned())
                }
                Err(error) => Err(format!("the API server does not answer a review: {error}")),
            }
        };
        let answer = match tokio::time::timeout(TIMEOUT, asking).await {
            Ok(answer) => answer,
            Err(_) => {
                Err(format!("the API server did not answer a review in {} s", TIMEOUT.as_secs()))
            }
        };
        answer.map_err(|message| {
            self.warn(&message);
            Failure(message)
        })
    }

    /// Says why callers cannot be looked up, and not again for each of them.
    fn warn(&self, message: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|it| it.elapsed() >= WARN_INTERVAL) {
            *warned = Some(Instant::now());
            tracing::warn!("callers cannot be looked up: {message}");
        }
    }

    fn missing(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lifetime<A>(answer: &Result<A, Failure>) -> Duration {
    if answer.is_ok() { LIFETIME } else { FAILURE_LIFETIME }
}

#[derive(Deserialize)]
struct Review<S> {
    status: S,
}

#[derive(Deserialize)]
struct TokenReviewStatus {
    #[serde(default)]
    authenticated: bool,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct AccessReviewStatus {
    #[serde(default)]
    allowed: bool,
    #[serde(default)]
    denied: bool,
    #[serde(default)]
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_review_without_a_place_is_not_built() {
        let unreachable = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let reviews = Reviews::new(Client::try_from(unreachable).unwrap());
        let upstream = Upstream { places: Arc::new(Semaphore::new(0)), ..reviews.upstream };
        let mut is_built = false;
        let review = || {
            is_built = true;
            Value::Null
        };
        let answer = upstream.create::<AccessReviewStatus>(ACCESS_REVIEWS, "/", review).await;
        assert!(answer.is_err_and(|it| it.0.contains("did not answer")));
        assert!(!is_built);
    }
}
