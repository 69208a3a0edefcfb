//! One request of a reconcile: what it writes, and what its answer says.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use informer_core::own_writes::{Answer, Verb, Write, Written};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::error::WriteError;
use crate::error::{connection_error, quoted_answer};
use crate::{ObjectKey, Resource, Uid};

/// A resource in all its versions, which share their objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupResource {
    pub(super) group: String,
    pub(super) plural: String,
}

impl GroupResource {
    pub(super) fn is_of(&self, resource: &Resource) -> bool {
        self.plural == resource.plural && self.group == resource.group
    }
}

impl From<&Resource> for GroupResource {
    fn from(resource: &Resource) -> Self {
        Self { group: resource.group.clone(), plural: resource.plural.clone() }
    }
}

/// `pods`, `deployments.apps`.
impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// What a request writes.
#[derive(Debug, Clone)]
pub(super) struct Target {
    method: Method,
    pub(super) resource: GroupResource,
    version: String,
    pub(super) namespace: String,
    pub(super) name: Option<String>,
    subresource: Option<String>,
    uid: Option<Uid>,
    is_dry_run: bool,
}

/// The identity in the body of a write; bodies of JSON patches have none.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Identified {
    metadata: Identity,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Identity {
    name: Option<String>,
    uid: Option<String>,
}

/// The body of an eviction.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Eviction {
    delete_options: DeleteOptions,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeleteOptions {
    preconditions: Preconditions,
    dry_run: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Preconditions {
    uid: Option<String>,
}

impl Target {
    /// What a request writes; `None` if it reads, or is not about a resource.
    pub(super) fn of(parts: &Parts, body: &[u8]) -> Option<Self> {
        if matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return None;
        }
        let decoded = |it: &str| percent_decode_str(it).decode_utf8_lossy().into_owned();
        let segments: Vec<String> =
            parts.uri.path().split('/').filter(|it| !it.is_empty()).map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match *segments.as_slice() {
            ["api", version, ref rest @ ..] => ("", version, rest),
            ["apis", group, version, ref rest @ ..] => (group, version, rest),
            _ => return None,
        };
        let (namespace, rest) = match *rest {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, ref rest @ ..] => (namespace, rest),
            _ => ("", rest),
        };
        let (plural, rest) = rest.split_first()?;
        let (name, subresource) = match *rest {
            [] => (None, None),
            [name] => (Some(name), None),
            [name, ref rest @ ..] => (Some(name), Some(rest.join("/"))),
        };
        let is_create = parts.method == Method::POST && name.is_none();
        let delete: Option<DeleteOptions> = match (&parts.method, subresource.as_deref()) {
            (&Method::DELETE, _) => Some(serde_json::from_slice(body).unwrap_or_default()),
            (&Method::POST, Some("eviction")) => {
                let eviction: Eviction = serde_json::from_slice(body).unwrap_or_default();
                Some(eviction.delete_options)
            }
            _ => None,
        };
        let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let is_dry_run = delete.as_ref().is_some_and(|it| !it.dry_run.is_empty())
            || query.into_iter().any(|(name, value)| name == "dryRun" && !value.is_empty());
        let (of_body, uid) = match delete {
            Some(delete) => (None, delete.preconditions.uid),
            None => {
                let Identified { metadata } = serde_json::from_slice(body).unwrap_or_default();
                let name = metadata.name.filter(|name| is_create && !name.is_empty());
                (name, metadata.uid.filter(|_| !is_create))
            }
        };
        Some(Self {
            method: parts.method.clone(),
            resource: GroupResource { group: group.to_owned(), plural: (*plural).to_owned() },
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            name: name.map(str::to_owned).or(of_body),
            subresource,
            uid: uid.filter(|uid| !uid.is_empty()).map(Uid::from),
            is_dry_run,
        })
    }

    /// The write to remember; `None` of one that changes nothing.
    pub(super) fn write(&self) -> Option<Write<GroupResource>> {
        let verb = match self.method {
            _ if self.is_dry_run => return None,
            Method::POST if self.subresource.is_none() => Verb::Create,
            Method::DELETE => Verb::Delete,
            _ => Verb::Change,
        };
        Some(Write {
            resource: self.resource.clone(),
            verb,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        })
    }

    /// The conflict that a 409 tells of.
    pub(super) fn conflict(&self, status: &Status) -> Conflict {
        let reason = match status.is_already_exists() {
            true => ConflictReason::AlreadyExists,
            false => ConflictReason::Conflict,
        };
        let write = Write {
            resource: self.resource.clone(),
            verb: Verb::Change,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        };
        Conflict { write, reason }
    }
}

/// `create pods shop/web-0`, `patch deployments.apps/scale shop/web`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "write",
        };
        write!(f, "{verb} {}.{}", self.resource.plural, self.version)?;
        if !self.resource.group.is_empty() {
            write!(f, ".{}", self.resource.group)?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        match (&*self.namespace, &self.name) {
            ("", None) => Ok(()),
            ("", Some(name)) => write!(f, " {name}"),
            (namespace, None) => write!(f, " in namespace {namespace}"),
            (namespace, Some(name)) => write!(f, " {namespace}/{name}"),
        }
    }
}

/// The last write of a reconcile was answered with 409.
#[derive(Debug, Clone)]
pub(crate) struct Conflict {
    pub(super) write: Write<GroupResource>,
    pub(crate) reason: ConflictReason,
}

/// What a 409 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConflictReason {
    /// The object is not at the version, or has not the UID, that the write expected.
    Conflict,
    /// The name is taken.
    AlreadyExists,
}

