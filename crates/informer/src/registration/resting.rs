//! A handler between its calls. Model-checked by `tests/model.rs`, which has primitives of its own under `sync`.

use std::sync::PoisonError;
use std::task::{Context, Waker};

use super::signal::Signal;
use super::sync::{Mutex, MutexGuard};

/// Where a handler is while nobody calls it. Whoever takes it out calls it; that keeps its calls one at a time.
pub(crate) struct Resting<H>(Mutex<Option<H>>);

impl<H> Resting<H> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Leaves it to `waker`, which is woken by the next change and takes it; gives it back if there `is_work` already.
    /// Always the same waker: two threads may do this one right after the other, and only one of them is heard.
    pub(crate) fn leave(
        &self,
        handler: H,
        signal: &Signal,
        waker: &Waker,
        is_work: impl FnOnce() -> bool,
    ) -> Option<H> {
        *self.lock() = Some(handler);
        let look = || is_work().then_some(());
        // Nothing is given back if a wake-up was faster.
        if signal.poll(&Context::from_waker(waker), look).is_ready() { self.take() } else { None }
    }

    pub(crate) fn take(&self) -> Option<H> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<H>> {
        // No foreign code runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
