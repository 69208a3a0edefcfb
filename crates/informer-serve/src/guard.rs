//! Checks every request: host, origin, size of the query, and access control.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONNECTION, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use k8s_serve::answer as answers;

use crate::access::{Access, Attributes, Caller, Refused};
use crate::audit::Audited;
use crate::endpoint::Endpoint;
use crate::gateway::MAX_QUERY_BYTES;
use crate::listen::Slot;
use crate::refusal::Refusal;
use crate::status_page;

/// Maximum length of the query on Kubernetes' own paths. It is higher there, because selectors may
/// name hundreds of values.
const MAX_API_QUERY_BYTES: usize = 64 * 1024;

/// First segments of the paths that are reviewed here. All other paths are short paths, which are
/// reviewed once the catalog has resolved their resource, or do not exist.
const REVIEWED: [&str; 6] = ["", "api", "apis", "openapi", "version", "metrics"];

/// The state of the guard.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) endpoint: Endpoint,
    pub(crate) access: Access,
}

/// Lets a request pass or refuses it. Counts the response and writes it to the audit log.
pub(crate) async fn guard(
    State(guarded): State<Guarded>,
    mut request: Request,
    next: Next,
) -> Response {
    let Guarded { endpoint, access } = &guarded;
    let inner = &endpoint.inner;
    let is_probe_of_any = is_probe(&request) && !matches!(access, Access::Own);
    let audited = inner.audit.get().filter(|_| !is_probe(&request));
    let audited = audited.map(|log| (log, Audited::of(&mut request)));
    let is_for_page = status_page::is_asked_for(&request);
    let mut caller = None;
    let response = match check(&request, access, &inner.options.allowed_hosts) {
        Ok(()) => match admit(access, request, &mut caller).await {
            Ok(request) => {
                let response = inner.sending.count(caller.as_deref(), next.run(request).await);
                withheld(is_probe_of_any, response)
            }
            Err(refused) => refused,
        },
        Err(refusal) => refusal.into_response(),
    };
    inner.metrics.answered(response.status());
    if let Some((log, asked)) = audited {
        log.record(&asked, caller.as_deref(), &response);
    }
    if is_for_page { status_page::explained(response).await } else { response }
}

/// Authenticates the caller and reviews the request, unless its handler does the review.
async fn admit(
    access: &Access,
    request: Request,
    caller: &mut Option<Arc<Caller>>,
) -> Result<Request, Response> {
    // Probes have no credentials.
    if is_probe(&request) {
        return Ok(request);
    }
    let (mut parts, body) = request.into_parts();
    if matches!(access, Access::Refused) {
        return Err(exposed().into_response());
    }
    let asker = match access.asker(&parts).await {
        Ok(asker) => asker,
        Err(refused) => return Err(refuse(&refused, &parts.headers)),
    };
    *caller = Some(Arc::clone(asker.caller()));
    if let Some(slot) = parts.extensions.get::<Slot>() {
        slot.keep();
    }
    let path = parts.uri.path();
    let first = path.split('/').nth(1).unwrap_or_default();
    if REVIEWED.contains(&first) {
        let query = parts.uri.query().unwrap_or_default();
        let attributes = Attributes::of_request(&parts.method, path, query);
        let permission = match asker.may_lose(&attributes, &parts.headers) {
            Some(permission) => Ok(Some(permission)),
            None => asker.may(attributes).await,
        };
        match permission {
            Ok(Some(permission)) => drop(parts.extensions.insert(permission)),
            Ok(None) => {}
            Err(refused) => return Err(refuse(&refused, &parts.headers)),
        }
    }
    parts.extensions.insert(Arc::clone(asker.caller()));
    parts.extensions.insert(asker);
    Ok(Request::from_parts(parts, body))
}

/// The response to a probe. On an address that other machines can reach it does not name what
/// fails, because a probe needs no credentials.
fn withheld(is_probe_of_any: bool, response: Response) -> Response {
    match is_probe_of_any && !response.status().is_success() {
        true => (response.status(), "not ready: the reason is in the log\n").into_response(),
        false => response,
    }
}

/// The response to a caller who is not authenticated or not allowed.
pub(crate) fn refuse(refused: &Refused, headers: &HeaderMap) -> Response {
    let status = refused.status();
    let mut response = answers::refusal(&status, headers).map(Body::new);
    if status.code == 403 {
        let nosniff = HeaderValue::from_static("nosniff");
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    }
    response
}

/// The error on an address that other machines can reach without TLS.
fn exposed() -> Refusal {
    Refusal::forbidden(
        "this address can be reached from other machines, and without TLS nobody can say who asks: serve with --tls-cert-file and --tls-private-key-file, listen on 127.0.0.1, or accept that everybody who reaches this address reads what you may read with --unprotected-api",
    )
}

/// Whether the request can be forwarded to the API server.
fn is_forwarded(request: &Request<Body>) -> bool {
    let first = request.uri().path().split('/').nth(1);
    matches!(first, Some("api" | "apis" | "openapi" | "version"))
}

