//! Random histories against a naive model: each watcher alone looks at every change, and knows what
//! it is to be given.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;

use super::*;

const NAMES: Range<u8> = 0..7;

/// What a mark weighs in the log.
const MARK: usize = 64;

/// An interest as a query says it, and as the model decides it.
type Case = (Option<&'static str>, &'static str, fn(&Pod) -> bool);

pub(super) const INTERESTS: [Case; 14] = [
    (None, "", |_| true),
    (Some("a"), "", |it| it.key.namespace() == "a"),
    (None, "fieldSelector=metadata.name%3Dn1", |it| it.key.name() == "n1"),
    (None, "fieldSelector=metadata.namespace%3Db", |it| it.key.namespace() == "b"),
    (None, "fieldSelector=spec.nodeName%3Dnode1", |it| it.node == "node1"),
    (None, "fieldSelector=spec.nodeName%3D", |it| it.node.is_empty()),
    (None, "fieldSelector=spec.nodeName!%3Dnode1", |it| it.node != "node1"),
    (None, "labelSelector=app%3Dweb", |it| it.app == Some("web")),
    (None, "labelSelector=app+in+(web,db)", |it| it.app.is_some()),
    (None, "labelSelector=app!%3Dweb", |it| it.app != Some("web")),
    (None, "labelSelector=app", |it| it.app.is_some()),
    (None, "labelSelector=!app", |it| it.app.is_none()),
    (Some("b"), "labelSelector=app%3Dweb", |it| it.key.namespace() == "b" && it.app == Some("web")),
    (None, "labelSelector=app%3Ddb&fieldSelector=spec.nodeName%3Dnode2", |it| {
        it.app == Some("db") && it.node == "node2"
    }),
];

/// What an object is set to: label and node; `None` deletes it.
type Put = Option<(Option<&'static str>, &'static str)>;

#[derive(Debug, Clone)]
enum Step {
    /// Changes in one go, each so many versions after the one before.
    Push(Vec<(u8, Put, u64)>),
    /// Another object in the place of one, at one version.
    Replace(u8),
    Bookmark(u64),
    /// What a list shows that comes so many versions later.
    Relist(Vec<(u8, Put)>, u64),
    Restart(u64),
    /// At a version relative to that of the log, minus 20.
    Enter(usize, u64),
    Read(usize, Room),
    Progress(usize),
    Leave(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let put = || {
        let app = prop_oneof![Just(None), Just(Some("web")), Just(Some("db"))];
        let node = prop_oneof![Just(""), Just("node1"), Just("node2")];
        prop_oneof![3 => (app, node).prop_map(Some), 1 => Just(None)]
    };
    let push = prop::collection::vec((NAMES, put(), 1u64..4), 1..4);
    let burst = prop::collection::vec((NAMES, put(), 1u64..3), 8..20);
    let relist = prop::collection::vec((NAMES, put()), 0..6);
    let room = prop_oneof![
        3 => (1usize..4).prop_map(|changes| Room { changes, ..Room::ALL }),
        1 => (1usize..900).prop_map(|weight| Room { weight, ..Room::ALL }),
        1 => Just(Room::ALL),
    ];
    let step = prop_oneof![
        60 => push.prop_map(Step::Push),
        2 => burst.prop_map(Step::Push),
        6 => NAMES.prop_map(Step::Replace),
        10 => (0u64..5).prop_map(Step::Bookmark),
        14 => (relist, 0u64..12).prop_map(|(puts, ahead)| Step::Relist(puts, ahead)),
        1 => (0u64..40).prop_map(Step::Restart),
        40 => (0..INTERESTS.len(), 0u64..40).prop_map(|(which, at)| Step::Enter(which, at)),
        70 => (0usize..12, room).prop_map(|(who, room)| Step::Read(who, room)),
        20 => (0usize..12).prop_map(Step::Progress),
        12 => (0usize..12).prop_map(Step::Leave),
    ];
    prop::collection::vec(step, 0..120)
}

/// An entry of the log. What the log is documented to do is done here by hand.
#[derive(Debug, Clone)]
struct Entry {
    number: u64,
    until: u64,
    gap: Option<u64>,
    change: Option<Change<Pod>>,
    part: Portion,
    weight: usize,
}

/// Of an [`Entry`]: `until`, `gap`, `change`, `part`.
type New = (u64, Option<u64>, Option<Change<Pod>>, Portion);

struct Watcher {
    place: Place,
    case: usize,
    start: u64,
    /// What it has not been given of what is of interest to it, in order.
    pending: Vec<Entry>,
    /// Something of interest was dropped.
    is_lost: bool,
    told: Option<u64>,
}

struct World {
    dispatch: Dispatch<Pod>,
    capacity: Capacity,
    objects: BTreeMap<u8, Pod>,
    entries: Vec<Entry>,
    /// How many there were at most.
    most: usize,
    numbers: u64,
    floor: u64,
    version: u64,
    /// The highest version of earlier histories.
    replaced: u64,
    watchers: Vec<Watcher>,
}

fn key(name: u8) -> (&'static str, String) {
    (["a", "b"][usize::from(name % 2)], format!("n{}", name / 2))
}

/// What a change is to an interest.
fn event(case: usize, change: &Change<Pod>) -> Option<EventType> {
    let (_, _, selects) = INTERESTS[case];
    let of = |it: &Option<Pod>| it.as_ref().is_some_and(selects);
    match (of(&change.before), of(&change.after)) {
        (true, true) => Some(EventType::Modified),
        (true, false) => Some(EventType::Deleted),
        (false, true) => Some(EventType::Added),
        (false, false) => None,
    }
}

impl Entry {
    fn is_for(&self, case: usize) -> bool {
        let Some(change) = &self.change else { return true };
        let event = event(case, change);
        match self.part {
            Portion::Whole => event.is_some(),
            Portion::Leaving => event == Some(EventType::Deleted),
            Portion::Staying => event.is_some_and(|it| it != EventType::Deleted),
        }
    }

