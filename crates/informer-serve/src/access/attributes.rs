//! The attributes of a review, as kube-apiserver derives them from a request.

use std::borrow::Cow;

use http::Method;
use informer::selector::Operator;
use informer::{FieldSelector, LabelSelector};
use k8s_serve::{Parameters, ResourcePath, Route, Status, Verb};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::caller::Identity;
use crate::api::url;

/// First segments of deprecated paths that select a verb.
const VERBS_IN_PATHS: [&str; 2] = ["watch", "proxy"];
/// Maximum number of selector requirements in a review, and of values in one requirement.
const MAX_REQUIREMENTS: usize = 100;
const MAX_VALUES: usize = 1000;

/// The attributes of a request. They are built from the parsed request, never from parts of the
/// URL's text, because they are part of the cache key: two requests share a review only if they are
/// parsed to the same attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Attributes {
    Resource(Box<ResourceAttributes>),
    /// A path that names no resource.
    Path {
        path: String,
        verb: String,
    },
}

/// The attributes of a request for a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ResourceAttributes {
    pub(crate) verb: Cow<'static, str>,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) fields: FieldSelector,
    pub(crate) labels: LabelSelector,
}

impl Attributes {
    /// The attributes of a request for one of Kubernetes' paths, or for a path that names no
    /// resource.
    pub(crate) fn of_request(method: &Method, path: &str, query: &str) -> Self {
        match Route::parse(path) {
            Route::Resource(path) => Self::Resource(Box::new(of_resource(method, &path, query))),
            Route::Health
            | Route::Version
            | Route::Discovery(_)
            | Route::OpenApi
            | Route::Unknown => Self::of_path(method, path),
        }
    }

    /// The attributes of a request for a path that names no resource.
    pub(crate) fn of_path(method: &Method, path: &str) -> Self {
        // The same normalized path is forwarded to the API server.
        let segments = path.split('/').filter(|it| !it.is_empty());
        let decoded = segments.map(|it| percent_decode_str(it).decode_utf8_lossy());
        let path = format!("/{}", Vec::from_iter(decoded).join("/"));
        Self::Path { path, verb: method.as_str().to_ascii_lowercase() }
    }

    /// The field of a `SubjectAccessReview` that holds the attributes, and its value.
    pub(super) fn to_review(&self) -> (&'static str, Value) {
        match self {
            Self::Resource(resource) => ("resourceAttributes", resource.to_review()),
            Self::Path { path, verb } => {
                ("nonResourceAttributes", json!({ "path": path, "verb": verb }))
            }
        }
    }

    /// A 403 status with the message of kube-apiserver.
    pub(super) fn forbidden(&self, caller: &Identity, reason: &str) -> Status {
        let user = &caller.user;
        let mut message = match self {
            Self::Path { path, verb } => format!("User {user:?} cannot {verb} path {path:?}"),
            Self::Resource(it) => {
                let ResourceAttributes { verb, group, resource, namespace, .. } = &**it;
                let resource = match it.subresource.as_str() {
                    "" => Cow::Borrowed(resource),
                    subresource => Cow::Owned(format!("{resource}/{subresource}")),
                };
                let scope = match namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                format!(
                    "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}"
                )
            }
        };
        // The message contains text of the request, which a browser must not render as HTML.
        message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        let about = match self {
            Self::Path { .. } => String::new(),
            Self::Resource(it) => {
                let resource = match it.group.as_str() {
                    "" => it.resource.clone(),
                    group => format!("{}.{group}", it.resource),
                };
                let name =
                    if it.name.is_empty() { String::new() } else { format!(" {:?}", it.name) };
                format!("{resource}{name} is ")
            }
        };
        let mut status = Status::new(403, "Forbidden", format!("{about}forbidden: {message}"));
        status.sends_empty_details = true;
        if let Self::Resource(it) = self {
            status.details.group.clone_from(&it.group);
            status.details.kind.clone_from(&it.resource);
            status.details.name.clone_from(&it.name);
        }
        status
    }

    /// Bytes in memory, approximately.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Path { path, verb } => size_of::<Self>() + path.len() + verb.len(),
            Self::Resource(it) => {
                let texts = [
                    &it.group,
                    &it.version,
                    &it.resource,
                    &it.subresource,
                    &it.namespace,
                    &it.name,
                ];
                let fields = it.fields.requirements().iter();
                let fields = fields.map(|it| 80 + it.field().len() + it.value().len());
                let labels = it.labels.requirements().iter().map(|it| {
                    let values = it.values().iter().map(|it| 24 + it.len());
                    80 + it.key().len() + values.sum::<usize>()
                });
                size_of::<ResourceAttributes>()
                    + texts.iter().map(|it| it.len()).sum::<usize>()
                    + fields.chain(labels).sum::<usize>()
            }
        }
    }
}

