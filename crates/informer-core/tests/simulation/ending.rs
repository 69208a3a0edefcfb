//! The end of every history: the server is well again, and everybody gets everything (G1).

use std::sync::Arc;
use std::time::Duration;

use informer_core::reflector::State;

use crate::plan::{Fault, WatchList, Write};
use crate::readers::Handler;
use crate::server::Good;
use crate::world::World;

/// A server that is well again has this long until everybody has everything.
const CONVERGED_WITHIN: Duration = Duration::from_secs(15 * 60);

impl World {
    /// Faults are lifted and time passes: everybody has to have everything (G1), and keep it.
    pub(crate) fn end(&mut self) {
        self.trace(|| "● the server is well again".to_owned());
        self.recover();
        self.converge(false);
        self.trace(|| "● and so are its objects".to_owned());
        self.converge(true);
        let before: Vec<_> = self.handlers.iter().map(|handler| handler.view.clone()).collect();
        for name in 0..4 {
            self.write(name, Write::Put(Good::Yes));
            self.run_until(self.now + Duration::from_secs(40));
        }
        self.converge(true);
        for (handler, before) in self.handlers.iter().zip(&before) {
            handler.check_resyncs(before);
        }
        self.refresh_past_a_watch();
        self.converge(true);
        self.content.check_kept();
        self.stop();
    }

    /// A refresh shows what the watch holds back.
    fn refresh_past_a_watch(&mut self) {
        self.strike(Fault::Stall);
        self.write(1, Write::Put(Good::Yes));
        self.write(2, Write::Put(Good::Yes));
        self.request_refresh();
        self.run_until(self.now + Duration::from_secs(20));
        let (wanted, version) = (self.ingest.sink.refreshes, self.server.version());
        assert_eq!(self.ingest.sink.pipeline.refreshes(), wanted, "G26: not refreshed in 20 s");
        let shown = self.content.reader.snapshot();
        assert_eq!(*shown.version(), version.into(), "G14: not refreshed");
    }

    /// Waits until all have what the server has: with `repair`, of everything, else of what can be
    /// used (G30).
    fn converge(&mut self, repair: bool) {
        let start = self.now;
        while !self.is_converged(repair) {
            let waited = self.now - start;
            assert!(waited < CONVERGED_WITHIN, "G1: after {waited:?}: {}", self.what_is_missing());
            self.run_until(self.now + Duration::from_secs(1));
        }
    }

    fn recover(&mut self) {
        (self.outage, self.close_loop, self.watches_go) = (None, None, None);
        self.armed.clear();
        self.return_resource();
        self.server.settings.watch_list = WatchList::Served;
        self.server.settings.bookmarks = true;
        self.server.settings.lag = 0;
        if let Some(open) = &mut self.open {
            open.connection.drips = false;
        }
        let now = self.now;
        self.handlers.iter_mut().for_each(|handler| handler.release(now));
    }

    /// Writes over what cannot be used.
    fn repair(&mut self) {
        let bad: Vec<u8> = self
            .server
            .collection()
            .iter()
            .flatten()
            .filter(|state| state.good != Good::Yes)
            .map(|state| state.name)
            .collect();
        for name in bad {
            self.write(name, Write::Put(Good::Yes));
        }
    }

    fn is_converged(&mut self, repair: bool) -> bool {
        if repair {
            self.repair();
        }
        let snapshot = self.content.reader.snapshot();
        let collection = self.server.collection();
        let mut states: Vec<_> = collection.iter().flatten().collect();
        if !states.is_empty() && states.iter().all(|state| state.good != Good::Yes) {
            // A list of which nothing can be used is none (G20).
            return true;
        }
        if self.config.strict && states.iter().any(|state| state.good != Good::Yes) {
            self.coverage.note("strict, and something is bad");
            return true;
        }
        if states.iter().any(|state| !state.good.is_readable()) {
            self.coverage.note("spared what was bad");
        }
        let bad: Vec<_> = states
            .extract_if(.., |state| state.good != Good::Yes)
            .map(|state| state.key())
            .collect();
        states.sort_by_key(|state| state.key());
        let held: Vec<_> = snapshot.iter().filter(|entry| !bad.contains(entry.key)).collect();
        let equal = states.len() == held.len()
            && states.iter().zip(&held).all(|(state, entry)| entry.object().stamp == state.stamp);
        equal
            && self.ingest.sink.pipeline.has_synced()
            && self.ingest.queued() == 0
            && self.ingest.sink.pipeline.refreshes() == self.ingest.sink.refreshes
            && matches!(self.ingest.state(), State::Watching { .. })
            && self.handlers.iter().all(|handler| {
                let queue = handler.queue.lock();
                handler.is_idle()
                    && queue.is_empty()
                    && queue.has_synced()
                    && handler.view.len() == snapshot.len()
                    && handler.view.iter().zip(snapshot.iter()).all(|((key, object), entry)| {
                        key == entry.key && Arc::ptr_eq(object, entry.object())
                    })
            })
    }

    fn what_is_missing(&self) -> String {
        let shown = self.content.reader.snapshot();
        let shown: Vec<_> =
            shown.iter().map(|entry| (entry.key.clone(), entry.object().stamp)).collect();
        let handlers: Vec<_> = self
            .handlers
            .iter()
            .map(|handler| {
                let queue = handler.queue.lock();
                (
                    handler.number,
                    handler.is_idle(),
                    queue.is_empty(),
                    queue.has_synced(),
                    handler.view.len(),
                )
            })
            .collect();
        format!(
            "{:?}\n  store {shown:?}\n  server {:?}\n  handlers {handlers:?}, {} deltas",
            self.ingest.state(),
            self.server
                .collection()
                .iter()
                .flatten()
                .map(|state| (state.key(), state.stamp))
                .collect::<Vec<_>>(),
            self.ingest.queued(),
        )
    }

    fn stop(&mut self) {
        self.ingest.sink.pipeline.finish();
        for handler in &mut self.handlers {
            while let Some(at) = handler.next_at(self.now) {
                handler.step(self.now.max(at), &self.server, &mut self.coverage);
            }
            assert!(handler.queue.lock().is_over(), "G24: a queue that does not end");
        }
        self.removed.iter().for_each(Handler::check_removed);
    }
}
