//! The query of a list or watch, and what contradicts itself in it.

use std::borrow::Cow;
use std::num::{IntErrorKind, ParseIntError};
use std::time::Duration;

use informer_core::selector::{FieldSelector, LabelSelector, SelectableFields};

use crate::backend::At;
use crate::object::Object;
use crate::resource::Resource;
use crate::status::Status;
use crate::token::{Scope, Token};

/// How long a watch may last, in seconds.
const LONGEST_WATCH: u64 = 365 * 24 * 3600;

/// The query of a request, not yet checked for sense. Of a parameter that is given more than once,
/// the first counts.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    labels: LabelSelector,
    fields: FieldSelector,
    limit: i64,
    continue_token: String,
    resource_version: String,
    version_match: String,
    pub(crate) bookmarks: bool,
    timeout_seconds: i64,
    send_initial_events: Option<bool>,
    pub(crate) include_object: String,
    /// Whether a write shall change nothing.
    pub dry_run: bool,
}

/// Which state a list wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListWant {
    /// The newest one that has reached this version.
    Newest {
        reached: Option<u64>,
        at: At,
    },
    Exact(u64),
    Continue(Token),
}

/// Where a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchWant {
    /// With the whole collection, once it has reached this version; then a bookmark, if they are
    /// wanted.
    Everything { reached: Option<u64>, at: At },
    /// With what happens from now on.
    Now,
    /// With what happened after this version.
    After(u64),
}

const NOT_OLDER_THAN: &str = "NotOlderThan";
const EXACT: &str = "Exact";

impl Parameters {
    /// Reads a query.
    ///
    /// # Errors
    /// 400 if a parameter is not what it should be.
    pub fn parse(query: &str) -> Result<Self, Status> {
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let first =
            |wanted: &str| pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value);
        let text = |name: &str| first(name).unwrap_or_default().to_owned();
        let boolean = |name: &str| first(name).map(boolean);
        let number = |name: &str| first(name).map_or(Ok(0), integer);
        // In the order in which an API server reads them: the first fault is told.
        let labels = first("labelSelector").unwrap_or_default();
        let labels = labels.parse().map_err(|error| {
            Status::bad_request(format!("unable to parse requirement: {error}"))
        })?;
        let fields = first("fieldSelector").unwrap_or_default();
        let fields = fields.parse().map_err(|_| bad_field_selector(fields))?;
        Ok(Self {
            labels,
            fields,
            bookmarks: boolean("allowWatchBookmarks").unwrap_or_default(),
            resource_version: text("resourceVersion"),
            version_match: text("resourceVersionMatch"),
            timeout_seconds: number("timeoutSeconds")?,
            limit: number("limit")?,
            continue_token: text("continue"),
            send_initial_events: boolean("sendInitialEvents"),
            include_object: text("includeObject"),
            dry_run: first("dryRun").is_some_and(|value| !value.is_empty()),
        })
    }

    /// Reads the query of a request for one object. API servers look at few parameters there.
    pub(crate) fn of_get(query: &str) -> Self {
        let mut parameters = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match &*name {
                "resourceVersion" => &mut parameters.resource_version,
                "includeObject" => &mut parameters.include_object,
                _ => continue,
            };
            if place.is_empty() {
                *place = value.into_owned();
            }
        }
        parameters
    }

    /// As a server reads them that does not know streaming lists.
    pub(crate) fn without_streaming_lists(mut self) -> Self {
        self.send_initial_events = None;
        self.version_match.clear();
        self
    }

    /// Whether the query has `sendInitialEvents`, with either value.
    pub(crate) fn mentions_initial_events(&self) -> bool {
        self.send_initial_events.is_some()
    }

    /// When a watch ends, if it says so: after a year at the most, since clocks end, too.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let seconds = u64::try_from(self.timeout_seconds).unwrap_or(0);
        (self.timeout_seconds != 0).then(|| Duration::from_secs(seconds.min(LONGEST_WATCH)))
    }

    /// Which state a list wants; in a namespace, or of a resource that has none or all of them.
    pub(crate) fn list_want(&self, scope: Scope<'_>) -> Result<ListWant, Status> {
        let mut faults = Vec::new();
        if !self.version_match.is_empty() {
            if self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                faults.push(forbidden("resourceVersionMatch", why));
            }
            if !self.continue_token.is_empty() {
                faults.push(forbidden_continue());
            }
            if !matches!(self.version_match.as_str(), EXACT | NOT_OLDER_THAN) {
                faults.push(self.unsupported_match("\"Exact\", \"NotOlderThan\", \"\""));
            }
            if self.version_match == EXACT && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                faults.push(forbidden("resourceVersionMatch", why));
            }
        }
        if self.send_initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            faults.push(forbidden("sendInitialEvents", why));
        }
        check(&faults)?;
        if !self.continue_token.is_empty() {
            let token = Token::decode(&self.continue_token, scope)?;
            if !matches!(self.resource_version.as_str(), "" | "0") {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            return Ok(ListWant::Continue(token));
        }
        let version = self
            .version()
            .map_err(|fault| Status::bad_request(format!("invalid resource version: {fault}")))?;
        Ok(match (version, self.version_match.as_str()) {
            (Some(version), EXACT) => ListWant::Exact(version),
            // Without a match, a page of a certain version means exactly that version.
            (Some(version), "") if self.limit > 0 => ListWant::Exact(version),
            (reached, _) => ListWant::Newest { reached, at: self.at() },
        })
    }

    /// The limit that counts: lists at version 0 come from a cache and are not cut into pages.
    pub(crate) fn effective_limit(&self) -> Option<usize> {
        let limit = usize::try_from(self.limit).unwrap_or(0);
        (limit > 0 && self.resource_version != "0").then_some(limit)
    }

    /// Where a watch starts.
    pub(crate) fn watch_want(&self) -> Result<WatchWant, Status> {
        let legacy = self.legacy_watch();
        let (sends, version_match) = match legacy {
            Some(()) => (Some(true), NOT_OLDER_THAN),
            None => (self.send_initial_events, self.version_match.as_str()),
        };
        let mut faults = Vec::new();
        if sends.is_some() && version_match != NOT_OLDER_THAN {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            faults.push(forbidden("resourceVersionMatch", why));
        }
        if !version_match.is_empty() {
            if sends.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                faults.push(forbidden("resourceVersionMatch", why));
            }
            if version_match != NOT_OLDER_THAN {
                faults.push(self.unsupported_match("\"NotOlderThan\""));
            }
            if !self.continue_token.is_empty() {
                faults.push(forbidden_continue());
            }
        }
        check(&faults)?;
        Ok(match (sends, self.named_version()?) {
            (Some(true), reached) => WatchWant::Everything { reached, at: self.at() },
            (None, None) => WatchWant::Everything { reached: None, at: self.at() },
            (Some(false), None) => WatchWant::Now,
            (_, Some(version)) => WatchWant::After(version),
        })
    }

    /// The version that a get or a watch names, if it is neither empty nor 0.
    pub(crate) fn named_version(&self) -> Result<Option<u64>, Status> {
        // An API server takes this for a fault of its own.
        self.version().map_err(|fault| Status::new(500, "", fault))
    }

    /// Which state is wanted by who names no version, or 0.
    pub(crate) fn at(&self) -> At {
        if self.resource_version == "0" { At::Any } else { At::Newest }
    }

    /// A watch from nowhere says nothing of initial events, and gets them.
    fn legacy_watch(&self) -> Option<()> {
        let says_nothing = self.send_initial_events.is_none() && self.version_match.is_empty();
        (says_nothing && matches!(self.resource_version.as_str(), "" | "0")).then_some(())
    }

    fn version(&self) -> Result<Option<u64>, String> {
        let text = self.resource_version.as_str();
        match text {
            "" => Ok(None),
            _ if text.bytes().all(|byte| byte.is_ascii_digit()) => text
                .parse()
                .map(|version| Some(version).filter(|version| *version > 0))
                .map_err(|_| "value out of range"),
            _ => Err("invalid syntax"),
        }
        .map_err(|fault| {
            format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {fault}"
            )
        })
    }

    fn unsupported_match(&self, supported: &str) -> (&'static str, String) {
        let text = &self.version_match;
        let fault = format!("Unsupported value: {text:?}: supported values: {supported}");
        ("resourceVersionMatch", fault)
    }

    /// How many requirements the selectors have, and values in them: what it costs to compare an
    /// object with them, and at most the length of the query.
    #[must_use]
    pub fn selector_terms(&self) -> usize {
        let labels = self.labels.requirements().iter().map(|it| 1 + it.values().len());
        labels.sum::<usize>() + 2 * self.fields.requirements().len()
    }

    /// The selectors, as far as the resource supports them.
    ///
    /// # Errors
    /// If they cannot be read, or name a field that the resource does not select by.
    pub fn selectors(&self, resource: &Resource) -> Result<Selectors, Status> {
        let selectable = resource.fields();
        selectable.check(&self.fields).map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(Selectors { labels: self.labels.clone(), fields: self.fields.clone(), selectable })
    }
}

