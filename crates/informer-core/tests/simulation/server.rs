//! A model of an API server's storage for one resource: versions, a history that can be compacted
//! or replaced, and what the collection was at every version of every history.

use std::collections::BTreeSet;

use informer_core::{ObjectKey, Uid};
use k8s_protobuf::encode;
use serde_json::{Value, json};

use crate::plan::{Poison, Settings, Write};

pub(crate) const NAMES: u8 = 12;

/// One state of an object. The stamp tells it from every other state of every history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) name: u8,
    pub(crate) uid: u64,
    pub(crate) version: u64,
    pub(crate) stamp: u64,
    pub(crate) good: Good,
}

/// What becomes of an object's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Good {
    Yes,
    NotDecodable,
    NotTransformed,
    /// Too large for the limit.
    Oversized,
    /// No JSON behind the metadata.
    Broken,
    /// No JSON, and it does not say whose state it is.
    Nameless,
}

impl Good {
    /// Whether the text can be read at all, if not decoded.
    pub(crate) fn is_readable(self) -> bool {
        match self {
            Self::Yes | Self::NotDecodable | Self::NotTransformed => true,
            Self::Oversized | Self::Broken | Self::Nameless => false,
        }
    }
}

pub(crate) type Collection = [Option<State>; NAMES as usize];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Added,
    Modified,
    Deleted,
}

/// What a watch tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) kind: Kind,
    pub(crate) state: State,
    pub(crate) poison: Option<Poison>,
    pub(crate) twice: bool,
    /// Another object under a name, without a word of the end of the one before.
    pub(crate) replaces: bool,
}

/// One history of the server. The first versions of a restored one are those of the history before.
#[derive(Debug, Default)]
pub(crate) struct Lineage {
    /// The collection from each version on.
    states: Vec<(u64, Collection)>,
    log: Vec<Change>,
    newest: u64,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) settings: Settings,
    pub(crate) lineages: Vec<Lineage>,
    /// Events up to this version are forgotten.
    pub(crate) compacted: u64,
    /// The cache is at this version at least.
    pub(crate) cache_floor: u64,
    pub(crate) removed: bool,
    /// Pages of one list were of different versions.
    pub(crate) has_moved_pages: bool,
    /// Stamps of final states: those that DELETED events carry.
    pub(crate) final_stamps: BTreeSet<u64>,
    /// Every state there ever was; the first has stamp 1.
    by_stamp: Vec<State>,
    uids: u64,
}

impl Lineage {
    /// The collection at `version`, if this history has reached it.
    pub(crate) fn at(&self, version: u64) -> Option<&Collection> {
        let after = self.states.partition_point(|(since, _)| *since <= version);
        (version <= self.newest && after > 0).then(|| &self.states[after - 1].1)
    }

    /// The changes after `version`.
    pub(crate) fn since(&self, version: u64) -> &[Change] {
        &self.log[self.log.partition_point(|change| change.version <= version)..]
    }
}

impl Server {
    pub(crate) fn new(settings: Settings, objects: u8) -> Self {
        let first =
            Lineage { states: vec![(1, [None; NAMES as usize])], log: Vec::new(), newest: 1 };
        let mut server = Self {
            settings,
            lineages: vec![first],
            compacted: 0,
            cache_floor: 1,
            removed: false,
            has_moved_pages: false,
            final_stamps: BTreeSet::new(),
            by_stamp: Vec::new(),
            uids: 0,
        };
        for name in 0..objects {
            server.write(name, Write::Put(Good::Yes), u64::MAX);
        }
        server
    }

    pub(crate) fn uid_of(&self, stamp: u64) -> u64 {
        self.by_stamp[stamp as usize - 1].uid
    }

    pub(crate) fn version_of(&self, stamp: u64) -> u64 {
        self.by_stamp[stamp as usize - 1].version
    }

    pub(crate) fn lineage(&self) -> &Lineage {
        self.lineages.last().expect("there is always one")
    }

    pub(crate) fn version(&self) -> u64 {
        self.lineage().newest
    }

