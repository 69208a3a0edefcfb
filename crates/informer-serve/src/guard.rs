//! What every request must pass: host, origin, size of the query.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, StatusCode, Uri};

use crate::endpoint::Endpoint;
use crate::gateway::MAX_QUERY_BYTES;
use crate::refusal::Refusal;

/// How long the query of a request for one of Kubernetes' paths may be; selectors name hundreds of
/// values there.
const MAX_API_QUERY_BYTES: usize = 64 * 1024;

/// Lets a request through, or answers it; counts the answer.
pub(crate) async fn guard(
    State(endpoint): State<Endpoint>,
    request: Request,
    next: Next,
) -> Response {
    let inner = &endpoint.inner;
    let response = match check(&request, &inner.options.allowed_hosts) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    inner.metrics.answered(response.status());
    response
}

fn check(request: &Request<Body>, allowed_hosts: &[String]) -> Result<(), Refusal> {
    // Probes come to the address of the Pod, and learn nothing.
    let is_probe = matches!(request.uri().path(), "/livez" | "/readyz" | "/healthz");
    let host = request.headers().get(HOST).and_then(|it| it.to_str().ok());
    // A request to a proxy names the host in the URL.
    let host = request.uri().authority().map(http::uri::Authority::as_str).or(host);
    if !is_probe && !is_allowed_host(host.unwrap_or_default(), allowed_hosts) {
        let message = "the gateway does not answer to this host name; add it with --allowed-hosts if it is right";
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, message));
    }
    // Any web page can open a WebSocket to this machine, and only says where it is from.
    let origins = request.headers().get_all(ORIGIN);
    if !origins.iter().all(|it| it.to_str().is_ok_and(|it| is_allowed_origin(it, allowed_hosts))) {
        let message =
            "pages of other hosts may not ask here; add theirs with --allowed-hosts if they shall";
        return Err(Refusal::forbidden(message));
    }
    if request.headers().get(ORIGIN).is_none() && is_embedded(request.headers()) {
        let message = "pages of other hosts may not ask here; open the address itself";
        return Err(Refusal::forbidden(message));
    }
    not_for_another(request.headers())?;
    let is_api = ["/api/", "/apis/"].iter().any(|it| request.uri().path().starts_with(it));
    let longest = if is_api { MAX_API_QUERY_BYTES } else { MAX_QUERY_BYTES };
    if request.uri().query().is_some_and(|it| it.len() > longest) {
        return Err(Refusal::bad_request(format!("the query is longer than {longest} bytes")));
    }
    Ok(())
}

/// Whether a page of another site embeds the answer, as an image does: such a request has no
/// `Origin`. A link that is followed is none.
fn is_embedded(headers: &HeaderMap) -> bool {
    let says = |name: &str, value: &str| {
        headers.get(name).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
    };
    says("sec-fetch-site", "cross-site")
        && !(says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document"))
}

/// Refuses requests that are made in the name of others: they would be answered with what the
/// endpoint itself may read.
fn not_for_another(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.keys().find(|it| it.as_str().starts_with("impersonate-")) {
        Some(name) => Err(Refusal::forbidden(format!(
            "{name}: nobody can be impersonated here, since reads are answered from the cache of this endpoint's account; ask the API server itself"
        ))),
        None => Ok(()),
    }
}

/// Whether an `Origin` header names a page of this machine, or of a host that was allowed.
fn is_allowed_origin(origin: &str, allowed: &[String]) -> bool {
    let origin = origin.parse::<Uri>().ok();
    let host = origin.as_ref().and_then(Uri::authority).map(http::uri::Authority::as_str);
    host.is_some_and(|host| is_allowed_host(host, allowed))
}

/// Whether a `Host` header names this machine, or a name that was allowed: a page in a browser must
/// not reach the gateway by a name of its own (DNS rebinding).
fn is_allowed_host(host: &str, allowed: &[String]) -> bool {
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

    #[test]
    fn what_a_page_of_another_site_embeds_is_refused() {
        let from = |site: &str, mode: &str, dest: &str| {
            let request = Request::get("http://localhost:8888/pods")
                .header("sec-fetch-site", site)
                .header("sec-fetch-mode", mode)
                .header("sec-fetch-dest", dest);
            check(&request.body(Body::empty()).unwrap(), &[]).is_ok()
        };
        assert!(!from("cross-site", "no-cors", "image"));
        assert!(!from("cross-site", "navigate", "iframe"));
        assert!(from("cross-site", "navigate", "document"), "a link");
        assert!(from("none", "navigate", "document"), "an address that was typed");
        assert!(from("same-origin", "cors", "empty"));
    }

    #[test]
    fn nobody_is_impersonated_on_any_path() {
        for path in ["/pods", "/api/v1/pods", "/metrics"] {
            let request = Request::get(format!("http://localhost{path}"));
            let request = request.header("Impersonate-User", "nobody").body(Body::empty());
            let refusal = check(&request.unwrap(), &[]).unwrap_err();
            assert_eq!(refusal.code, StatusCode::FORBIDDEN, "{path}");
        }
    }

    #[test]
    fn origins_are_those_of_allowed_hosts() {
        let allowed = ["dashboard.example".to_owned()];
        for origin in
            ["http://localhost:3000", "http://127.0.0.1:8888", "https://dashboard.example"]
        {
            assert!(is_allowed_origin(origin, &allowed), "{origin}");
        }
        for origin in ["null", "", "http://evil.example", "http://localhost.evil.example:8888"] {
            assert!(!is_allowed_origin(origin, &allowed), "{origin}");
        }
    }
}
