//! How an API server says no.

use k8s_protobuf::{Envelope, Reader};
use serde::{Deserialize, Deserializer};

use super::{FrameError, Wire, error_offset};

/// A `Status` object: the answer to a request that failed, or the object of a watch's error event.
///
/// # Examples
/// ```
/// use informer_core::wire::Status;
///
/// let body = br#"{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}"#;
/// let status = Status::parse(body)?;
/// assert!(status.is_expired());
/// assert_eq!(status.to_string(), "too old (410 Expired)");
/// # Ok::<(), informer_core::wire::FrameError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.describe())]
pub struct Status {
    /// The HTTP status code; 0 where the server named none.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`; may be empty.
    pub reason: String,
    /// For people; may be empty.
    pub message: String,
    /// How long the server asks to wait before trying again, in seconds.
    pub retry_after_seconds: Option<u32>,
    /// More about the reason.
    pub causes: Vec<StatusCause>,
}

/// One cause of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusCause {
    /// The machine-readable reason, such as `ResourceVersionTooLarge`; may be empty.
    pub reason: String,
    /// For people; may be empty.
    pub message: String,
}

impl Status {
    /// Reads the object of an error event.
    ///
    /// # Errors
    /// When it is malformed, or an object of another kind.
    pub fn of(object: Wire<'_>) -> Result<Self, FrameError> {
        match object {
            Wire::Json(json) => Self::parse(json),
            Wire::Protobuf(kind, message) if kind.api_version() == "v1" && kind.name() == "Status" => {
                Self::read(message).map_err(|_| malformed(0))
            }
            Wire::Protobuf(..) => Err(malformed(0)),
        }
    }

    /// Reads a `Status` as it stands in the body of an answer: its JSON text, or its protobuf message in an envelope.
    ///
    /// # Errors
    /// When it is malformed, or an object of another kind.
    pub fn of_body(body: &[u8]) -> Result<Self, FrameError> {
        if !k8s_protobuf::is_protobuf(body) {
            return Self::parse(body);
        }
        let (kind, message) =
            Envelope::parse(body).and_then(|envelope| envelope.message()).map_err(|_| malformed(0))?;
        Self::of(Wire::Protobuf(kind, message))
    }

    /// Reads the JSON text of a `Status`.
    ///
    /// # Errors
    /// When the text is not valid JSON or an object of another kind.
    pub fn parse(json: &[u8]) -> Result<Self, FrameError> {
        let raw: RawStatus =
            serde_json::from_slice(json).map_err(|error| malformed(error_offset(json, &error)))?;
        if raw.kind != "Status" {
            return Err(malformed(0));
        }
        Ok(Self {
            code: raw.code.and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
            reason: raw.reason,
            message: raw.message,
            retry_after_seconds: raw.details.retry_after_seconds.and_then(|it| u32::try_from(it).ok()),
            causes: (raw.details.causes.into_iter())
                .map(|cause| StatusCause { reason: cause.reason, message: cause.message })
                .collect(),
        })
    }

    /// The status of a response with the HTTP status code `code`: its body, or where that is no `Status`,
    /// as from proxies, just the code.
    #[must_use]
    pub fn from_response(code: u16, body: &[u8]) -> Self {
        match Self::of_body(body) {
            Ok(status) if status.code == 0 => Self { code, ..status },
            Ok(status) => status,
            Err(_) => Self { code, ..Self::default() },
        }
    }

