//! What a request is, beside a plain read.

use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method};
use k8s_serve::{Parameters, ResourcePath, Verb};

use crate::forward::is_long;
use crate::gateway::MAX_QUERY_BYTES;
use crate::refusal::Refusal;

/// How many requirements and values the selectors of a watch may have. Each change of a collection
/// is compared with those of all its watches before anything else is read of it.
pub(crate) const MAX_WATCH_TERMS: usize = 100;

/// Whether a request lasts as long as its caller wants.
pub(super) fn lasts(parts: &Parts, path: &ResourcePath, query: &str) -> bool {
    is_long(path, path.verb(&parts.method, query), query) || asks_for_upgrade(&parts.headers)
}

/// Whether a request is a watch whose selectors are left to the API server: they have too many
/// terms, or are too long.
pub(super) fn selects_too_finely(verb: Verb, query: &str) -> bool {
    // The query of most is shorter than as many terms.
    if verb != Verb::Watch || query.len() <= MAX_WATCH_TERMS {
        return false;
    }
    query.len() > MAX_QUERY_BYTES
        || Parameters::parse(query).is_ok_and(|it| it.selector_terms() > MAX_WATCH_TERMS)
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
