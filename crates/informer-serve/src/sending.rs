//! Limits how many large responses are being sent, in total and to each user.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_body::Body as _;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::{Caller, Credential};
use crate::body::{Observed, Observer};
use crate::metrics::Origin;
use crate::per_user::{Lasts, OfUser, PerUser};
use crate::refusal::Refusal;

/// Maximum number of large responses that are being sent. The limit bounds memory: a slow reader
/// keeps some 165 KB of a list in memory, and all of a single object.
pub(crate) const MAX_SENDING: usize = 400;
/// Maximum number of them for each user.
pub(crate) const MAX_SENDING_TO_USER: usize = MAX_SENDING / 4;
/// How many of them a user gets beyond [`MAX_SENDING`], so that a few users with slow connections
/// cannot keep all others from reading.
pub(crate) const GUARANTEED: usize = 4;
/// Maximum size in bytes of a response that is not counted. Each stream buffers as much anyway.
const SMALL: u64 = 64 * 1024;

/// Counts the large responses that are being sent. Long requests and forwarded requests are left
/// out, because they have limits of their own.
pub(crate) struct Sending {
    places: Arc<Semaphore>,
    per_user: PerUser,
    refused: Counter<u64, AtomicU64>,
}

/// The permits of one response, held until its body ends or is dropped.
struct Place {
    /// `None` if the response was admitted beyond [`MAX_SENDING`], as one of [`GUARANTEED`].
    _of_all: Option<OwnedSemaphorePermit>,
    _of_user: OfUser,
}

impl Observer for Place {}

impl Sending {
    pub(crate) fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(MAX_SENDING)),
            per_user: PerUser::new(MAX_SENDING_TO_USER),
            refused: Counter::default(),
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Large answers refused because too many are being sent already";
        registry.register("serve_large_answers_refused", help, self.refused.clone());
    }

    /// Counts a response until its end, or replaces it with an error if the limit is reached. A
    /// response to a caller without access control is not counted.
    pub(crate) fn count(&self, caller: Option<&Caller>, response: Response) -> Response {
        let Some(caller) = caller.filter(|it| !matches!(it.credential, Credential::Own)) else {
            return response;
        };
        if !is_large(&response) || counts_elsewhere(&response) {
            return response;
        }
        match self.begin(&caller.user) {
            Some(place) => response.map(|body| Body::new(Observed::new(body, place))),
            None => {
                self.refused.inc();
                let message = "too many large answers are being sent, try again later";
                let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, message);
                refusal.retry_after = Some(1);
                refusal.into_response()
            }
        }
    }

    fn begin(&self, user: &str) -> Option<Place> {
        let of_user = self.per_user.begin(user)?;
        let of_all = Arc::clone(&self.places).try_acquire_owned().ok();
        let is_admitted = of_all.is_some() || of_user.count() <= GUARANTEED;
        is_admitted.then_some(Place { _of_all: of_all, _of_user: of_user })
    }
}

/// Whether a response may exceed [`SMALL`]. The size of a response that is still being written is
/// unknown, so it counts as large.
fn is_large(response: &Response) -> bool {
    response.body().size_hint().upper().is_none_or(|it| it > SMALL)
}

fn counts_elsewhere(response: &Response) -> bool {
    let extensions = response.extensions();
    extensions.get::<Lasts>().is_some() || extensions.get::<Origin>() == Some(&Origin::Upstream)
}
