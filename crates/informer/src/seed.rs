//! A seed for the jitter of one reflector.

use std::hash::{BuildHasher, RandomState};

/// Differs from process to process and from call to call: std seeds each `RandomState` anew.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}
