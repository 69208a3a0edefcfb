//! What a request is, beside a plain read.

use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method};
use k8s_serve::ResourcePath;

use crate::forward::is_long;
use crate::refusal::Refusal;

/// Whether a request lasts as long as its caller wants.
pub(super) fn lasts(parts: &Parts, path: &ResourcePath, query: &str) -> bool {
    is_long(path, path.verb(&parts.method, query), query) || asks_for_upgrade(&parts.headers)
}

/// Refuses everything that is no plain read.
pub(super) fn reads_only(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    if *method != Method::GET && *method != Method::HEAD {
        let message = format!(
            "{method} is not answered here: this endpoint reads, with an account of its own; send writes to the API server itself"
        );
        return Err(Refusal::forbidden(message));
    }
    if headers.contains_key(UPGRADE) || asks_for_upgrade(headers) {
        let message = "upgraded connections are not answered here: use plain HTTP for watches, and the API server itself for exec, attach, port-forward and proxy";
        return Err(Refusal::forbidden(message));
    }
    Ok(())
}

fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|it| it.to_str().ok());
    values.flat_map(|it| it.split(',')).any(|it| it.trim().eq_ignore_ascii_case("upgrade"))
}
