//! Reviews: the API server authenticates callers and decides what they may do.
//!
//! Unknown tokens, requests of known callers, and open watches have separate caches and permits, so
//! that a flood of unknown tokens delays neither of the others.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use k8s_serve::Status;
use kube::Client;
use ring::{hmac, rand};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use super::answers::{Answers, Bounds, Fresh, Party, TooMany};
use super::attributes::Attributes;
use super::caller::Identity;
use super::familiar::{Familiar, TokenHash};
use super::review_client::ReviewClient;

/// How long the result of a review is cached.
pub(super) const LIFETIME: Duration = Duration::from_secs(10);
/// How long a failed review is cached, so that it is not repeated at once.
const FAILURE_LIFETIME: Duration = Duration::from_secs(1);
/// The limits of each kind of question about requests.
const BOUNDS: Bounds = Bounds { entries: 4096, bytes: 16 << 20, asking: 4096, places: 16 };
/// The limits of questions about open watches. Each watch sends one question at a time, so no other
/// limit is needed, and no question is refused.
const OF_WATCHES: Bounds = Bounds { asking: usize::MAX, ..BOUNDS };
/// Questions with more bytes are not cached, because callers choose the length of their requests.
const MAX_REMEMBERED_QUESTION: usize = 16 * 1024;
/// Longer tokens are refused without a review.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Creates reviews with the endpoint's own account, and caches their results for 10 s.
pub(crate) struct Reviews {
    /// Reviews of tokens that are unknown or were refused. Each remote address gets at most a
    /// quarter.
    strangers: Tokens,
    /// Reviews of requests of known callers. Each user gets at most a quarter.
    requests: Questions,
    /// Reviews of open watches. Each user gets at most a quarter.
    watches: Questions,
    familiar: Arc<Familiar>,
    key: hmac::Key,
    client: ReviewClient,
}

/// The key is a hash with a secret of this process, so that no tokens are kept in memory.
type Tokens = Answers<TokenHash, Result<Option<Arc<Identity>>, Failure>>;

/// The two kinds of reviews of known callers.
struct Questions {
    tokens: Tokens,
    access: Answers<Question, Result<Decision, Failure>>,
}

/// The purpose of a review, which selects its cache and limits.
#[derive(Debug, Clone)]
pub(super) enum Purpose {
    /// A request from this address, if the address is known.
    Request(Option<IpAddr>),
    /// An open watch of a user.
    OpenWatch(Party),
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The request has no credentials, or they are not accepted.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden(Box<Status>),
    /// The review failed; the reason is in the log.
    Unknown,
    /// Too many reviews are in flight. Does not happen for open watches.
    Busy,
}

/// A review failed. The reason was logged; callers must not see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure;

/// The key of a permission in the cache: the whole identity and all attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) caller: Arc<Identity>,
    pub(super) attributes: Arc<Attributes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    Allowed,
    Refused { reason: String },
}

