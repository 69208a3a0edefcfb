//! The body of a forwarded answer on its way to the caller.

use bytes::Bytes;

use super::version::VersionScan;
use super::writes::Telling;
use crate::body::Observer;

/// Looks for the version that an answer names. Dropped in this order: a write that named no
/// version is known as such before its place is free.
pub(super) struct Tap<P> {
    pub(super) watched: Option<(VersionScan, Telling)>,
    pub(super) _place: P,
}

impl<P> Observer for Tap<P> {
    fn data(&mut self, data: &Bytes) {
        if let Some((scan, telling)) = &mut self.watched
            && let Some(version) = scan.push(data)
        {
            // Before the caller gets to see it.
            telling.named(version);
            self.watched = None;
        }
    }
}
