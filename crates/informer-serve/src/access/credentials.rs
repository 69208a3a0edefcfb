//! The credentials in a request.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{Extensions, HeaderMap};
use k8s_serve::websocket;
use secrecy::SecretString;

use super::certificate::Peer;
use crate::audit::RemoteAddress;

/// The prefix of the WebSocket subprotocol in which browsers send the token, since they cannot set
/// headers.
pub(crate) const WEBSOCKET_BEARER: &str = "base64url.bearer.authorization.k8s.io.";

/// The credentials of a request, in order of precedence. Headers of an authenticating proxy are not
/// credentials.
#[derive(Clone, Default)]
pub(crate) struct Presented {
    pub(super) certificate: Option<Peer>,
    pub(super) token: Option<Arc<SecretString>>,
    /// The remote address of the request.
    pub(super) address: Option<IpAddr>,
}

impl Presented {
    /// Reads the credentials of a request as kube-apiserver does.
    pub(super) fn of(headers: &HeaderMap, extensions: &Extensions) -> Self {
        let token = bearer(headers).or_else(|| websocket_bearer(headers));
        let token = token.map(|it| Arc::new(SecretString::from(it)));
        let address = extensions.get::<RemoteAddress>().map(|it| it.0.ip());
        Self { certificate: extensions.get::<Peer>().cloned(), token, address }
    }
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let mut words = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().splitn(3, ' ');
    let is_bearer = words.next()?.eq_ignore_ascii_case("bearer");
    let token = words.next().filter(|it| is_bearer && !it.is_empty())?;
    Some(token.to_owned())
}

fn websocket_bearer(headers: &HeaderMap) -> Option<String> {
    if !websocket::is_requested(headers) {
        return None;
    }
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let protocols = values.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    let (tokens, others): (Vec<_>, Vec<_>) =
        protocols.map(str::trim).partition(|it| it.starts_with(WEBSOCKET_BEARER));
    let [token] = tokens[..] else { return None };
    // The server selects one of the other subprotocols. The one with the token must not be in the
    // response.
    if others.is_empty() {
        return None;
    }
    let token = URL_SAFE_NO_PAD.decode(token.strip_prefix(WEBSOCKET_BEARER)?).ok()?;
    String::from_utf8(token).ok().filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use secrecy::ExposeSecret;

    use super::*;

    fn token(pairs: &[(&'static str, &str)]) -> Option<String> {
        let pairs =
            pairs.iter().map(|(key, value)| (HeaderName::from_static(key), value.parse().unwrap()));
        let presented = Presented::of(&pairs.collect(), &Extensions::new());
        presented.token.map(|it| it.expose_secret().to_owned())
    }

    #[test]
    fn bearer_tokens_are_read_as_by_an_api_server() {
        for (value, expected) in [
            ("Bearer a.b.c", Some("a.b.c")),
            ("bearer a", Some("a")),
            ("  BEARER a more", Some("a")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Bearer  a", None),
            ("Basic YTpi", None),
            ("a", None),
        ] {
            assert_eq!(token(&[("authorization", value)]).as_deref(), expected, "{value}");
        }
        assert_eq!(token(&[]), None);
    }

    #[test]
    fn headers_of_a_proxy_are_no_credentials() {
        let forged = [
            ("x-remote-user", "admin"),
            ("x-remote-group", "system:masters"),
            ("x-forwarded-user", "a"),
        ];
        assert_eq!(token(&forged), None);
    }

    #[test]
    fn tokens_of_websocket_clients_are_read() {
        let upgrade = [("upgrade", "websocket"), ("connection", "Upgrade")];
        let with = |protocols: &str| {
            let protocols = [("sec-websocket-protocol", protocols)];
            token(&[&upgrade[..], &protocols].concat())
        };
        let bearer = "base64url.bearer.authorization.k8s.io.aHVudGVyMg";
        assert_eq!(with(&format!("{bearer}, v4")).as_deref(), Some("hunter2"));
        assert_eq!(with(bearer), None, "nothing would be left to agree on");
        assert_eq!(with(&format!("{bearer},{bearer},v4")), None, "two of them");
        assert_eq!(with("base64url.bearer.authorization.k8s.io.!,v4"), None);
        assert_eq!(with("v4"), None);
        let without_upgrade = format!("{bearer}, v4");
        assert_eq!(token(&[("sec-websocket-protocol", &without_upgrade)]), None);
    }
}
