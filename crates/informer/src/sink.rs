//! Where a shared informer's reflector delivers: the pipeline, the status, and those who wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use informer_core::reflector::State;
use informer_core::{DeltaQueue, ObjectKey, ResourceVersion, Uid};

use crate::Error;
use crate::reflector::{Held, Phase, Report, Sink};
use crate::shared::Shared;
use crate::status::count;

pub(crate) struct SharedSink<T> {
    shared: Arc<Shared<T>>,
    /// The state as it was published last.
    state: State,
    /// The objects whose newest state is undecodable, and why.
    stale: BTreeMap<ObjectKey, String>,
    /// Whether others are published as such, until the delivery of what they have become.
    published_more: bool,
    /// What is undecodable in the list that is being staged.
    staged: Option<Staged>,
    /// How often the resource went away.
    removals: u64,
}

#[derive(Default)]
struct Staged {
    stale: BTreeMap<ObjectKey, String>,
    unreadable: usize,
}

impl<T> SharedSink<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        Self {
            shared,
            state: State::NotStarted,
            stale: BTreeMap::new(),
            published_more: false,
            staged: None,
            removals: 0,
        }
    }

    fn stale(&mut self, key: &ObjectKey, cause: &str) {
        if let Some(staged) = &mut self.staged {
            staged.stale.insert(key.clone(), cause.to_owned());
            return;
        }
        self.stale.insert(key.clone(), cause.to_owned());
        self.shared.live.send_modify(|live| {
            live.stale.insert(key.clone(), cause.to_owned());
        });
    }

    /// Publishes what has become decodable, or is gone, once the store shows that.
    fn publish_decodable(&mut self) {
        if std::mem::take(&mut self.published_more) {
            self.shared.live.send_modify(|live| live.stale.clone_from(&self.stale));
        }
    }
}

