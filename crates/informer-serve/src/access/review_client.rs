//! Sends reviews to the API server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Request;
use kube::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answers::Places;
use super::caller::Identity;
use super::reviews::{Decision, Failure, Question};

/// How long the API server may take for a review.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum interval between two warnings about failed reviews.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

const TOKEN_REVIEWS: &str = "tokenreviews.authentication.k8s.io";
const ACCESS_REVIEWS: &str = "subjectaccessreviews.authorization.k8s.io";

/// A client for the two kinds of reviews. Cheap to clone.
#[derive(Clone)]
pub(super) struct ReviewClient {
    client: Client,
    /// The reviews that the API server does not let the endpoint create.
    missing: Arc<Mutex<BTreeMap<&'static str, String>>>,
    warned: Arc<Mutex<Option<Instant>>>,
}

impl ReviewClient {
    pub(super) fn new(client: Client) -> Self {
        Self { client, missing: Arc::default(), warned: Arc::default() }
    }

    /// The identity of a token; `None` if it is not accepted.
    pub(super) async fn review_token(
        &self,
        token: &SecretString,
        places: &Places,
    ) -> Result<Option<Arc<Identity>>, Failure> {
        let review = || {
            json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                "spec": { "token": token.expose_secret() },
            })
        };
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let status: TokenReviewStatus = self.create(TOKEN_REVIEWS, path, places, review).await?;
        let identity = status.user.filter(|_| status.authenticated).map(|it| {
            let User { username, uid, groups, extra } = it;
            Identity { user: username, uid, groups, extra }
        });
        Ok(identity.filter(|it| !it.is_anonymous()).map(Arc::new))
    }

    /// Reviews whether a caller has a permission.
    pub(super) async fn review_access(
        &self,
        question: &Question,
        places: &Places,
    ) -> Result<Decision, Failure> {
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
        let status: AccessReviewStatus = self.create(ACCESS_REVIEWS, path, places, review).await?;
        Ok(match status.allowed && !status.denied {
            true => Decision::Allowed,
            false => Decision::Refused { reason: status.reason },
        })
    }

    /// Creates a review and returns its status. Neither is logged. The review is built once it has
    /// a permit, so that waiting reviews use little memory.
    async fn create<S: DeserializeOwned>(
        &self,
        resource: &'static str,
        path: &str,
        places: &Places,
        review: impl FnOnce() -> Value + Send,
    ) -> Result<S, Failure> {
        let asking = async {
            let _place = places.acquire().await;
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
                // The text of other errors may quote the response.
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
            Failure
        })
    }

    /// Logs why callers cannot be looked up, but not for each of them.
    fn warn(&self, message: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|it| it.elapsed() >= WARN_INTERVAL) {
            *warned = Some(Instant::now());
            tracing::warn!("callers cannot be looked up: {message}");
        }
    }

    /// The reviews that the API server does not let the endpoint create: the resource, and what to
    /// do about it.
    pub(super) fn missing(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let client = ReviewClient::new(Client::try_from(unreachable).unwrap());
        let mut is_built = false;
        let review = || {
            is_built = true;
            Value::Null
        };
        let places = Places::none();
        let asked = Instant::now();
        let answer =
            client.create::<AccessReviewStatus>(ACCESS_REVIEWS, "/", &places, review).await;
        assert_eq!((answer.err(), asked.elapsed()), (Some(Failure), TIMEOUT));
        assert!(!is_built);
    }
}
