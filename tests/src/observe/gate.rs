//! Gates that make handlers slow.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Closed, it stops the handlers that want to pass.
#[derive(Debug, Default)]
pub struct Gate {
    closed: Mutex<bool>,
    waiting: AtomicUsize,
    opened: Condvar,
}

/// Opens the gate when dropped: a handler that waits would keep a failed test from ending.
#[derive(Debug)]
pub struct GateKeeper(Arc<Gate>);

impl Gate {
    /// Blocks the thread while the gate is closed.
    pub fn pass(&self) {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_add(1, Ordering::AcqRel);
        drop(
            self.opened
                .wait_while(closed, |closed| *closed)
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl GateKeeper {
    /// A gate, open or closed, and its keeper.
    #[must_use]
    pub fn new(closed: bool) -> (Arc<Gate>, Self) {
        let gate = Arc::new(Gate { closed: Mutex::new(closed), ..Gate::default() });
        (Arc::clone(&gate), Self(gate))
    }

    /// From now on handlers wait.
    pub fn close(&self) {
        self.set(true);
    }

    /// Whether a handler waits.
    #[must_use]
    pub fn is_waited_at(&self) -> bool {
        self.0.waiting.load(Ordering::Acquire) > 0
    }

    /// Lets everybody pass.
    pub fn open(&self) {
        self.set(false);
    }

    fn set(&self, closed: bool) {
        *self.0.closed.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.0.opened.notify_all();
    }
}

impl Drop for GateKeeper {
    fn drop(&mut self) {
        self.open();
    }
}
