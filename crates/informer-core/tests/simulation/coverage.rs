//! What happened in all histories together, so that nothing is tested in name only.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(pub(crate) BTreeMap<&'static str, u64>);

impl Coverage {
    pub(crate) fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (what, count) in other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    pub(crate) fn print(&self) {
        for (what, count) in &self.0 {
            println!("{count:>10}  {what}");
        }
    }
}

/// What a run has to have shown.
pub(crate) const EXPECTED: &[&str] = &[
    "backed off to the largest step",
    "bookmark",
    "broken item listed",
    "continue token expired",
    "degraded informer lists",
    "degraded, and a watch lives",
    "deleted while listed",
    "event: added",
    "event: added, initial",
    "event: deleted",
    "event: deleted, final state unknown",
    "event: resync",
    "event: updated",
    "fault: ERROR event",
    "fault: a list that is none",
    "fault: closed",
    "fault: closed in a loop",
    "fault: closed within a frame",
    "fault: compressed body",
    "fault: continue token expires",
    "fault: cut",
    "fault: cut within a frame",
    "fault: duplicates in a list",
    "fault: malformed frame",
    "fault: refused once",
    "fault: slow drip",
    "fault: stalled",
    "history changed",
    "history replaced",
    "index function panicked",
    "item without a key listed",
    "list abandoned",
    "list from the future",
    "list in pages",
    "list of nothing usable",
    "older list than asked for",
    "pages of different versions",
    "poisoned event",
    "poisoned event read twice",
    "refresh complete",
    "refresh complete: the history was replaced",
    "refresh complete: the resource was removed",
    "refresh requested behind the server",
    "refusal: 401",
    "refusal: 403",
    "refusal: 410",
    "refusal: 422",
    "refusal: 429",
    "refusal: 429 with Retry-After",
    "refusal: 500",
    "refusal: 503",
    "refusal: 503 with Retry-After",
    "refusal: connection refused",
    "refusal: no answer",
    "refusal: transient 404",
    "refusal: version too large",
    "request: discovery",
    "request: list",
    "request: probe",
    "request: streaming list",
    "request: watch",
    "resource is not there",
    "resource removed for good",
    "retry-after obeyed",
    "state: backing off",
    "state: degraded",
    "state: listing",
    "state: unavailable",
    "state: watching",
    "step: add handler",
    "step: add index",
    "step: block handler",
    "step: burst",
    "step: compact",
    "step: fault",
    "step: keep snapshot",
    "step: leap in time",
    "step: other server settings",
    "step: outage",
    "step: refresh",
    "step: remove handler",
    "step: remove resource",
    "step: restore",
    "step: watches are deaf",
    "step: watches are refused",
    "step: return resource",
    "step: write",
    "step: write elsewhere",
    "spared what was bad",
    "strict, and something is bad",
    "streaming list complete",
    "streaming list failed, and a LIST is next",
    "streaming list refused",
    "streaming list stalled",
    "streaming list without an end",
    "undecodable object deleted",
    "undecodable object listed",
    "undecodable object watched",
    "watch from before a compaction",
    "watch is deaf",
    "watch from the future refused",
    "write: broken",
    "write: broken, and without a name",
    "write: delete",
    "write: delete and create",
    "write: event sent twice",
    "write: oversized",
    "write: poisoned event",
    "write: put",
    "write: refused by the transform",
    "write: replace in one event",
    "write: undecodable",
];
