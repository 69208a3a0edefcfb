//! How many watches each user has open, and how many requests on their way.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http_body::{Frame, SizeHint};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::refusal::Refusal;

/// Counts by user: open watches, or requests that are forwarded.
pub(crate) struct PerUser {
    max: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
    refused: Counter<u64, AtomicU64>,
}

/// One open watch of a user.
pub(crate) struct OpenWatch {
    _of: OfUser,
}

/// Counts as one open request of a user until it is dropped.
pub(crate) struct OfUser {
    user: String,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl PerUser {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, open: Arc::default(), refused: Counter::default() }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Watches refused because their users have too many";
        registry.register("serve_watches_refused", help, self.refused.clone());
    }

    /// Counts a watch of a user for as long as the result lives.
    ///
    /// # Errors
    /// If the user has as many as one may have.
    pub(crate) fn open(&self, user: &str) -> Result<OpenWatch, Refusal> {
        let Some(of) = self.begin(user) else {
            let message = format!("you have {} watches open, as many as one user may", self.max);
            let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, message);
            refusal.retry_after = Some(10);
            return Err(refusal);
        };
        Ok(OpenWatch { _of: of })
    }

    /// Counts one more of a user; `None` if the user has as many as one may have.
    pub(crate) fn begin(&self, user: &str) -> Option<OfUser> {
        let mut open = lock(&self.open);
        if open.get(user).copied().unwrap_or_default() >= self.max {
            self.refused.inc();
            return None;
        }
        *open.entry(user.to_owned()).or_default() += 1;
        Some(OfUser { user: user.to_owned(), open: Arc::clone(&self.open) })
    }
}

impl OpenWatch {
    /// Counts the watch until the end of a response.
    pub(crate) fn of(self, response: Response) -> Response {
        response.map(|body| Body::new(Counted { body, _open: self }))
    }
}

impl Drop for OfUser {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.user);
            }
        }
    }
}

struct Counted {
    body: Body,
    _open: OpenWatch,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_so_many_watches_and_no_more() {
        let watches = PerUser::new(2);
        let first = watches.open("alice").unwrap();
        let response = watches.open("alice").unwrap().of(Response::new(Body::empty()));
        let refusal = watches.open("alice").map(drop).unwrap_err();
        assert_eq!((refusal.code.as_u16(), refusal.retry_after), (429, Some(10)));
        assert_eq!(watches.refused.get(), 1);
        let bobs = watches.open("bob").unwrap();
        drop(response);
        let last = watches.open("alice").unwrap();
        drop((first, bobs, last));
        assert!(lock(&watches.open).is_empty(), "nothing is kept of users without watches");
    }
}
