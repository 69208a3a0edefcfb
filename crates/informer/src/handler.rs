//! Handlers: a trait, closures, and filters.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{Deleted, Event, FinalState, ObjectKey, UpdateReason};

/// What one registration does with events (client-go's `ResourceEventHandler`).
///
/// Calls come one at a time, off the runtime's workers, so they may block; a slow handler delays
/// only itself (G15). A panic is reported, and the handler gets the next event: a handler that
/// cannot go on after a panic must see to it itself. So is a panic in the `Drop` of an object that
/// the handler was the last to refer to.
///
/// Each registration has a thread of its own (`informer-callback-N`), started with its first event
/// and parked when idle. The informer's runtime is entered there, so that `tokio::spawn` and
/// `Handle::current()` work. For hundreds of handlers use
/// [`events()`](crate::SharedInformer::events), which needs no thread. A handler that blocks
/// forever keeps its thread, but neither the runtime nor the process waits for it when it ends. The
/// handler is dropped on its thread.
pub trait EventHandler<T>: Send + 'static {
    /// An object was added; `initial` says that it was there when the registration began.
    fn on_add(&mut self, object: &Arc<T>, initial: bool) {
        _ = (object, initial);
    }

    /// An object changed, or a resync shows it again.
    fn on_update(&mut self, old: &Arc<T>, new: &Arc<T>, reason: UpdateReason) {
        _ = (old, new, reason);
    }

    /// An object is gone. What this handler was last given of it is `deleted.old`.
    fn on_delete(&mut self, deleted: &Deleted<T>) {
        _ = deleted;
    }

    /// Any event, with its key; calls the methods above unless you write your own.
    fn on_event(&mut self, event: &Event<T>) {
        match event {
            Event::Added { object, initial, .. } => self.on_add(object, *initial),
            Event::Updated { old, new, reason, .. } => self.on_update(old, new, *reason),
            Event::Deleted(deleted) => self.on_delete(deleted),
        }
    }
}

/// A handler of closures, with the options of its registration; see
/// [`SharedInformer::add_handler`](crate::SharedInformer::add_handler). What is not given does
/// nothing.
pub struct Handlers<T> {
    on_add: Option<OnAdd<T>>,
    on_update: Option<OnUpdate<T>>,
    on_delete: Option<OnDelete<T>>,
    on_event: Option<OnEvent<T>>,
    filter: Option<Filter<T>>,
    pub(crate) options: HandlerOptions,
}

/// Options of a registration.
///
/// # Defaults
/// No resync beyond the informer's default, 1024 events before merging, a name by number.
#[derive(Debug, Clone, Default)]
pub struct HandlerOptions {
    pub(crate) name: Option<String>,
    pub(crate) resync: Option<Duration>,
    pub(crate) capacity: Option<usize>,
}

type OnAdd<T> = Box<dyn FnMut(&Arc<T>, bool) + Send>;
type OnUpdate<T> = Box<dyn FnMut(&Arc<T>, &Arc<T>, UpdateReason) + Send>;
type OnDelete<T> = Box<dyn FnMut(&Deleted<T>) + Send>;
type OnEvent<T> = Box<dyn FnMut(&Event<T>) + Send>;
type Filter<T> = Box<dyn Fn(&T) -> bool + Send>;

impl<T> Handlers<T> {
    pub(crate) fn new() -> Self {
        Self {
            on_add: None,
            on_update: None,
            on_delete: None,
            on_event: None,
            filter: None,
            options: HandlerOptions::default(),
        }
    }

    /// Called with each object added, and whether it was there when the registration began.
    #[must_use]
    pub fn on_add(mut self, call: impl FnMut(&Arc<T>, bool) + Send + 'static) -> Self {
        self.on_add = Some(Box::new(call));
        self
    }

    /// Called with the old and the new state of each object that changed, and why.
    #[must_use]
    pub fn on_update(
        mut self,
        call: impl FnMut(&Arc<T>, &Arc<T>, UpdateReason) + Send + 'static,
    ) -> Self {
        self.on_update = Some(Box::new(call));
        self
    }

    /// Called with each object that is gone.
    #[must_use]
    pub fn on_delete(mut self, call: impl FnMut(&Deleted<T>) + Send + 'static) -> Self {
        self.on_delete = Some(Box::new(call));
        self
    }

    /// Called with every event, before the other closures: the event carries the object's key.
    #[must_use]
    pub fn on_event(mut self, call: impl FnMut(&Event<T>) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(call));
        self
    }

    /// Lets through only objects that pass, as [`Filtered`] does.
    #[must_use]
    pub fn filter(mut self, pass: impl Fn(&T) -> bool + Send + 'static) -> Self {
        self.filter = Some(Box::new(pass));
        self
    }

    /// Shows the whole store again that often, as updates with [`UpdateReason::Resync`] (G8). A
    /// period under 1 s is raised to 1 s, as the
    /// [status](crate::RegistrationStatus::resync) says; zero turns the informer's default
    /// off.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.options.resync = Some(period);
        self
    }

    /// How many events are kept apart while the handler is slow; above that they merge by key
    /// (G16).
    #[must_use]
    pub fn capacity(mut self, events: usize) -> Self {
        self.options.capacity = Some(events);
        self
    }

    /// A name for status and errors.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = Some(name.into());
        self
    }

    pub(crate) fn split(mut self) -> (HandlerOptions, Box<dyn EventHandler<T>>)
    where
        T: Send + Sync + 'static,
    {
        let options = std::mem::take(&mut self.options);
        match self.filter.take() {
            Some(filter) => (options, Box::new(Filtered::new(self, filter))),
            None => (options, Box::new(self)),
        }
    }
}