    /// The version asked for, or the continue token, is too old.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.is(410, "Expired") || self.reason == "Gone"
    }

    /// The version asked for lies in the server's future. Servers before 1.19 say so in words only.
    #[must_use]
    pub fn is_too_large_resource_version(&self) -> bool {
        const WORDS: &str = "Too large resource version";
        self.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || (self.reason == "Timeout"
                && (self.message.contains(WORDS)
                    || self.causes.iter().any(|cause| cause.message.contains(WORDS))))
    }

    /// The server is busy and wants fewer requests.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.is(429, "TooManyRequests")
    }

    /// There is no such object or resource.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.is(404, "NotFound")
    }

    /// The user may not do this.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.is(403, "Forbidden")
    }

    /// The server does not know the user: no credentials, or expired ones.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.is(401, "Unauthorized")
    }

    /// The request was wrong in form.
    #[must_use]
    pub fn is_bad_request(&self) -> bool {
        self.is(400, "BadRequest")
    }

    /// The request was refused for its content, as list options that the server does not support.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.is(422, "Invalid")
    }

    /// The resource does not have this verb.
    #[must_use]
    pub fn is_method_not_supported(&self) -> bool {
        self.is(405, "MethodNotAllowed")
    }

    /// The server has no representation that was asked for.
    #[must_use]
    pub fn is_not_acceptable(&self) -> bool {
        self.is(406, "NotAcceptable")
    }

    /// The object changed in the meantime.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.is(409, "Conflict")
    }

    /// The server, or something on the way, ran out of time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.is(504, "Timeout") || self.reason == "ServerTimeout"
    }

    /// The server cannot answer now.
    #[must_use]
    pub fn is_service_unavailable(&self) -> bool {
        self.is(503, "ServiceUnavailable")
    }

    /// Something went wrong in the server.
    #[must_use]
    pub fn is_internal_error(&self) -> bool {
        self.is(500, "InternalError")
    }

    fn is(&self, code: u16, reason: &str) -> bool {
        self.code == code || self.reason == reason
    }

    fn describe(&self) -> String {
        let Self { code, reason, message, .. } = self;
        match (message.is_empty(), reason.is_empty()) {
            (false, false) => format!("{message} ({code} {reason})"),
            (false, true) => format!("{message} ({code})"),
            (true, false) => format!("the server answered {code} {reason}"),
            (true, true) => format!("the server answered {code}"),
        }
    }
}

fn malformed(offset: usize) -> FrameError {
    FrameError::Malformed { offset: offset as u64, expected: "a Status object" }
}

/// From the messages of `k8s.io.apimachinery.pkg.apis.meta.v1`.
impl Status {
    fn read(message: &[u8]) -> Result<Self, k8s_protobuf::Error> {
        let mut status = Self::default();
        let mut fields = Reader::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                3 => value.text()?.clone_into(&mut status.message),
                4 => value.text()?.clone_into(&mut status.reason),
                5 => status.read_details(value.bytes()?)?,
                6 => status.code = u16::try_from(value.varint()?).unwrap_or_default(),
                _ => {}
            }
        }
        Ok(status)
    }

    fn read_details(&mut self, message: &[u8]) -> Result<(), k8s_protobuf::Error> {
        let mut fields = Reader::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                4 => self.causes.push(StatusCause::read(value.bytes()?)?),
                // Written whether it was said or not.
                5 => self.retry_after_seconds = u32::try_from(value.varint()?).ok().filter(|it| *it > 0),
                _ => {}
            }
        }
        Ok(())
    }
}

impl StatusCause {
    fn read(message: &[u8]) -> Result<Self, k8s_protobuf::Error> {
        let mut cause = Self::default();
        let mut fields = Reader::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => value.text()?.clone_into(&mut cause.reason),
                2 => value.text()?.clone_into(&mut cause.message),
                _ => {}
            }
        }
        Ok(cause)
    }
}

#[derive(Deserialize)]
struct RawStatus {
    #[serde(default, deserialize_with = "null_as_default")]
    kind: String,
    code: Option<i64>,
    #[serde(default, deserialize_with = "null_as_default")]
    reason: String,
    #[serde(default, deserialize_with = "null_as_default")]
    message: String,
    #[serde(default, deserialize_with = "null_as_default")]
    details: RawDetails,
}

#[derive(Default, Deserialize)]
struct RawDetails {
    #[serde(rename = "retryAfterSeconds")]
    retry_after_seconds: Option<i64>,
    #[serde(default, deserialize_with = "null_as_default")]
    causes: Vec<RawCause>,
}

#[derive(Deserialize)]
struct RawCause {
    #[serde(default, deserialize_with = "null_as_default")]
    reason: String,
    #[serde(default, deserialize_with = "null_as_default")]
    message: String,
}

fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_protobuf::encode;
    use serde_json::json;

    use super::*;

    fn status(json: &str) -> Status {
        Status::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn all_parts_are_read() {
        let status = status(
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"busy","reason":
            "TooManyRequests","details":{"retryAfterSeconds":7,"causes":[{"reason":"A","message":"b","field":"c"},
            {"message":null}]},"code":429}"#,
        );
        let expected = Status {
            code: 429,
            reason: "TooManyRequests".to_owned(),
            message: "busy".to_owned(),
            retry_after_seconds: Some(7),
            causes: vec![
                StatusCause { reason: "A".to_owned(), message: "b".to_owned() },
                StatusCause::default(),
            ],
        };
        assert_eq!(status, expected);
        assert!(status.is_too_many_requests() && !status.is_expired() && !status.is_timeout());
    }

    #[test]
    fn expired_by_reason_or_code() {
        for json in [
            r#"{"kind":"Status","reason":"Expired"}"#,
            r#"{"kind":"Status","reason":"Gone","code":0}"#,
            r#"{"kind":"Status","code":410,"reason":null,"details":null}"#,
        ] {
            assert!(status(json).is_expired(), "{json}");
        }
        assert!(!status(r#"{"kind":"Status","code":404,"reason":"NotFound"}"#).is_expired());
    }

    #[test]
    fn too_large_versions_by_cause_or_by_the_words_of_a_timeout() {
        for json in [
            r#"{"kind":"Status","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#,
            r#"{"kind":"Status","reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}]}}"#,
            r#"{"kind":"Status","reason":"Timeout","message":"Timeout: Too large resource version: 9, current: 1"}"#,
        ] {
            assert!(status(json).is_too_large_resource_version(), "{json}");
        }
        for json in [
            r#"{"kind":"Status","reason":"Timeout","message":"too slow","code":504}"#,
            r#"{"kind":"Status","reason":"BadRequest","message":"Too large resource version"}"#,
        ] {
            assert!(!status(json).is_too_large_resource_version(), "{json}");
        }
    }

    #[test]
    fn responses_without_a_status_keep_their_code() {
        let status = Status::from_response(502, b"<html>Bad Gateway</html>");
        assert_eq!((status.code, status.to_string().as_str()), (502, "the server answered 502"));
        assert_eq!(Status::from_response(403, br#"{"kind":"Status","message":"no"}"#).code, 403);
        assert!(
            Status::from_response(404, br#"{"kind":"Status","code":404,"reason":"NotFound"}"#).is_not_found()
        );
    }

    fn protobuf(object: &serde_json::Value) -> Vec<u8> {
        let mut body = Vec::new();
        encode::object(object, &mut body).unwrap();
        body
    }

    #[test]
    fn protobuf_says_the_same() {
        for status in [
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "busy",
                "reason": "TooManyRequests", "code": 429, "details": { "name": "a", "retryAfterSeconds": 7,
                "causes": [{ "reason": "A", "message": "b", "field": "c" }, {}] } }),
            json!({ "kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired" }),
            json!({ "kind": "Status", "apiVersion": "v1", "details": { "kind": "pods" } }),
        ] {
            let body = protobuf(&status);
            assert_eq!(Status::of_body(&body), Status::parse(status.to_string().as_bytes()));
            let (kind, message) = Envelope::parse(&body).unwrap().message().unwrap();
            assert_eq!(Status::of(Wire::Protobuf(kind, message)), Status::of_body(&body));
        }
        let body = protobuf(&json!({ "kind": "Status", "apiVersion": "v1", "reason": "Forbidden" }));
        assert_eq!(Status::from_response(403, &body).reason, "Forbidden");
    }

    #[test]
    fn protobuf_that_is_no_status_is_refused() {
        let pod = protobuf(&json!({ "kind": "Pod", "apiVersion": "v1" }));
        let status = protobuf(&json!({ "kind": "Status", "apiVersion": "v1", "message": "hunter2" }));
        for body in [&pod[..], b"k8s\0", b"k8s\0\xff", &status[..30]] {
            let error = Status::of_body(body).unwrap_err();
            assert!(matches!(error, FrameError::Malformed { .. }));
            assert_eq!(Status::from_response(500, body), Status { code: 500, ..Status::default() });
        }
    }

    #[test]
    fn g34_other_objects_are_refused_without_repeating_them() {
        for json in ["", "7", r#"{"kind":"Pod"}"#, r#"{"kind":"Status","code":"hunter2"}"#] {
            let error = Status::parse(json.as_bytes()).unwrap_err();
            assert!(
                matches!(error, FrameError::Malformed { .. }) && !format!("{error:?}").contains("hunter2")
            );
        }
    }
}
