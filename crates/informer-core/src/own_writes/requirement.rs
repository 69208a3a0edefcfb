//! What one informer must show of one write.

use super::remembered::{is_refreshed, is_there};
use super::types::{History, InformerId, Missing, Views};
use crate::{ObjectKey, ResourceVersion, Uid};

/// What one informer must show of one write, unless its history changes or it ends.
pub(super) struct Requirement {
    pub(super) informer: InformerId,
    pub(super) history: History,
    /// The object that was written.
    pub(super) key: ObjectKey,
    pub(super) uid: Uid,
    pub(super) need: Need,
    /// A refresh that was requested later shows the write, whatever is needed else.
    pub(super) since: u64,
}

#[derive(PartialEq, Eq)]
pub(super) enum Need {
    /// The store has reached the version, and holds the object decoded.
    Version(ResourceVersion),
    /// The store has reached the version, or holds nothing under the key: for an object that the
    /// selectors exclude, so that no event may tell of the version. Kept until the version is
    /// reached, since until then the store may come to hold an older state.
    VersionOrAbsent(ResourceVersion),
    /// The object is not in the store, which has reached the version at which it may have entered.
    Absent { after: Option<ResourceVersion> },
    /// A refresh.
    Refresh,
}

impl Need {
    /// The version with which the write was answered.
    pub(super) fn answered(&self) -> Option<&ResourceVersion> {
        match self {
            Self::Version(version) | Self::VersionOrAbsent(version) => Some(version),
            Self::Absent { after } => after.as_ref(),
            Self::Refresh => None,
        }
    }

    /// The version at which the store may come to hold the object, if it does not yet.
    pub(super) fn version(&self) -> Option<&ResourceVersion> {
        match self {
            Self::Version(version) => Some(version),
            Self::Absent { after } => after.as_ref(),
            Self::VersionOrAbsent(_) | Self::Refresh => None,
        }
    }
}

/// How far an informer has come with a requirement.
pub(super) enum Progress<R> {
    /// Nothing is to be waited for any more.
    Over,
    /// It is met, and may be unmet again.
    Met,
    Missing(Missing<R>),
}

impl Requirement {
    pub(super) fn progress<R>(&self, informers: &[(R, u64)], views: &impl Views) -> Progress<R> {
        let (informer, key) = (self.informer, &self.key);
        let goes_on = match &self.need {
            Need::Refresh => is_there(informer, self.history, views),
            Need::Version(_) | Need::VersionOrAbsent(_) | Need::Absent { .. } => {
                views.history(informer) == Some(self.history)
            }
        };
        if !goes_on {
            return Progress::Over;
        }
        let refreshed = is_refreshed(informer, self.since, informers);
        let reached = |version: &ResourceVersion| refreshed || views.has_reached(informer, version);
        let lacks_version = |version: &ResourceVersion| {
            let (key, version) = (key.clone(), version.clone());
            Progress::Missing(Missing::Version { informer, key, version })
        };
        match &self.need {
            Need::Version(version) if reached(version) => self.undecodable(version, views),
            Need::Version(version) => lacks_version(version),
            Need::VersionOrAbsent(version) if reached(version) => Progress::Over,
            Need::VersionOrAbsent(version) if views.held(informer, key).is_some() => {
                lacks_version(version)
            }
            Need::VersionOrAbsent(_) => Progress::Met,
            Need::Absent { after } => {
                let holds = views.held(informer, key).is_some_and(|(uid, _)| uid == self.uid);
                if !holds && after.as_ref().is_none_or(reached) {
                    return Progress::Over;
                }
                let (key, uid) = (key.clone(), self.uid.clone());
                Progress::Missing(Missing::Delete { informer, key, uid })
            }
            Need::Refresh if refreshed => Progress::Over,
            Need::Refresh => Progress::Missing(Missing::Refresh { informer }),
        }
    }

    /// Whether the store that has reached the version shows the object, or could not decode it.
    fn undecodable<R>(&self, version: &ResourceVersion, views: &impl Views) -> Progress<R> {
        let (informer, key) = (self.informer, &self.key);
        let Some(cause) = views.undecodable(informer, key) else { return Progress::Over };
        let held = views.held(informer, key);
        // A later state may be the one that cannot be decoded.
        if held.is_some_and(|(uid, held)| uid == self.uid && held.has_reached(version)) {
            return Progress::Over;
        }
        let (key, version) = (key.clone(), version.clone());
        Progress::Missing(Missing::Undecodable { informer, key, version, cause })
    }
}
