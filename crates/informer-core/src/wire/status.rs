//! How an API server says no.

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
            Wire::Protobuf(..) => Err(FrameError::Malformed { offset: 0, expected: "a Status object" }),
        }
    }

    /// Reads the JSON text of a `Status`.
    ///
    /// # Errors
    /// When the text is not valid JSON or an object of another kind.
    pub fn parse(json: &[u8]) -> Result<Self, FrameError> {
        let malformed =
            |offset: usize| FrameError::Malformed { offset: offset as u64, expected: "a Status object" };
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
        match Self::parse(body) {
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
