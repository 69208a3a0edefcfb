//! Detects requests that are not plain reads.

use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method};
use k8s_serve::{Parameters, ResourcePath, Verb};

use crate::forward::is_long;
use crate::gateway::MAX_QUERY_BYTES;
use crate::refusal::Refusal;

/// Maximum number of requirements and values in the selectors of a watch. Each change of a
/// collection is compared with the selectors of all its watches, so large selectors would delay all
/// of them.
pub(crate) const MAX_WATCH_TERMS: usize = 100;

/// Whether a request may stay open without a time limit.
pub(super) fn lasts(parts: &Parts, path: &ResourcePath, query: &str) -> bool {
    is_long(path, path.verb(&parts.method, query), query) || asks_for_upgrade(&parts.headers)
}

/// Whether a request is a watch whose selectors have too many terms or are too long. The API server
/// must answer it.
pub(super) fn selects_too_finely(verb: Verb, query: &str) -> bool {
    // A query this short cannot have too many terms, so most queries need not be parsed.
    if verb != Verb::Watch || query.len() <= MAX_WATCH_TERMS {
        return false;
    }
    query.len() > MAX_QUERY_BYTES
        || Parameters::parse(query).is_ok_and(|it| it.selector_terms() > MAX_WATCH_TERMS)
}

/// Refuses every request that is not a plain read.
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
