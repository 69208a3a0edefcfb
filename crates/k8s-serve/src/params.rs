//! The query of a list or watch, and what contradicts itself in it.

use std::time::Duration;

use informer_core::selector::{FieldSelector, LabelSelector, SelectableFields};

use crate::backend::At;
use crate::object::Object;
use crate::resource::Resource;
use crate::status::Status;
use crate::token::Token;

/// The query of a request, not yet checked for sense.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) send_initial_events: Option<bool>,
    /// Whether a write shall change nothing.
    pub dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
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

impl Parameters {
    /// Reads a query.
    ///
    /// # Errors
    /// If a parameter is not what it should be.
    pub fn parse(query: &str) -> Result<Self, Status> {
        let mut parameters = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let bad = |expected: &str| {
                Status::bad_request(format!(
                    "the query parameter {name} must be {expected}, not {value:?}"
                ))
            };
            match &*name {
                "labelSelector" => parameters.label_selector = value.into_owned(),
                "fieldSelector" => parameters.field_selector = value.into_owned(),
                "limit" => parameters.limit = value.parse().map_err(|_| bad("a number"))?,
                "continue" => parameters.continue_token = value.into_owned(),
                "resourceVersion" => parameters.resource_version = value.into_owned(),
                "allowWatchBookmarks" => parameters.bookmarks = boolean(&value),
                "sendInitialEvents" => parameters.send_initial_events = Some(boolean(&value)),
                "timeoutSeconds" => {
                    let seconds: u64 = value.parse().map_err(|_| bad("a number of seconds"))?;
                    parameters.timeout = (seconds > 0).then(|| Duration::from_secs(seconds));
                }
                "dryRun" => parameters.dry_run = !value.is_empty(),
                "resourceVersionMatch" => {
                    parameters.version_match = match &*value {
                        "" => None,
                        "Exact" => Some(VersionMatch::Exact),
                        "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                        other => {
                            let fault = format!(
                                "Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\""
                            );
                            return Err(Status::invalid_list_options(
                                "resourceVersionMatch",
                                &fault,
                            ));
                        }
                    };
                }
                _ => {}
            }
        }
        Ok(parameters)
    }

    /// The version, if one is given that is neither empty nor 0.
    pub(crate) fn version(&self) -> Result<Option<u64>, Status> {
        match self.resource_version.as_str() {
            "" | "0" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Status::bad_request(format!(
                    "resourceVersion: Invalid value: {text:?}: must be a decimal number"
                ))
            }),
        }
    }

    /// Which state is wanted by who names no version, or 0.
    pub(crate) fn at(&self) -> At {
        if self.resource_version == "0" { At::Any } else { At::Newest }
    }

    /// Which state a list wants.
    pub(crate) fn list_want(&self) -> Result<ListWant, Status> {
        let forbidden = |field: &str, why: &str| {
            Err(Status::invalid_list_options(field, &format!("Forbidden: {why}")))
        };
        if self.send_initial_events.is_some() {
            return forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        if self.version_match.is_some() && !self.continue_token.is_empty() {
            return forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            );
        }
        if self.version_match.is_some() && self.resource_version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            return forbidden("resourceVersionMatch", why);
        }
        if self.version_match == Some(VersionMatch::Exact) && self.resource_version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            return forbidden("resourceVersionMatch", why);
        }
        if !self.continue_token.is_empty() {
            if !matches!(self.resource_version.as_str(), "" | "0") {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            return Token::decode(&self.continue_token).map(ListWant::Continue);
        }
        Ok(match (self.version()?, self.version_match) {
            (Some(version), Some(VersionMatch::Exact)) => ListWant::Exact(version),
            // Without a match, a page of a certain version means exactly that version.
            (Some(version), None) if self.limit > 0 => ListWant::Exact(version),
            (reached, _) => ListWant::Newest { reached, at: self.at() },
        })
    }

    /// The limit that counts: lists at version 0 come from a cache and are not cut into pages.
    pub(crate) fn effective_limit(&self) -> Option<usize> {
        (self.limit > 0 && self.resource_version != "0").then_some(self.limit)
    }

    /// Where a watch starts.
    pub(crate) fn watch_want(&self) -> Result<WatchWant, Status> {
        let forbidden = |field: &str, why: &str| {
            Err(Status::invalid_list_options(field, &format!("Forbidden: {why}")))
        };
        if !self.continue_token.is_empty() {
            return forbidden("continue", "continue is forbidden for watch");
        }
        match (self.send_initial_events, self.version_match) {
            (Some(_), Some(VersionMatch::NotOlderThan)) | (None, None) => {}
            (Some(_), _) => {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return forbidden("resourceVersionMatch", why);
            }
            (None, Some(_)) => {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                return forbidden("resourceVersionMatch", why);
            }
        }
        Ok(match (self.send_initial_events, self.version()?) {
            (Some(true), reached) => WatchWant::Everything { reached, at: self.at() },
            (None, None) => WatchWant::Everything { reached: None, at: self.at() },
            (Some(false), None) => WatchWant::Now,
            (_, Some(version)) => WatchWant::After(version),
        })
    }

    /// The selectors, as far as the resource supports them.
    ///
    /// # Errors
    /// If they cannot be read, or name a field that the resource does not select by.
    pub fn selectors(&self, resource: &Resource) -> Result<Selectors, Status> {
        Selectors::parse(resource, &self.label_selector, &self.field_selector)
    }
}