impl Reviews {
    pub(crate) fn new(client: Client) -> Self {
        let random = rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random);
        Self {
            client: ReviewClient::new(client),
            strangers: Answers::new(BOUNDS),
            requests: Questions::new(BOUNDS),
            watches: Questions::new(OF_WATCHES),
            familiar: Arc::new(Familiar::new(BOUNDS.entries)),
            key: key.expect("the system has random numbers"),
        }
    }

    /// The identity of a token.
    ///
    /// # Errors
    /// If the token is not accepted, or the review fails.
    ///
    /// # Cancel safety
    /// The review stays in flight, and its result is cached.
    pub(super) async fn whose(
        &self,
        token: &Arc<SecretString>,
        purpose: &Purpose,
    ) -> Result<Arc<Identity>, Refused> {
        let text = token.expose_secret();
        if text.len() > MAX_TOKEN_BYTES {
            return Err(Refused::Unauthenticated);
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(hmac::sign(&self.key, text.as_bytes()).as_ref());
        let (tokens, asker, is_new) = match (purpose, self.familiar.user(&hash)) {
            (Purpose::OpenWatch(user), _) => (&self.watches.tokens, Arc::clone(user), false),
            (Purpose::Request(_), Some(user)) => (&self.requests.tokens, user, false),
            (Purpose::Request(address), None) => (&self.strangers, network(*address), true),
        };
        let answer = tokens.get(&asker, &hash, |places| {
            let (client, token) = (self.client.clone(), Arc::clone(token));
            let (familiar, known) = (Arc::clone(&self.familiar), self.requests.tokens.clone());
            async move {
                let asked = Instant::now();
                let answer = client.review_token(&token, &places).await;
                let whose = answer.as_ref().ok().and_then(Option::as_ref);
                let weight = 128 + whose.map_or(0, |it| it.weight());
                let mut fresh = Fresh { lifetime: lifetime(&answer), answer, weight };
                match &fresh.answer {
                    Ok(Some(identity)) => {
                        let user = Party::from(identity.user.as_str());
                        if is_new {
                            // The result moves to the cache of known callers, from which unknown
                            // tokens cannot evict it.
                            known.remember(&user, &hash, fresh.clone(), asked);
                            fresh.lifetime = Duration::ZERO;
                        }
                        familiar.note(hash, &user);
                    }
                    Ok(None) => familiar.forget(&hash),
                    Err(Failure) => {}
                }
                fresh
            }
        });
        answer.await??.ok_or(Refused::Unauthenticated)
    }

    /// Checks that a caller may do this.
    ///
    /// # Errors
    /// If the caller may not do this, or if the review fails.
    ///
    /// # Cancel safety
    /// The review stays in flight, and its result is cached.
    pub(super) async fn check(
        &self,
        caller: &Arc<Identity>,
        attributes: &Arc<Attributes>,
        purpose: &Purpose,
    ) -> Result<(), Refused> {
        if caller.is_privileged() {
            return Ok(());
        }
        let question = Question { caller: Arc::clone(caller), attributes: Arc::clone(attributes) };
        let (access, asker) = match purpose {
            Purpose::Request(_) => (&self.requests.access, Party::from(caller.user.as_str())),
            Purpose::OpenWatch(user) => (&self.watches.access, Arc::clone(user)),
        };
        let decision = access.get(&asker, &question, |places| {
            let (client, question) = (self.client.clone(), question.clone());
            async move {
                let answer = client.review_access(&question, &places).await;
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

    /// Creates one review of each kind, about the anonymous user, to find out whether the
    /// endpoint's account may create them.
    pub(crate) async fn try_out(&self) {
        let token = Arc::new(SecretString::from("none"));
        let nobody = Identity { user: "system:anonymous".to_owned(), ..Identity::default() };
        let attributes = Attributes::of_path(&Method::GET, "/readyz");
        // Requests cannot use up the permits of open watches.
        let purpose = Purpose::OpenWatch(Party::from(""));
        drop(self.whose(&token, &purpose).await);
        drop(self.check(&Arc::new(nobody), &Arc::new(attributes), &purpose).await);
    }

    /// Describes a kind of review that the endpoint's account may not create, if one has failed for
    /// this reason. Tries again first.
    pub(crate) async fn missing_right(&self) -> Option<String> {
        if self.client.missing().is_empty() {
            return None;
        }
        self.try_out().await;
        self.client.missing().values().next().cloned()
    }
}

impl Refused {
    /// The status in the response.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Unauthenticated => Status::new(401, "Unauthorized", "Unauthorized"),
            Self::Forbidden(status) => (**status).clone(),
            Self::Unknown => {
                let message = "callers cannot be looked up now, try again later";
                again_soon(Status::new(503, "ServiceUnavailable", message))
            }
            Self::Busy => {
                let message = "too many callers are being looked up, try again later";
                again_soon(Status::new(429, "TooManyRequests", message))
            }
        }
    }
}

fn again_soon(mut status: Status) -> Status {
    status.details.retry_after_seconds = 1;
    status
}

impl From<TooMany> for Refused {
    fn from(_: TooMany) -> Self {
        Self::Busy
    }
}

impl From<Failure> for Refused {
    fn from(_: Failure) -> Self {
        Self::Unknown
    }
}

impl Questions {
    fn new(bounds: Bounds) -> Self {
        Self { tokens: Answers::new(bounds), access: Answers::new(bounds) }
    }
}

/// A prefix of which one client may have all addresses.
fn network(address: Option<IpAddr>) -> Party {
    let Some(address) = address else { return Party::from("") };
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() >> 64 << 64;
            Ipv6Addr::from_bits(bits).to_string().into()
        }
        address @ IpAddr::V4(_) => address.to_string().into(),
    }
}

fn lifetime<A>(answer: &Result<A, Failure>) -> Duration {
    if answer.is_ok() { LIFETIME } else { FAILURE_LIFETIME }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_one_client_can_have_are_one_asker() {
        let network = |address: &str| network(Some(address.parse().unwrap()));
        assert_eq!(network("2001:db8:1:2:3::4"), network("2001:db8:1:2::"));
        assert_ne!(network("2001:db8:1:2::"), network("2001:db8:1:3::"));
        assert_eq!(network("::ffff:10.0.0.7"), network("10.0.0.7"));
        assert_ne!(network("10.0.0.7"), network("10.0.0.8"));
    }
}