impl ResourceAttributes {
    /// Adds the selectors of the request, unless they are too long for a review. A review without
    /// selectors asks for access to more objects, so leaving them out is safe.
    pub(crate) fn with_selectors(self, fields: FieldSelector, labels: LabelSelector) -> Self {
        let of_labels = labels.requirements();
        let requirements = fields.requirements().len() + of_labels.len();
        let values: usize = of_labels.iter().map(|it| it.values().len()).sum();
        match requirements <= MAX_REQUIREMENTS && values <= MAX_VALUES {
            true => Self { fields, labels, ..self },
            false => self,
        }
    }

    fn to_review(&self) -> Value {
        let mut review = Map::new();
        let texts = [
            ("verb", &*self.verb),
            ("group", &self.group),
            ("version", &self.version),
            ("resource", &self.resource),
            ("subresource", &self.subresource),
            ("namespace", &self.namespace),
            ("name", &self.name),
        ];
        for (key, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
            review.insert(key.to_owned(), value.into());
        }
        let fields = self.fields.requirements().iter().map(|it| {
            let operator = if it.operator() == Operator::Equals { "In" } else { "NotIn" };
            json!({ "key": it.field(), "operator": operator, "values": [it.value()] })
        });
        // Requirements that a review cannot express are left out, as in kube-apiserver. The review
        // then asks for access to more objects.
        let labels = self.labels.requirements().iter().filter_map(|it| {
            let (operator, values) = match it.operator() {
                Operator::Equals | Operator::In => ("In", it.values()),
                Operator::NotEquals | Operator::NotIn => ("NotIn", it.values()),
                Operator::Exists => ("Exists", &[][..]),
                Operator::DoesNotExist => ("DoesNotExist", &[][..]),
                Operator::GreaterThan | Operator::LessThan => return None,
            };
            let mut requirement = json!({ "key": it.key(), "operator": operator });
            if !values.is_empty() {
                requirement["values"] = json!(values);
            }
            Some(requirement)
        });
        let selectors =
            [("fieldSelector", Vec::from_iter(fields)), ("labelSelector", Vec::from_iter(labels))];
        for (key, requirements) in selectors {
            if !requirements.is_empty() {
                review.insert(key.to_owned(), json!({ "requirements": requirements }));
            }
        }
        Value::Object(review)
    }
}

fn of_resource(method: &Method, path: &ResourcePath, query: &str) -> ResourceAttributes {
    if let Some((verb, path)) = verb_in_path(path) {
        return ResourceAttributes { verb: verb.into(), ..of_path(&path) };
    }
    let verb = match path.verb(method, query) {
        Verb::Other => "",
        verb => verb.as_str(),
    };
    let mut attributes = ResourceAttributes { verb: verb.into(), ..of_path(path) };
    if !["list", "watch", "deletecollection"].contains(&verb) {
        return attributes;
    }
    let first = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == wanted).map(|(_, value)| value).unwrap_or_default()
    };
    let fields = first("fieldSelector").parse::<FieldSelector>();
    let labels = first("labelSelector").parse::<LabelSelector>();
    // A query with an invalid part does not restrict the request to one object.
    if verb != "deletecollection"
        && Parameters::parse(query).is_ok()
        && let Ok(fields) = &fields
        && let Some(name) = fields.required_value("metadata.name")
        && is_segment(name)
    {
        name.clone_into(&mut attributes.name);
    }
    attributes.with_selectors(fields.unwrap_or_default(), labels.unwrap_or_default())
}

fn of_path(path: &ResourcePath) -> ResourceAttributes {
    let ResourcePath { group, version, namespace, resource, name, subresource } = path;
    let name = name.clone().unwrap_or_default();
    let namespace = match namespace {
        Some(namespace) => namespace.clone(),
        // As in kube-apiserver, the namespace of a Namespace is its own name.
        None if resource == "namespaces" => name.clone(),
        None => String::new(),
    };
    // The subresource of `proxy/x` is `proxy`.
    let subresource = subresource.as_deref().unwrap_or_default().split('/').next();
    ResourceAttributes {
        group: group.clone(),
        version: version.clone(),
        resource: resource.clone(),
        subresource: subresource.unwrap_or_default().to_owned(),
        namespace,
        name,
        ..ResourceAttributes::default()
    }
}

/// The verb of a deprecated path such as `/api/v1/watch/pods`, and the path without it.
fn verb_in_path(path: &ResourcePath) -> Option<(&'static str, ResourcePath)> {
    let verb = VERBS_IN_PATHS.into_iter().find(|it| *it == path.resource)?;
    let (None, Some(name)) = (&path.namespace, &path.name) else { return None };
    let prefix = match path.group.as_str() {
        "" => vec!["api"],
        group => vec!["apis", group],
    };
    let rest = path.subresource.iter().flat_map(|it| it.split('/'));
    let segments = prefix.into_iter().chain([&*path.version, name]).chain(rest);
    match Route::parse(&url(segments, "")) {
        Route::Resource(path) => Some((verb, path)),
        _ => None,
    }
}

/// Whether a name can be a segment of a path.
fn is_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

#[cfg(test)]
mod tests;
