//! Events, in both of their groups.

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::text::{lower, parse_time};
use super::view::View;

pub(super) static KINDS: [BuiltIn; 2] = [
    BuiltIn::new("", "Event", &definitions::EVENT, |it| event(it, &CORE)),
    BuiltIn::new("events.k8s.io", "Event", &definitions::EVENT, |it| event(it, &NEW)),
];

/// What the two groups call the same fields.
struct Names {
    object: &'static str,
    message: &'static str,
    source: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    reporter: &'static str,
}

const CORE: Names = Names {
    object: "involvedObject",
    message: "message",
    source: "source",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
    reporter: "reportingComponent",
};
const NEW: Names = Names {
    object: "regarding",
    message: "note",
    source: "deprecatedSource",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
    reporter: "reportingController",
};

fn event(it: View<'_>, names: &Names) -> Vec<Value> {
    let first = match parse_time(it.text(names.first)) {
        Some(_) => it.since(names.first),
        None => it.since("eventTime"),
    };
    let (last, count) = match it.at("series") {
        Some(series) => (series.since("lastObservedTime"), series.integer("count")),
        None => {
            let last = match parse_time(it.text(names.last)) {
                Some(_) => it.since(names.last),
                None => first.clone(),
            };
            // New events that happened once have no count.
            let count = Some(it.integer(names.count)).filter(|it| *it != 0).unwrap_or(1);
            (last, count)
        }
    };
    let object = it.at(names.object);
    let of_object = |path| object.map_or("", |it| it.text(path));
    let kind = lower(of_object("kind"));
    let target = match of_object("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    cells![
        last,
        it.text("type"),
        it.text("reason"),
        target,
        of_object("fieldPath"),
        source(it, names),
        it.text(names.message).trim(),
        first,
        count,
        it.name(),
    ]
}

/// What reported the event, and where.
fn source(it: View<'_>, names: &Names) -> String {
    let source = it.at(names.source);
    let of_source = |path, otherwise| match source.map_or("", |it| it.text(path)) {
        "" => it.text(otherwise),
        text => text,
    };
    let component = of_source("component", names.reporter);
    match of_source("host", "reportingInstance") {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
