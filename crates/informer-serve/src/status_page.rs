//! The status page: what `/` answers to browsers.
//!
//! | path | |
//! |---|---|
//! | `/` | the page, to clients that accept `text/html` |
//! | `/ui/style.css`, `/ui/page/*.js` | its parts, reviewed as `/` |
//! | `/ui/collections` | what is held, as far as the caller may list it |
//! | `/ui/changes` | changes of what the caller may watch, field by field, a line of JSON each |
//!
//! Objects are read by the page from Kubernetes' own paths. It stores nothing and knows no token.

mod changes;
mod collections;
mod fields;
mod query;
mod refused;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;

use crate::access::{Asker, Attributes};
use crate::endpoint::Endpoint;
use crate::gateway::HELP;
use crate::guard::refuse;
use crate::refusal::Refusal;

pub(crate) use refused::explained;

const PAGE: &str = include_str!("status_page/index.html");

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// What the page loads, below `/ui/`: name, content type, text. Modules import each other by
/// relative names, so that they are found below any prefix.
pub(crate) const PARTS: [(&str, &str, &str); 14] = [
    ("style.css", STYLE, include_str!("status_page/style.css")),
    ("page/main.js", SCRIPT, include_str!("status_page/page/main.js")),
    ("page/text.js", SCRIPT, include_str!("status_page/page/text.js")),
    ("page/state.js", SCRIPT, include_str!("status_page/page/state.js")),
    ("page/connection.js", SCRIPT, include_str!("status_page/page/connection.js")),
    ("page/discovery.js", SCRIPT, include_str!("status_page/page/discovery.js")),
    ("page/streams.js", SCRIPT, include_str!("status_page/page/streams.js")),
    ("page/collections.js", SCRIPT, include_str!("status_page/page/collections.js")),
    ("page/list.js", SCRIPT, include_str!("status_page/page/list.js")),
    ("page/changes.js", SCRIPT, include_str!("status_page/page/changes.js")),
    ("page/change_rows.js", SCRIPT, include_str!("status_page/page/change_rows.js")),
    ("page/objects.js", SCRIPT, include_str!("status_page/page/objects.js")),
    ("page/detail.js", SCRIPT, include_str!("status_page/page/detail.js")),
    ("page/yaml.js", SCRIPT, include_str!("status_page/page/yaml.js")),
];

/// Nothing but the parts of the page, from where it came.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// An endpoint as the page tells it from others.
#[derive(Debug)]
pub(crate) struct Run {
    id: String,
    started: Timestamp,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self { id: format!("{:016x}", fastrand::u64(..)), started: Timestamp::now() }
    }
}

pub(crate) fn router() -> Router<Endpoint> {
    let router = Router::new()
        .route("/", get(index))
        .route("/ui/collections", get(collections::answer))
        .route("/ui/changes", get(changes::answer));
    PARTS.into_iter().fold(router, |router, (name, content_type, text)| {
        router.route(&format!("/ui/{name}"), get(move |it: Request| part(it, content_type, text)))
    })
}

/// Whether a browser asks for the page.
pub(crate) fn is_asked_for(request: &Request) -> bool {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    is_read && request.uri().path() == "/" && accepts_html(request.headers())
}

async fn index(request: Request) -> Response {
    let mut response = match accepts_html(request.headers()) {
        true => with_policy(([(CONTENT_TYPE, HTML)], PAGE).into_response()),
        false => HELP.into_response(),
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// A part of the page: nothing that `/` would not tell.
async fn part(request: Request, content_type: &'static str, text: &'static str) -> Response {
    let Some(asker) = request.extensions().get::<Asker>() else {
        return Refusal::unguarded().into_response();
    };
    if let Err(refused) = asker.may(Attributes::of_path(request.method(), "/")).await {
        return refuse(&refused, request.headers());
    }
    with_policy(([(CONTENT_TYPE, content_type)], text).into_response())
}

/// Lets browsers do with an answer what the page needs, and nothing else.
fn with_policy(mut response: Response) -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
        // Another version may be there after a restart.
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let mut types = values.flat_map(|it| it.split(',')).map(|it| it.split(';').next());
    types.any(|it| it.is_some_and(|it| it.trim().eq_ignore_ascii_case("text/html")))
}
