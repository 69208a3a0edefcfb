//! Whether a controller may write now.

use std::fmt;
use std::sync::Arc;

/// A write was refused before it was sent: this replica does not hold the lease, or its renew
/// deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this replica is not the leader: nothing was written")]
#[non_exhaustive]
pub struct NotLeader;

/// Says before each write whether it is allowed.
#[derive(Clone)]
pub(crate) struct Gate(Arc<dyn Fn() -> Result<(), NotLeader> + Send + Sync>);

impl Gate {
    /// Allows what `check` allows, which must neither block nor wait.
    pub(crate) fn new(check: impl Fn() -> Result<(), NotLeader> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Allows every write.
    pub(crate) fn open() -> Self {
        Self::new(|| Ok(()))
    }

    pub(crate) fn check(&self) -> Result<(), NotLeader> {
        (self.0)()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gate").field(&self.check()).finish()
    }
}
