//! Documents of the API server that change seldom: discovery, OpenAPI, the version. They are its
//! own, byte for byte, and remembered for a moment.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::forward::{pick_answer_headers, send};
use crate::refusal::Refusal;

/// How long a document is believed before the server is asked whether it has changed. If it does
/// not answer, the document is believed on.
const FRESH: Duration = Duration::from_secs(5);
/// How much is remembered, in bytes.
const MAX_BYTES: usize = 32 << 20;
/// How many documents are remembered.
const MAX_DOCUMENTS: usize = 256;
/// How many bytes the headers in a key may have: what asks for more is not remembered.
const MAX_KEY_HEADERS: usize = 1024;
/// The parameters that documents depend on: the hash by which `/openapi/v3` names versions, how
/// long discovery may take, and whether JSON is indented. No others are passed on: each would make
/// another document.
const PARAMETERS: [&str; 3] = ["hash", "timeout", "pretty"];
/// The largest document that is passed on.
const MAX_DOCUMENT_BYTES: usize = 64 << 20;
/// How many documents are fetched at a time.
const MAX_FETCHES: usize = 8;
/// How long a request waits until its document can be fetched.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// How long the body of a document may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The documents that were asked for last.
pub(crate) struct Documents {
    client: Client,
    /// The one asked for last at the end.
    remembered: Mutex<VecDeque<Arc<Document>>>,
    fetches: Semaphore,
}

struct Document {
    key: Key,
    headers: HeaderMap,
    body: Bytes,
    at: Instant,
}

/// The user agents for whom API servers indent JSON begin so.
const READERS: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];
/// The user agent of all others.
const PROGRAM: &str = "informer-serve";

/// What an answer depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    path: String,
    accept: Vec<HeaderValue>,
    encoding: Vec<HeaderValue>,
    /// For whom JSON is indented, if it is.
    reader: Option<&'static str>,
}