impl<T: Send + Sync + 'static> Sink<T> for SharedSink<T> {
    fn deliver(&mut self, now: Duration, deltas: &mut DeltaQueue<T>) {
        if deltas.is_empty() {
            self.publish_decodable();
            return;
        }
        let mut pipeline = self.shared.pipeline();
        let faults = pipeline.apply(now, deltas.pop_batch(usize::MAX));
        let observer_faults = pipeline.take_observer_faults();
        let has_synced = pipeline.has_synced();
        let (refreshes, needs_refresh) = (pipeline.refreshes(), pipeline.needs_refresh());
        drop(pipeline);
        // Between the store and its version: a wait for the version finds either the object or the
        // cause.
        self.publish_decodable();
        let snapshot = self.shared.reader.snapshot();
        let (version, epoch) = (snapshot.version(), snapshot.epoch());
        let first = has_synced && !self.shared.reached.borrow().has_synced;
        self.shared.reached.send_if_modified(|reached| {
            if reached.has_synced == has_synced
                && reached.version == *version
                && reached.epoch == epoch
                && reached.refreshes == refreshes
                && reached.needs_refresh == needs_refresh
                && reached.removals == self.removals
            {
                return false;
            }
            if has_synced && !reached.has_synced {
                reached.hopeless = None;
            }
            reached.has_synced = has_synced;
            reached.version.clone_from(version);
            reached.epoch = epoch;
            (reached.refreshes, reached.needs_refresh) = (refreshes, needs_refresh);
            // Published with the delivery that empties the store.
            reached.removals = self.removals;
            true
        });
        if first {
            // The state may be what it was, but the status is not (G31).
            self.shared.live.send_modify(|_| {});
        }
        self.shared.report_faults(faults);
        self.shared.report_observer_faults(observer_faults);
    }

    fn held(&self, namespace: &str, name: &str, uid: &Uid, version: &ResourceVersion) -> Held {
        self.shared.pipeline().held(namespace, name, uid, version)
    }

    fn next_sync(&self) -> Option<Duration> {
        self.shared.pipeline().next_resync()
    }

    fn refreshes(&self) -> u64 {
        self.shared.refreshes.load(Ordering::Acquire)
    }

    fn rescheduled(&self) -> impl Future<Output = ()> + Send {
        self.shared.rescheduled.notified()
    }

    fn report(&mut self, report: Report<'_>) {
        let meter = &self.shared.meter;
        match report {
            Report::State(state) => {
                if self.state != *state {
                    self.state.clone_from(state);
                    self.shared.live.send_modify(|live| live.state.clone_from(state));
                }
            }
            Report::StreamingLists { supported } => {
                if let Some(learn) = &self.shared.learn_streaming_lists {
                    learn.store(supported, Ordering::Relaxed);
                }
            }
            Report::Requested { phase: Phase::List } => count(&meter.lists, 1),
            Report::Requested { phase: Phase::Watch } => count(&meter.watches, 1),
            Report::Requested { .. } => {}
            Report::Received { events, bookmarks, bytes } => {
                count(&meter.events, events);
                count(&meter.bookmarks, bookmarks);
                count(&meter.bytes, bytes);
            }
            Report::Failed { phase, failure } => {
                // Sources say what they asked for; what was found by the reflector does not.
                let Shared { name, resource, .. } = &*self.shared;
                let message = &failure.message;
                let message = match message.contains(&resource.to_string()) {
                    true => message.clone(),
                    false => format!("{phase} {name}: {message}"),
                };
                self.shared.report_failure(phase, message, Some(failure.clone()));
            }
            Report::Object { decoded: true } => count(&meter.decoded, 1),
            Report::Object { decoded: false } => count(&meter.unchanged, 1),
            Report::Undecodable { key, why } => {
                count(&meter.undecodable, 1);
                self.shared.report(why.phase, format!("{key}: {}", why.cause));
                self.stale(key, &why.cause);
            }
            Report::Unreadable { number, cause } => {
                count(&meter.undecodable, 1);
                self.shared.report(
                    Phase::Decode,
                    format!("item {number} of the list is left out: {cause}"),
                );
                if let Some(staged) = &mut self.staged {
                    staged.unreadable += 1;
                }
            }
            Report::ListBegan { .. } => self.staged = Some(Staged::default()),
            Report::ListPublished { .. } => {
                let Staged { stale, unreadable } = self.staged.take().unwrap_or_default();
                self.shared.live.send_modify(|live| {
                    live.stale.extend(stale.clone());
                    live.unreadable = unreadable;
                });
                (self.stale, self.published_more) = (stale, true);
            }
            Report::ListAbandoned => self.staged = None,
            Report::Removed => {
                self.staged = None;
                self.removals += 1;
                self.shared.live.send_modify(|live| live.unreadable = 0);
                self.stale.clear();
                self.published_more = true;
            }
            Report::Decodable { key } => {
                if let Some(staged) = &mut self.staged {
                    staged.stale.remove(key);
                } else if self.stale.remove(key).is_some() {
                    self.published_more = true;
                }
            }
            Report::NothingDecodes { objects, cause } => {
                let informer = self.shared.name.clone();
                let error = Error::NothingDecodes { informer, objects, cause: cause.to_owned() };
                self.shared.reached.send_modify(|reached| {
                    if !reached.has_synced {
                        reached.hopeless = Some(error);
                    }
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use informer_core::ingest::Undecodable;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;

    use super::*;
    use crate::SharedInformerFactory;

    fn sink() -> SharedSink<ConfigMap> {
        let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>();
        let client = kube::Client::new(tower::service_fn(never), "default");
        let informer = SharedInformerFactory::builder(client).build().informer().unwrap();
        SharedSink::new(Arc::clone(&informer.shared))
    }

    fn undecodable(sink: &mut SharedSink<ConfigMap>, name: &str) {
        let key = ObjectKey::namespaced("default", name);
        let why = Undecodable { phase: Phase::Decode, cause: "no map".to_owned() };
        sink.report(Report::Undecodable { key: &key, why: &why });
    }

    fn stale(sink: &SharedSink<ConfigMap>) -> Vec<String> {
        sink.shared.live.borrow().stale.keys().map(|key| key.name().to_owned()).collect()
    }

    fn deliver(sink: &mut SharedSink<ConfigMap>) {
        sink.deliver(Duration::ZERO, &mut DeltaQueue::new(16));
    }

    #[tokio::test]
    async fn g30_an_object_is_undecodable_until_its_next_state_is_in_the_store() {
        let mut sink = sink();
        undecodable(&mut sink, "a");
        assert_eq!(stale(&sink), ["a"], "at once, before the store has reached its version");
        sink.report(Report::Decodable { key: &ObjectKey::namespaced("default", "a") });
        assert_eq!(stale(&sink), ["a"], "its next state is on its way to the store");
        deliver(&mut sink);
        assert!(stale(&sink).is_empty());

        undecodable(&mut sink, "a");
        sink.report(Report::ListBegan { skip_unreadable: false });
        undecodable(&mut sink, "b");
        deliver(&mut sink);
        assert_eq!(stale(&sink), ["a"]);
        sink.report(Report::ListPublished { history_changed: false });
        assert_eq!(stale(&sink), ["a", "b"]);
        deliver(&mut sink);
        assert_eq!(stale(&sink), ["b"]);
        sink.report(Report::Removed);
        assert_eq!(stale(&sink), ["b"]);
        deliver(&mut sink);
        assert!(stale(&sink).is_empty());
    }
}