/// The selectors of a request.
#[derive(Debug, Clone)]
pub struct Selectors {
    labels: LabelSelector,
    fields: FieldSelector,
    selectable: SelectableFields,
}

impl Selectors {
    /// Reads selectors and checks them against what the resource supports.
    fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = labels.parse().map_err(|error| {
            Status::bad_request(format!("unable to parse requirement: {error}"))
        })?;
        let fields = fields
            .parse()
            .map_err(|error| Status::bad_request(format!("invalid field selector: {error}")))?;
        let selectable = resource.fields();
        selectable.check(&fields).map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(Self { labels, fields, selectable })
    }

    pub(crate) fn are_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether both select the object.
    #[must_use]
    pub fn select(&self, object: &impl Object) -> bool {
        let value =
            |label: &str| Some(self.selectable.value(label, |path| Some(object.field(path))));
        (self.labels.is_everything() || self.labels.matches(|key| object.label(key)))
            && (self.fields.is_everything() || self.fields.matches(value))
    }
}

/// As the API server reads booleans in a query: anything but a clear no is a yes.
fn boolean(text: &str) -> bool {
    !matches!(text, "false" | "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_options_mean_what_the_documentation_says() {
        let newest = |reached| Ok(ListWant::Newest { reached, at: At::Newest });
        for (query, want) in [
            ("", newest(None)),
            ("resourceVersion=0&limit=5", Ok(ListWant::Newest { reached: None, at: At::Any })),
            ("resourceVersion=7", newest(Some(7))),
            ("resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=5", newest(Some(7))),
            ("resourceVersion=7&limit=5", Ok(ListWant::Exact(7))),
            ("resourceVersion=7&resourceVersionMatch=Exact", Ok(ListWant::Exact(7))),
            ("resourceVersion=0&resourceVersionMatch=Exact", Err(422)),
            ("resourceVersionMatch=Exact", Err(422)),
            ("resourceVersion=1&resourceVersionMatch=Newer", Err(422)),
            ("sendInitialEvents=true", Err(422)),
            ("continue=7a&resourceVersionMatch=Exact", Err(422)),
            ("continue=7a&resourceVersion=7", Err(400)),
            ("continue=7a", Err(400)),
            ("resourceVersion=abc", Err(400)),
            ("limit=-1", Err(400)),
        ] {
            let got =
                Parameters::parse(query).and_then(|p| p.list_want()).map_err(|status| status.code);
            assert_eq!(got, want, "{query}");
        }
    }

    #[test]
    fn watch_options_mean_what_the_documentation_says() {
        for (query, want) in [
            ("", Ok(WatchWant::Everything { reached: None, at: At::Newest })),
            ("resourceVersion=0", Ok(WatchWant::Everything { reached: None, at: At::Any })),
            ("resourceVersion=7", Ok(WatchWant::After(7))),
            (
                "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=7",
                Ok(WatchWant::Everything { reached: Some(7), at: At::Newest }),
            ),
            ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", Ok(WatchWant::Now)),
            (
                "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=7",
                Ok(WatchWant::After(7)),
            ),
            ("sendInitialEvents=true", Err(422)),
            ("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=7", Err(422)),
            ("resourceVersionMatch=NotOlderThan&resourceVersion=7", Err(422)),
            ("continue=7a", Err(422)),
        ] {
            let got =
                Parameters::parse(query).and_then(|p| p.watch_want()).map_err(|status| status.code);
            assert_eq!(got, want, "{query}");
        }
    }

    #[test]
    fn fields_that_a_resource_does_not_index_are_refused() {
        let pods = Resource {
            selectable_fields: vec!["spec.nodeName".to_owned()],
            ..Resource::new("", "v1", "pods", "Pod")
        };
        assert!(Selectors::parse(&pods, "", "spec.nodeName=a,metadata.name!=b").is_ok());
        assert_eq!(
            Selectors::parse(&pods, "", "spec.image=a").map_err(|s| s.code).err(),
            Some(400)
        );
        assert_eq!(Selectors::parse(&pods, "a in (", "").map_err(|s| s.code).err(), Some(400));
    }
}
