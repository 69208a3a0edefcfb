//! Whether a controller may write now.

use std::future::pending;

use crate::leader_election::{NotLeader, Term};

/// Says before each write whether it is allowed: while a term lasts, or always.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Option<Term>);

impl Gate {
    /// Allows writes in this term; without leader election, always.
    pub(crate) fn new(term: Option<Term>) -> Self {
        Self(term)
    }

    /// Whether writes are allowed at this moment.
    pub(crate) fn check(&self) -> Result<(), NotLeader> {
        self.0.as_ref().map_or(Ok(()), Term::check)
    }

    /// Waits until writes are not allowed any more.
    ///
    /// # Cancel safety
    /// Dropping the future only ends the wait.
    pub(crate) async fn lost(&self) -> NotLeader {
        match &self.0 {
            Some(term) => term.lost().await,
            None => pending().await,
        }
    }
}
