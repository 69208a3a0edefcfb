//! What a watcher wants of a collection.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use informer_core::selector::{FieldSelector, LabelSelector, Operator};

use crate::backend::Change;
use crate::object::Object;
use crate::params::{Parameters, Selectors};
use crate::resource::Resource;

/// Which objects a watcher wants: those of a namespace, or of all, that its selectors select.
#[derive(Debug, Clone)]
pub struct Interest {
    /// Versions of one resource may have other fields to select by.
    api_version: String,
    namespace: Option<String>,
    selectors: Selectors,
}

/// What a change is to a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object is there, or is selected, from now on.
    Added,
    /// It was and is.
    Modified,
    /// It is no longer.
    Deleted,
}

/// A value that all objects of an interest have: what it is found by within its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Anchor<'a> {
    Field(&'a str, &'a str),
    /// One of these values of a label.
    Label(&'a str, &'a [String]),
    /// There is nothing that could be looked up.
    None,
}

impl EventType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Interest {
    pub(crate) fn new(resource: &Resource, namespace: Option<&str>, selectors: Selectors) -> Self {
        let (api_version, namespace) = (resource.api_version(), namespace.map(str::to_owned));
        Self { api_version, namespace, selectors }
    }

    /// In all objects of a resource.
    #[must_use]
    pub fn everything(resource: &Resource) -> Arc<Self> {
        Arc::new(Self::new(resource, None, Selectors::everything(resource)))
    }

    /// As the query of a watch says it: `labelSelector=app%3Dweb`.
    ///
    /// # Errors
    /// 400 if it cannot be read, or selects by a field that the resource does not have for that.
    pub fn of_query(
        resource: &Resource,
        namespace: Option<&str>,
        query: &str,
    ) -> Result<Arc<Self>, crate::Status> {
        let selectors = Parameters::parse(query)?.selectors(resource)?;
        Ok(Arc::new(Self::new(resource, namespace, selectors)))
    }

    /// The namespace, if it is in one only.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether it wants the object.
    pub(crate) fn selects(&self, object: &impl Object) -> bool {
        self.namespace().is_none_or(|namespace| object.key().namespace() == namespace)
            && self.selectors.select(object)
    }

    /// What a change is to it. Objects enter and leave a selection as they are labelled: what
    /// counts is whether they were and are selected.
    pub(super) fn event<O: Object>(&self, change: &Change<O>) -> Option<EventType> {
        let selects = |object: &Option<O>| object.as_ref().is_some_and(|it| self.selects(it));
        match (selects(&change.before), selects(&change.after)) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        }
    }

    pub(super) fn anchor(&self) -> Anchor<'_> {
        let (labels, fields) = (self.selectors.labels(), self.selectors.fields());
        // Names say most.
        let name = fields.required_value("metadata.name").map(|it| ("metadata.name", it));
        let equal = || {
            let mut all = fields.requirements().iter();
            let first = all.find(|it| it.operator() == Operator::Equals)?;
            Some((first.field(), first.value()))
        };
        if let Some((field, value)) = name.or_else(equal) {
            return Anchor::Field(field, value);
        }
        let is_one_of = |it: &Operator| matches!(it, Operator::Equals | Operator::In);
        match labels.requirements().iter().find(|it| is_one_of(&it.operator())) {
            Some(label) => Anchor::Label(label.key(), label.values()),
            None => Anchor::None,
        }
    }

    /// The value of a field as selectors compare it.
    pub(super) fn field<'o>(&self, field: &str, object: &'o impl Object) -> Cow<'o, str> {
        self.selectors.field(field, object)
    }

    pub(super) fn api_version(&self) -> &str {
        &self.api_version
    }

    fn identity(&self) -> (&str, Option<&str>, &LabelSelector, &FieldSelector) {
        let Self { api_version, selectors, .. } = self;
        (api_version, self.namespace(), selectors.labels(), selectors.fields())
    }
}

/// Equal are those that select the same, though the fields that can be selected by are not
/// compared: a resource has the same ones for all.
impl PartialEq for Interest {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Interest {}

impl Hash for Interest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}