    fn hides(&self, version: u64) -> bool {
        self.gap.is_some_and(|gap| gap < version && version < self.until)
    }
}

impl World {
    fn new(capacity: Capacity) -> Self {
        Self {
            dispatch: Dispatch::new(100, capacity),
            capacity,
            objects: BTreeMap::new(),
            entries: Vec::new(),
            most: 0,
            numbers: 0,
            floor: 100,
            version: 100,
            replaced: 0,
            watchers: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Push(puts) => {
                let mut version = self.version;
                let mut changes = Vec::new();
                for (name, put, after) in puts {
                    version += after;
                    changes.extend(self.put(*name, *put, version, version));
                }
                self.push(version, changes);
            }
            Step::Replace(name) => {
                let version = self.version + 1;
                let gone = self.put(*name, None, version, version);
                let new = self.put(*name, Some((Some("web"), "node1")), version, version);
                self.push(version, gone.into_iter().chain(new).collect());
            }
            Step::Bookmark(ahead) => self.push(self.version + ahead, Vec::new()),
            Step::Relist(puts, ahead) => self.relist(puts, *ahead),
            Step::Restart(version) => {
                self.dispatch.restart(80 + version);
                self.replaced = self.replaced.max(self.version);
                (self.floor, self.version) = (80 + version, 80 + version);
                self.entries.clear();
                self.watchers.iter_mut().for_each(|it| it.is_lost = true);
            }
            Step::Enter(case, at) => self.enter(*case, (self.version + at).saturating_sub(20)),
            Step::Read(who, room) => {
                if *who < self.watchers.len() && !self.read(*who, *room) {
                    self.leave(*who);
                }
            }
            Step::Progress(who) if *who < self.watchers.len() => self.progress(*who),
            Step::Leave(who) if *who < self.watchers.len() => self.leave(*who),
            Step::Progress(_) | Step::Leave(_) => {}
        }
        for selection in self.dispatch.selections.values() {
            assert!(selection.hits.len() <= self.most, "more is noted than the log had");
        }
        assert_eq!(self.dispatch.version(), self.version);
        let weight: usize = self.entries.iter().map(|it| it.weight).sum();
        assert_eq!(self.dispatch.weight(), weight);
    }

    /// A change of the collection; `told` is the version of a deletion.
    fn put(&mut self, name: u8, put: Put, version: u64, told: u64) -> Option<Change<Pod>> {
        let (namespace, text) = key(name);
        let after = put.map(|(app, node)| Pod { app, node, ..Pod::new(namespace, &text, version) });
        let before = match &after {
            Some(pod) => self.objects.insert(name, pod.clone()),
            None => Some(self.objects.remove(&name)?),
        };
        let version = if after.is_some() { version } else { told };
        Some(Change { version, before, after })
    }

