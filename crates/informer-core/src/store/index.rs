//! Indexes: named functions from an object to any number of values, and the keys filed under each
//! value.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;

use super::records::Slot;
use crate::ObjectKey;
use crate::sorted_map::{Iter, SortedMap};

/// An index over objects of type `T`: a name, and a plain function of the object that emits any
/// number of values and cannot fail (G11). Cloning copies a pointer; the clone is the same index.
///
/// When an object changes, the function runs again on the old state, to find the entries to remove.
/// It must therefore depend on nothing but the object. Otherwise stale entries remain, and lookups
/// may return the wrong objects. A panic of the function is reported, and excludes the object from
/// this index only.
pub struct Index<T>(Arc<Definition<T>>);

struct Definition<T> {
    name: Box<str>,
    made_at: &'static Location<'static>,
    answers: Option<Answers>,
    values: Box<IndexFn<T>>,
}

/// What is asked of an index whose function is known: the kind of selector requirement that it can
/// answer, or whose controller an object has.
#[derive(PartialEq, Eq)]
enum Answers {
    Label(Box<str>),
    Field(Box<str>),
    Controller,
}

type IndexFn<T> = dyn Fn(&T, &mut IndexValues) + Send + Sync;

/// Collects the values that an index function emits.
#[derive(Debug, Default)]
pub struct IndexValues(Vec<Arc<str>>);

/// An index could not be added or queried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Another index has that name already.
    #[error(
        "there is another index named {name:?} already: choose a different name, or keep and use the first index"
    )]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The snapshot does not have the index.
    #[error(
        "this snapshot has no index {name:?}: take a snapshot after `add_index` has returned, of the same informer"
    )]
    Missing {
        /// The name of the index asked for.
        name: String,
    },
}

/// An index function panicked on an object, which is excluded from that index. Does not contain the
/// panic message, which may quote the object (G34).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFault {
    /// The name of the index.
    pub index: String,
    /// Where the index was created.
    pub made_at: &'static Location<'static>,
    /// The object.
    pub key: ObjectKey,
}

impl<T> Index<T> {
    /// An index named `name`. Reports of a panic in `values` name the location of this call.
    #[track_caller]
    pub fn new(name: &str, values: impl Fn(&T, &mut IndexValues) + Send + Sync + 'static) -> Self {
        let made_at = Location::caller();
        Self(Arc::new(Definition {
            name: name.into(),
            made_at,
            answers: None,
            values: Box::new(values),
        }))
    }

    /// An index over the values of the label `label`, read by `value`. It is named `label:<label>`.
    /// Selectors that require values of this label use it, and take an object filed under a value
    /// to have that label (G12). All indexes over one label are the same index.
    #[track_caller]
    pub fn label(
        label: &str,
        value: impl for<'a> Fn(&'a T, &str) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        let key: Box<str> = label.into();
        Self(Arc::new(Definition {
            name: format!("label:{label}").into(),
            made_at: Location::caller(),
            answers: Some(Answers::Label(label.into())),
            values: Box::new(move |object, values| values.extend(value(object, &key))),
        }))
    }

    /// An index over the values of the field `field` of field selectors, read by `value`. It is
    /// named `field:<field>`. Selectors that require one value of this field use it, and take an
    /// object filed under a value to have that field value (G12). An object that lacks the field is
    /// filed under the empty value. All indexes over one field are the same index.
    #[track_caller]
    pub fn field(
        field: &str,
        value: impl for<'a> Fn(&'a T) -> Cow<'a, str> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Definition {
            name: format!("field:{field}").into(),
            made_at: Location::caller(),
            answers: Some(Answers::Field(field.into())),
            values: Box::new(move |object, values| values.push(&*value(object))),
        }))
    }

    /// An index over the UID of the owner that controls an object, read by `uid`. It is named
    /// `controller-uid`. All such indexes are the same index.
    #[track_caller]
    pub fn controller(
        uid: impl for<'a> Fn(&'a T) -> Option<Arc<str>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Definition {
            name: "controller-uid".into(),
            made_at: Location::caller(),
            answers: Some(Answers::Controller),
            values: Box::new(move |object, values| values.extend(uid(object))),
        }))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The label whose values this index files, if it was made by [`label`](Self::label).
    #[must_use]
    pub(super) fn label_key(&self) -> Option<&str> {
        match self.0.answers.as_ref()? {
            Answers::Label(key) => Some(key),
            Answers::Field(_) | Answers::Controller => None,
        }
    }

    /// The field whose values this index files, if it was made by [`field`](Self::field).
    #[must_use]
    pub(super) fn field_label(&self) -> Option<&str> {
        match self.0.answers.as_ref()? {
            Answers::Label(_) | Answers::Controller => None,
            Answers::Field(label) => Some(label),
        }
    }

    /// Whether both are clones of one index, or over the same label or field, or both over
    /// controllers.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.answers.is_some() && self.0.answers == other.0.answers
    }
}

