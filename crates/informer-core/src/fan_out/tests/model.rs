//! The queue of a registration against one that looks through everything it holds at every step.

use proptest::prelude::*;

use super::*;
use crate::store::Store;
use crate::{Deleted, FinalState, Item, UpdateReason};

const NAMES: u32 = 6;

#[derive(Clone, Debug)]
enum Step {
    /// Adds objects, or updates or deletes them; what becomes of them is pushed together, or one by
    /// one.
    Changes(Vec<Change>, bool),
    Take(usize),
    Handled,
    Initial,
    Resync,
}

#[derive(Clone, Debug)]
struct Change {
    name: u32,
    delete: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change =
        (0..NAMES, prop::bool::weighted(0.3)).prop_map(|(name, delete)| Change { name, delete });
    let step = prop_oneof![
        12 => (prop::collection::vec(change, 0..4), prop::bool::weighted(0.8))
            .prop_map(|(changes, together)| Step::Changes(changes, together)),
        6 => (1usize..5).prop_map(Step::Take),
        1 => Just(Step::Handled),
        1 => Just(Step::Initial),
        2 => Just(Step::Resync),
    ];
    prop::collection::vec(step, 0..150)
}

/// What the rules say, without an index, a cursor or a gap.
#[derive(Default)]
struct Naive {
    capacity: usize,
    entries: Vec<Event<u32>>,
    merging: bool,
    merged: u64,
    /// What the initial set or a resync has still to give, in the order of the keys.
    walk: Vec<(ObjectKey, Arc<u32>)>,
    resync: bool,
    begun: bool,
    in_hand: usize,
    resync_in_hand: bool,
    synced: bool,
}

impl Naive {
    fn push(&mut self, event: Event<u32>) {
        match self.walk.iter().position(|(key, _)| key == event.key()) {
            None => self.enqueue(event),
            Some(at) if self.resync => {
                self.walk.remove(at);
                self.enqueue(event);
            }
            Some(at) => {
                self.merged += 1;
                match event {
                    Event::Deleted(_) => drop(self.walk.remove(at)),
                    event => self.walk[at].1 = Arc::clone(event.object()),
                }
            }
        }
        self.update_synced();
    }

    fn enqueue(&mut self, event: Event<u32>) {
        self.merging |= self.entries.len() >= self.capacity;
        let last = self.entries.iter().rposition(|pending| pending.key() == event.key());
        let Some(at) = last.filter(|_| self.merging) else { return self.entries.push(event) };
        let merged = match (&self.entries[at], &event) {
            (Event::Deleted(_), _) => return self.entries.push(event),
            (Event::Added { key, .. }, Event::Updated { new, .. }) => {
                Some(Event::Added { key: key.clone(), object: Arc::clone(new), initial: false })
            }
            (Event::Updated { key, old, .. }, Event::Updated { new, reason, .. }) => {
                let (old, new) = (Arc::clone(old), Arc::clone(new));
                Some(Event::Updated { key: key.clone(), old, new, reason: *reason })
            }
            (Event::Updated { old, .. }, Event::Deleted(gone)) => {
                Some(Event::Deleted(Deleted { old: Arc::clone(old), ..gone.clone() }))
            }
            (Event::Added { .. }, _) => None,
            (Event::Updated { .. }, Event::Added { .. }) => unreachable!("no legal history has it"),
        };
        self.merged += 1;
        match merged {
            Some(merged) => self.entries[at] = merged,
            None => drop(self.entries.remove(at)),
        }
    }

    fn pop(&mut self, max: usize) -> Vec<Event<u32>> {
        self.handled();
        let walked = max.min(self.walk.len());
        let mut batch = Vec::new();
        for (key, object) in self.walk.drain(..walked) {
            let (old, new, reason) =
                (Arc::clone(&object), Arc::clone(&object), UpdateReason::Resync);
            batch.push(match self.resync {
                true => Event::Updated { key, old, new, reason },
                false => Event::Added { key, object, initial: true },
            });
        }
        self.resync_in_hand = !batch.is_empty() && self.resync;
        if batch.is_empty() {
            batch = self.entries.drain(..max.min(self.entries.len())).collect();
            self.merging &= self.entries.len() > self.capacity / 2;
        }
        self.in_hand = batch.len();
        self.update_synced();
        batch
    }

    fn handled(&mut self) {
        (self.in_hand, self.resync_in_hand) = (0, false);
        self.update_synced();
    }