    fn push(&mut self, version: u64, changes: Vec<Change<Pod>>) {
        let entry = |it: &Change<Pod>| (it.version, None, Some(it.clone()), Portion::Whole);
        let entries = changes.iter().map(entry).collect();
        let woken = self.dispatch.push(version, changes);
        self.version = version;
        self.append(entries, &woken);
    }

    fn relist(&mut self, puts: &[(u8, Put)], ahead: u64) {
        let (before, after) = (self.version, self.version + ahead);
        if ahead == 0 {
            let woken = self.dispatch.relist(after, []);
            return self.append(Vec::new(), &woken);
        }
        // Of one object a list shows one state.
        let puts: BTreeMap<u8, Put> = puts.iter().copied().collect();
        let mut version = before;
        let mut changes = Vec::new();
        for (name, put) in puts {
            version = (version + 1).min(after);
            changes.extend(self.put(name, put, version, before));
        }
        // In any order: here the newest comes first.
        changes.reverse();
        let woken = self.dispatch.relist(after, changes.clone());
        let mut all: Vec<(Change<Pod>, Portion)> = Vec::new();
        for change in changes {
            if change.before.is_some() && change.after.is_some() {
                all.push((Change { version: before, ..change.clone() }, Portion::Leaving));
                all.push((change, Portion::Staying));
            } else {
                all.push((change, Portion::Whole));
            }
        }
        // What is gone for some or all comes first.
        all.sort_by_key(|(change, _)| change.version);
        let entry = |(change, part)| (after, Some(before), Some(change), part);
        let mark = (after, Some(before), None, Portion::Whole);
        let entries = all.into_iter().map(entry).chain([mark]).collect();
        self.version = after;
        self.append(entries, &woken);
    }

    /// What the log is to have, whom it is to wake, and who has lost something.
    fn append(&mut self, new: Vec<New>, woken: &[SelectionId]) {
        let first_new = self.numbers;
        for (until, gap, change, part) in new {
            let bytes = |it: &Option<Pod>| it.as_ref().map_or(0, |it| it.wire().bytes.len());
            let weight = match (&change, self.capacity) {
                (None, _) => MARK,
                (Some(_), Capacity::Changes(_)) => 256,
                (Some(_), Capacity::Bytes(_)) if part == Portion::Leaving => 256,
                (Some(it), Capacity::Bytes(_)) => 256 + bytes(&it.before).max(bytes(&it.after)),
            };
            self.entries.push(Entry { number: self.numbers, until, gap, change, part, weight });
            self.numbers += 1;
        }
        for watcher in &mut self.watchers {
            let new = self.entries.iter().filter(|it| it.number >= first_new);
            let wanted = new.filter(|it| it.until > watcher.start && it.is_for(watcher.case));
            watcher.pending.extend(wanted.cloned());
        }
        let new = self.entries.iter().filter(|it| it.number >= first_new);
        let new: Vec<Entry> = new.cloned().collect();
        self.most = self.most.max(self.entries.len());
        while self.entries.iter().map(|it| it.weight).sum::<usize>() > self.limit() {
            let dropped = self.entries.remove(0);
            self.floor = self.floor.max(dropped.until);
            for watcher in &mut self.watchers {
                watcher.is_lost |= watcher.pending.iter().any(|it| it.number == dropped.number);
            }
        }
        let is_for = |case| new.iter().any(|it| it.is_for(case));
        let expected: BTreeSet<SelectionId> = self
            .watchers
            .iter()
            .filter(|it| is_for(it.case))
            .map(|it| it.place.selection())
            .collect();
        assert_eq!(woken.iter().copied().collect::<BTreeSet<_>>(), expected, "who is woken");
        assert_eq!(woken.len(), expected.len(), "one is woken twice");
    }

    fn limit(&self) -> usize {
        match self.capacity {
            Capacity::Changes(changes) => changes.saturating_mul(256),
            Capacity::Bytes(bytes) => bytes,
        }
    }

