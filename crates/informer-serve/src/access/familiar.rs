//! Tokens that were somebody's when they were reviewed last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::answers::Party;

/// A keyed hash of a token.
pub(super) type TokenHash = [u8; 32];

/// The users of the tokens that were accepted last. It admits nobody: a familiar token is reviewed
/// like any other, but does not wait behind unknown ones.
pub(super) struct Familiar {
    capacity: usize,
    users: Mutex<HashMap<TokenHash, (Party, Instant)>>,
}

impl Familiar {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, users: Mutex::default() }
    }

    /// Whose the token was.
    pub(super) fn user(&self, token: &TokenHash) -> Option<Party> {
        self.lock().get(token).map(|(user, _)| user.clone())
    }

    /// Notes that a token was accepted. The one that was not for longest makes room.
    pub(super) fn note(&self, token: TokenHash, user: Party) {
        let mut users = self.lock();
        users.insert(token, (user, Instant::now()));
        if users.len() > self.capacity {
            let oldest = users.iter().min_by_key(|(_, (_, accepted))| *accepted);
            if let Some(oldest) = oldest.map(|(token, _)| *token) {
                users.remove(&oldest);
            }
        }
    }

    /// Notes that a token was refused.
    pub(super) fn forget(&self, token: &TokenHash) {
        self.lock().remove(token);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TokenHash, (Party, Instant)>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_token_that_was_not_accepted_for_longest_makes_room() {
        let familiar = Familiar::new(2);
        for token in [1, 2, 1, 3] {
            familiar.note([token; 32], "user".into());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let is_known = |token| familiar.user(&[token; 32]).is_some();
        assert_eq!([1, 2, 3].map(is_known), [true, false, true]);
        familiar.forget(&[1; 32]);
        assert_eq!(familiar.user(&[1; 32]), None);
    }
}
