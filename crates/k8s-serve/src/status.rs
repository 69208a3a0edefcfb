//! `Status`: how a Kubernetes API server says no.

use std::borrow::Cow;

use serde::Serialize;

use crate::json;
use crate::object::WriteError;
use crate::resource::Resource;

/// A failure, as the API server answers it: an HTTP status and a `Status` object as the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({reason}, {code})")]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// The reason in one word, for example `NotFound`; what clients should match on.
    pub reason: Cow<'static, str>,
    /// The reason in a sentence.
    pub message: String,
    /// What it is about.
    pub details: Box<Details>,
    /// With an expired continue token: the token that continues on the newest state instead.
    pub continue_token: Option<String>,
    /// Whether details are sent even if they are empty, as some parts of an API server do.
    pub sends_empty_details: bool,
}

/// What a [`Status`] is about. Empty parts are not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Details {
    /// The name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource (its plural name), or the kind for validation errors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The UID of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The single faults behind the failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again, in seconds; 0 is not sent.
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One fault behind a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The kind of fault, for example `ResourceVersionTooLarge`.
    pub reason: String,
    /// The fault in a sentence.
    pub message: String,
    /// The field that is at fault, if any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Status {
    /// A failure with a code, a reason and a message.
    #[must_use]
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            details: Box::default(),
            continue_token: None,
            sends_empty_details: false,
        }
    }

    /// 400: the request cannot be understood.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404: the resource, its version or the subresource is unknown.
    #[must_use]
    pub fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self { sends_empty_details: true, ..Self::new(404, "NotFound", message) }
    }

    /// 404: there is no such object.
    #[must_use]
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", resource.name()))
            .about(resource, name)
    }

    /// 409: there is such an object already.
    #[must_use]
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", resource.name()))
            .about(resource, name)
    }

    /// 409: the object is not in the state that the request is based on.
    #[must_use]
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.name());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 409: the object has been changed since the version that the request is based on.
    #[must_use]
    pub fn stale(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 405: the resource does not have this verb.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    /// 410: the version, or the continue token, is older than what the server remembers.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 422: a field is wrong; `kind` names what was being read.
    #[must_use]
    pub fn invalid(group: &str, kind: &str, name: &str, field: &str, fault: &str) -> Self {
        Self::invalid_fields(group, kind, name, &[(field, fault.to_owned())])
    }

    /// 422: fields are wrong, each with its fault. A fault begins with the words that tell its
    /// kind, such as `Forbidden:`.
    #[must_use]
    pub fn invalid_fields(group: &str, kind: &str, name: &str, faults: &[(&str, String)]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let all: Vec<String> =
            faults.iter().map(|(field, fault)| format!("{field}: {fault}")).collect();
        let all = match &all[..] {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        let mut status =
            Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {all}"));
        let cause = |(field, fault): &(&str, String)| Cause {
            reason: match fault.split(':').next() {
                Some("Forbidden") => "FieldValueForbidden",
                Some("Unsupported value") => "FieldValueNotSupported",
                _ => "FieldValueInvalid",
            }
            .to_owned(),
            message: fault.clone(),
            field: (*field).to_owned(),
        };
        *status.details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes: faults.iter().map(cause).collect(),
            ..Details::default()
        };
        status
    }

    /// 422: the options of a list or watch contradict each other.
    #[must_use]
    pub fn invalid_list_options(field: &str, fault: &str) -> Self {
        Self::invalid("meta.k8s.io", "ListOptions", "", field, fault)
    }

    /// 422: streaming lists are known, and switched off.
    #[must_use]
    pub fn streaming_lists_refused() -> Self {
        let fault = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        Self::invalid_list_options("sendInitialEvents", fault)
    }

    /// 504: the wanted version lies in the future; try again in a second.
    #[must_use]
    pub fn too_large_version(wanted: u64, current: u64) -> Self {
        let mut status = Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        );
        status.details.causes.push(Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        status.details.retry_after_seconds = 1;
        status
    }

    /// The `Status` object as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let token =
            self.continue_token.as_ref().map(|token| format!("\"continue\":{}", quoted(token)));
        let mut text = format!(
            "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{{}}},\"status\":\"Failure\",\"message\":{}",
            token.unwrap_or_default(),
            quoted(&self.message),
        );
        if !self.reason.is_empty() {
            text.push_str(&format!(",\"reason\":{}", quoted(&self.reason)));
        }
        if self.sends_empty_details || *self.details != Details::default() {
            text.push_str(",\"details\":");
            let details = serde_json::to_string(&self.details).unwrap_or_else(|_| "{}".to_owned());
            text.push_str(&json::go_escaped(&details));
        }
        text.push_str(&format!(",\"code\":{}}}", self.code));
        text
    }

    /// Says which object it is about.
    #[must_use]
    pub fn about(mut self, resource: &Resource, name: &str) -> Self {
        name.clone_into(&mut self.details.name);
        self.details.group.clone_from(&resource.group);
        self.details.kind.clone_from(&resource.plural);
        self
    }
}

impl From<WriteError> for Status {
    fn from(error: WriteError) -> Self {
        Self::new(500, "InternalError", error.to_string())
    }
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    json::go_escaped(&serde_json::Value::from(text).to_string()).into_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_real_server_writes_it() {
        let deployments = Resource::new("apps", "v1", "deployments", "Deployment");
        assert_eq!(
            Status::not_found(&deployments, "web").to_json(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"web\" not found","reason":"NotFound","details":{"name":"web","group":"apps","kind":"deployments"},"code":404}"#
        );
        assert_eq!(
            Status::too_large_version(9, 5).to_json(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 9, current: 5","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#
        );
    }
}
