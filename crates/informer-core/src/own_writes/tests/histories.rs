//! Random histories of writers and informers that lag behind, against a model that knows every
//! state of the server: what a key has caught up with is not older than what it wrote.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;
use crate::{ResourceVersion, Uid};

const RESOURCES: usize = 2;
const NAMES: u8 = 3;
const KEYS: u8 = 3;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// Creates, or changes what is there; the label decides whether selectors select it.
    Put {
        label: bool,
    },
    Delete,
}

/// How the server's answer reaches the writer.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Told,
    /// The answer is lost; or the request was, before it was applied.
    Lost {
        applied: bool,
    },
    Refused,
    /// Deletes: with the object instead of a `Status`. Others: without labels.
    Otherwise,
    /// The answer comes after so many further steps.
    Late(u8),
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Own {
        key: u8,
        resource: usize,
        name: u8,
        act: Act,
        fate: Fate,
    },
    Foreign {
        resource: usize,
        name: u8,
        act: Act,
    },
    /// An informer reads so many changes.
    Read {
        informer: usize,
        changes: usize,
    },
    /// An informer gets a bookmark at the newest version.
    Bookmark {
        informer: usize,
    },
    Settle {
        key: u8,
    },
    Refresh {
        key: u8,
    },
    Check {
        key: u8,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        3 => any::<bool>().prop_map(|label| Act::Put { label }),
        2 => Just(Act::Delete),
    ];
    let fate = prop_oneof![
        6 => Just(Fate::Told),
        2 => any::<bool>().prop_map(|applied| Fate::Lost { applied }),
        1 => Just(Fate::Refused),
        2 => Just(Fate::Otherwise),
        2 => (1u8..4).prop_map(Fate::Late),
    ];
    let (resource, name, key) = (0..RESOURCES, 0..NAMES, 0..KEYS);
    let informer = 0..INFORMERS.len();
    let step = prop_oneof![
        8 => (key.clone(), resource.clone(), name.clone(), act.clone(), fate)
            .prop_map(|(key, resource, name, act, fate)| Step::Own { key, resource, name, act, fate }),
        3 => (resource, name, act)
            .prop_map(|(resource, name, act)| Step::Foreign { resource, name, act }),
        8 => (informer.clone(), 1usize..4)
            .prop_map(|(informer, changes)| Step::Read { informer, changes }),
        1 => informer.prop_map(|informer| Step::Bookmark { informer }),
        2 => key.clone().prop_map(|key| Step::Settle { key }),
        1 => key.clone().prop_map(|key| Step::Refresh { key }),
        6 => key.prop_map(|key| Step::Check { key }),
    ];
    prop::collection::vec(step, 0..80)
}

/// The resource of each informer, and whether it selects by the label.
const INFORMERS: [(usize, bool); 4] = [(0, false), (0, true), (1, false), (1, true)];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Object {
    uid: u64,
    version: u64,
    label: bool,
}

/// One change of an object: its state before and after.
#[derive(Clone)]
struct Change {
    version: u64,
    resource: usize,
    name: u8,
    after: Option<Object>,
}

/// An informer's store, which is the selection of an earlier state.
#[derive(Clone, Default)]
struct Store {
    version: u64,
    read: usize,
    objects: BTreeMap<u8, Object>,
}

/// A write as it happened.
struct Truth {
    key: u8,
    resource: usize,
    name: u8,
    version: u64,
    /// What it left.
    after: Option<Object>,
    /// Of a delete, what it deleted.
    deleted: Option<u64>,
    /// Of a delete: whether no informer had shown the object, which another had created.
    is_unseen: bool,
    /// The answer does not tell the whole, and a read that finds nothing settles it.
    is_read: bool,
}

struct Late {
    ticket: Ticket,
    answer: Answer,
    selection: Option<bool>,
    steps: u8,
}

#[derive(Default)]
struct World {
    version: u64,
    uids: u64,
    objects: BTreeMap<(usize, u8), Object>,
    log: Vec<Change>,
    stores: Vec<Store>,
    truths: Vec<Truth>,
    /// When each own object was created.
    own_created: BTreeMap<u64, u64>,
    late: Vec<Late>,
}