    fn initial(&mut self, snapshot: &Snapshot<u32>) {
        self.begun = true;
        self.walk_over(snapshot, false);
        self.update_synced();
    }

    fn resync(&mut self, snapshot: &Snapshot<u32>) -> bool {
        if self.begun && self.walk.is_empty() && !self.resync_in_hand {
            self.walk_over(snapshot, true);
            return !self.walk.is_empty();
        }
        false
    }

    fn walk_over(&mut self, snapshot: &Snapshot<u32>, resync: bool) {
        let pending =
            |key: &ObjectKey| resync && self.entries.iter().any(|event| event.key() == key);
        self.walk = snapshot
            .iter()
            .filter(|entry| !pending(entry.key))
            .map(|entry| (entry.key.clone(), Arc::clone(entry.object())))
            .collect();
        self.resync = resync;
    }

    fn update_synced(&mut self) {
        let ahead = !self.walk.is_empty() && !self.resync;
        self.synced |= self.begun && !ahead && self.in_hand == 0;
    }
}

/// An event with all that it says.
fn said(event: &Event<u32>) -> String {
    match event {
        Event::Updated { old, new, .. } => format!("{event:?} {old} {new}"),
        Event::Deleted(Deleted { old, last, .. }) => format!("{event:?} {old} {last}"),
        other => format!("{other:?} {}", other.object()),
    }
}

/// Changes the store, and says what happened.
fn applied(store: &mut Store<u32>, Change { name, delete }: Change, stamp: u32) -> Event<u32> {
    let key = key(name);
    let held = store.get(&key).map(|record| Arc::clone(&record.object));
    if let (true, Some(old)) = (delete, &held) {
        store.remove(&key);
        let (old, last) = (Arc::clone(old), Arc::new(stamp));
        return Event::Deleted(Deleted { key, old, last, final_state: FinalState::Known });
    }
    let item = Item::new(key.clone(), "u".into(), u64::from(stamp).into(), stamp);
    let object = Arc::clone(&item.record.object);
    store.upsert(item);
    match held {
        Some(old) => Event::Updated { key, old, new: object, reason: UpdateReason::Change },
        None => Event::Added { key, object, initial: false },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn g16_a_queue_gives_what_a_naive_one_gives(capacity in 1usize..8, steps in steps()) {
        let mut queue = EventQueue::new(capacity);
        let mut naive = Naive { capacity, ..Naive::default() };
        let mut store = Store::new();
        let reader = store.reader();
        let mut stamp = 0;
        for step in steps {
            match step {
                Step::Changes(changes, together) => {
                    let event = |change| {
                        stamp += 1;
                        applied(&mut store, change, stamp)
                    };
                    let events: Vec<_> = changes.into_iter().map(event).collect();
                    store.publish();
                    // Before its initial set a registration is told nothing.
                    if naive.begun {
                        match together {
                            true => queue.push_all(events.clone().into()),
                            false => events.iter().for_each(|event| queue.push(event.clone())),
                        }
                        events.into_iter().for_each(|event| naive.push(event));
                    }
                }
                Step::Take(max) => {
                    let taken = queue.take(max);
                    prop_assert!(taken.len() <= max);
                    // Fewer are given where a batch ends, but never none.
                    let fewer = naive.walk.is_empty() && !taken.is_empty();
                    let expected: Vec<_> =
                        naive.pop(if fewer { taken.len() } else { max }).iter().map(said).collect();
                    prop_assert_eq!(taken.iter().map(said).collect::<Vec<_>>(), expected);
                }
                Step::Handled => {
                    queue.handled();
                    naive.handled();
                }
                Step::Initial if !naive.begun => {
                    queue.start_initial(reader.snapshot());
                    naive.initial(&reader.snapshot());
                }
                Step::Initial => {}
                Step::Resync => {
                    prop_assert_eq!(queue.start_resync(reader.snapshot()), naive.resync(&reader.snapshot()));
                }
            }
            prop_assert_eq!(queue.depth(), naive.entries.len() + naive.walk.len());
            prop_assert_eq!(queue.in_hand(), naive.in_hand);
            prop_assert_eq!(queue.merged(), naive.merged);
            prop_assert_eq!(queue.has_synced(), naive.synced);
            prop_assert_eq!(queue.is_empty(), naive.entries.is_empty() && naive.walk.is_empty());
        }
    }
}
