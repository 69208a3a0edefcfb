//! Which page of a list a continue token asks for. The tokens, which are those of an API server, do
//! not say.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many tokens are remembered.
const KEPT: usize = 10_000;

/// The tokens that were handed out.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<HashMap<String, u64>>);

impl Pages {
    /// The page that a token asks for, counted from 1; `None` if it is not from here.
    pub(crate) fn of(&self, token: &str) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token).copied()
    }

    /// Hands out the token of a page.
    pub(crate) fn give(&self, token: &str, page: u64) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() >= KEPT {
            pages.clear();
        }
        pages.insert(token.to_owned(), page);
    }
}