fn forbidden(field: &'static str, why: &str) -> (&'static str, String) {
    (field, format!("Forbidden: {why}"))
}

fn forbidden_continue() -> (&'static str, String) {
    forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
}

fn check(faults: &[(&str, String)]) -> Result<(), Status> {
    match faults {
        [] => Ok(()),
        faults => Err(Status::invalid_fields("meta.k8s.io", "ListOptions", "", faults)),
    }
}

/// A number as Go reads it, with its words if it is none.
fn integer(text: &str) -> Result<i64, Status> {
    text.parse().map_err(|error: ParseIntError| {
        let fault = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {fault}"))
    })
}

/// Tells the first term that has no operator.
fn bad_field_selector(text: &str) -> Status {
    let mut terms = text.split(',');
    let term = terms.find(|term| !term.contains('=')).unwrap_or(text);
    Status::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'"))
}

/// The selectors of a request.
#[derive(Debug, Clone)]
pub struct Selectors {
    labels: LabelSelector,
    fields: FieldSelector,
    selectable: SelectableFields,
}

impl Selectors {
    /// They select every object.
    pub(crate) fn everything(resource: &Resource) -> Self {
        let (labels, fields) = (LabelSelector::default(), FieldSelector::default());
        Self { labels, fields, selectable: resource.fields() }
    }

    pub(crate) fn labels(&self) -> &LabelSelector {
        &self.labels
    }

    pub(crate) fn fields(&self) -> &FieldSelector {
        &self.fields
    }

    /// The value of a field as it is compared.
    pub(crate) fn field<'o>(&self, field: &str, object: &'o impl Object) -> Cow<'o, str> {
        self.selectable.value(field, |path| Some(object.field(path)))
    }

    pub(crate) fn are_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether both select the object.
    #[must_use]
    pub fn select(&self, object: &impl Object) -> bool {
        let value = |field: &str| Some(self.field(field, object));
        (self.labels.is_everything() || self.labels.matches(|key| object.label(key)))
            && (self.fields.is_everything() || self.fields.matches(value))
    }
}

/// As the API server reads booleans in a query: anything but a clear no is a yes.
pub(crate) fn boolean(text: &str) -> bool {
    text != "0" && !text.eq_ignore_ascii_case("false")
}

#[cfg(test)]
mod tests;
