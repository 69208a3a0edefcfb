//! Handlers that put keys into a queue.

use std::fmt;
use std::sync::Arc;

use super::{Key, Priority, WorkQueue};
use crate::metadata::{controller_of, is_of};
use crate::{EventHandler, HasMetadata, Resource};
use informer_core::{Deleted, Event, ObjectKey, UpdateReason};

/// A handler that adds to a [`WorkQueue`] what an event concerns: the object, its owner, or what
/// you say.
///
/// What was there when the handler was registered, and what a resync shows again, is added with
/// [low priority](Priority::Low): changes do not wait behind it.
///
/// Resyncs are events too: they enqueue everything again. Put [`Filtered`](crate::Filtered) around
/// it to leave events out.
///
/// # Examples
/// ```
/// use informer::workqueue::{Enqueue, WorkQueue};
/// use informer::{EventHandler, ObjectKey};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let nodes = WorkQueue::<ObjectKey>::new("nodes");
/// let handler = Enqueue::mapped(&nodes, |pod: &Pod| {
///     let node = pod.spec.as_ref()?.node_name.as_deref()?;
///     Some(ObjectKey::cluster(node))
/// });
/// # fn is_handler(_: impl EventHandler<Pod>) {}
/// # is_handler(handler);
/// ```
pub struct Enqueue<T> {
    enqueue: OnEvent<T>,
}

type OnEvent<T> = Box<dyn FnMut(&Event<T>) + Send>;

impl<T: 'static> Enqueue<T> {
    /// Adds the key of each object that is added, updated or deleted (controller-runtime's
    /// `EnqueueRequestForObject`).
    #[must_use]
    pub fn object(queue: &WorkQueue<ObjectKey>) -> Self {
        let queue = queue.clone();
        Self {
            enqueue: Box::new(move |event| {
                queue.add_with_priority(event.key().clone(), priority_of(event))
            }),
        }
    }

    /// Adds the key of each object's controller, if that is an `owner` (`EnqueueRequestForOwner`):
    /// the one owner reference that says `controller: true`, of the group and kind of `owner`, in
    /// whatever version. When an object changes hands, both owners are added, also if it is gone by
    /// the time that the handler learns of it.
    ///
    /// The key may be of an owner that exists no more, or of another with the same name: look at
    /// the UID.
    #[must_use]
    pub fn owner(queue: &WorkQueue<ObjectKey>, owner: &Resource) -> Self
    where
        T: HasMetadata,
    {
        let (queue, owner) = (queue.clone(), owner.clone());
        let enqueue = move |event: &Event<T>| {
            each_state(event, |object| {
                if let Some(found) = owner_key(object, event.key(), &owner) {
                    queue.add_with_priority(found, priority_of(event));
                }
            });
        };
        Self { enqueue: Box::new(enqueue) }
    }

    /// Adds the keys that `map` returns for an object, in an [`Option`], a [`Vec`] or the like
    /// (`EnqueueRequestsFromMapFunc`). Of an update both states are asked, what was concerned and
    /// what is; of a delete both what was last given and the last state.
    #[must_use]
    pub fn mapped<K: Key, I: IntoIterator<Item = K>>(
        queue: &WorkQueue<K>,
        mut map: impl FnMut(&T) -> I + Send + 'static,
    ) -> Self {
        let queue = queue.clone();
        let enqueue = move |event: &Event<T>| {
            let priority = priority_of(event);
            each_state(event, |object| {
                map(object).into_iter().for_each(|key| queue.add_with_priority(key, priority));
            });
        };
        Self { enqueue: Box::new(enqueue) }
    }
}

impl<T: 'static> EventHandler<T> for Enqueue<T> {
    fn on_event(&mut self, event: &Event<T>) {
        (self.enqueue)(event);
    }
}

/// The key of the owner that controls an object, if that is an `owner`.
pub(crate) fn owner_key(
    object: &impl HasMetadata,
    key: &ObjectKey,
    owner: &Resource,
) -> Option<ObjectKey> {
    let metadata = object.metadata();
    let found = controller_of(&metadata).filter(|found| is_of(found, owner))?;
    let namespace = if owner.namespaced { key.namespace() } else { "" };
    Some(ObjectKey::namespaced(namespace, &found.name))
}

/// How urgent an event is: changes come before what was there already.
pub(crate) fn priority_of<T>(event: &Event<T>) -> Priority {
    match event {
        Event::Added { initial: true, .. }
        | Event::Updated { reason: UpdateReason::Resync, .. } => Priority::Low,
        Event::Added { initial: false, .. }
        | Event::Updated { reason: UpdateReason::Change, .. }
        | Event::Deleted(_) => Priority::Normal,
    }
}

/// The state that an event tells of, and before it the old one, if that is another.
pub(crate) fn each_state<T>(event: &Event<T>, mut call: impl FnMut(&T)) {
    if let Event::Updated { old, new: state, .. } | Event::Deleted(Deleted { old, last: state, .. }) =
        event
        && !Arc::ptr_eq(old, state)
    {
        call(old);
    }
    call(event.object());
}

impl<T> fmt::Debug for Enqueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").finish_non_exhaustive()
    }
}