impl Documents {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, remembered: Mutex::default(), fetches: Semaphore::new(MAX_FETCHES) }
    }

    /// The document at a path with its query.
    ///
    /// # Errors
    /// If the server does not answer, or too many documents are being fetched.
    pub(crate) async fn get(&self, path: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
        let all = |name| headers.get_all(name).iter().cloned().collect();
        let (accept, encoding, reader) = (all(ACCEPT), all(ACCEPT_ENCODING), reader(headers));
        let path = &with_known_parameters(path);
        let key = Key { path: path.clone(), accept, encoding, reader };
        let may_remember = key.is_ordinary();
        let look = || self.known(&key).filter(|_| may_remember);
        let is_fresh = |it: &&Arc<Document>| it.at.elapsed() < FRESH;
        let mut known = look();
        if let Some(fresh) = known.as_ref().filter(is_fresh) {
            return Ok(fresh.answer(headers));
        }
        let place = timeout(MAX_WAIT, self.fetches.acquire()).await;
        // Another request may have fetched it.
        known = look().or(known);
        let is_late = place.is_err();
        if let Some(known) = known.as_ref().filter(|it| is_late || is_fresh(it)) {
            return Ok(known.answer(headers));
        }
        if is_late {
            let message = "too many documents are being fetched, try again later";
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, message);
            return Err(Refusal { retry_after: Some(1), ..refusal });
        }
        let mut asked = headers.clone();
        asked.remove(IF_NONE_MATCH);
        asked.insert(USER_AGENT, HeaderValue::from_static(reader.unwrap_or(PROGRAM)));
        if let Some(etag) = known.as_ref().and_then(|it| it.headers.get(ETAG)) {
            asked.insert(IF_NONE_MATCH, etag.clone());
        }
        let sent = send(&self.client, Method::GET, path, &asked, Bytes::new()).await;
        let response = match (sent, &known) {
            (Ok(response), _) => response,
            // Without it nobody finds what the cache has.
            (Err(_), Some(known)) => return Ok(known.answer(headers)),
            (Err(refusal), None) => return Err(refusal),
        };
        let (parts, body) = response.into_parts();
        if let Some(known) = known.filter(|_| parts.status == StatusCode::NOT_MODIFIED) {
            let Document { key, headers: own, body, .. } = &*known;
            let at = Instant::now();
            let renewed =
                Document { key: key.clone(), headers: own.clone(), body: body.clone(), at };
            return Ok(self.remember(renewed).answer(headers));
        }
        let body = Limited::new(body, MAX_DOCUMENT_BYTES).collect();
        let body = match timeout(BODY_TIMEOUT, body).await {
            Ok(body) => body.map_err(|error| error.to_string()),
            Err(_) => Err(format!("it took longer than {} s", BODY_TIMEOUT.as_secs())),
        };
        let body = body.map_err(|error| {
            Refusal::unavailable(format!("the API server's answer broke off: {error}"))
        })?;
        let own = pick_answer_headers(&parts.headers);
        let document = Document { key, headers: own, body: body.to_bytes(), at: Instant::now() };
        if parts.status != StatusCode::OK {
            let mut response = document.answer(&HeaderMap::new());
            *response.status_mut() = parts.status;
            return Ok(response);
        }
        if !may_remember {
            return Ok(document.answer(headers));
        }
        Ok(self.remember(document).answer(headers))
    }

    fn known(&self, key: &Key) -> Option<Arc<Document>> {
        let mut remembered = self.lock();
        let at = remembered.iter().position(|it| it.key == *key)?;
        let document = remembered.remove(at)?;
        remembered.push_back(Arc::clone(&document));
        Some(document)
    }

    fn remember(&self, document: Document) -> Arc<Document> {
        let document = Arc::new(document);
        let mut remembered = self.lock();
        remembered.retain(|it| it.key != document.key);
        remembered.push_back(Arc::clone(&document));
        let mut total: usize = remembered.iter().map(|it| it.weight()).sum();
        while total > MAX_BYTES || remembered.len() > MAX_DOCUMENTS {
            let Some(oldest) = remembered.pop_front() else { break };
            total -= oldest.weight();
        }
        document
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Document>>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path with those parameters of its query that documents depend on, in one order.
fn with_known_parameters(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut known = form_urlencoded::Serializer::new(String::new());
    for name in PARAMETERS {
        // The first one counts, as for the API server.
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        if let Some((_, value)) = pairs.find(|(it, _)| it == name) {
            known.append_pair(name, &value);
        }
    }
    match known.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

fn reader(headers: &HeaderMap) -> Option<&'static str> {
    let agent = headers.get(USER_AGENT)?.to_str().ok()?;
    READERS.into_iter().find(|it| agent.starts_with(it))
}

impl Key {
    /// Whether it is one that many ask for: others are not worth a place.
    fn is_ordinary(&self) -> bool {
        self.header_bytes() <= MAX_KEY_HEADERS
    }

    fn header_bytes(&self) -> usize {
        self.accept.iter().chain(&self.encoding).map(HeaderValue::len).sum()
    }
}

impl Document {
    /// Bytes in memory, approximately.
    fn weight(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        self.body.len() + self.key.path.len() + self.key.header_bytes() + headers.sum::<usize>()
    }

    /// The whole document, or that it is what the client has.
    fn answer(&self, headers: &HeaderMap) -> Response {
        let etag = self.headers.get(ETAG);
        let is_known = etag.is_some_and(|etag| {
            let asked = headers.get_all(IF_NONE_MATCH).iter();
            asked.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(',')).any(|it| {
                let it = it.trim();
                it == "*" || it.trim_start_matches("W/").as_bytes() == etag.as_bytes()
            })
        });
        let body = if is_known { Body::empty() } else { Body::from(self.body.clone()) };
        let mut response = Response::new(body);
        *response.headers_mut() = self.headers.clone();
        if is_known {
            // There is no content that these would be about.
            for name in [CONTENT_TYPE, CONTENT_ENCODING] {
                response.headers_mut().remove(name);
            }
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        response
    }
}
