//! Filters of events.

use std::fmt;
use std::sync::Arc;

use informer_core::{Event, UpdateReason};

use crate::HasMetadata;
use crate::workqueue::each_state;

/// Says which events of an informer concern a controller (controller-runtime's `Predicate`).
///
/// A filter that looks at the object is asked about both states of an event, as
/// [`Filtered`](crate::Filtered) is: about `old` and `new` of an update, and about what was last
/// given and the last state of what is gone. The event passes if one of them does, so that no object
/// leaves the filtered set unnoticed.
///
/// # Examples
/// ```
/// use informer::controller::{Predicate, generation_changed, labels_changed};
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// let spec_or_labels = generation_changed::<Deployment>().or(labels_changed());
/// let in_shop = Predicate::object(|it: &Deployment| it.metadata.namespace.as_deref() == Some("shop"));
/// let both = spec_or_labels.and(in_shop);
/// ```
pub struct Predicate<T>(Arc<Passes<T>>);

type Passes<T> = dyn Fn(&Event<T>) -> bool + Send + Sync;

impl<T: 'static> Predicate<T> {
    /// Events of which `passes` says so. It must not depend on anything but the event.
    #[must_use]
    pub fn event(passes: impl Fn(&Event<T>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(passes))
    }

    /// Events in which the object passes, before or after.
    #[must_use]
    pub fn object(passes: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        Self::event(move |event| {
            let mut any = false;
            each_state(event, |object| any = any || passes(object));
            any
        })
    }

    /// Adds, deletes, and the updates in which `part` of the object changes. Resyncs do not pass.
    #[must_use]
    pub fn changed<V: PartialEq>(part: impl Fn(&T) -> V + Send + Sync + 'static) -> Self {
        Self::event(move |event| match event {
            Event::Added { .. } | Event::Deleted(_) => true,
            Event::Updated { reason: UpdateReason::Resync, .. } => false,
            Event::Updated { old, new, reason: UpdateReason::Change, .. } => part(old) != part(new),
        })
    }

    /// Events that pass both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::event(move |event| self.passes(event) && other.passes(event))
    }

    /// Events that pass one of them, or both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::event(move |event| self.passes(event) || other.passes(event))
    }

    /// Whether an event passes.
    #[must_use]
    pub fn passes(&self, event: &Event<T>) -> bool {
        (self.0)(event)
    }
}

/// Adds, deletes, and updates of the specification, which are those that change
/// `metadata.generation` (`GenerationChangedPredicate`): not those of the status or the metadata.
/// That a deletion begins, and that a finalizer is gone, passes too. Kinds without generations,
/// such as ConfigMap, pass always.
#[must_use]
pub fn generation_changed<T: HasMetadata + 'static>() -> Predicate<T> {
    Predicate::event(|event: &Event<T>| match event {
        Event::Added { .. } | Event::Deleted(_) => true,
        Event::Updated { reason: UpdateReason::Resync, .. } => false,
        Event::Updated { old, new, reason: UpdateReason::Change, .. } => {
            let (old, new) = (old.metadata(), new.metadata());
            new.generation.is_none()
                || old.generation != new.generation
                || old.deletion_timestamp != new.deletion_timestamp
                || old.finalizers != new.finalizers
        }
    })
}

/// Adds, deletes, and updates of the labels (`LabelChangedPredicate`). That a deletion begins passes
/// too, so that a [`finalizer`](super::finalizer) hears of it.
#[must_use]
pub fn labels_changed<T: HasMetadata + 'static>() -> Predicate<T> {
    Predicate::changed(|object: &T| {
        let metadata = object.metadata();
        (metadata.labels.clone(), metadata.deletion_timestamp.is_some())
    })
}

/// Adds, deletes, and updates of the annotations (`AnnotationChangedPredicate`). That a deletion
/// begins passes too, so that a [`finalizer`](super::finalizer) hears of it.
#[must_use]
pub fn annotations_changed<T: HasMetadata + 'static>() -> Predicate<T> {
    Predicate::changed(|object: &T| {
        let metadata = object.metadata();
        (metadata.annotations.clone(), metadata.deletion_timestamp.is_some())
    })
}