impl Views for World {
    fn history(&self, _: InformerId) -> Option<History> {
        Some(History::default())
    }

    fn includes_namespace(&self, _: InformerId, _: &str) -> bool {
        true
    }

    fn has_reached(&self, informer: InformerId, version: &ResourceVersion) -> bool {
        ResourceVersion::from(self.stores[informer.index()].version).has_reached(version)
    }

    fn held(&self, informer: InformerId, key: &ObjectKey) -> Option<(Uid, ResourceVersion)> {
        let object = self.stores[informer.index()].objects.get(&name_of(key))?;
        Some((uid(object.uid), object.version.into()))
    }

    fn undecodable(&self, _: InformerId, _: &ObjectKey) -> Option<String> {
        None
    }
}

fn key(key: u8) -> ObjectKey {
    ObjectKey::namespaced("n", &format!("key-{key}"))
}

fn object_key(name: u8) -> ObjectKey {
    ObjectKey::namespaced("n", &name.to_string())
}

fn name_of(key: &ObjectKey) -> u8 {
    key.name().parse().expect("names are numbers")
}

fn uid(number: u64) -> Uid {
    Uid::new(&format!("uid-{number}"))
}

fn selects(informer: InformerId, label: Option<bool>) -> Selection {
    match (INFORMERS[informer.index()].1, label) {
        (false, _) | (true, Some(true)) => Selection::Selected,
        (true, Some(false)) => Selection::Excluded,
        (true, None) => Selection::Unknown,
    }
}

impl World {
    fn new() -> Self {
        Self { stores: vec![Store::default(); INFORMERS.len()], ..Self::default() }
    }

    /// Applies a write; says what it left and, of a delete, what it deleted.
    fn apply(
        &mut self,
        resource: usize,
        name: u8,
        act: Act,
    ) -> Option<(Option<Object>, Option<Object>)> {
        let before = self.objects.get(&(resource, name)).cloned();
        let after = match (act, &before) {
            (Act::Delete, None) => return None,
            (Act::Delete, Some(_)) => None,
            // No change.
            (Act::Put { label }, Some(before)) if before.label == label => {
                return Some((Some(before.clone()), Some(before.clone())));
            }
            (Act::Put { label }, before) => {
                self.uids += u64::from(before.is_none());
                let uid = before.as_ref().map_or(self.uids, |before| before.uid);
                Some(Object { uid, version: self.version + 1, label })
            }
        };
        self.version += 1;
        match after.clone() {
            Some(after) => self.objects.insert((resource, name), after),
            None => self.objects.remove(&(resource, name)),
        };
        self.log.push(Change { version: self.version, resource, name, after: after.clone() });
        Some((after, before))
    }

    fn read(&mut self, informer: usize, changes: usize) {
        let (resource, by_label) = INFORMERS[informer];
        let store = &mut self.stores[informer];
        for _ in 0..changes {
            let next = self.log[store.read..].iter().position(|it| it.resource == resource);
            let Some(at) = next.map(|next| store.read + next) else { return };
            let Change { version, name, after, .. } = self.log[at].clone();
            store.read = at + 1;
            let after = after.filter(|it| !by_label || it.label);
            // What neither was nor is selected is not told, and moves no version.
            if after.is_some() || store.objects.contains_key(&name) {
                store.version = version;
            }
            match after {
                Some(after) => store.objects.insert(name, after),
                None => store.objects.remove(&name),
            };
        }
    }

    /// A bookmark, or the end of a list.
    fn catch_up(&mut self, informer: usize) {
        self.read(informer, usize::MAX);
        self.stores[informer].version = self.version;
    }

    /// What an informer would show of an object at a version.
    fn at(&self, informer: usize, name: u8, version: u64) -> Option<Object> {
        let (resource, by_label) = INFORMERS[informer];
        let changes = self.log.iter().filter(|it| it.resource == resource && it.name == name);
        let last = changes.take_while(|it| it.version <= version).last()?;
        last.after.clone().filter(|it| !by_label || it.label)
    }

