//! Observes the body of a forwarded response.

use bytes::Bytes;

use super::version::VersionScan;
use super::writes::Telling;
use crate::body::Observer;

/// Looks for the resource version that a response names. `watched` is dropped before `_place`, so
/// that a write without a version is recorded before its permit is free.
pub(super) struct Tap<P> {
    pub(super) watched: Option<(VersionScan, Telling)>,
    pub(super) _place: P,
}

impl<P> Observer for Tap<P> {
    fn data(&mut self, data: &Bytes) {
        if let Some((scan, telling)) = &mut self.watched
            && let Some(version) = scan.push(data)
        {
            // This precedes the caller's next read, since the caller gets the data only afterwards.
            telling.named(version);
            self.watched = None;
        }
    }
}
