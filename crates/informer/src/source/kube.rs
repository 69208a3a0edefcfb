//! An API server as the source, through `kube::Client`.

mod body;
mod format;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::StreamExt;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, HeaderName,
    RETRY_AFTER,
};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use informer_core::wire::{AnswerError, FrameError, MediaType, Status};
use kube::Client;
use kube::client::Body;

use super::{Failure, FailureKind, ListRequest, ListStream, ListWatch};
use super::{WatchRequest, WatchStream};
use crate::discovery::Discovery;
use crate::error::{connection_error, quoted_answer};
use crate::resource::group_version_path;
use crate::{Resource, Scope};
use body::{list_stream, watch_stream};
use format::Accepted;

pub use format::WireFormat;

/// How much of an error's body is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long an error waits for discovery to say which resource may be meant.
const ADVICE_TIMEOUT: Duration = Duration::from_secs(2);

/// Lists and watches one resource in one scope on an API server.
///
/// Requests go through [`Client::send`], so authentication, TLS, proxies and tracing are the
/// client's. The client's own retries are kept out: how failures are spaced and told is the
/// reflector's business (G28, G31).
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "a client has nothing to show")]
pub struct KubeSource {
    client: Client,
    target: Arc<Target>,
    /// Protobuf was refused, or could not be read.
    json_only: Arc<AtomicBool>,
}

struct Target {
    resource: Resource,
    scope: Scope,
    projection: Projection,
    compression: ListCompression,
    format: WireFormat,
    max_object_bytes: usize,
}

/// How much of each object the server shall send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Projection {
    /// The whole object.
    #[default]
    Whole,
    /// Its metadata only, as `PartialObjectMetadata`.
    Metadata,
}

/// Whether the server may compress lists. Watches are never compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ListCompression {
    /// Lists are sent as they are: the cheapest for client and server on a fast network.
    #[default]
    Identity,
    /// Lists may be compressed, if the client was built to decompress (kube's feature `gzip`):
    /// worth it on slow links.
    ClientDefault,
}

impl KubeSource {
    /// A source of whole objects.
    #[must_use]
    pub fn new(client: Client, resource: Resource, scope: Scope) -> Self {
        let target = Target {
            resource,
            scope,
            projection: Projection::Whole,
            compression: ListCompression::Identity,
            format: WireFormat::Auto,
            max_object_bytes: informer_core::wire::DEFAULT_MAX_OBJECT_BYTES,
        };
        Self { client, target: Arc::new(target), json_only: Arc::default() }
    }

    /// Asks for whole objects or for metadata only.
    #[must_use]
    pub fn projection(mut self, projection: Projection) -> Self {
        Arc::make_mut(&mut self.target).projection = projection;
        self
    }

    /// Whether lists may be compressed.
    #[must_use]
    pub fn list_compression(mut self, compression: ListCompression) -> Self {
        Arc::make_mut(&mut self.target).compression = compression;
        self
    }

    /// In which encoding objects are asked for. Default: protobuf where there is, JSON elsewhere.
    #[must_use]
    pub fn wire_format(mut self, format: WireFormat) -> Self {
        Arc::make_mut(&mut self.target).format = format;
        self
    }

    /// The most bytes that one object may have. Default: 16 MiB.
    #[must_use]
    pub fn max_object_bytes(mut self, bytes: usize) -> Self {
        Arc::make_mut(&mut self.target).max_object_bytes = bytes;
        self
    }

    /// Asks for objects in the encodings on offer; the answer says in which they are.
    async fn open(&self, verb: &str, query: &str) -> Result<(MediaType, Body), Failure> {
        let Target { scope, .. } = &*self.target;
        scope
            .check()
            .map_err(|error| self.target.refused(verb, FailureKind::Invalid, &error.to_string()))?;
        loop {
            let accepted = Accepted::of(&self.target, self.json_only.load(Ordering::Relaxed))
                .map_err(|why| self.target.refused(verb, FailureKind::Invalid, &why))?;
            let list = if verb == "list" { "List" } else { "" };
            let path = self.target.resource.path(self.target.scope.namespace.as_deref());
            let mut request = Request::get(format!("{path}?{query}"))
                .header(ACCEPT, accepted.header(self.target.projection, list));
            // Servers from 1.37 on compress watches, frame by frame, unless told not to.
            if verb == "watch" || self.target.compression == ListCompression::Identity {
                request = request.header(ACCEPT_ENCODING, "identity");
            }
            let request = request.body(()).map_err(|error| self.transport(verb, &error))?;
            let response = self.send(verb, request).await?;
            // Not every proxy that refuses protobuf sees that JSON would do as well.
            if accepted.gives_way() && is_refused_for_its_form(response.status()) {
                self.json_only.store(true, Ordering::Relaxed);
                continue;
            }
            let response = match self.accepted(verb, response).await {
                Err(mut failure) if failure.kind == FailureKind::NotFound => {
                    failure.message.push_str(&self.what_was_meant().await);
                    return Err(failure);
                }
                answer => answer?,
            };
            let media_type = self.media_type(verb, response.headers(), accepted.media_types())?;
            return Ok((media_type, response.into_body()));
        }
    }