    /// Fails if a store is older than a write of a key that has caught up.
    fn check_fresh(&self, key: u8) -> Result<(), TestCaseError> {
        for truth in self.truths.iter().filter(|it| it.key == key) {
            for (informer, store) in self.stores.iter().enumerate() {
                if INFORMERS[informer].0 != truth.resource || store.version >= truth.version {
                    continue;
                }
                let (held, by_label) = (store.objects.get(&truth.name), INFORMERS[informer].1);
                if let Some(deleted) = truth.deleted {
                    // What enters a selection again before the delete is not looked for.
                    if by_label || truth.is_unseen {
                        continue;
                    }
                    let created = self.own_created.get(&deleted).copied().unwrap_or_default();
                    prop_assert!(
                        created <= store.version,
                        "informer {informer} will hold what was deleted"
                    );
                    prop_assert!(
                        held.is_none_or(|it| it.uid != deleted),
                        "informer {informer} holds what was deleted at {}",
                        truth.version
                    );
                    continue;
                }
                let object = self.objects.get(&(truth.resource, truth.name));
                let is_there = object.map(|it| it.uid) == truth.after.as_ref().map(|it| it.uid);
                if truth.is_read && (by_label || !is_there) {
                    continue;
                }
                let then = self.at(informer, truth.name, truth.version);
                prop_assert_eq!(
                    held,
                    then.as_ref(),
                    "informer {} at {} is older than the write of {:?} at {}",
                    informer,
                    store.version,
                    truth.after,
                    truth.version
                );
            }
        }
        Ok(())
    }
}

fn written(name: u8, object: &Object) -> Written {
    Written {
        key: object_key(name),
        uid: uid(object.uid),
        version: object.version.into(),
        is_gone: false,
    }
}

struct Run {
    world: World,
    writes: OwnWrites<usize>,
}

impl Run {
    fn own(&mut self, writer: u8, resource: usize, name: u8, act: Act, fate: Fate) {
        let Self { world, writes } = self;
        // A writer deletes what an informer shows, by its UID, or what is there.
        let verb = match (act, world.objects.contains_key(&(resource, name))) {
            (Act::Delete, false) => return,
            (Act::Delete, true) => Verb::Delete,
            (Act::Put { .. }, false) => Verb::Create,
            (Act::Put { .. }, true) => Verb::Change,
        };
        let target = world.objects.get(&(resource, name)).map(|it| uid(it.uid));
        let write = Write {
            resource,
            verb,
            namespace: "n".to_owned(),
            name: Some(name.to_string()),
            uid: target.filter(|_| verb == Verb::Delete),
        };
        let ticket = writes.begin(key(writer), write, world);
        let applied = match fate {
            Fate::Refused | Fate::Lost { applied: false } => None,
            Fate::Told | Fate::Lost { .. } | Fate::Otherwise | Fate::Late(_) => {
                world.apply(resource, name, act)
            }
        };
        let (answer, label) = match (&applied, fate) {
            (_, Fate::Lost { .. }) => (Answer::Unknown, None),
            (None, _) | (_, Fate::Refused) => (Answer::NotWritten, None),
            (Some((Some(after), _)), fate) => {
                let label = (!matches!(fate, Fate::Otherwise)).then_some(after.label);
                (Answer::Object(written(name, after)), label)
            }
            (Some((None, Some(before))), Fate::Otherwise) => {
                let gone = Written { is_gone: true, ..written(name, before) };
                (Answer::Object(gone), Some(before.label))
            }
            (Some((None, before)), _) => {
                (Answer::Deleted { uid: before.as_ref().map(|it| uid(it.uid)) }, None)
            }
        };
        if let Some((after, before)) = applied {
            if let (None, Some(created), Fate::Told) = (&before, &after, fate) {
                world.own_created.insert(created.uid, created.version);
            }
            let version = after.as_ref().map_or(world.version, |it| it.version);
            let deleted = before.filter(|_| after.is_none()).map(|it| it.uid);
            let is_read = matches!(fate, Fate::Lost { .. } | Fate::Otherwise);
            let shown = |store: &Store| store.objects.get(&name).map(|it| it.uid);
            let is_unseen = deleted.is_some_and(|uid| {
                !world.own_created.contains_key(&uid)
                    && world.stores.iter().all(|store| shown(store) != Some(uid))
            });
            let truth =
                Truth { key: writer, resource, name, version, after, deleted, is_unseen, is_read };
            world.truths.push(truth);
        }
        match fate {
            Fate::Late(steps) => world.late.push(Late { ticket, answer, selection: label, steps }),
            _ => writes.answered(ticket, answer, |informer| selects(informer, label), world),
        }
    }