impl<T> Clone for Predicate<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Predicate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predicate").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use informer_core::{Deleted, FinalState, ObjectKey};
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;
    use crate::Lazy;

    fn pod(metadata: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata })
    }

    fn update<T>(old: T, new: T) -> Event<T> {
        let (old, new) = (Arc::new(old), Arc::new(new));
        Event::Updated { key: ObjectKey::cluster("a"), old, new, reason: UpdateReason::Change }
    }

    fn delete<T>(old: T, last: T) -> Event<T> {
        let (key, old, last) = (ObjectKey::cluster("a"), Arc::new(old), Arc::new(last));
        Event::Deleted(Deleted { key, old, last, final_state: FinalState::Known })
    }

    /// Whether an update of the metadata passes, in two representations.
    fn passes(
        typed: fn() -> Predicate<Pod>,
        lazy: fn() -> Predicate<Lazy<Pod>>,
        old: &Value,
        new: &Value,
    ) -> bool {
        let decode = |metadata| serde_json::from_value::<Pod>(pod(metadata)).unwrap();
        let keep = |metadata| Lazy::from_json(pod(metadata).to_string().as_bytes()).unwrap();
        let passes = typed().passes(&update(decode(old), decode(new)));
        assert_eq!(passes, lazy().passes(&update(keep(old), keep(new))), "{old} {new}");
        passes
    }

    #[test]
    fn changes_of_generation_labels_and_annotations_pass_by_themselves() {
        let old = json!({ "name": "a", "generation": 1, "labels": { "l": "1" }, "annotations": { "a": "1" } });
        let with = |field: &str, value: Value| {
            let mut new = old.clone();
            new[field] = value;
            [
                passes(generation_changed, generation_changed, &old, &new),
                passes(labels_changed, labels_changed, &old, &new),
                passes(annotations_changed, annotations_changed, &old, &new),
            ]
        };
        assert_eq!(with("resourceVersion", json!("2")), [false, false, false]);
        assert_eq!(with("generation", json!(2)), [true, false, false]);
        assert_eq!(with("labels", json!({ "l": "2" })), [false, true, false]);
        assert_eq!(with("annotations", json!(null)), [false, false, true]);
        assert_eq!(with("deletionTimestamp", json!("2026-11-02T08:00:00Z")), [true, true, true]);
        assert_eq!(with("finalizers", json!(["example.com/f"])), [true, false, false]);
        assert_eq!(with("generation", json!(null)), [true, false, false], "a kind without one");
    }

    #[test]
    fn a_filter_of_objects_looks_at_both_states() {
        let ten = Predicate::object(|it: &u32| *it >= 10);
        for (old, new, expected) in [(1, 2, false), (1, 10, true), (10, 1, true), (10, 11, true)] {
            assert_eq!(ten.passes(&update(old, new)), expected, "{old} to {new}");
            assert_eq!(ten.passes(&delete(old, new)), expected, "{old}, {new} and gone");
        }
    }

    #[test]
    fn filters_are_combined_by_and_and_or() {
        let at_least = |least| Predicate::object(move |it: &u32| *it >= least);
        let odd = || Predicate::changed(|it: &u32| it % 2);
        let event = update(10, 11);
        assert!(at_least(10).and(odd()).passes(&event));
        assert!(!at_least(12).and(odd()).passes(&event));
        assert!(at_least(12).or(odd()).passes(&event));
        assert!(!at_least(12).or(odd()).passes(&update(1, 3)));
        let resync = Event::Updated {
            key: ObjectKey::cluster("a"),
            old: Arc::new(1),
            new: Arc::new(1),
            reason: UpdateReason::Resync,
        };
        assert!(!odd().passes(&resync) && at_least(1).passes(&resync));
    }
}