    pub(crate) fn collection(&self) -> &Collection {
        self.lineage().at(self.version()).expect("the newest is there")
    }

    /// The version that a list is served at which has to be at `at_least`.
    pub(crate) fn cached(&self, at_least: u64) -> u64 {
        self.version().saturating_sub(self.settings.lag).max(at_least).max(self.cache_floor)
    }

    /// Writes, but not beyond `limit`. Says whether anything was written.
    pub(crate) fn write(&mut self, name: u8, write: Write, limit: u64) -> bool {
        let bad = matches!(write, Write::Put(good) | Write::Replace(good) if good != Good::Yes);
        if self.removed || self.version() + 2 >= limit || bad && limit < u64::MAX {
            return false;
        }
        let held = self.collection()[usize::from(name)];
        match (write, held) {
            (Write::Put(good), None) => self.add(name, good, None, false),
            (Write::Put(good), Some(held)) => self.modify(held, good, None, false),
            (Write::Delete, Some(held)) => self.delete(held),
            (Write::Recreate, Some(held)) => {
                self.delete(held);
                self.add(name, Good::Yes, None, false);
            }
            (Write::Replace(good), Some(held)) => self.replace(held, good),
            (Write::Poison(poison), None) => self.add(name, Good::Yes, Some(poison), false),
            (Write::Poison(poison), Some(held)) => {
                self.modify(held, Good::Yes, Some(poison), false)
            }
            (Write::Twice, Some(held)) => self.modify(held, Good::Yes, None, true),
            (Write::Delete | Write::Recreate | Write::Replace(_) | Write::Twice, None) => {
                return false;
            }
        }
        true
    }

    /// Another resource is written.
    pub(crate) fn elsewhere(&mut self, count: u64, limit: u64) -> bool {
        if self.version() + count + 1 >= limit {
            return false;
        }
        let lineage = self.lineages.last_mut().expect("there is always one");
        lineage.newest += count;
        true
    }

    pub(crate) fn compact(&mut self, keep: u64) {
        self.compacted = self.compacted.max(self.version().saturating_sub(keep));
    }

    /// Goes back by `back` versions, into a history of its own.
    pub(crate) fn restore(&mut self, back: u64) -> bool {
        let base = self.version().saturating_sub(back).max(self.cache_floor);
        let old = self.lineage();
        // Where the newest cannot be listed, nobody can find out, and then nobody may write (see
        // `write`).
        let usable = old
            .at(base)
            .is_some_and(|all| all.iter().flatten().all(|state| state.good == Good::Yes));
        if base >= self.version() || self.removed || !usable {
            return false;
        }
        let states = old.states.iter().filter(|(since, _)| *since <= base).copied().collect();
        let log = old.log.iter().filter(|change| change.version <= base).copied().collect();
        self.lineages.push(Lineage { states, log, newest: base });
        self.compacted = self.compacted.min(base);
        true
    }

    /// The resource goes, and its objects with it.
    pub(crate) fn remove_resource(&mut self) {
        for held in self.collection().iter().flatten().copied().collect::<Vec<_>>() {
            self.delete(held);
        }
        self.removed = true;
    }

    pub(crate) fn return_resource(&mut self) -> bool {
        let lineage = self.lineages.last_mut().expect("there is always one");
        lineage.newest += u64::from(self.removed);
        self.cache_floor = if self.removed { lineage.newest } else { self.cache_floor };
        std::mem::take(&mut self.removed)
    }

    fn add(&mut self, name: u8, good: Good, poison: Option<Poison>, twice: bool) {
        self.uids += 1;
        let uid = self.uids;
        self.put(State { name, uid, version: 0, stamp: 0, good }, Kind::Added, poison, twice);
    }

    fn modify(&mut self, held: State, good: Good, poison: Option<Poison>, twice: bool) {
        self.put(State { good, ..held }, Kind::Modified, poison, twice);
    }

    fn replace(&mut self, held: State, good: Good) {
        self.uids += 1;
        self.put(State { uid: self.uids, good, ..held }, Kind::Modified, None, false);
    }

    fn delete(&mut self, held: State) {
        self.put(held, Kind::Deleted, None, false);
    }