    fn answer_late(&mut self) {
        let Self { world, writes } = self;
        for late in &mut world.late {
            late.steps -= 1;
        }
        let (due, late) = std::mem::take(&mut world.late).into_iter().partition(|it| it.steps == 0);
        world.late = late;
        let due: Vec<Late> = due;
        for Late { ticket, answer, selection, .. } in due {
            writes.answered(ticket, answer, |informer| selects(informer, selection), world);
        }
    }

    fn settle(&mut self, writer: u8) {
        let Self { world, writes } = self;
        for unsettled in writes.unsettled(&key(writer)) {
            let name = unsettled.name.parse().expect("names are numbers");
            let object = world.objects.get(&(unsettled.resource, name));
            let label = object.map(|it| it.label);
            let found = object.map_or(Found::Absent, |it| Found::Object(written(name, it)));
            let selects = |informer| selects(informer, label);
            writes.settled(unsettled.ticket, found, selects, world);
        }
    }

    fn refresh(&mut self, writer: u8) {
        let wanted = self.writes.refreshes(&key(writer), &self.world);
        let number = self.writes.request_refresh();
        for informer in wanted.into_keys() {
            self.world.catch_up(informer.index());
            self.writes.refreshed(informer, number);
        }
    }

    fn check(&mut self, writer: u8) -> Result<bool, TestCaseError> {
        let is_caught_up = self.writes.check(&key(writer), &self.world).is_empty();
        if is_caught_up {
            self.world.check_fresh(writer)?;
        }
        Ok(is_caught_up)
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        self.answer_late();
        match *step {
            Step::Own { key, resource, name, act, fate } => {
                self.own(key, resource, name, act, fate);
            }
            Step::Foreign { resource, name, act } => _ = self.world.apply(resource, name, act),
            Step::Read { informer, changes } => self.world.read(informer, changes),
            Step::Bookmark { informer } => self.world.catch_up(informer),
            Step::Settle { key } => self.settle(key),
            Step::Refresh { key } => self.refresh(key),
            Step::Check { key } => _ = self.check(key)?,
        }
        Ok(())
    }

    /// Once all is answered, settled and read, nothing is waited for.
    fn finish(&mut self, by_refresh: bool) -> Result<(), TestCaseError> {
        while !self.world.late.is_empty() {
            self.answer_late();
        }
        for writer in 0..KEYS {
            if !by_refresh {
                self.settle(writer);
            }
            self.refresh(writer);
        }
        for informer in 0..INFORMERS.len() {
            self.world.catch_up(informer);
        }
        for writer in 0..KEYS {
            prop_assert!(self.check(writer)?, "key {writer} never catches up");
        }
        prop_assert_eq!(self.writes.remembered(), 0);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_has_caught_up_is_not_older_than_own_writes(
        steps in steps(),
        by_refresh in any::<bool>(),
    ) {
        let mut writes = OwnWrites::new();
        for (resource, _) in INFORMERS {
            writes.follow(resource);
        }
        let mut run = Run { world: World::new(), writes };
        for step in steps {
            run.step(&step)?;
        }
        run.finish(by_refresh)?;
    }
}
