//! A write that is remembered.

use super::requirement::{Progress, Requirement};
use super::{History, InformerId, Missing, Views, Write};
use crate::ResourceVersion;

/// One write.
pub(super) struct Remembered<R> {
    pub(super) number: u64,
    pub(super) write: Write<R>,
    /// The informers that may show it, with their histories when it began.
    pub(super) informers: Vec<(InformerId, History)>,
    /// The newest version at which one of them showed the object when it began.
    pub(super) shown: Option<ResourceVersion>,
    pub(super) state: State,
}

pub(super) enum State {
    /// It was not answered yet.
    InFlight,
    /// Whether and at which version it was applied is unknown since then.
    Unsettled { since: u64 },
    /// What the informers must show.
    Answered(Vec<Requirement>),
}

impl<R: Clone> Remembered<R> {
    /// Drops what is over, adds what is missing, and says whether anything is left.
    pub(super) fn check(
        &mut self,
        refreshed: &[(R, u64)],
        views: &impl Views,
        missing: &mut Vec<Missing<R>>,
    ) -> bool {
        let Write { resource, name, .. } = &self.write;
        match &mut self.state {
            State::InFlight => {
                self.informers.retain(|(informer, _)| views.history(*informer).is_some());
                if !self.informers.is_empty() {
                    let (resource, name) = (resource.clone(), name.clone());
                    missing.push(Missing::InFlight { resource, name });
                }
                !self.informers.is_empty()
            }
            State::Unsettled { since } => {
                self.informers.retain(|(informer, history)| {
                    !is_refreshed(*informer, *since, refreshed)
                        && is_there(*informer, *history, views)
                });
                if !self.informers.is_empty() {
                    let (resource, name) = (resource.clone(), name.clone());
                    missing.push(Missing::Unsettled { resource, name });
                }
                !self.informers.is_empty()
            }
            State::Answered(requirements) => {
                requirements.retain(|requirement| match requirement.progress(refreshed, views) {
                    Progress::Over => false,
                    Progress::Met => true,
                    Progress::Missing(found) => {
                        missing.push(found);
                        true
                    }
                });
                !requirements.is_empty()
            }
        }
    }
}

/// Whether the informer runs, and its resource was not away since.
pub(super) fn is_there(informer: InformerId, since: History, views: &impl Views) -> bool {
    views.history(informer).is_some_and(|history| history.removals == since.removals)
}

/// Whether a refresh of the informer was requested later and is complete.
pub(super) fn is_refreshed<R>(informer: InformerId, since: u64, informers: &[(R, u64)]) -> bool {
    informers.get(informer.0).is_some_and(|(_, refreshed)| *refreshed > since)
}
