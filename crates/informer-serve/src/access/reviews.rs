//! Reviews: the API server is asked who a caller is, and what they may do.
//!
//! Requests with unknown tokens, known callers and open watches have separate answers and places:
//! a flood of the first holds up none of the others.

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

/// How long an answer is believed.
pub(super) const LIFETIME: Duration = Duration::from_secs(10);
/// How long a review that failed is not tried again.
const FAILURE_LIFETIME: Duration = Duration::from_secs(1);
/// Of each kind of question.
const BOUNDS: Bounds = Bounds { entries: 4096, bytes: 16 << 20, asking: 4096, places: 16 };
/// Of questions about open watches. Each watch asks one at a time, so no other bound is needed, and
/// none of them is refused.
const OF_WATCHES: Bounds = Bounds { asking: usize::MAX, ..BOUNDS };
/// What is asked with more bytes is asked each time: a request may be as long as its caller wants.
const MAX_REMEMBERED_QUESTION: usize = 16 * 1024;
/// Longer tokens are nobody's, and are not sent to the API server.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Asks the API server, with the endpoint's own account, and remembers its answers for 10 s.
pub(crate) struct Reviews {
    /// About tokens that were nobody's, or are new; a quarter for each remote address.
    strangers: Tokens,
    /// About requests of known callers; a quarter for each user.
    requests: Questions,
    /// About open watches; a quarter for each user.
    watches: Questions,
    familiar: Arc<Familiar>,
    key: hmac::Key,
    client: ReviewClient,
}

/// By a hash with a key of this process: tokens are not kept.
type Tokens = Answers<TokenHash, Result<Option<Arc<Identity>>, Failure>>;

/// The two questions about callers that are known.
struct Questions {
    tokens: Tokens,
    access: Answers<Question, Result<Decision, Failure>>,
}

/// What a review is for.
#[derive(Debug, Clone)]
pub(super) enum Purpose {
    /// A request from an address, as far as it is known.
    Request(Option<IpAddr>),
    /// An open watch of a user.
    OpenWatch(Party),
}

/// Why a caller is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There are no credentials, or they are not accepted.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden(Box<Status>),
    /// The API server does not say; the reason is in the log.
    Unknown,
    /// Too many callers are being looked up. Never said of an open watch.
    Busy,
}

/// There is no answer to a review; the reason was logged, and is not for callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure;

/// Whether somebody may do something: all of both is the key.
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

    /// Whose token it is.
    ///
    /// # Errors
    /// If it is nobody's, or the API server does not say.
    ///
    /// # Cancel safety
    /// The question is asked to its end.
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
                            // Other strangers must not have it forgotten.
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

    /// Asks both questions about nobody, to find out whether they may be asked.
    pub(crate) async fn try_out(&self) {
        let token = Arc::new(SecretString::from("none"));
        let nobody = Identity { user: "system:anonymous".to_owned(), ..Identity::default() };
        let attributes = Attributes::of_path(&Method::GET, "/readyz");
        // Requests cannot take these places.
        let purpose = Purpose::OpenWatch(Party::from(""));
        drop(self.whose(&token, &purpose).await);
        drop(self.check(&Arc::new(nobody), &Arc::new(attributes), &purpose).await);
    }

    /// What the endpoint's account may not ask the API server, as far as it was tried; tries
    /// again.
    pub(crate) async fn missing_right(&self) -> Option<String> {
        if self.client.missing().is_empty() {
            return None;
        }
        self.try_out().await;
        self.client.missing().values().next().cloned()
    }
}

impl Refused {
    /// What the caller is told.
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

/// What one client can have all addresses of.
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
