//! What a selector selects from a snapshot.

use std::fmt;
use std::sync::Arc;

use informer_core::ObjectKey;
use informer_core::selector::{
    FieldRequirement, FieldSelector, LabelSelector, Operator, ParseSelectorError,
};
use informer_core::store::{Entry, Index, Snapshot};

use crate::Resource;
use crate::fields::{Fields, HasFields, HasLabels};

/// How many hits are counted, at most, to tell which of several indexes finds fewest.
const COUNTED_HITS: usize = 256;

/// The objects of one snapshot that match a selector, in key order.
///
/// # Costs
/// One search, if name and namespace are required. Else the objects that an index names, if there
/// is one over a label of which the selector requires values, or over a field of which it requires
/// one ([`add_label_index`](crate::SharedInformer::add_label_index),
/// [`add_field_index`](crate::SharedInformer::add_field_index)); of several indexes, that with the
/// fewest hits. Else all objects of the namespace, or of the snapshot. What is visited is looked at
/// one by one, unless an index answers the whole selector (G12).
pub struct Selection<T> {
    snapshot: Snapshot<T>,
    /// What was asked for, and what that and the fields come to.
    asked: Option<String>,
    namespace: Option<String>,
    labels: LabelSelector,
    fields: Fields,
    matching: Matching<T>,
}

/// How to tell whether an object matches: functions, so that a selection can be used without bounds
/// on its type.
struct Matching<T> {
    labels: fn(&LabelSelector, &T) -> bool,
    fields: fn(&Fields, &T) -> bool,
}

/// An index, and the values under which all objects that match are filed.
struct Answer<'a, T> {
    index: &'a Index<T>,
    values: Vec<&'a str>,
}

type Entries<'a, T> = Box<dyn Iterator<Item = Entry<'a, T>> + 'a>;

impl<T> Selection<T> {
    /// The objects of a snapshot, or of one namespace of it, whose labels match. The selector is
    /// parsed or a text.
    ///
    /// # Errors
    /// If a text is no label selector; a [`LabelSelector`] never fails.
    pub fn new<S>(
        snapshot: Snapshot<T>,
        namespace: Option<String>,
        labels: S,
    ) -> Result<Self, ParseSelectorError>
    where
        T: HasLabels,
        S: TryInto<LabelSelector>,
        ParseSelectorError: From<S::Error>,
    {
        Ok(Self::of(snapshot, namespace, labels.try_into()?))
    }

    /// Of these objects of `resource`, those whose fields match too. It replaces a field selector
    /// given before. The selector is parsed or a text.
    ///
    /// # Errors
    /// If a text is no field selector; a [`FieldSelector`] never fails.
    pub fn with_fields<S>(self, resource: &Resource, fields: S) -> Result<Self, ParseSelectorError>
    where
        T: HasFields,
        S: TryInto<FieldSelector>,
        ParseSelectorError: From<S::Error>,
    {
        Ok(self.and_fields(resource, &fields.try_into()?))
    }

    pub(crate) fn of(
        snapshot: Snapshot<T>,
        namespace: Option<String>,
        labels: LabelSelector,
    ) -> Self
    where
        T: HasLabels,
    {
        let matching = Matching {
            labels: |labels, object: &T| labels.matches(|key| object.label(key)),
            fields: |_, _| true,
        };
        let asked = namespace.clone();
        Self { snapshot, asked, namespace, labels, fields: Fields::default(), matching }
    }

    pub(crate) fn and_fields(mut self, resource: &Resource, fields: &FieldSelector) -> Self
    where
        T: HasFields,
    {
        self.fields = Fields::of(resource, fields);
        self.matching.fields = |fields, object| fields.match_object(object);
        let required = fields.required_value("metadata.namespace").map(str::to_owned);
        // What has no namespaces has the empty one, whichever was asked for.
        let asked = match resource.namespaced {
            true => self.asked.clone(),
            false => None,
        };
        self.namespace = asked.or(required).or_else(|| (!resource.namespaced).then(String::new));
        self
    }