impl<T: Send + Sync + 'static> EventHandler<T> for Handlers<T> {
    fn on_event(&mut self, event: &Event<T>) {
        if let Some(call) = &mut self.on_event {
            call(event);
        }
        match event {
            Event::Added { object, initial, .. } => {
                if let Some(call) = &mut self.on_add {
                    call(object, *initial);
                }
            }
            Event::Updated { old, new, reason, .. } => {
                if let Some(call) = &mut self.on_update {
                    call(old, new, *reason);
                }
            }
            Event::Deleted(deleted) => {
                if let Some(call) = &mut self.on_delete {
                    call(deleted);
                }
            }
        }
    }
}

impl HandlerOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`Handlers::resync`].
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// See [`Handlers::capacity`].
    #[must_use]
    pub fn capacity(mut self, events: usize) -> Self {
        self.capacity = Some(events);
        self
    }

    /// See [`Handlers::name`].
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// Lets a handler see only objects that pass (client-go's `FilteringResourceEventHandler`). An
/// object that comes to pass is added for the handler. One that ceases to, or is gone, is deleted,
/// with the last state that the handler was given if the one after it does not pass. The filter
/// must be a plain function of the object.
pub struct Filtered<H, F> {
    handler: H,
    pass: F,
}

impl<H, F> Filtered<H, F> {
    /// `handler`, for objects that `pass`.
    pub fn new(handler: H, pass: F) -> Self {
        Self { handler, pass }
    }
}

impl<T, H, F> EventHandler<T> for Filtered<H, F>
where
    H: EventHandler<T>,
    F: Fn(&T) -> bool + Send + 'static,
{
    fn on_event(&mut self, event: &Event<T>) {
        let deleted = |key: &ObjectKey, old: &Arc<T>, final_state| {
            let (key, old, last) = (key.clone(), Arc::clone(old), Arc::clone(old));
            Event::Deleted(Deleted { key, old, last, final_state })
        };
        match event {
            Event::Added { object, .. } => {
                if (self.pass)(object) {
                    self.handler.on_event(event);
                }
            }
            Event::Updated { key, old, new, .. } => match ((self.pass)(old), (self.pass)(new)) {
                (true, true) => self.handler.on_event(event),
                (false, true) => {
                    let object = Arc::clone(new);
                    self.handler.on_event(&Event::Added {
                        key: key.clone(),
                        object,
                        initial: false,
                    });
                }
                (true, false) => self.handler.on_event(&deleted(key, old, FinalState::Known)),
                (false, false) => {}
            },
            Event::Deleted(Deleted { key, old, last, final_state }) => {
                match ((self.pass)(old), (self.pass)(last)) {
                    (true, true) => self.handler.on_event(event),
                    (true, false) => self.handler.on_event(&deleted(key, old, *final_state)),
                    // What came to pass and went, before it could be given.
                    (false, _) => {}
                }
            }
        }
    }
}

impl<T> fmt::Debug for Handlers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<H, F> fmt::Debug for Filtered<H, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtered").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(Vec<String>);

    impl EventHandler<u32> for Log {
        fn on_event(&mut self, event: &Event<u32>) {
            self.0.push(format!("{event:?}"));
        }
    }

    /// Notes the `old` and the `last` of deletes.
    #[derive(Default)]
    struct Lasts(Vec<(u32, u32)>);

    impl EventHandler<u32> for Lasts {
        fn on_delete(&mut self, deleted: &Deleted<u32>) {
            self.0.push((*deleted.old, *deleted.last));
        }
    }

    fn delete(old: u32, last: u32) -> Event<u32> {
        let (key, old, last) = (ObjectKey::cluster("a"), Arc::new(old), Arc::new(last));
        Event::Deleted(Deleted { key, old, last, final_state: FinalState::Known })
    }

    fn update(old: u32, new: u32) -> Event<u32> {
        let (old, new) = (Arc::new(old), Arc::new(new));
        Event::Updated { key: ObjectKey::cluster("a"), old, new, reason: UpdateReason::Change }
    }

    #[test]
    fn a_filter_turns_updates_across_its_border_into_adds_and_deletes() {
        let mut handler = Filtered::new(Log::default(), |object: &u32| *object >= 10);
        for event in [update(1, 2), update(2, 10), update(10, 11), update(11, 3)] {
            handler.on_event(&event);
        }
        handler.on_event(&delete(3, 3));
        assert_eq!(
            handler.handler.0,
            ["Added(a)", "Updated(a, Change)", "Deleted(a, final state Known)"]
        );
    }

    #[test]
    fn g03_a_filter_deletes_what_its_handler_was_given_and_nothing_else() {
        let told = |old, last| {
            let mut handler = Filtered::new(Lasts::default(), |object: &u32| *object >= 10);
            handler.on_event(&delete(old, last));
            handler.handler.0
        };
        assert_eq!(told(10, 11), [(10, 11)]);
        assert_eq!(told(10, 3), [(10, 10)], "it ceased to pass and went; what passed last is told");
        assert_eq!(
            told(3, 10),
            [],
            "it came to pass and went, which its handler was never told of"
        );
        assert_eq!(told(3, 3), []);
    }
}
