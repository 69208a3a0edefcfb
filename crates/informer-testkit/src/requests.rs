//! What was asked: the log of requests, for assertions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_serve::{ResourcePath, Route, Verb};

/// How many requests are remembered.
const KEPT: usize = 100_000;

/// One request that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Its number, from 0.
    pub number: u64,
    /// What it does.
    pub verb: Verb,
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query, as it was written.
    pub query: String,
    /// The resource that the path names, if it does.
    pub resource: Option<ResourcePath>,
    /// The `Accept` header, empty if there was none.
    pub accept: String,
    /// The `Accept-Encoding` header, empty if there was none.
    pub accept_encoding: String,
    /// The `User-Agent` header, empty if there was none.
    pub user_agent: String,
    /// The user, as the bearer token says.
    pub user: String,
    /// The HTTP status of the answer; `None` while there is none, or if there never was one.
    pub status: Option<u16>,
    /// The `Content-Type` of the answer, empty while there is none.
    pub answered_in: String,
}

impl Request {
    /// The value of a query parameter.
    ///
    /// # Examples
    /// ```
    /// # fn show(request: &informer_testkit::Request) {
    /// assert_eq!(request.parameter("resourceVersion").as_deref(), Some("42"));
    /// # }
    /// ```
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        form_urlencoded::parse(self.query.as_bytes())
            .find(|(own, _)| own == name)
            .map(|(_, v)| v.into_owned())
    }

    /// Whether it is about a resource, named by its plural: `pods` or `deployments.apps`; the group
    /// may be left out.
    #[must_use]
    pub fn is_about(&self, resource: &str) -> bool {
        self.resource.as_ref().is_some_and(|path| names(path, resource))
    }
}

/// Whether `resource`, with or without its group, is what the path names.
pub(crate) fn names(path: &ResourcePath, resource: &str) -> bool {
    match resource.split_once('.') {
        None => path.resource == resource,
        Some((plural, group)) => path.resource == plural && path.group == group,
    }
}

/// A selection of the requests that arrived, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// Those with a verb.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.0.retain(|request| request.verb == verb);
        self
    }

    /// Those about a resource, see [`Request::is_about`].
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.0.retain(|request| request.is_about(resource));
        self
    }

    /// Those from a number on, to leave out what came before a certain moment.
    #[must_use]
    pub fn since(mut self, number: u64) -> Self {
        self.0.retain(|request| request.number >= number);
        self
    }

    /// The values of a query parameter, one for each request; empty where it is missing.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Vec<String> {
        self.0.iter().map(|request| request.parameter(name).unwrap_or_default()).collect()
    }
}

impl std::ops::Deref for Requests {
    type Target = [Request];

    fn deref(&self) -> &[Request] {
        &self.0
    }
}

impl IntoIterator for Requests {
    type Item = Request;
    type IntoIter = std::vec::IntoIter<Request>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The log that a server writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLog(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    requests: VecDeque<Request>,
    count: u64,
}

impl RequestLog {
    /// Notes a request that has arrived; returns its number.
    pub(crate) fn arrived(
        &self,
        parts: &http::request::Parts,
        route: &Route,
        verb: Verb,
        user: &str,
    ) -> u64 {
        let header = |name| {
            let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = log.count;
        log.count += 1;
        log.requests.push_back(Request {
            number,
            verb,
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            resource: match route {
                Route::Resource(path) => Some(path.clone()),
                _ => None,
            },
            accept: header(http::header::ACCEPT),
            accept_encoding: header(http::header::ACCEPT_ENCODING),
            user_agent: header(http::header::USER_AGENT),
            user: user.to_owned(),
            status: None,
            answered_in: String::new(),
        });
        if log.requests.len() > KEPT {
            log.requests.pop_front();
        }
        number
    }

    /// Notes how a request was answered.
    pub(crate) fn answered<B>(&self, number: u64, response: &http::Response<B>) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = log.count - log.requests.len() as u64;
        let at = number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(request) = at.and_then(|at| log.requests.get_mut(at)) {
            request.status = Some(response.status().as_u16());
            let value = response
                .headers()
                .get(http::header::CONTENT_TYPE)
                .and_then(|value| value.to_str().ok());
            value.unwrap_or_default().clone_into(&mut request.answered_in);
        }
    }

    pub(crate) fn all(&self) -> Requests {
        Requests(
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .requests
                .iter()
                .cloned()
                .collect(),
        )
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).requests.clear();
    }
}