    /// The objects, in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries().map(|entry| entry.object())
    }

    /// The objects with their keys and versions, in key order.
    #[must_use]
    pub fn entries(&self) -> Box<dyn Iterator<Item = Entry<'_, T>> + '_> {
        self.walk(None)
    }

    /// The objects whose keys come after `key`, in key order: where a page goes on.
    #[must_use]
    pub fn entries_after<'a>(
        &'a self,
        key: &'a ObjectKey,
    ) -> Box<dyn Iterator<Item = Entry<'a, T>> + 'a> {
        self.walk(Some(key))
    }

    /// The number of objects that match: visits them all.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries().count()
    }

    /// The snapshot that this is a part of.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot<T> {
        &self.snapshot
    }

    fn walk<'a>(&'a self, after: Option<&'a ObjectKey>) -> Entries<'a, T> {
        let is_after = move |entry: &Entry<'a, T>| after.is_none_or(|after| entry.key > after);
        let matches = move |entry: &Entry<'a, T>| self.matches(entry.object());
        if let (Some(namespace), Some(name)) = (&self.namespace, self.required_name()) {
            return Box::new(
                self.snapshot.find(namespace, name).into_iter().filter(is_after).filter(matches),
            );
        }
        if let Some(answer) = self.narrowest() {
            // What an index finds has the value: to read it from each object is a wait for memory.
            let answers_all =
                self.labels.requirements().len() + self.fields.requirements().len() == 1;
            let hits = self.hits(&answer).filter(is_after);
            let hits = hits.filter(move |entry| answers_all || matches(entry));
            if answer.values.len() == 1 {
                return Box::new(hits);
            }
            // An object has one value of a label, so the hits of several values are disjoint.
            let mut hits: Vec<Entry<'_, T>> = hits.collect();
            hits.sort_unstable_by(|a, b| a.key.cmp(b.key));
            return Box::new(hits.into_iter());
        }
        let is_here = move |entry: &Entry<'a, T>| {
            self.namespace.as_deref().is_none_or(|it| it == entry.key.namespace())
        };
        match (after, &self.namespace) {
            (Some(after), Some(namespace)) if after.namespace() == namespace => {
                Box::new(self.snapshot.after(after).take_while(is_here).filter(matches))
            }
            (_, Some(namespace)) => {
                Box::new(self.snapshot.namespace(namespace).filter(is_after).filter(matches))
            }
            (Some(after), None) => Box::new(self.snapshot.after(after).filter(matches)),
            (None, None) => Box::new(self.snapshot.iter().filter(matches)),
        }
    }

    fn matches(&self, object: &T) -> bool {
        (self.matching.labels)(&self.labels, object) && (self.matching.fields)(&self.fields, object)
    }

    fn required_name(&self) -> Option<&str> {
        let is_name = |it: &&FieldRequirement| {
            it.field() == "metadata.name" && it.operator() == Operator::Equals
        };
        self.fields.requirements().find(is_name).map(FieldRequirement::value)
    }

    /// Of the indexes that the selector can use, that with the fewest hits.
    fn narrowest(&self) -> Option<Answer<'_, T>> {
        let by_label = self.labels.requirements().iter().filter_map(|requirement| {
            let values = match requirement.operator() {
                Operator::Equals | Operator::In => {
                    requirement.values().iter().map(String::as_str).collect()
                }
                Operator::NotEquals
                | Operator::NotIn
                | Operator::Exists
                | Operator::DoesNotExist
                | Operator::GreaterThan
                | Operator::LessThan => return None,
            };
            Some(Answer { index: self.snapshot.label_index(requirement.key())?, values })
        });
        let by_field = self.fields.requirements().filter_map(|requirement| {
            let index = self.snapshot.field_index(requirement.field())?;
            let is_equal = requirement.operator() == Operator::Equals;
            is_equal.then(|| Answer { index, values: vec![requirement.value()] })
        });
        let mut answers = by_label.chain(by_field);
        let first = answers.next()?;
        let Some(second) = answers.next() else { return Some(first) };
        [first, second]
            .into_iter()
            .chain(answers)
            .min_by_key(|it| self.hits(it).take(COUNTED_HITS).count())
    }

    /// What the index has under the values, by value and then by key.
    fn hits<'a>(
        &'a self,
        answer: &Answer<'a, T>,
    ) -> impl Iterator<Item = Entry<'a, T>> + use<'a, T> {
        let Answer { index, values } = answer;
        let (index, values) = (*index, values.clone());
        let of = move |value| match &self.namespace {
            Some(namespace) => self.snapshot.by_index_in(index, value, namespace),
            None => self.snapshot.by_index(index, value),
        };
        values.into_iter().filter_map(move |value| of(value).ok()).flatten()
    }
}

impl<'a, T> IntoIterator for &'a Selection<T> {
    type Item = &'a Arc<T>;
    type IntoIter = Box<dyn Iterator<Item = &'a Arc<T>> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl<T> fmt::Debug for Selection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<String> = self.fields.requirements().map(ToString::to_string).collect();
        f.debug_struct("Selection")
            .field("namespace", &self.namespace)
            .field("labels", &self.labels.to_string())
            .field("fields", &fields.join(","))
            .finish_non_exhaustive()
    }
}