/// Whether the request is a health probe. A kubelet sends probes to the address of the Pod, without
/// credentials. The response contains no data of the cluster.
fn is_probe(request: &Request) -> bool {
    matches!(request.uri().path(), "/livez" | "/readyz" | "/healthz")
}

fn check(
    request: &Request<Body>,
    access: &Access,
    allowed_hosts: &[String],
) -> Result<(), Refusal> {
    let host = request.headers().get(HOST).and_then(|it| it.to_str().ok());
    // HTTP/2 requests and requests to a proxy name the host in the URL.
    let host = request.uri().authority().map(http::uri::Authority::as_str).or(host);
    // With access control the check is not needed: the client has verified the name in the
    // certificate, and a page in a browser has no credentials.
    let any_host = is_probe(request) || matches!(access, Access::Controlled(_));
    if !any_host && !is_allowed_host(host.unwrap_or_default(), allowed_hosts) {
        let message = "the gateway does not answer to this host name; add it with --allowed-hosts if it is right";
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, message));
    }
    // Any web page can open a WebSocket to this machine. Only `Origin` tells where the page is
    // from.
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
    keeps_what_is_decided_by(request.headers())?;
    // With access control, impersonation is forwarded with the caller's token, and the API server
    // decides. Everywhere else it is refused.
    if !(is_forwarded(request) && matches!(access, Access::Controlled(_))) {
        not_for_another(request.headers())?;
    }
    let is_api = ["/api/", "/apis/"].iter().any(|it| request.uri().path().starts_with(it));
    let longest = if is_api { MAX_API_QUERY_BYTES } else { MAX_QUERY_BYTES };
    if request.uri().query().is_some_and(|it| it.len() > longest) {
        return Err(Refusal::bad_request(format!("the query is longer than {longest} bytes")));
    }
    Ok(())
}

/// Whether a page of another site embeds the response, for example as an image. Such a request has
/// no `Origin`. Following a link is not embedding.
fn is_embedded(headers: &HeaderMap) -> bool {
    let says = |name: &str, value: &str| {
        headers.get(name).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
    };
    says("sec-fetch-site", "cross-site")
        && !(says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document"))
}

/// Refuses requests whose `Connection` header names headers that identify the caller. They would be
/// used here, but not forwarded, as they would be hop-by-hop headers.
fn keeps_what_is_decided_by(headers: &HeaderMap) -> Result<(), Refusal> {
    for value in headers.get_all(CONNECTION) {
        let named = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        let decides = |name: &&str| {
            *name == AUTHORIZATION.as_str()
                || ["impersonate-", "sec-websocket-"].iter().any(|it| name.starts_with(it))
        };
        if let Some(name) = named.split(',').map(str::trim).find(decides) {
            let message = format!("{name} is no header of one connection");
            return Err(Refusal::bad_request(message));
        }
    }
    Ok(())
}

/// Refuses requests that impersonate another user, because the response would show what the
/// endpoint's account may read.
fn not_for_another(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.keys().find(|it| it.as_str().starts_with("impersonate-")) {
        Some(name) => Err(Refusal::forbidden(format!(
            "{name}: nobody can be impersonated here, since reads are answered from the cache of this endpoint's account; ask the API server itself"
        ))),
        None => Ok(()),
    }
}

/// Whether an `Origin` header names this machine or an allowed host.
fn is_allowed_origin(origin: &str, allowed: &[String]) -> bool {
    let origin = origin.parse::<Uri>().ok();
    let host = origin.as_ref().and_then(Uri::authority).map(http::uri::Authority::as_str);
    host.is_some_and(|host| is_allowed_host(host, allowed))
}

/// Whether a `Host` header names this machine or an allowed host. Otherwise a page in a browser
/// could read through the gateway under the page's own host name (DNS rebinding).
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
            check(&request.body(Body::empty()).unwrap(), &Access::Own, &[]).is_ok()
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
            let refusal = check(&request.unwrap(), &Access::Own, &[]).unwrap_err();
            assert_eq!(refusal.code, StatusCode::FORBIDDEN, "{path}");
        }
    }

    #[test]
    fn connections_do_not_take_away_what_says_who_asks() {
        let of = |values: &[&str]| {
            let mut request = Request::get("http://localhost/api/v1/pods").body(Body::empty());
            for value in values {
                let headers = request.as_mut().unwrap().headers_mut();
                headers.append(CONNECTION, value.parse().unwrap());
            }
            check(&request.unwrap(), &Access::Own, &[]).map_err(|it| it.code.as_u16())
        };
        for values in [
            &["Impersonate-User"][..],
            &["close,impersonate-extra-x"],
            &["Upgrade", "keep-alive , AUTHORIZATION"],
            &["Sec-WebSocket-Protocol, Upgrade"],
        ] {
            assert_eq!(of(values), Err(400), "{values:?}");
        }
        assert_eq!(of(&["Upgrade, keep-alive, x-hop"]), Ok(()));
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
