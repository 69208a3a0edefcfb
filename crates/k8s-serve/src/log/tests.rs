//! The log by tables, and against a naive model: clients that know the true state at some version,
//! and have to arrive at the true state of another.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What an entry weighs, as the mark of a gap does.
const WEIGHT: usize = MARK_WEIGHT;

fn changes(changes: usize) -> Room {
    Room { changes, ..Room::ALL }
}

/// Everything that a cursor reads, as text; `|` is a mark, `!` the end.
fn all(log: &ChangeLog<&'static str>, start: u64, limit: usize) -> String {
    let Ok(mut cursor) = log.cursor(start) else { return "!".to_owned() };
    let mut text = String::new();
    loop {
        let Ok(batch) = log.read(&mut cursor, changes(limit)) else { return text + "!" };
        if batch.changes.is_empty() && batch.mark.is_none() {
            return text;
        }
        text.extend(batch.changes.iter().copied().copied());
        text.extend(batch.mark.map(|_| "|"));
    }
}

/// Changes at 11 and 13, then a relist from 14 to 20, then one at 21.
fn with_a_gap(limit: usize) -> ChangeLog<&'static str> {
    let mut log = ChangeLog::new(10, limit);
    log.push(14, [(11, "a", WEIGHT), (13, "b", WEIGHT)]);
    log.relist(20, [(18, "e", WEIGHT), (16, "d", WEIGHT), (14, "c", WEIGHT)]);
    log.push(21, [(21, "f", WEIGHT)]);
    log
}

#[test]
fn a_gap_is_replayed_as_a_whole_or_not_at_all() {
    let log = with_a_gap(usize::MAX);
    for limit in [1, 2, 100] {
        for (start, read) in [
            (9, "!"),
            (10, "abcde|f"),
            (11, "bcde|f"),
            (12, "bcde|f"),
            (13, "cde|f"),
            (14, "cde|f"),
            (15, "!"),
            (19, "!"),
            (20, "f"),
            (21, ""),
            (22, ""),
        ] {
            assert_eq!(all(&log, start, limit), read, "{start}");
            assert_eq!(log.cursor(start).is_err(), read == "!", "{start}");
        }
    }
}

#[test]
fn progress_is_silent_within_a_gap_and_until_a_future_start_is_reached() {
    let mut log = with_a_gap(usize::MAX);
    let mut cursor = log.cursor(13).unwrap();
    let mut told = vec![cursor.progress()];
    for _ in 0..5 {
        log.read(&mut cursor, changes(1)).unwrap();
        told.push(cursor.progress());
    }
    // Three changes, the mark, and the change behind it.
    assert_eq!(told, [Some(13), None, None, None, Some(20), Some(21)]);

    let mut ahead = log.cursor(30).unwrap();
    assert_eq!(ahead.progress(), None);
    log.push(29, [(25, "g", 0)]);
    assert_eq!(log.read(&mut ahead, changes(9)).unwrap().changes, Vec::<&&str>::new());
    assert_eq!(ahead.progress(), None);
    log.push(32, [(30, "h", 0), (31, "i", 0)]);
    assert_eq!(log.read(&mut ahead, changes(9)).unwrap().changes, [&"i"]);
    assert_eq!(ahead.progress(), Some(32));
}

#[test]
fn a_watch_that_waits_within_a_gap_expires_and_one_at_its_end_does_not() {
    let mut log = ChangeLog::new(10, usize::MAX);
    let mut cursors: Vec<Cursor> =
        [10, 12, 15, 16].into_iter().map(|start| log.cursor(start).unwrap()).collect();
    log.relist(15, [(10, "a", 0)]);
    let read: Vec<_> = cursors
        .iter_mut()
        .map(|cursor| log.read(cursor, changes(9)).map(|batch| (batch.changes.len(), batch.mark)))
        .collect();
    assert_eq!(
        read,
        [Ok((1, Some(15))), Err(Expired { current: 15 }), Ok((0, None)), Ok((0, None))]
    );
}

#[test]
fn an_object_in_the_place_of_another_is_not_half_told() {
    let mut log = ChangeLog::new(10, usize::MAX);
    log.push(12, [(12, "gone", 0), (12, "new", 0)]);
    log.push(13, [(13, "x", 0)]);
    let mut cursor = log.cursor(10).unwrap();
    log.read(&mut cursor, changes(1)).unwrap();
    assert_eq!(cursor.progress(), None);
    log.read(&mut cursor, changes(1)).unwrap();
    assert_eq!(cursor.progress(), Some(12));
}

#[test]
fn what_weighs_too_much_goes_and_takes_its_readers_along() {
    let mut log = ChangeLog::new(10, 100);
    log.push(14, [(11, "a", 30), (12, "b", 30), (13, "c", 30)]);
    let (mut slow, mut fast) = (log.cursor(10).unwrap(), log.cursor(10).unwrap());
    log.read(&mut fast, changes(1)).unwrap();
    log.push(15, [(15, "d", 30)]);
    assert!(log.weight() <= 100);
    assert_eq!(log.read(&mut slow, changes(9)), Err(Expired { current: 15 }));
    assert_eq!(log.read(&mut fast, changes(9)).unwrap().changes, [&"b", &"c", &"d"]);
    assert_eq!(all(&log, 10, 9), "!");
    assert_eq!(all(&log, 11, 9), "bcd");
    // What goes is nothing to a watch that waits for a later version.
    let mut ahead = log.cursor(30).unwrap();
    log.push(31, (16..=31).map(|version| (version, "x", 30)));
    assert_eq!(log.read(&mut ahead, changes(9)).unwrap().changes, [&"x"]);
    // A gap of which something is gone is gone for all that did not start to read it.
    let log = with_a_gap(4 * WEIGHT);
    assert_eq!([13, 14, 15, 20].map(|start| all(&log, start, 9)), ["!", "!", "!", "f"]);
}

