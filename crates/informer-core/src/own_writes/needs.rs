//! What informers must show of a write, by its answer.

use super::remembered::{Remembered, State};
use super::requirement::{Need, Requirement};
use super::{History, InformerId, OwnWrites, Selection, Views, Written};
use crate::{ObjectKey, ResourceVersion, Uid};

impl<R: Eq + Clone> OwnWrites<R> {
    /// What informers must show of a write that left this object.
    pub(super) fn requirements(
        &self,
        remembered: &Remembered<R>,
        written: Written,
        now: u64,
        selects: impl Fn(InformerId) -> Selection,
        views: &impl Views,
    ) -> State {
        let Written { key, uid, version, is_gone } = written;
        let mut requirements = Vec::new();
        for (informer, begun) in remembered.informers.iter().copied() {
            let Some(history) = views.history(informer).filter(|it| it.removals == begun.removals)
            else {
                continue;
            };
            let need = match (selects(informer), is_gone) {
                // Of which history the version is cannot be told.
                _ if history != begun => Need::Refresh,
                (Selection::Selected, false) => Need::Version(version.clone()),
                (Selection::Selected, true) => Need::Absent { after: Some(version.clone()) },
                (Selection::Excluded, true) => {
                    Need::Absent { after: self.last_version(informer, &uid) }
                }
                (Selection::Unknown, true) => {
                    self.absence(informer, &key, &uid, remembered.shown.as_ref(), views)
                }
                (Selection::Excluded, false) => Need::VersionOrAbsent(version.clone()),
                (Selection::Unknown, false) if views.held(informer, &key).is_some() => {
                    Need::VersionOrAbsent(version.clone())
                }
                // The labels of the whole object decide.
                (Selection::Unknown, false) => return State::Unsettled { since: now },
            };
            let (key, uid) = (key.clone(), uid.clone());
            requirements.push(Requirement { informer, history, key, uid, need, since: now });
        }
        State::Answered(requirements)
    }

    /// What informers must show of a delete.
    pub(super) fn deleted(
        &self,
        remembered: &Remembered<R>,
        uid: Option<Uid>,
        now: u64,
        views: &impl Views,
    ) -> State {
        match uid.or_else(|| remembered.write.uid.clone()) {
            Some(uid) => State::Answered(self.absences(remembered, &uid, now, views)),
            None => State::Unsettled { since: now },
        }
    }

    /// What informers must show of a write after which the object with this UID is gone.
    pub(super) fn absences(
        &self,
        remembered: &Remembered<R>,
        uid: &Uid,
        now: u64,
        views: &impl Views,
    ) -> Vec<Requirement> {
        let Some(key) = remembered.write.object() else { return Vec::new() };
        let shown =
            remembered.shown.as_ref().filter(|_| remembered.write.uid.as_ref() == Some(uid));
        let absence = |(informer, begun): (InformerId, History)| {
            let history = views.history(informer)?;
            let need = match history == begun {
                true => self.absence(informer, &key, uid, shown, views),
                // The list of the new history may be older than the write.
                false => Need::Refresh,
            };
            let (key, uid) = (key.clone(), uid.clone());
            let requirement = Requirement { informer, history, key, uid, need, since: now };
            (history.removals == begun.removals).then_some(requirement)
        };
        remembered.informers.iter().copied().filter_map(absence).collect()
    }

    /// What an informer must show of an object that is gone and that some informer has `shown`.
    fn absence(
        &self,
        informer: InformerId,
        object: &ObjectKey,
        uid: &Uid,
        shown: Option<&ResourceVersion>,
        views: &impl Views,
    ) -> Need {
        let holds = || views.held(informer, object).is_some_and(|(held, _)| held == *uid);
        let waits_for = |shown| {
            let mut versions =
                self.requirements_of(informer, uid).filter_map(|it| it.need.answered());
            versions.any(|it| it.has_reached(shown))
        };
        let is_ahead = |shown| !views.has_reached(informer, shown) && !holds() && !waits_for(shown);
        match shown {
            // The store may come to hold the object. If its selectors exclude the object, no event
            // tells that it has reached the version.
            Some(shown) if is_ahead(shown) => Need::Refresh,
            _ => Need::Absent { after: self.last_version(informer, uid) },
        }
    }

    /// The newest version of this object that an informer is waited to reach: until then its store
    /// may come to hold the object.
    fn last_version(&self, informer: InformerId, uid: &Uid) -> Option<ResourceVersion> {
        let versions = self.requirements_of(informer, uid).filter_map(|it| it.need.version());
        let last = versions.reduce(|last, it| if last.has_reached(it) { last } else { it });
        last.cloned()
    }

    /// What an informer is to show of this object because of writes that were answered.
    fn requirements_of<'a>(
        &'a self,
        informer: InformerId,
        uid: &'a Uid,
    ) -> impl Iterator<Item = &'a Requirement> {
        let answered =
            self.keys.values().flatten().filter_map(|remembered| match &remembered.state {
                State::Answered(requirements) => Some(requirements),
                State::InFlight | State::Unsettled { .. } => None,
            });
        answered.flatten().filter(move |it| it.informer == informer && it.uid == *uid)
    }
}