    async fn send(&self, verb: &str, request: Request<()>) -> Result<Response<Body>, Failure> {
        let body =
            unretried_body(Bytes::new()).await.map_err(|error| self.transport(verb, &error))?;
        let request = request.map(|()| body);
        self.client.send(request).await.map_err(|error| self.transport(verb, &error))
    }

    /// The answer, if it is one that can be read.
    async fn accepted(
        &self,
        verb: &str,
        response: Response<Body>,
    ) -> Result<Response<Body>, Failure> {
        match response.status().is_success() {
            true => Ok(response),
            false => Err(self.refusal(verb, response).await),
        }
    }

    /// How the body of this answer is encoded.
    fn media_type(
        &self,
        verb: &str,
        headers: &HeaderMap,
        accepted: &[MediaType],
    ) -> Result<MediaType, Failure> {
        let text =
            |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("not ASCII"));
        // What the client itself decompresses does not say so any more.
        let answer = MediaType::of_answer(text(CONTENT_TYPE), text(CONTENT_ENCODING), accepted);
        answer.map_err(|error| {
            let hint = match (&error, self.target.compression) {
                (AnswerError::Encoded { .. }, ListCompression::ClientDefault) if verb == "list" => {
                    " which the client was not built to decode; build kube with its feature gzip"
                }
                (AnswerError::Encoded { .. }, _) => {
                    " although that was not asked for; a proxy in between must leave it alone"
                }
                (_, _) => "",
            };
            self.target.refused(verb, FailureKind::Malformed, &format!("{error}{hint}"))
        })
    }

    /// What an answer other than 2xx means.
    async fn refusal(&self, verb: &str, response: Response<Body>) -> Failure {
        let code = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let mut body = Vec::new();
        let mut chunks = response.into_body().into_data_stream();
        while let Some(Ok(chunk)) = chunks.next().await {
            body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR_BYTES - body.len())]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
        let mut status = Status::from_response(code.as_u16(), &body);
        if status.message.is_empty() {
            status.message = quoted_answer(code, &body);
        }
        let mut failure = Failure::of_status(&status, self.target.message(verb, &status));
        failure.retry_after = retry_after.or(failure.retry_after);
        failure
    }

    /// For a resource that the server does not serve: which one the program may mean.
    async fn what_was_meant(&self) -> String {
        let Resource { group, version, plural, kind, .. } = &self.target.resource;
        let fetch = Discovery::fetch_group_version_once(&self.client, group, version);
        let Ok(Ok(known)) = tokio::time::timeout(ADVICE_TIMEOUT, fetch).await else {
            return String::new();
        };
        let Err(unknown) = known.require(group, version, plural) else { return String::new() };
        let same_kind = known.resources().iter().find(|it| it.resource.kind == *kind);
        let meant = same_kind
            .map(|it| it.resource.to_string())
            .or_else(|| unknown.suggestions.into_iter().next());
        meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
    }

    async fn document(&self, path: &str) -> Result<Document, Failure> {
        let request = Request::get(path)
            .header(ACCEPT, "application/json")
            .body(())
            .map_err(|error| self.transport("discover", &error))?;
        let response = self.send("discover", request).await?;
        let response = self.accepted("discover", response).await?;
        self.media_type("discover", response.headers(), &[MediaType::Json])?;
        let body = response.into_body().collect_bytes().await;
        let body = body.map_err(|error| self.transport("discover", &error))?;
        serde_json::from_slice(&body).map_err(|_| self.target.no_discovery())
    }

    /// A connection that could not be made or broke.
    fn transport(&self, verb: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
        let io = std::iter::successors(Some(error), |error| error.source())
            .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
            .last();
        let kind = match io.map(std::io::Error::kind) {
            Some(std::io::ErrorKind::ConnectionRefused) => FailureKind::Refused,
            Some(std::io::ErrorKind::TimedOut) => FailureKind::Timeout,
            _ => FailureKind::Transport,
        };
        Failure::new(kind, format!("{verb} {}: {}", self.target, connection_error(error)))
    }

    /// The body of an answer turned out to be malformed. What is not built in is asked for in JSON
    /// from now on.
    fn malformed(&self, verb: &str, error: &FrameError) -> Failure {
        let hint = match (error, self.target.format) {
            (FrameError::UnknownKind { .. }, WireFormat::Auto) => {
                self.json_only.store(true, Ordering::Relaxed);
                "; it is asked for in JSON from now on"
            }
            (FrameError::UnknownKind { .. }, WireFormat::Protobuf) => {
                "; ask for it with WireFormat::Auto or WireFormat::Json"
            }
            _ => "",
        };
        self.target.refused(verb, FailureKind::Malformed, &format!("{error}{hint}"))
    }
}