/// An object, or a `Status`, as the server returned it.
#[derive(Default)]
pub(super) struct Returned {
    pub(super) kind: String,
    pub(super) labels: BTreeMap<String, String>,
    written: Option<Written>,
    /// Of a `Status`, the UID of what it is about.
    about: Option<Uid>,
    pub(super) body: Bytes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    kind: String,
    metadata: Metadata,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    labels: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    uid: String,
}

impl Returned {
    /// What the body of a successful answer holds; nothing that can be used if it cannot be read.
    pub(super) fn read(body: Bytes, is_delete: bool) -> Self {
        let Ok(Head { kind, metadata, details }) = serde_json::from_slice(&body) else {
            return Self { body, ..Self::default() };
        };
        let about = details.map(|it| it.uid).filter(|uid| !uid.is_empty()).map(Uid::from);
        let is_object =
            kind != "Status" && !metadata.uid.is_empty() && !metadata.resource_version.is_empty();
        // Servers answer the removal of the last finalizer with the object and the version that it
        // had before.
        let has_ended = match (&metadata.deletion_timestamp, metadata.deletion_grace_period_seconds)
        {
            (None, _) => is_delete,
            (Some(_), grace_period) => grace_period == Some(0),
        };
        let written = is_object.then(|| Written {
            key: ObjectKey::namespaced(&metadata.namespace, &metadata.name),
            uid: Uid::from(metadata.uid.as_str()),
            version: metadata.resource_version.as_str().into(),
            is_gone: has_ended && metadata.finalizers.unwrap_or_default().is_empty(),
        });
        Self { kind, labels: metadata.labels.unwrap_or_default(), written, about, body }
    }

    pub(super) fn written(&self) -> Option<Written> {
        self.written.clone()
    }
}

/// What is known of a write once its request is over.
pub(super) struct Outcome {
    pub(super) answer: Answer,
    pub(super) returned: Returned,
    pub(super) conflict: Option<Conflict>,
}

impl Outcome {
    fn without_object(answer: Answer) -> Self {
        Self { answer, returned: Returned::default(), conflict: None }
    }

    /// Of a request without an answer.
    pub(super) fn of_error(error: &WriteError) -> Self {
        Self::without_object(match error {
            WriteError::NotSent { .. } | WriteError::NotLeader(_) | WriteError::Invalid { .. } => {
                Answer::NotWritten
            }
            WriteError::Refused { .. }
            | WriteError::Unknown { .. }
            | WriteError::Undecodable { .. } => Answer::Unknown,
        })
    }

    pub(super) fn of(target: &Target, response: &Response<Bytes>) -> Self {
        let (code, body) = (response.status(), response.body());
        let is_delete = target.method == Method::DELETE;
        if code.is_success() {
            let returned = Returned::read(body.clone(), is_delete);
            let answer = match returned.written() {
                Some(written) => Answer::Object(written),
                None if is_delete && target.name.is_some() && returned.kind == "Status" => {
                    Answer::Deleted { uid: returned.about.clone() }
                }
                None => Answer::Unknown,
            };
            return Self { answer, returned, conflict: None };
        }
        if is_unknown(code) {
            return Self::without_object(Answer::Unknown);
        }
        match code {
            StatusCode::NOT_FOUND if is_delete && target.name.is_some() => {
                Self::without_object(Answer::NotFound)
            }
            StatusCode::CONFLICT => {
                let conflict = target.conflict(&status_of(code, body));
                Self { conflict: Some(conflict), ..Self::without_object(Answer::NotWritten) }
            }
            _ => Self::without_object(Answer::NotWritten),
        }
    }
}

/// Whether a server, or a proxy before it, may have applied what it answers so.
pub(super) fn is_unknown(code: StatusCode) -> bool {
    code.is_server_error() || code == StatusCode::REQUEST_TIMEOUT
}

/// What an answer other than 2xx says.
pub(super) fn status_of(code: StatusCode, body: &[u8]) -> Status {
    let status = serde_json::from_slice::<Status>(body).ok();
    let mut status = status.filter(Status::is_failure).unwrap_or_else(|| {
        Status::failure(&quoted_answer(code, body), code.canonical_reason().unwrap_or_default())
    });
    status.code = code.as_u16();
    status
}

/// Sends a request once: a client's own retries of 503 and 504 would repeat writes that may have
/// been applied.
pub(super) async fn send(
    client: &Client,
    operation: &str,
    request: Request<Body>,
) -> Result<Response<Bytes>, WriteError> {
    let unknown = |error: &(dyn std::error::Error + 'static)| WriteError::Unknown {
        operation: operation.to_owned(),
        cause: connection_error(error),
        status: None,
    };
    let response = client.send(request).await.map_err(|error| match is_not_sent(&error) {
        true => {
            WriteError::NotSent { operation: operation.to_owned(), cause: connection_error(&error) }
        }
        false => unknown(&error),
    })?;
    let (parts, body) = response.into_parts();
    let body = body.collect_bytes().await.map_err(|error| unknown(&error))?;
    Ok(Response::from_parts(parts, body))
}

/// Whether nobody has accepted the connection, so that nothing was written.
fn is_not_sent(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused)
    })
}

/// A body that kube's client cannot clone, and so does not send again.
pub(super) async fn unretried(body: Bytes) -> Result<Body, kube::Error> {
    let echo = move |_: Request<Body>| {
        let body = body.clone();
        async move { Ok::<_, std::convert::Infallible>(Response::new(http_body_util::Full::new(body))) }
    };
    let client = Client::new(tower::service_fn(echo), "default");
    Ok(client.send(Request::new(Body::empty())).await?.into_body())
}
