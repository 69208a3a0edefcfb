//! What one informer must show of one write.

use super::types::{History, InformerId, Missing, Views};
use super::{is_refreshed, is_there};
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
    /// As [`Version`](Self::Version), for an object that the selectors exclude now: nothing but
    /// its leaving the store may tell of the version.
    VersionOrAbsent { version: ResourceVersion, after: Option<ResourceVersion> },
    /// The object is not in the store, which has reached the version at which it may have entered.
    Absent { after: Option<ResourceVersion> },
    /// A refresh.
    Refresh,
}

impl Need {
    /// The version at which the store may come to hold the object, if it does not yet.
    pub(super) fn version(&self) -> Option<&ResourceVersion> {
        match self {
            Self::Version(version) => Some(version),
            Self::VersionOrAbsent { after, .. } | Self::Absent { after } => after.as_ref(),
            Self::Refresh => None,
        }
    }
}

impl Requirement {
    pub(super) fn is_shown<R>(&self, informers: &[(R, u64)], views: &impl Views) -> bool {
        self.missing::<R, R>(informers, views).is_none()
    }

    /// What the informer lacks.
    pub(super) fn missing<R, S>(
        &self,
        informers: &[(R, u64)],
        views: &impl Views,
    ) -> Option<Missing<S>> {
        let (informer, key) = (self.informer, &self.key);
        let history = views.history(informer);
        let goes_on = match &self.need {
            Need::Refresh => is_there(informer, self.history, views),
            Need::Version(_) | Need::VersionOrAbsent { .. } | Need::Absent { .. } => {
                history == Some(self.history)
            }
        };
        if !goes_on {
            return None;
        }
        let refreshed = is_refreshed(informer, self.since, informers);
        let reached = |version: &ResourceVersion| refreshed || views.has_reached(informer, version);
        let absent = |after: &Option<ResourceVersion>| {
            after.as_ref().is_none_or(&reached)
                && views.held(informer, key).is_none_or(|(uid, _)| uid != self.uid)
        };
        let lacks_version = |version: &ResourceVersion| Missing::Version {
            informer,
            key: key.clone(),
            version: version.clone(),
        };
        match &self.need {
            Need::Version(version) if !reached(version) => Some(lacks_version(version)),
            Need::Version(version) => {
                let cause = views.undecodable(informer, key)?;
                let is_shown = views
                    .held(informer, key)
                    .is_some_and(|(uid, held)| uid == self.uid && held.has_reached(version));
                let (key, version) = (key.clone(), version.clone());
                (!is_shown).then_some(Missing::Undecodable { informer, key, version, cause })
            }
            Need::VersionOrAbsent { version, after } => {
                (!reached(version) && !absent(after)).then(|| lacks_version(version))
            }
            Need::Absent { after } => (!absent(after)).then(|| Missing::Delete {
                informer,
                key: key.clone(),
                uid: self.uid.clone(),
            }),
            Need::Refresh => (!refreshed).then(|| Missing::Refresh { informer }),
        }
    }
}
