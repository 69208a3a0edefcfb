//! Whether a controller may write now.

use std::fmt;
use std::sync::Arc;

use crate::leader_election::NotLeader;

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
