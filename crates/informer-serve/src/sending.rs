//! How many large answers are being sent to each user, and to all.

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

/// How many large answers are sent at a time: a slow reader keeps some 165 KB of a list in memory,
/// and all of one object.
pub(crate) const MAX_SENDING: usize = 400;
/// How many of them to one user.
pub(crate) const MAX_SENDING_TO_USER: usize = MAX_SENDING / 4;
/// What an answer may have without being counted, in bytes: that much is buffered of any stream.
const SMALL: u64 = 64 * 1024;

/// Counts the large answers that are being sent. What counts elsewhere is left out: what lasts, and
/// what is forwarded.
pub(crate) struct Sending {
    places: Arc<Semaphore>,
    per_user: PerUser,
    refused: Counter<u64, AtomicU64>,
}

/// The place of one answer, until its body ends or is dropped.
struct Place {
    _of_all: OwnedSemaphorePermit,
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

    /// Counts an answer until its end, or replaces it with a refusal. A caller of an address without
    /// access control is not counted.
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
        let of_all = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Place { _of_all: of_all, _of_user: of_user })
    }
}

/// Whether it may hold more than is buffered of any answer; it may if it is still being written.
fn is_large(response: &Response) -> bool {
    response.body().size_hint().upper().is_none_or(|it| it > SMALL)
}

fn counts_elsewhere(response: &Response) -> bool {
    let extensions = response.extensions();
    extensions.get::<Lasts>().is_some() || extensions.get::<Origin>() == Some(&Origin::Upstream)
}
