//! Errors as Kubernetes `Status` objects.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use informer::UnknownResource;
use informer::discovery::DiscoveryError;
use informer::source::Failure;
use serde_json::json;

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: StatusCode,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Seconds.
    pub(crate) retry_after: Option<u32>,
}

impl Refusal {
    /// A refusal with the reason that Kubernetes has for the code.
    pub(crate) fn new(code: StatusCode, message: impl Into<String>) -> Self {
        let reason = match code.as_u16() {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            410 => "Expired",
            421 => "MisdirectedRequest",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "Unknown",
        };
        Self { code, reason: reason.to_owned(), message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// The refusal of a request that came past the guard.
    pub(crate) fn unguarded() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "nobody has said whether the caller may")
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// The API server's own refusal, passed on.
    pub(crate) fn passed_on(failure: &Failure) -> Self {
        let code = failure.code.and_then(|code| StatusCode::from_u16(code).ok());
        let refusal = Self::new(code.unwrap_or(StatusCode::BAD_GATEWAY), failure.message.clone());
        match failure.reason.is_empty() {
            true => refusal,
            false => Self { reason: failure.reason.clone(), ..refusal },
        }
    }
}

impl From<UnknownResource> for Refusal {
    fn from(unknown: UnknownResource) -> Self {
        Self::not_found(unknown.to_string())
    }
}

impl From<DiscoveryError> for Refusal {
    fn from(error: DiscoveryError) -> Self {
        let message = format!("cannot discover the server's resources: {error}");
        match error {
            DiscoveryError::Unauthorized { .. } => Self::new(StatusCode::UNAUTHORIZED, message),
            DiscoveryError::Forbidden { .. } => Self::forbidden(message),
            _ => Self::unavailable(message),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        let mut response = Response::new(Body::from(format!("{status}\n")));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.code == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