    fn enter(&mut self, case: usize, start: u64) {
        let (namespace, query, _) = INTERESTS[case];
        let entered = self.dispatch.enter(start, &interest(namespace, query));
        let is_hidden = self.entries.iter().any(|it| it.hides(start));
        let is_replaced = self.version < start && start <= self.replaced;
        let is_refused = start < self.floor || is_hidden || is_replaced;
        assert_eq!(entered.is_err(), is_refused, "entered at {start}");
        let Ok(place) = entered else { return };
        let wanted = self.entries.iter().filter(|it| it.until > start && it.is_for(case));
        let pending = wanted.cloned().collect();
        let told = place.cursor.progress();
        assert_eq!(told, (start <= self.version).then_some(start));
        self.watchers.push(Watcher { place, case, start, pending, is_lost: false, told });
    }

    /// Reads for a watcher; returns whether it is still there.
    fn read(&mut self, who: usize, room: Room) -> bool {
        let watcher = &mut self.watchers[who];
        let mut expected = (Vec::new(), None);
        let (mut taken, mut weight, mut is_hidden) = (0, 0, false);
        for entry in &watcher.pending {
            is_hidden = entry.hides(watcher.start);
            let is_full = expected.0.len() >= room.changes || weight >= room.weight;
            if is_hidden || is_full || expected.1.is_some() {
                break;
            }
            taken += 1;
            weight += entry.weight;
            match &entry.change {
                Some(it) => expected.0.push((event(watcher.case, it).unwrap(), it.clone())),
                None => expected.1 = Some(entry.until),
            }
        }
        let read = self.dispatch.read(&mut watcher.place, room);
        let must_expire = watcher.is_lost || is_hidden;
        let Ok(read) = read else {
            assert!(must_expire, "expired for nothing");
            return false;
        };
        assert!(!must_expire, "lost silently");
        let changes: Vec<_> =
            read.changes.into_iter().map(|(event, it)| (event, it.change().clone())).collect();
        assert_eq!((changes, read.mark), expected);
        watcher.pending.drain(..taken);
        self.check_told(who);
        true
    }

    fn progress(&mut self, who: usize) {
        let watcher = &mut self.watchers[who];
        let told = self.dispatch.progress(&mut watcher.place);
        assert_eq!(told, watcher.place.cursor.progress());
        if !watcher.is_lost {
            // One that waits for its version reads first: it has been woken.
            let is_current = watcher.pending.is_empty() && watcher.told.is_some();
            assert!(!is_current || told == Some(self.version), "all was given: {told:?}");
            self.check_told(who);
        }
    }

    /// What is told to be complete is, and never goes back.
    fn check_told(&mut self, who: usize) {
        let watcher = &mut self.watchers[who];
        let Some(told) = watcher.place.cursor.progress() else { return };
        assert!(told >= watcher.start && watcher.told.is_none_or(|before| before <= told));
        let missing = watcher.pending.iter().find(|it| it.until <= told);
        assert!(missing.is_none(), "{told} is told, without {missing:?}");
        let gap = watcher.pending.iter().filter_map(|it| it.gap).find(|gap| *gap < told);
        assert_eq!(gap, None, "{told} is told, within a gap");
        watcher.told = Some(told);
    }

    fn leave(&mut self, who: usize) {
        let watcher = self.watchers.remove(who);
        let others = self.watchers.iter().filter(|it| it.case == watcher.case).count();
        assert_eq!(self.dispatch.leave(&watcher.place), others == 0);
        assert_eq!(self.dispatch.watchers(), self.watchers.len());
        let cases: BTreeSet<usize> = self.watchers.iter().map(|it| it.case).collect();
        assert_eq!(self.dispatch.selections(), cases.len());
    }
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        Just(Capacity::Changes(usize::MAX)),
        (5usize..20).prop_map(Capacity::Changes),
        (1500usize..9000).prop_map(Capacity::Bytes),
    ]
}

proptest! {
    #[test]
    fn each_watcher_is_given_what_it_would_find_itself(steps in steps(), capacity in capacity()) {
        let mut world = World::new(capacity);
        let empty = format!("{:?}", world.dispatch.index);
        steps.iter().for_each(|step| world.step(step));
        // In the end all are given the rest, and leave.
        while !world.watchers.is_empty() {
            while world.read(0, Room { changes: 2, ..Room::ALL })
                && !world.watchers[0].pending.is_empty()
            {}
            world.leave(0);
        }
        prop_assert_eq!(format!("{:?}", world.dispatch.index), empty);
    }
}
