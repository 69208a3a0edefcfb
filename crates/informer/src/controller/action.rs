//! What a reconcile asks for.

use std::time::Duration;

/// What is to happen with a key after a reconcile that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "return it from the reconcile function"]
pub struct Action(Next);

/// When a key comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// When something changes.
    Change,
    /// Once the informers show what the reconcile wrote, whether filters let that pass or not.
    OwnWrites,
    After(Duration),
}

impl Action {
    /// Nothing, until something changes.
    pub fn await_change() -> Self {
        Self(Next::Change)
    }

    /// A reconcile when `delay` has passed, or before that if something changes. An earlier time
    /// that was asked for by an earlier reconcile stands. With a delay of zero the key comes as
    /// after a failure, later each time: a reconcile that always asks for itself is no loop.
    pub fn requeue_after(delay: Duration) -> Self {
        Self(Next::After(delay))
    }

    /// A reconcile once the informers show what this one wrote. Of one that always writes it makes a
    /// loop.
    pub(super) fn after_own_writes() -> Self {
        Self(Next::OwnWrites)
    }

    /// The delay that was asked for.
    #[must_use]
    pub fn delay(self) -> Option<Duration> {
        match self.0 {
            Next::Change | Next::OwnWrites => None,
            Next::After(delay) => Some(delay),
        }
    }

    pub(super) fn next(self) -> Next {
        self.0
    }
}
