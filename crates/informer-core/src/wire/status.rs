//! Errors of an API server.

use super::{FrameError, MediaType, Wire};

/// A `Status` object: the response to a request that failed, or the object of a watch's ERROR
/// event.
///
/// # Examples
/// ```
/// use informer_core::wire::{Status, Wire};
///
/// let body = br#"{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}"#;
/// let status = Status::of(Wire::json(body))?;
/// assert_eq!(status.code, 410);
/// assert_eq!(status.to_string(), "too old (410 Expired)");
/// # Ok::<(), informer_core::wire::FrameError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.describe())]
pub struct Status {
    /// The HTTP status code; 0 if the server sent none.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`; may be empty.
    pub reason: String,
    /// The readable message; may be empty.
    pub message: String,
    /// How long to wait before a retry, in seconds, if the server sent that.
    pub retry_after_seconds: Option<u32>,
    /// More about the reason.
    pub(crate) causes: Vec<StatusCause>,
}

/// One cause of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StatusCause {
    /// The machine-readable reason, such as `ResourceVersionTooLarge`; may be empty.
    pub(crate) reason: String,
    /// The readable message; may be empty.
    pub(crate) message: String,
}

impl Status {
    /// Reads an object that is a `Status`, such as that of an ERROR event.
    ///
    /// # Errors
    /// If it is malformed, or an object of another kind.
    pub fn of(object: Wire<'_>) -> Result<Self, FrameError> {
        object.format().status(object.bytes)
    }

    /// The status of a response with the HTTP status code `code`: its body, or only the code if the
    /// body is not a `Status`, as from proxies.
    #[must_use]
    pub fn from_response(code: u16, body: &[u8]) -> Self {
        let status = |it: MediaType| Self::of(it.object(body).ok()?).ok();
        match MediaType::ALL.into_iter().find_map(status) {
            Some(status) if status.code == 0 => Self { code, ..status },
            Some(status) => status,
            None => Self { code, ..Self::default() },
        }
    }

    /// The requested version or the continue token is too old.
    #[must_use]
    pub(crate) fn is_expired(&self) -> bool {
        self.is(410, "Expired") || self.reason == "Gone"
    }

    /// The requested version is newer than the server's. Before 1.19, servers only say so in the
    /// message.
    #[must_use]
    pub(crate) fn is_too_large_resource_version(&self) -> bool {
        const WORDS: &str = "Too large resource version";
        self.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || (self.reason == "Timeout"
                && (self.message.contains(WORDS)
                    || self.causes.iter().any(|cause| cause.message.contains(WORDS))))
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

pub(super) fn not_a_status(offset: usize) -> FrameError {
    FrameError::Malformed { offset: offset as u64, expected: "a Status object" }
}

#[cfg(test)]
mod tests {
    use k8s_protobuf::encode;
    use serde_json::json;

    use super::*;

    fn status(json: &str) -> Status {
        Status::of(Wire::json(json.as_bytes())).unwrap()
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
        assert!(!status.is_expired());
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
            Status::from_response(404, br#"{"kind":"Status","code":404,"reason":"NotFound"}"#)
                .is(404, "NotFound")
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
            let read = Status::of(MediaType::Protobuf.object(&body).unwrap());
            assert_eq!(read, Status::of(Wire::json(status.to_string().as_bytes())));
        }
        let body =
            protobuf(&json!({ "kind": "Status", "apiVersion": "v1", "reason": "Forbidden" }));
        assert_eq!(Status::from_response(403, &body).reason, "Forbidden");
    }

    #[test]
    fn protobuf_that_is_no_status_is_refused() {
        let pod = protobuf(&json!({ "kind": "Pod", "apiVersion": "v1" }));
        let status =
            protobuf(&json!({ "kind": "Status", "apiVersion": "v1", "message": "hunter2" }));
        for body in [&pod[..], b"k8s\0", b"k8s\0\xff", &status[..30]] {
            if let Ok(object) = MediaType::Protobuf.object(body) {
                assert!(matches!(Status::of(object), Err(FrameError::Malformed { .. })));
            }
            assert_eq!(Status::from_response(500, body), Status { code: 500, ..Status::default() });
        }
    }

    #[test]
    fn g34_other_objects_are_refused_without_repeating_them() {
        for json in ["", "7", r#"{"kind":"Pod"}"#, r#"{"kind":"Status","code":"hunter2"}"#] {
            let error = Status::of(Wire::json(json.as_bytes())).unwrap_err();
            assert!(
                matches!(error, FrameError::Malformed { .. })
                    && !format!("{error:?}").contains("hunter2")
            );
        }
    }
}
