//! Tokens that were accepted when they were last reviewed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::answers::Party;

/// A keyed hash of a token.
pub(super) type TokenHash = [u8; 32];

/// The users of the tokens that were accepted most recently. This grants no access: a familiar
/// token is reviewed like any other, but does not wait behind unknown tokens.
pub(super) struct Familiar {
    capacity: usize,
    users: Mutex<HashMap<TokenHash, (Party, Instant)>>,
}

impl Familiar {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, users: Mutex::default() }
    }

    /// The user of the token at its last review.
    pub(super) fn user(&self, token: &TokenHash) -> Option<Party> {
        self.lock().get(token).map(|(user, _)| user.clone())
    }

    /// Records that a token was accepted. If there are too many, the token whose last acceptance is
    /// the oldest is evicted: one of the same user if this user has more than a quarter.
    pub(super) fn note(&self, token: TokenHash, user: &Party) {
        let mut users = self.lock();
        users.insert(token, (Party::clone(user), Instant::now()));
        let own = users.values().filter(|(it, _)| it == user).count();
        let has_too_many = own > (self.capacity / 4).max(1);
        if !has_too_many && users.len() <= self.capacity {
            return;
        }
        let may_go = users.iter().filter(|(_, (it, _))| !has_too_many || it == user);
        let oldest = may_go.min_by_key(|(_, (_, accepted))| *accepted).map(|(token, _)| *token);
        if let Some(oldest) = oldest {
            users.remove(&oldest);
        }
    }

    /// Records that a token was refused.
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

    async fn note(familiar: &Familiar, tokens: &[(u8, &str)]) {
        for (token, user) in tokens {
            familiar.note([*token; 32], &(*user).into());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_token_that_was_not_accepted_for_longest_makes_room() {
        let familiar = Familiar::new(4);
        let tokens = [(1, "a"), (2, "b"), (3, "c"), (1, "a"), (4, "d"), (5, "e")];
        note(&familiar, &tokens).await;
        let is_known = |token| familiar.user(&[token; 32]).is_some();
        assert_eq!([1, 2, 3, 4, 5].map(is_known), [true, false, true, true, true]);
        familiar.forget(&[1; 32]);
        assert_eq!(familiar.user(&[1; 32]), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_with_many_tokens_has_only_own_ones_forgotten() {
        let familiar = Familiar::new(8);
        note(&familiar, &[(1, "a"), (2, "many"), (3, "many"), (4, "many"), (5, "many")]).await;
        let is_known = |token| familiar.user(&[token; 32]).is_some();
        assert_eq!([1, 2, 3, 4, 5].map(is_known), [true, false, false, true, true]);
    }
}
