//! What the page asks for.

use std::collections::HashMap;

use informer::{LabelSelector, Resource};

use crate::access::{Attributes, ResourceAttributes};
use crate::api::MAX_WATCH_TERMS;
use crate::refusal::Refusal;

/// Maximum number of past changes.
const MAX_LAST: usize = 1000;
/// Maximum number of resources in one query.
const MAX_RESOURCES: usize = 64;

/// The query of a request for changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangesQuery {
    /// Names as for kubectl; none for all that is held.
    pub(crate) resources: Vec<String>,
    /// `None` for all.
    pub(crate) namespace: Option<String>,
    pub(crate) labels: LabelSelector,
    /// One object only.
    pub(crate) name: Option<String>,
    /// The versions up to which the changes of resources are known already.
    pub(crate) after: HashMap<String, u64>,
    /// Number of past changes.
    pub(crate) last: usize,
    /// Whether the answer ends after the past changes.
    pub(crate) ends: bool,
}

impl ChangesQuery {
    /// # Errors
    /// A message for the author of the query.
    pub(crate) fn parse(query: &str) -> Result<Self, Refusal> {
        let mut parsed = Self::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = |why: &str| Refusal::bad_request(format!("{key}={value}: {why}"));
            match &*key {
                _ if value.is_empty() => {}
                "resource" => parsed.resources.push(value.into_owned()),
                "namespace" => parsed.namespace = Some(value.into_owned()),
                "name" => parsed.name = Some(value.into_owned()),
                "labelSelector" => {
                    parsed.labels =
                        value.parse().map_err(|it| Refusal::bad_request(format!("{it}")))?;
                }
                "after" => {
                    let (resource, version) =
                        value.rsplit_once('@').ok_or_else(|| wrong("expected RESOURCE@VERSION"))?;
                    let version =
                        version.parse().map_err(|_| wrong("expected RESOURCE@VERSION"))?;
                    parsed.after.insert(resource.to_owned(), version);
                }
                "last" => {
                    let last: usize = value.parse().map_err(|_| wrong("expected a number"))?;
                    parsed.last = last.min(MAX_LAST);
                }
                "follow" => parsed.ends = value == "false",
                _ => {
                    return Err(wrong(
                        "no such parameter; there are resource, namespace, name, labelSelector, after, last and follow",
                    ));
                }
            }
        }
        if parsed.name.is_some() && parsed.resources.len() != 1 {
            return Err(Refusal::bad_request("name: name one resource with it"));
        }
        if parsed.resources.len() > MAX_RESOURCES {
            let message = format!("resource: at most {MAX_RESOURCES} at a time");
            return Err(Refusal::bad_request(message));
        }
        let terms = parsed.labels.requirements().iter().map(|it| 1 + it.values().len());
        if terms.sum::<usize>() > MAX_WATCH_TERMS {
            let message =
                format!("labelSelector: at most {MAX_WATCH_TERMS} requirements and values");
            return Err(Refusal::bad_request(message));
        }
        Ok(parsed)
    }

    /// What a watch of one of the resources is reviewed as.
    pub(crate) fn attributes(&self, resource: &Resource, namespace: Option<&str>) -> Attributes {
        let attributes = ResourceAttributes {
            verb: "watch".into(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: self.name.clone().unwrap_or_default(),
            ..of(resource)
        };
        // The name is a selector of the watch that this is.
        let fields = self.field_selector().parse().unwrap_or_default();
        Attributes::Resource(Box::new(attributes.with_selectors(fields, self.labels.clone())))
    }

    /// The selectors as the query of a watch.
    pub(crate) fn selectors(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("labelSelector", &self.labels.to_string());
        query.append_pair("fieldSelector", &self.field_selector());
        query.finish()
    }

    fn field_selector(&self) -> String {
        let name = self.name.as_deref();
        name.map(|it| format!("metadata.name={}", escaped(it))).unwrap_or_default()
    }
}

/// What the list of a resource is reviewed as.
pub(crate) fn of_list(resource: &Resource, namespace: Option<&str>) -> Attributes {
    Attributes::Resource(Box::new(ResourceAttributes {
        verb: "list".into(),
        namespace: namespace.unwrap_or_default().to_owned(),
        ..of(resource)
    }))
}

fn of(resource: &Resource) -> ResourceAttributes {
    ResourceAttributes {
        group: resource.group.clone(),
        version: resource.version.clone(),
        resource: resource.plural.clone(),
        ..ResourceAttributes::default()
    }
}

/// A value as field selectors have it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_asked() {
        let query = "resource=pods&resource=deploy&namespace=shop&labelSelector=app%3Dweb&after=pods.v1@12&last=5000&follow=false";
        let parsed = ChangesQuery::parse(query).unwrap();
        assert_eq!(parsed.resources, ["pods", "deploy"]);
        assert_eq!((parsed.namespace.as_deref(), parsed.last), (Some("shop"), MAX_LAST));
        assert_eq!((parsed.after["pods.v1"], parsed.ends), (12, true));
        assert_eq!(parsed.selectors(), "labelSelector=app%3Dweb&fieldSelector=");
        let one = ChangesQuery::parse("resource=pods&name=a").unwrap();
        assert_eq!(one.selectors(), "labelSelector=&fieldSelector=metadata.name%3Da");
        let strange = ChangesQuery::parse("resource=pods&name=a,b=c").unwrap();
        assert_eq!(strange.field_selector(), r"metadata.name=a\,b\=c");
        assert_eq!(ChangesQuery::parse("resource=&namespace=").unwrap(), ChangesQuery::default());
    }

    #[test]
    fn mistakes_are_told() {
        for (query, expected) in [
            ("after=12", "expected RESOURCE@VERSION"),
            ("after=pods@x", "expected RESOURCE@VERSION"),
            ("last=many", "expected a number"),
            ("name=a", "name one resource"),
            ("labelSelector=a in (", "selector"),
            ("x=y", "no such parameter"),
        ] {
            let refusal = ChangesQuery::parse(query).unwrap_err();
            assert!(refusal.message.contains(expected), "{query}: {}", refusal.message);
        }
    }
}