impl IndexValues {
    /// Adds one value.
    pub fn push(&mut self, value: impl Into<Arc<str>>) {
        self.0.push(value.into());
    }

    /// Adds all values, of an `Option` for example.
    pub fn extend<V: Into<Arc<str>>>(&mut self, values: impl IntoIterator<Item = V>) {
        self.0.extend(values.into_iter().map(Into::into));
    }
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Index<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Index").field(&self.0.name).finish()
    }
}

/// An index with its postings, each with the slot of its record.
pub(super) struct Postings<T> {
    pub(super) index: Index<T>,
    keys: SortedMap<Posting, Slot>,
}

/// One key filed under one value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting {
    pub(super) value: Arc<str>,
    pub(super) key: ObjectKey,
}

impl<T> Postings<T> {
    pub(super) fn new(index: Index<T>) -> Self {
        Self { index, keys: SortedMap::new() }
    }

    /// Moves `key`, whose record is and was in `slot`, from the values of `old` to those of `new`.
    pub(super) fn update(
        &mut self,
        key: &ObjectKey,
        slot: Slot,
        old: Option<&T>,
        new: Option<&T>,
        faults: &mut Vec<IndexFault>,
    ) {
        let before = old.map_or_else(Vec::new, |old| self.values(old).unwrap_or_default());
        let after = new.map_or_else(Vec::new, |new| {
            self.values(new).unwrap_or_else(|| {
                let Definition { name, made_at, .. } = &*self.index.0;
                faults.push(IndexFault { index: name.to_string(), made_at, key: key.clone() });
                Vec::new()
            })
        });
        if before == after {
            return;
        }
        for value in before.iter().filter(|value| !after.contains(value)) {
            self.keys.remove(&Posting { value: Arc::clone(value), key: key.clone() });
        }
        for value in after.into_iter().filter(|value| !before.contains(value)) {
            let value = self.shared(value);
            self.keys.insert(Posting { value, key: key.clone() }, slot);
        }
    }

    /// The postings from `value` on.
    pub(super) fn starting_at(&self, value: &str) -> Iter<'_, Posting, Slot> {
        self.keys.seek(|posting| (*posting.value).cmp(value))
    }

    /// The postings of `value` from this namespace on, and what follows.
    pub(super) fn starting_in(&self, value: &str, namespace: &str) -> Iter<'_, Posting, Slot> {
        self.keys.seek(|posting| {
            (*posting.value).cmp(value).then_with(|| posting.key.cmp_parts(namespace, ""))
        })
    }

    /// The first posting whose value is greater than `value`.
    pub(super) fn after_value(&self, value: &str) -> Option<&Posting> {
        let above = |posting: &Posting| {
            if *posting.value <= *value { Ordering::Less } else { Ordering::Greater }
        };
        self.keys.seek(above).next().map(|(posting, _)| posting)
    }

    /// The object's values, sorted and without duplicates; `None` if the function panicked.
    fn values(&self, object: &T) -> Option<Vec<Arc<str>>> {
        let mut values = IndexValues::default();
        // The function gets the object and an empty list only, so no broken state survives a panic.
        catch_unwind(AssertUnwindSafe(|| (self.index.0.values)(object, &mut values))).ok()?;
        let mut values = values.0;
        values.sort_unstable();
        values.dedup();
        Some(values)
    }

    /// The `Arc` that other postings of this value share, so that each value is stored once.
    fn shared(&self, value: Arc<str>) -> Arc<str> {
        match self.starting_at(&value).next() {
            Some((posting, _)) if posting.value == value => Arc::clone(&posting.value),
            _ => value,
        }
    }
}

impl<T> Clone for Postings<T> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), keys: self.keys.clone() }
    }
}