    fn put(&mut self, state: State, kind: Kind, poison: Option<Poison>, twice: bool) {
        let stamp = self.by_stamp.len() as u64 + 1;
        let lineage = self.lineages.last_mut().expect("there is always one");
        lineage.newest += 1;
        let version = lineage.newest;
        let state = State { version, stamp, ..state };
        self.by_stamp.push(state);
        let mut collection = lineage.states.last().expect("there is always one").1;
        collection[usize::from(state.name)] = (kind != Kind::Deleted).then_some(state);
        lineage.states.push((version, collection));
        let held = lineage.at(version - 1).and_then(|all| all[usize::from(state.name)]);
        let replaces = kind == Kind::Modified && held.is_some_and(|held| held.uid != state.uid);
        lineage.log.push(Change { version, kind, state, poison, twice, replaces });
        if kind == Kind::Deleted {
            self.final_stamps.insert(stamp);
        }
    }
}

impl State {
    pub(crate) fn key(&self) -> ObjectKey {
        key(self.name)
    }

    pub(crate) fn uid(&self) -> Uid {
        uid_text(self.uid).into()
    }

    /// The object's JSON text.
    pub(crate) fn json(&self) -> String {
        let Self { name, version, .. } = self;
        let (namespace, uid) = (namespace(*name), uid_text(self.uid));
        let colon = if self.good == Good::Nameless { "" } else { ":" };
        let fields =
            if self.has_managed_fields() { r#""managedFields":[{"manager":"a\"}"}],"# } else { "" };
        let data = match self.good {
            Good::Broken => r#"{"stamp":,"name":""}"#.to_owned(),
            _ => self.data().to_string(),
        };
        format!(
            r#"{{"kind":"ConfigMap","metadata":{{"name"{colon}"n{name}","namespace":"{namespace}",{fields}"uid":"{uid}","resourceVersion":"{version}"}},"data":{data}}}"#
        )
    }

    /// The object's protobuf message.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut metadata = json!({ "name": format!("n{}", self.name), "namespace": namespace(self.name),
            "uid": uid_text(self.uid), "resourceVersion": self.version.to_string() });
        if self.has_managed_fields() {
            metadata["managedFields"] = json!([{ "manager": "a" }]);
        }
        let object = json!({ "metadata": metadata, "data": self.data() });
        let mut message = Vec::new();
        encode::message(kind("ConfigMap"), &object, &mut message).expect("it is one");
        match self.good {
            // A field of a type that there is not.
            Good::Broken => message.push(0x17),
            // The length of the name says more than there is.
            Good::Nameless => message.splice(.., *b"\x0a\x02\x0a\x7f").for_each(drop),
            Good::Yes | Good::NotDecodable | Good::NotTransformed | Good::Oversized => {}
        }
        message
    }

    fn has_managed_fields(&self) -> bool {
        self.stamp.is_multiple_of(3)
    }

    fn data(&self) -> Value {
        let mut data = json!({ "stamp": self.stamp.to_string(), "name": self.name.to_string() });
        match self.good {
            Good::NotDecodable => data["stamp"] = format!("no {}", self.stamp).into(),
            Good::NotTransformed => data["refuse"] = "yes".into(),
            Good::Oversized => data["padding"] = "x".repeat(crate::wire::LIMIT).into(),
            Good::Yes | Good::Broken | Good::Nameless => {}
        }
        data
    }
}

/// The kind of this name in the core group.
pub(crate) fn kind(name: &str) -> k8s_protobuf::Kind {
    k8s_protobuf::Kind::of("v1", name).expect("it is built in")
}

pub(crate) fn key(name: u8) -> ObjectKey {
    ObjectKey::namespaced(namespace(name), &format!("n{name}"))
}

fn namespace(name: u8) -> &'static str {
    ["a", "a-b", "b"][usize::from(name % 3)]
}

fn uid_text(uid: u64) -> String {
    if uid.is_multiple_of(2) {
        format!("00000000-0000-4000-8000-{uid:012x}")
    } else {
        format!("u{uid}")
    }
}
