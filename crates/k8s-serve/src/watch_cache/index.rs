//! Finds the selections that an object may belong to.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::dispatch::SelectionId;
use super::interest::{Anchor, Interest};
use crate::object::Object;

/// The selections by the namespace and the value that they require.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Those in all namespaces.
    everywhere: ByValue,
    namespaces: HashMap<String, ByValue>,
}

/// Selections in the same namespace, or in all.
#[derive(Debug, Default)]
struct ByValue {
    /// Those that require no value.
    any: Vec<SelectionId>,
    /// By the field; with an interest that knows how to read it.
    fields: HashMap<(String, String), (Arc<Interest>, Values)>,
    labels: HashMap<String, Values>,
}

/// The selections that require a value.
type Values = HashMap<String, Vec<SelectionId>>;

impl Index {
    pub(super) fn insert(&mut self, id: SelectionId, interest: &Arc<Interest>) {
        let of_namespace = match interest.namespace() {
            None => &mut self.everywhere,
            Some(namespace) => self.namespaces.entry(namespace.to_owned()).or_default(),
        };
        of_namespace.insert(id, interest);
    }

    pub(super) fn remove(&mut self, id: SelectionId, interest: &Interest) {
        let Some(namespace) = interest.namespace() else {
            return self.everywhere.remove(id, interest);
        };
        if let Some(of_namespace) = self.namespaces.get_mut(namespace) {
            of_namespace.remove(id, interest);
            drop_empty(&mut self.namespaces, namespace, ByValue::is_empty);
        }
    }

    /// Appends the selections that the object may belong to.
    pub(super) fn find(&self, object: &impl Object, found: &mut Vec<SelectionId>) {
        self.everywhere.find(object, found);
        if let Some(of_namespace) = self.namespaces.get(object.key().namespace()) {
            of_namespace.find(object, found);
        }
    }
}

impl ByValue {
    fn insert(&mut self, id: SelectionId, interest: &Arc<Interest>) {
        match interest.anchor() {
            Anchor::None => self.any.push(id),
            Anchor::Label(key, values) => {
                let of_key = self.labels.entry(key.to_owned()).or_default();
                values.iter().for_each(|value| insert(of_key, value, id));
            }
            Anchor::Field(field, value) => {
                let key = (interest.api_version().to_owned(), field.to_owned());
                let (_, of_field) = self
                    .fields
                    .entry(key)
                    .or_insert_with(|| (Arc::clone(interest), Values::default()));
                insert(of_field, value, id);
            }
        }
    }

    fn remove(&mut self, id: SelectionId, interest: &Interest) {
        match interest.anchor() {
            Anchor::None => self.any.retain(|it| *it != id),
            Anchor::Label(key, values) => {
                let Some(of_key) = self.labels.get_mut(key) else { return };
                values.iter().for_each(|value| remove(of_key, value, id));
                drop_empty(&mut self.labels, key, HashMap::is_empty);
            }
            Anchor::Field(field, value) => {
                let key = (interest.api_version().to_owned(), field.to_owned());
                let Some((_, of_field)) = self.fields.get_mut(&key) else { return };
                remove(of_field, value, id);
                drop_empty(&mut self.fields, &key, |(_, it)| it.is_empty());
            }
        }
    }

    fn find(&self, object: &impl Object, found: &mut Vec<SelectionId>) {
        let mut add = |ids: Option<&Vec<SelectionId>>| found.extend(ids.into_iter().flatten());
        add(Some(&self.any));
        for (key, values) in &self.labels {
            add(object.label(key).and_then(|value| values.get(value)));
        }
        for ((_, field), (interest, values)) in &self.fields {
            add(values.get(&*interest.field(field, object)));
        }
    }

    fn is_empty(&self) -> bool {
        self.any.is_empty() && self.fields.is_empty() && self.labels.is_empty()
    }
}

fn insert(values: &mut Values, value: &str, id: SelectionId) {
    values.entry(value.to_owned()).or_default().push(id);
}

fn remove(values: &mut Values, value: &str, id: SelectionId) {
    if let Some(ids) = values.get_mut(value) {
        ids.retain(|it| *it != id);
        drop_empty(values, value, Vec::is_empty);
    }
}

/// What is empty would be looked at with each change.
fn drop_empty<K, V, Q>(map: &mut HashMap<K, V>, key: &Q, is_empty: impl Fn(&V) -> bool)
where
    K: Hash + Eq + std::borrow::Borrow<Q>,
    Q: Hash + Eq + ?Sized,
{
    if map.get(key).is_some_and(is_empty) {
        map.remove(key);
    }
}
