//! A model of an API server's storage for one resource: versions that it shares with other
//! resources, a history that can be compacted or replaced, and the collection at every version.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::ObjectKey;

use crate::pod::{Look, Pod};

/// The objects by their keys.
pub(crate) type Collection = BTreeMap<ObjectKey, Arc<Pod>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Added,
    Modified,
    Deleted,
}

/// What a watch of the API server tells; a deleted object has the version of its end.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) kind: Kind,
    pub(crate) pod: Arc<Pod>,
}

/// One history of the server. After a restore a new one begins; up to the restored version it has
/// the states of the history before.
struct Lineage {
    /// The version up to which it is the one before.
    base: u64,
    states: Vec<(u64, Collection)>,
    log: Vec<Change>,
    newest: u64,
}

pub(crate) struct Server {
    lineages: Vec<Lineage>,
    /// Changes up to this version are forgotten.
    pub(crate) compacted: u64,
    stamps: u64,
}

/// The first version: before it there was nothing.
const FIRST: u64 = 10;

impl Server {
    pub(crate) fn new() -> Self {
        let states = vec![(FIRST, Collection::new())];
        let first = Lineage { base: 0, states, log: Vec::new(), newest: FIRST };
        Self { lineages: vec![first], compacted: 0, stamps: 0 }
    }

    /// The number of the newest history.
    pub(crate) fn lineage(&self) -> usize {
        self.lineages.len() - 1
    }

    pub(crate) fn version(&self) -> u64 {
        self.newest().newest
    }

    pub(crate) fn collection(&self) -> &Collection {
        self.at(self.lineage(), self.version()).expect("the newest is there")
    }

    /// The collection at a version of a history; `None` if it has not reached it.
    pub(crate) fn at(&self, lineage: usize, version: u64) -> Option<&Collection> {
        let lineage = &self.lineages[lineage];
        let after = lineage.states.partition_point(|(since, _)| *since <= version);
        (version <= lineage.newest && after > 0).then(|| &lineage.states[after - 1].1)
    }

    /// The changes of the newest history after a version.
    pub(crate) fn since(&self, version: u64) -> &[Change] {
        let log = &self.newest().log;
        &log[log.partition_point(|change| change.version <= version)..]
    }

    /// The version up to which two histories are the same.
    pub(crate) fn common(&self, one: usize, other: usize) -> u64 {
        let (from, to) = (one.min(other), one.max(other));
        self.lineages[from + 1..=to].iter().map(|it| it.base).min().unwrap_or(u64::MAX)
    }

    /// Creates, changes or (`None`) deletes an object, but not beyond the version `limit`.
    pub(crate) fn write(&mut self, key: &ObjectKey, look: Option<Look>, limit: u64) -> bool {
        let held = self.collection().get(key).cloned();
        let kind = match (&held, look) {
            (None, None) => return false,
            (None, Some(_)) => Kind::Added,
            (Some(_), Some(_)) => Kind::Modified,
            (Some(_), None) => Kind::Deleted,
        };
        if self.version() + 1 >= limit {
            return false;
        }
        self.stamps += 1;
        let stamp = self.stamps;
        let version = self.version() + 1;
        let uid = held.as_ref().map_or(stamp, |it| it.uid);
        let look = look.or_else(|| held.map(|it| it.look)).unwrap_or_default();
        let pod = Arc::new(Pod::new(key.clone(), uid, version, stamp, look));
        let mut collection = self.collection().clone();
        match kind {
            Kind::Added | Kind::Modified => drop(collection.insert(key.clone(), Arc::clone(&pod))),
            Kind::Deleted => drop(collection.remove(key)),
        }
        let newest = self.lineages.last_mut().expect("there is always one");
        newest.newest = version;
        newest.states.push((version, collection));
        newest.log.push(Change { version, kind, pod });
        true
    }

    /// Other resources are written.
    pub(crate) fn elsewhere(&mut self, versions: u64, limit: u64) {
        let newest = self.lineages.last_mut().expect("there is always one");
        if newest.newest + versions < limit {
            newest.newest += versions;
        }
    }

    pub(crate) fn compact(&mut self, keep: u64) {
        self.compacted = self.compacted.max(self.version().saturating_sub(keep));
    }

    /// Goes back, into a history of its own.
    pub(crate) fn restore(&mut self, back: u64) -> bool {
        let old = self.newest();
        let base = old.newest.saturating_sub(back).max(FIRST);
        if base == old.newest {
            return false;
        }
        let states = old.states.iter().filter(|(since, _)| *since <= base).cloned().collect();
        let log = old.log.iter().filter(|change| change.version <= base).cloned().collect();
        self.lineages.push(Lineage { base, states, log, newest: base });
        self.compacted = self.compacted.min(base);
        true
    }

    fn newest(&self) -> &Lineage {
        self.lineages.last().expect("there is always one")
    }
}