impl ListWatch for KubeSource {
    async fn list(&self, request: &ListRequest) -> Result<ListStream, Failure> {
        let (media_type, body) = self.open("list", &self.target.list_query(request)).await?;
        Ok(ListStream(list_stream(self.clone(), media_type, body)))
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream, Failure> {
        let (media_type, body) = self.open("watch", &self.target.watch_query(request)).await?;
        Ok(WatchStream(watch_stream(self.clone(), media_type, body)))
    }

    async fn exists(&self) -> Result<bool, Failure> {
        let Resource { group, version, plural, .. } = &self.target.resource;
        let root = if group.is_empty() { "/api" } else { "/apis" };
        let not_found =
            match self.document(&format!("{root}/{}", group_version_path(group, version))).await {
                Ok(Document::Resources { resources }) => {
                    return Ok(resources.iter().any(|candidate| candidate.name == *plural));
                }
                Ok(_) => return Err(self.target.no_discovery()),
                Err(failure) if failure.kind == FailureKind::NotFound => failure,
                Err(failure) => return Err(failure),
            };
        // The server does not have the group and version, or it is not the server that answers: a
        // proxy that has lost it says 404 to everything. The list of groups tells.
        let is_listed = match self.document(root).await? {
            Document::CoreVersions { versions } => versions.contains(version),
            Document::Groups { groups } => groups.iter().any(|candidate| {
                candidate.name == *group
                    && candidate.versions.iter().any(|it| it.version == *version)
            }),
            Document::Resources { .. } => return Err(self.target.no_discovery()),
        };
        if is_listed { Err(not_found) } else { Ok(false) }
    }
}

/// A document of discovery, as far as it is needed.
#[derive(serde::Deserialize)]
#[serde(tag = "kind")]
enum Document {
    /// Of `/api/v1` or `/apis/{group}/{version}`.
    #[serde(rename = "APIResourceList")]
    Resources {
        #[serde(default)]
        resources: Vec<Named>,
    },
    /// Of `/api`.
    #[serde(rename = "APIVersions")]
    CoreVersions {
        #[serde(default)]
        versions: Vec<String>,
    },
    /// Of `/apis`.
    #[serde(rename = "APIGroupList")]
    Groups {
        #[serde(default)]
        groups: Vec<Group>,
    },
}

#[derive(serde::Deserialize)]
struct Named {
    name: String,
}

#[derive(serde::Deserialize)]
struct Group {
    name: String,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(serde::Deserialize)]
struct GroupVersion {
    version: String,
}

impl Target {
    fn list_query(&self, request: &ListRequest) -> String {
        let mut query = self.selectors();
        if let Some(limit) = request.limit {
            query.append_pair("limit", &limit.to_string());
        }
        if let Some(token) = &request.continue_token {
            query.append_pair("continue", token);
        }
        if !request.version.is_unset() {
            query.append_pair("resourceVersion", &request.version.to_string());
        }
        if let Some(version_match) = request.version_match {
            query.append_pair("resourceVersionMatch", version_match.as_str());
        }
        query.finish()
    }

    fn watch_query(&self, request: &WatchRequest) -> String {
        let mut query = self.selectors();
        query.append_pair("watch", "true").append_pair("allowWatchBookmarks", "true");
        query.append_pair("timeoutSeconds", &request.timeout.as_secs().to_string());
        if !request.version.is_unset() {
            query.append_pair("resourceVersion", &request.version.to_string());
        }
        if request.send_initial_events {
            query.append_pair("sendInitialEvents", "true");
            query.append_pair("resourceVersionMatch", VERSION_MATCH_OF_WATCHES);
        }
        query.finish()
    }

