//! The fields that an API server selects by, and the paths of their values.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use self::table::{BUILT_IN_GROUPS, BuiltIn, KINDS, OTHER};
use super::FieldSelector;

mod table;

/// The fields by which a Kubernetes 1.36 API server selects the objects of one resource, with their
/// values as the server computes them.
///
/// A server *accepts* few fields of each kind and rejects the rest ([`check`](Self::check)). It
/// does not always compare the value at the field's path: an absent field has a default, and some
/// names refer to another path.
///
/// # Examples
/// ```
/// use informer_core::selector::{SelectableFields, field_value};
/// use serde_json::json;
///
/// let nodes = SelectableFields::of("", "v1", "Node", false);
/// let node = json!({"spec": {}});
/// let value = nodes.value("spec.unschedulable", |path| Some(field_value(&node, path)));
/// assert_eq!(value, "false");
///
/// let refusal = nodes.check(&"spec.podCIDR=10.0.0.0/24".parse()?).unwrap_err();
/// assert_eq!(refusal.to_string(), "field label not supported: spec.podCIDR");
/// # Ok::<(), informer_core::selector::ParseSelectorError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SelectableFields(Rules);

#[derive(Debug, Clone)]
enum Rules {
    BuiltIn {
        api_version: String,
        rules: &'static BuiltIn,
    },
    Custom {
        namespaced: bool,
        /// Fields that the definition declares, besides the name and the namespace.
        labels: Vec<String>,
    },
}

/// The paths of a selectable field in an object, and its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectableField<'a> {
    paths: [Option<&'a str>; 2],
    default: &'static str,
}

/// A field that the API server does not select by. The `Display` form is the server's message, sent
/// with the code 400 and the reason `BadRequest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedField {
    label: String,
    message: String,
}

impl SelectableFields {
    /// The fields of a resource. A group that is not built into API servers is taken for one of
    /// custom resources without `selectableFields`. If the definition is available, use
    /// [`of_definition`](Self::of_definition).
    #[must_use]
    pub fn of(group: &str, version: &str, kind: &str, namespaced: bool) -> Self {
        if !BUILT_IN_GROUPS.contains(&group) {
            return Self::custom::<String>(namespaced, []);
        }
        let rules = KINDS.iter().find(|it| it.group == group && it.kind == kind).unwrap_or(&OTHER);
        let api_version =
            if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        Self(Rules::BuiltIn { api_version, rules })
    }

    /// The fields of a custom resource, by the `jsonPath`s of its `selectableFields`, such as
    /// `.spec.color`.
    #[must_use]
    pub fn custom<P: AsRef<str>>(
        namespaced: bool,
        json_paths: impl IntoIterator<Item = P>,
    ) -> Self {
        let label = |path: P| {
            let path = path.as_ref();
            path.strip_prefix('.').unwrap_or(path).to_owned()
        };
        Self(Rules::Custom { namespaced, labels: json_paths.into_iter().map(label).collect() })
    }

    /// The fields of a custom resource in one of its versions, from its CustomResourceDefinition as
    /// JSON.
    #[must_use]
    pub fn of_definition(definition: &Value, version: &str) -> Self {
        let spec = &definition["spec"];
        let versions = spec["versions"].as_array().into_iter().flatten();
        let of_version = versions.filter(|it| it["name"] == version);
        let fields = of_version.filter_map(|it| it["selectableFields"].as_array()).flatten();
        let paths = fields.filter_map(|it| it["jsonPath"].as_str());
        Self::custom(spec["scope"] == "Namespaced", paths)
    }

    /// All fields that the server accepts.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        const METADATA: [&str; 2] = ["metadata.name", "metadata.namespace"];
        let (metadata, built_in, custom) = match &self.0 {
            Rules::BuiltIn { rules, .. } => {
                (1 + usize::from(rules.by_namespace), rules.fields, &[][..])
            }
            Rules::Custom { namespaced, labels } => {
                (1 + usize::from(*namespaced), &[][..], &labels[..])
            }
        };
        let specific = built_in.iter().map(|it| it.label).chain(custom.iter().map(String::as_str));
        METADATA.into_iter().take(metadata).chain(specific)
    }

    /// The paths and default of a field; `None` if the server does not select by it.
    #[must_use]
    pub fn get<'a>(&'a self, label: &'a str) -> Option<SelectableField<'a>> {
        if let Rules::BuiltIn { rules, .. } = &self.0
            && let Some(field) = rules.fields.iter().find(|it| it.label == label)
        {
            return Some(SelectableField { paths: field.paths, default: field.default });
        }
        self.labels().any(|it| it == label).then_some(SelectableField::at(label))
    }

    /// Whether the server accepts the selector.
    ///
    /// # Errors
    /// The server's message for the first field that it does not select by.
    pub fn check(&self, selector: &FieldSelector) -> Result<(), UnsupportedField> {
        let mut labels = selector.requirements().iter().map(super::FieldRequirement::field);
        match labels.find(|label| self.get(label).is_none()) {
            Some(label) => {
                Err(UnsupportedField { label: label.to_owned(), message: self.refusal(label) })
            }
            None => Ok(()),
        }
    }

    /// The value of a field that the server compares, given by what `lookup` returns for a path
    /// (`None` or an empty text: the object lacks it). A field that the server does not select by
    /// is read at the path of that name.
    pub fn value<'v>(
        &self,
        label: &str,
        lookup: impl Fn(&str) -> Option<Cow<'v, str>>,
    ) -> Cow<'v, str> {
        let field = self.get(label).unwrap_or_else(|| SelectableField::at(label));
        let found = field.paths().filter_map(lookup).find(|value| !value.is_empty());
        found.unwrap_or(Cow::Borrowed(field.default))
    }

    fn refusal(&self, label: &str) -> String {
        use table::Refusal;
        match &self.0 {
            Rules::BuiltIn { api_version, rules } => match rules.refusal {
                Refusal::NotSupported => format!("field label not supported: {label}"),
                Refusal::NotSupportedForKind => {
                    format!(
                        "field label not supported for {api_version}, Kind={}: {label}",
                        rules.kind
                    )
                }
                Refusal::QuotedNotSupported => {
                    format!("field label {label:?} not supported for {}", rules.kind)
                }
                Refusal::NotKnown => format!(
                    "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                ),
            },
            Rules::Custom { .. } => format!("field label not supported: {label}"),
        }
    }
}

impl<'a> SelectableField<'a> {
    /// A field with one path and no default.
    #[must_use]
    pub fn at(path: &'a str) -> Self {
        Self { paths: [Some(path), None], default: "" }
    }

    /// The paths to read: the first with a value counts. None for a field that is accepted and
    /// always empty.
    pub fn paths(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.paths.into_iter().flatten()
    }

    /// The value if no path has one.
    #[must_use]
    pub fn default(&self) -> &'static str {
        self.default
    }
}

impl UnsupportedField {
    /// The field.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }
}

impl fmt::Display for UnsupportedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UnsupportedField {}

#[cfg(test)]
mod tests;
