//! Selects the headers that are forwarded between a caller and the API server.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::access::WEBSOCKET_BEARER;

/// Hop-by-hop headers, which apply to a single connection (RFC 9110, 7.6.1).
const OF_ONE_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Request headers that are not forwarded: credentials, and headers about the route of the request.
/// The HTTP client sets `Host` and the framing of the body, which is streamed.
const OF_THIS_REQUEST: [HeaderName; 7] =
    [AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, VIA];

/// Prefixes of headers in which a front proxy names the caller. They are not forwarded, because no
/// front proxy is trusted here: any caller can send them.
const OF_PROXIES: [&str; 3] = ["x-forwarded-", "x-remote-", "x-real-ip"];

/// The request headers to forward, with the caller's token.
///
/// # Errors
/// If the token is not a valid header value.
pub(super) fn of_request(
    headers: &HeaderMap,
    token: &SecretString,
) -> Result<HeaderMap, http::header::InvalidHeaderValue> {
    let mut passed = end_to_end(headers, |name| {
        OF_THIS_REQUEST.contains(name) || OF_PROXIES.iter().any(|it| name.as_str().starts_with(it))
    });
    let protocols = websocket_protocols(&passed);
    passed.remove(SEC_WEBSOCKET_PROTOCOL);
    if !protocols.is_empty() {
        passed.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_bytes(&protocols)?);
    }
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))?;
    bearer.set_sensitive(true);
    passed.insert(AUTHORIZATION, bearer);
    Ok(passed)
}

/// The WebSocket subprotocols that a request offers, without the one that carries the bearer token:
/// the token is forwarded in `Authorization`.
fn websocket_protocols(headers: &HeaderMap) -> Vec<u8> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let protocols = values.flat_map(|it| it.as_bytes().split(|it| *it == b','));
    let protocols = protocols.map(<[u8]>::trim_ascii);
    let others = protocols.filter(|it| !it.starts_with(WEBSOCKET_BEARER.as_bytes()));
    Vec::from_iter(others).join(&b", "[..])
}

/// The response headers to forward to the caller.
pub(super) fn of_answer(headers: &HeaderMap) -> HeaderMap {
    end_to_end(headers, |name| *name == SET_COOKIE)
}

/// All headers except the hop-by-hop headers and those for which `is_unwanted` returns true.
fn end_to_end(headers: &HeaderMap, is_unwanted: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let named: Vec<_> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','))
        .map(|it| it.trim().to_ascii_lowercase())
        .collect();
    let mut passed = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let is_of_one_hop = OF_ONE_HOP.contains(name) || named.iter().any(|it| name == it.as_str());
        if !is_of_one_hop && !is_unwanted(name) {
            passed.append(name, value.clone());
        }
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_that_names_another_caller_or_concerns_one_connection() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer other"),
            ("cookie", "a=b"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("upgrade", "SPDY/3.1"),
            ("host", "evil.example"),
            ("expect", "100-continue"),
            ("forwarded", "for=1"),
            ("x-forwarded-for", "1"),
            ("x-forwarded-host", "1"),
            ("x-remote-user", "admin"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-scopes", "all"),
            ("x-real-ip", "1"),
            ("accept", "application/json"),
            ("content-type", "application/json"),
            ("impersonate-user", "jane"),
            ("user-agent", "kubectl"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let passed = of_request(&headers, &"mine".into()).unwrap();
        let mut names: Vec<_> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["accept", "authorization", "content-type", "impersonate-user", "user-agent"]
        );
        assert_eq!(passed.get_all(AUTHORIZATION).iter().collect::<Vec<_>>(), ["Bearer mine"]);
        assert!(!format!("{passed:?}").contains("mine"));
        assert!(of_request(&headers, &"a\r\nb".into()).is_err());
    }

    #[test]
    fn a_token_among_the_protocols_of_a_websocket_is_not_passed_on() {
        let bearer = "base64url.bearer.authorization.k8s.io.bWluZQ";
        for (offered, expected) in [
            (&[&*format!("{bearer}, v4.channel.k8s.io,v5")][..], Some("v4.channel.k8s.io, v5")),
            (&["v4", bearer, &format!("v5 ,{bearer}")], Some("v4, v5")),
            (&["v4"], Some("v4")),
            (&[bearer], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in offered {
                headers.append(SEC_WEBSOCKET_PROTOCOL, value.parse().unwrap());
            }
            let passed = of_request(&headers, &"mine".into()).unwrap();
            let passed = Vec::from_iter(passed.get_all(SEC_WEBSOCKET_PROTOCOL));
            assert_eq!(passed, Vec::from_iter(expected), "{offered:?}");
        }
    }

    #[test]
    fn warnings_pass_to_the_caller_and_cookies_do_not() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("warning", "299 - \"old\""),
            ("warning", "299 - \"older\""),
            ("set-cookie", "a=b"),
            ("content-length", "5"),
            ("audit-id", "x"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let passed = of_answer(&headers);
        assert_eq!(passed.get_all("warning").iter().count(), 2);
        assert!(!passed.contains_key("set-cookie") && passed.contains_key("content-length"));
    }
}