#[test]
fn another_history_ends_all_watches() {
    let mut log = with_a_gap(usize::MAX);
    let mut cursor = log.cursor(21).unwrap();
    log.restart(12);
    assert_eq!(log.read(&mut cursor, changes(9)), Err(Expired { current: 12 }));
    assert_eq!((log.version(), log.weight()), (12, 0));
    assert_eq!([11, 12].map(|start| all(&log, start, 9)), ["!", ""]);
}

/// What a client or server has: versions by key.
type State = BTreeMap<u8, u64>;

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u8),
    Delete(u8),
    /// The cache sees some more of the watch.
    See(usize),
    /// The cache lists.
    Relist,
    Open(u64),
    Read(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..5).prop_map(Step::Write),
        4 => (0u8..5).prop_map(Step::Delete),
        4 => (1usize..6).prop_map(Step::See),
        2 => Just(Step::Relist),
        4 => (0u64..12).prop_map(Step::Open),
        6 => (0usize..6, 1usize..5).prop_map(|(who, limit)| Step::Read(who, limit)),
    ];
    prop::collection::vec(step, 0..150)
}

/// A key, and its version if it was written.
type Written = (u8, Option<u64>);

struct World {
    /// The state at each version, from 0 on: all that ever happened.
    truth: Vec<(State, Written)>,
    log: ChangeLog<Written>,
    limit: usize,
    clients: Vec<(Cursor, State)>,
    lost: u64,
}

impl World {
    fn version(&self) -> u64 {
        self.truth.len() as u64 - 1
    }

    fn at(&self, version: u64) -> &State {
        &self.truth[usize::try_from(version).unwrap()].0
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(key) => {
                let mut state = self.at(self.version()).clone();
                let version = self.version() + 1;
                state.insert(key, version);
                self.truth.push((state, (key, Some(version))));
            }
            Step::Delete(key) => {
                let mut state = self.at(self.version()).clone();
                if state.remove(&key).is_some() {
                    self.truth.push((state, (key, None)));
                }
            }
            Step::See(count) => {
                let from = self.log.version() + 1;
                let to = self.version().min(self.log.version() + count as u64);
                let seen =
                    (from..=to).map(|v| (v, self.truth[usize::try_from(v).unwrap()].1, WEIGHT));
                self.log.push(to, seen);
            }
            Step::Relist => {
                let (before, to) = (self.log.version(), self.version());
                let (old, new) = (self.at(before), self.at(to));
                let gone = old.keys().filter(|key| !new.contains_key(key));
                let gone = gone.map(|key| (before, (*key, None), WEIGHT));
                let changed = new.iter().filter(|(key, version)| old.get(key) != Some(version));
                let changed =
                    changed.map(|(key, version)| (*version, (*key, Some(*version)), WEIGHT));
                let all: Vec<_> = changed.chain(gone).collect();
                self.log.relist(to, all);
            }
            Step::Open(back) => {
                // Versions that the log has not reached too: the client was elsewhere before.
                let start = self.version().saturating_sub(back);
                match self.log.cursor(start) {
                    Ok(cursor) => self.clients.push((cursor, self.at(start).clone())),
                    Err(_) => self.lost += 1,
                }
            }
            Step::Read(who, limit) => {
                if who < self.clients.len() && !self.read(who, limit) {
                    self.clients.remove(who);
                    self.lost += 1;
                }
            }
        }
        assert!(self.log.weight() <= self.limit);
    }

    fn read(&mut self, who: usize, limit: usize) -> bool {
        let (mut cursor, mut state) = self.clients[who].clone();
        let told = cursor.progress();
        let Ok(batch) = self.log.read(&mut cursor, changes(limit)) else { return false };
        assert!(batch.changes.len() <= limit);
        for (key, version) in &batch.changes {
            match version {
                Some(version) => drop(state.insert(*key, *version)),
                None => drop(state.remove(key)),
            }
        }
        assert!(told.is_none() || cursor.progress().is_none_or(|it| Some(it) >= told));
        assert!(batch.mark.is_none() || cursor.progress() >= batch.mark);
        if let Some(version) = cursor.progress() {
            assert_eq!(state, *self.at(version), "what is told to be complete is the state");
        }
        self.clients[who] = (cursor, state);
        true
    }
}

proptest! {
    #[test]
    fn who_starts_from_the_truth_arrives_at_it(steps in steps(), small in any::<bool>()) {
        let limit = if small { 12 * WEIGHT } else { usize::MAX };
        let mut world = World {
            truth: vec![(State::new(), (0, None))],
            log: ChangeLog::new(0, limit),
            limit,
            clients: Vec::new(),
            lost: 0,
        };
        for step in steps {
            world.step(step);
        }
        // In the end all that did not expire have the state of the log.
        world.step(Step::See(usize::MAX / 2));
        while let Some((cursor, _)) = world.clients.first() {
            let (cursor, read) = (cursor.clone(), world.read(0, 3));
            if !read || world.clients[0].0 == cursor {
                prop_assert!(!read || cursor.progress() == Some(world.version()));
                world.clients.remove(0);
            }
        }
    }
}