    fn selectors(&self) -> form_urlencoded::Serializer<'static, String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if !self.scope.labels.is_everything() {
            query.append_pair("labelSelector", &self.scope.labels.to_string());
        }
        if !self.scope.fields.is_everything() {
            query.append_pair("fieldSelector", &self.scope.fields.to_string());
        }
        query
    }

    /// What was tried, what the server said and, for the usual causes, what to do.
    fn message(&self, verb: &str, status: &Status) -> String {
        let Resource { group, plural, .. } = &self.resource;
        let hint = match status.code {
            401 => {
                "; the credentials are missing, wrong or expired; log in again or renew the token"
                    .to_owned()
            }
            403 => {
                let rule = match &self.scope.namespace {
                    Some(namespace) => format!("Role and RoleBinding in namespace {namespace}"),
                    None => "ClusterRole and ClusterRoleBinding".to_owned(),
                };
                format!(
                    "; grant the verbs list and watch on resource {plural:?} in API group {group:?} with a {rule}"
                )
            }
            404 => format!(
                "; the server does not serve {}: install its CRD, or check group, version and the plural {plural:?}",
                self.resource
            ),
            _ => String::new(),
        };
        format!("{verb} {self}: {} {}{hint}", status.code, status.message)
    }

    fn no_discovery(&self) -> Failure {
        let message = format!("discover {self}: the answer is no document of discovery");
        Failure::new(FailureKind::Malformed, message)
    }

    fn refused(&self, verb: &str, kind: FailureKind, why: &str) -> Failure {
        Failure::new(kind, format!("{verb} {self}: {why}"))
    }
}

fn is_refused_for_its_form(code: StatusCode) -> bool {
    matches!(code, StatusCode::NOT_ACCEPTABLE | StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

const VERSION_MATCH_OF_WATCHES: &str = super::VersionMatch::NotOlderThan.as_str();

impl Clone for Target {
    fn clone(&self) -> Self {
        Self { resource: self.resource.clone(), scope: self.scope.clone(), ..*self }
    }
}

/// `pods.v1 in namespace default`
impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.resource, self.scope)
    }
}

/// How long the server asks to wait, in either form: seconds, or a date (RFC 9110). A date is taken
/// on the server's own clock, where the answer tells it.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text =
        |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let value = text(RETRY_AFTER)?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
    // A date that has passed asks for nothing.
    until.duration_since(now).ok()
}

/// A body that a client's retry layer cannot copy, so that every answer reaches the caller: kube's
/// layer would repeat a request answered 429, 503 or 504 up to 15 times, from 5 ms on, unseen.
///
/// It retries only what it can clone, which is every body that a request can be built with; the one
/// body that cannot be cloned is that of a response. So this one comes out of a client that answers
/// from memory.
///
/// # Errors
/// None in practice; a client can fail.
///
/// # Cancel safety
/// Nothing is sent.
pub async fn unretried_body(content: Bytes) -> Result<Body, kube::Error> {
    let echo = move |_: Request<Body>| {
        let content = http_body_util::Full::new(content.clone());
        async { Ok::<_, std::convert::Infallible>(Response::new(content)) }
    };
    let client = Client::new(tower::service_fn(echo), "default");
    Ok(client.send(Request::new(Body::empty())).await?.into_body())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn g28_retry_after_may_be_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let waits = |pairs: &[(HeaderName, &str)]| retry_after(&headers(pairs), now);
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(waits(&[]), None);
        assert_eq!(waits(&[(RETRY_AFTER, "7")]), seconds(7));
        assert_eq!(waits(&[(RETRY_AFTER, " 120 ")]), seconds(120));
        assert_eq!(waits(&[(RETRY_AFTER, "soon")]), None);
        assert_eq!(waits(&[(RETRY_AFTER, "-1")]), None);
        assert_eq!(waits(&[(RETRY_AFTER, "Sun, 06 Nov 1994 08:51:37 GMT")]), seconds(120));
        assert_eq!(waits(&[(RETRY_AFTER, "Sunday, 06-Nov-94 08:49:38 GMT")]), seconds(1));
        assert_eq!(waits(&[(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:36 GMT")]), None, "it has passed");
        // A server whose clock is an hour ahead.
        let ahead = [
            (RETRY_AFTER, "Sun, 06 Nov 1994 09:49:47 GMT"),
            (DATE, "Sun, 06 Nov 1994 09:49:37 GMT"),
        ];
        assert_eq!(waits(&ahead), seconds(10));
        let odd = [(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:47 GMT"), (DATE, "today")];
        assert_eq!(waits(&odd), seconds(10));
    }
}
