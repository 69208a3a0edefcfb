//! Requests about one Lease, and the Lease as the core knows it.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::StatusCode;
use informer_core::leader_election::{
    Input, LeaderElectionRecord, MicroTime, ObservedLease, Request,
};
use informer_core::wire::Status;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::api::{GetParams, PostParams};
use kube::{Client, Resource};

use crate::error::{connection_error, quoted_answer};
use crate::source::unretried_body;

/// The Lease of an election.
#[derive(Clone)]
pub(super) struct LeaseClient {
    client: Client,
    namespace: String,
    name: String,
}

/// How a request ended.
pub(super) enum Answer {
    Lease(Box<Lease>),
    NotFound { message: String },
    Conflict,
    Failed { message: String },
}

impl LeaseClient {
    pub(super) fn new(client: Client, namespace: String, name: String) -> Self {
        Self { client, namespace, name }
    }

    /// Sends a request. `known` is the Lease as the server last returned it: what is not the
    /// election's is kept.
    pub(super) async fn send(self, request: Request, known: Option<Box<Lease>>) -> Answer {
        let verb = verb(&request);
        let call = async {
            let request = self.http_request(request, known)?;
            let (head, body) = request.into_parts();
            // Retries are the election's business, as are their times.
            let body =
                unretried_body(Bytes::from(body)).await.map_err(|it| connection_error(&it))?;
            let request = http::Request::from_parts(head, body);
            let answer = self.client.send(request).await.map_err(|it| connection_error(&it))?;
            let code = answer.status();
            let body = answer.into_body().collect_bytes().await;
            Ok::<_, String>((code, body.map_err(|it| connection_error(&it))?))
        };
        match call.await {
            Ok((code, body)) if code.is_success() => match serde_json::from_slice(&body) {
                Ok(lease) => Answer::Lease(lease),
                Err(_) => self.failed(verb, "the answer cannot be read as a Lease"),
            },
            Ok((code, body)) => self.refused(verb, code, &body),
            Err(why) => self.failed(verb, &why),
        }
    }

    /// A request that was abandoned.
    pub(super) fn unanswered(&self, verb: &str, timeout: Duration) -> String {
        self.message(verb, &format!("no answer within {timeout:?}"))
    }

    fn http_request(
        &self,
        request: Request,
        known: Option<Box<Lease>>,
    ) -> Result<http::Request<Vec<u8>>, String> {
        let path = Lease::url_path(&(), Some(&self.namespace));
        let about = kube::core::Request::new(path);
        let options = PostParams::default();
        let built = match request {
            Request::Get => about.get(&self.name, &GetParams::default()),
            Request::Create(record) => {
                let mut lease = Lease::default();
                lease.metadata.name = Some(self.name.clone());
                lease.metadata.namespace = Some(self.namespace.clone());
                lease.spec = Some(spec(LeaseSpec::default(), record));
                about.create(&options, to_json(&lease)?)
            }
            Request::Update { resource_version, record } => {
                let mut lease = known.unwrap_or_default();
                lease.metadata.resource_version = Some(resource_version.to_string());
                lease.spec = Some(spec(lease.spec.take().unwrap_or_default(), record));
                about.replace(&self.name, &options, to_json(&lease)?)
            }
        };
        built.map_err(|error| error.to_string())
    }

    fn refused(&self, verb: &str, code: StatusCode, body: &[u8]) -> Answer {
        let status = Status::from_response(code.as_u16(), body);
        let why = match status.message.is_empty() {
            true => quoted_answer(code, body),
            false => status.message,
        };
        match code {
            StatusCode::CONFLICT => Answer::Conflict,
            StatusCode::NOT_FOUND => Answer::NotFound { message: self.message(verb, &why) },
            StatusCode::FORBIDDEN => self.failed(verb, &format!("{why}; {}", self.needed_rule())),
            _ => self.failed(verb, &why),
        }
    }

    /// The RBAC rule that a candidate needs.
    fn needed_rule(&self) -> String {
        format!(
            "leader election needs a Role in namespace {:?} with the rule {{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}}",
            self.namespace
        )
    }

    fn failed(&self, verb: &str, why: &str) -> Answer {
        Answer::Failed { message: self.message(verb, why) }
    }

    fn message(&self, verb: &str, why: &str) -> String {
        format!("{verb} Lease {}/{}: {why}", self.namespace, self.name)
    }
}

fn to_json(lease: &Lease) -> Result<Vec<u8>, String> {
    serde_json::to_vec(lease).map_err(|error| error.to_string())
}

/// What a request does, in the words of RBAC.
pub(super) fn verb(request: &Request) -> &'static str {
    match request {
        Request::Get => "get",
        Request::Create(_) => "create",
        Request::Update { .. } => "update",
    }
}

/// What an answer means to the election.
pub(super) fn input(answer: &Answer) -> Input {
    match answer {
        Answer::Lease(lease) => observed(lease).map_or(Input::Failed, Input::Lease),
        Answer::NotFound { .. } => Input::NotFound,
        Answer::Conflict => Input::Conflict,
        Answer::Failed { .. } => Input::Failed,
    }
}

/// The Lease as the election sees it; `None` if it has no UID or no version, as no server's.
fn observed(lease: &Lease) -> Option<ObservedLease> {
    let spec = lease.spec.clone().unwrap_or_default();
    let micros = |time: meta::MicroTime| MicroTime(time.0.as_microsecond());
    Some(ObservedLease {
        uid: lease.metadata.uid.clone()?.into(),
        resource_version: lease.metadata.resource_version.clone()?.into(),
        record: LeaderElectionRecord {
            holder_identity: spec.holder_identity.unwrap_or_default(),
            lease_duration_seconds: spec.lease_duration_seconds.and_then(|it| it.try_into().ok()),
            acquire_time: spec.acquire_time.map(micros),
            renew_time: spec.renew_time.map(micros),
            lease_transitions: spec.lease_transitions.unwrap_or(0).try_into().unwrap_or(0),
        },
    })
}

/// `spec` with what the election writes, and the rest as it is.
fn spec(spec: LeaseSpec, record: LeaderElectionRecord) -> LeaseSpec {
    let micros = |time: MicroTime| Timestamp::from_microsecond(time.0).ok().map(meta::MicroTime);
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    LeaseSpec {
        // Empty, not absent, if there is none: as client-go.
        holder_identity: Some(record.holder_identity),
        lease_duration_seconds: record.lease_duration_seconds.map(number),
        acquire_time: record.acquire_time.and_then(micros),
        renew_time: record.renew_time.and_then(micros),
        lease_transitions: Some(number(record.lease_transitions)),
        ..spec
    }
}

/// The time on this machine's wall clock.
pub(super) fn wall() -> MicroTime {
    MicroTime(Timestamp::now().as_microsecond())
}

/// A time of a Lease as a time of std.
pub(super) fn system_time(time: MicroTime) -> Option<SystemTime> {
    Timestamp::from_microsecond(time.0).ok().map(SystemTime::from)
}
