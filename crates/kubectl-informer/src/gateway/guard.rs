//! What every request must pass: method, host, size of the query.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::HOST;
use http::{Method, StatusCode};

use super::Gateway;
use super::query::MAX_QUERY_BYTES;
use super::refusal::Refusal;

/// Lets a request through, or answers it; counts the answer.
pub(super) async fn guard(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Response {
    let inner = &gateway.inner;
    let response = match check(&request, &inner.options.allowed_hosts) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    inner.metrics.answered(response.status());
    response
}

fn check(request: &Request<Body>, allowed_hosts: &[String]) -> Result<(), Refusal> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let message = format!("{}: the gateway only reads; use GET or HEAD", request.method());
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message));
    }
    // Probes come to the address of the Pod, and learn nothing.
    let is_probe = matches!(request.uri().path(), "/livez" | "/readyz");
    let host = request.headers().get(HOST).and_then(|it| it.to_str().ok());
    // A request to a proxy names the host in the URL.
    let host = request.uri().authority().map(http::uri::Authority::as_str).or(host);
    if !is_probe && !is_allowed_host(host.unwrap_or_default(), allowed_hosts) {
        let message = "the gateway does not answer to this host name; add it with --allowed-hosts if it is right";
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, message));
    }
    if request.uri().query().is_some_and(|it| it.len() > MAX_QUERY_BYTES) {
        return Err(Refusal::bad_request(format!(
            "the query is longer than {MAX_QUERY_BYTES} bytes"
        )));
    }
    Ok(())
}

/// Whether a `Host` header names this machine, or a name that was allowed: a page in a browser must
/// not reach the gateway by a name of its own (DNS rebinding).
pub(super) fn is_allowed_host(host: &str, allowed: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_loopback = name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback());
    is_loopback
        || allowed.iter().any(|it| it.eq_ignore_ascii_case(&name) || it.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_and_allowed_ones() {
        let allowed = ["gateway.example".to_owned(), "10.0.0.7:9000".to_owned()];
        for host in [
            "localhost",
            "localhost:8888",
            "LOCALHOST:1",
            "127.0.0.1",
            "127.0.0.1:8888",
            "127.9.9.9",
            "[::1]:8888",
            "[::1]",
            "localhost.",
            "x.localhost:8888",
            "gateway.example",
            "Gateway.Example:8888",
            "10.0.0.7:9000",
        ] {
            assert!(is_allowed_host(host, &allowed), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.7",
            "10.0.0.7:1",
            "[::2]:8888",
            "0.0.0.0",
        ] {
            assert!(!is_allowed_host(host, &allowed), "{host}");
        }
    }
}
