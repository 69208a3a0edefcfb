//! Limits the requests of each user: how many long requests are open, or how many other requests
//! are in flight.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::body::{Observed, Observer};
use crate::refusal::Refusal;

/// Counts requests by user. Long requests, forwarded requests and large responses each have a
/// counter of this type.
pub(crate) struct PerUser {
    max: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
    refused: Counter<u64, AtomicU64>,
}

/// One long request of a user: a watch, a followed log or an upgraded connection. It counts until
/// the last clone is dropped. The extensions of the request have a clone, for the task that takes
/// the connection over.
#[derive(Clone)]
pub(crate) struct Lasting {
    _of: Arc<OfUser>,
}

/// Marks the response to a long request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lasts;

/// Counts as one request of a user until it is dropped.
pub(crate) struct OfUser {
    user: String,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl PerUser {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, open: Arc::default(), refused: Counter::default() }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Watches, followed logs and upgraded connections refused because their users have too many";
        registry.register("serve_watches_refused", help, self.refused.clone());
    }

    /// Counts a long request of a user until the result is dropped.
    ///
    /// # Errors
    /// If the user has reached the limit.
    pub(crate) fn open(&self, user: &str) -> Result<Lasting, Refusal> {
        let Some(of) = self.begin(user) else {
            let message = format!(
                "you have {} watches, followed logs and upgraded connections open, as many as one user may",
                self.max
            );
            let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, message);
            refusal.retry_after = Some(10);
            return Err(refusal);
        };
        Ok(Lasting { _of: Arc::new(of) })
    }

    /// Counts a request of a user; `None` if the user has reached the limit.
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

impl OfUser {
    /// The number of open requests of the user, including this one.
    pub(crate) fn count(&self) -> usize {
        lock(&self.open).get(&self.user).copied().unwrap_or_default()
    }
}

impl Lasting {
    /// Counts the request until the end of the response.
    pub(crate) fn of(self, response: Response) -> Response {
        let mut response = response.map(|body| Body::new(Observed::new(body, self)));
        response.extensions_mut().insert(Lasts);
        response
    }
}

impl Observer for Lasting {}

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
        let response = watches.open("alice").unwrap().of(Response::new(Body::from("x")));
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
