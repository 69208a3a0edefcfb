mod model;

use super::*;
use crate::{Deleted, FinalState, ObjectKey, UpdateReason};

fn key(name: u32) -> ObjectKey {
    ObjectKey::cluster(&name.to_string())
}

fn added(name: u32) -> Event<u32> {
    Event::Added { key: key(name), object: Arc::new(name), initial: false }
}

fn updated(name: u32) -> Event<u32> {
    let (old, new) = (Arc::new(0), Arc::new(name));
    Event::Updated { key: key(name), old, new, reason: UpdateReason::Change }
}

fn deleted(name: u32) -> Event<u32> {
    let (old, last) = (Arc::new(name), Arc::new(name));
    Event::Deleted(Deleted { key: key(name), old, last, final_state: FinalState::Known })
}

fn drain(queue: &mut EventQueue<u32>) -> Vec<String> {
    let batch = queue.take(usize::MAX).to_vec();
    batch.iter().map(|event| format!("{event:?}")).collect()
}

#[test]
fn g16_below_capacity_every_event_is_kept_apart() {
    let mut queue = EventQueue::new(4);
    for event in [added(1), updated(1), updated(1), deleted(1)] {
        queue.push(event);
    }
    assert_eq!(
        drain(&mut queue),
        ["Added(1)", "Updated(1, Change)", "Updated(1, Change)", "Deleted(1, final state Known)"]
    );
    assert_eq!(queue.merged(), 0);
}

#[test]
fn g16_above_capacity_entries_merge_by_key() {
    let mut queue = EventQueue::new(2);
    for event in
        [updated(1), updated(2), updated(3), updated(1), updated(3), deleted(2), added(2), added(4)]
    {
        queue.push(event);
    }
    queue.push(deleted(4));
    assert_eq!(queue.depth(), 4);
    assert_eq!(queue.merged(), 4);
    assert_eq!(
        drain(&mut queue),
        ["Updated(1, Change)", "Deleted(2, final state Known)", "Updated(3, Change)", "Added(2)"]
    );
}

#[test]
fn g03_a_merged_delete_still_knows_what_was_last_given() {
    let [given, between, last] = [1, 2, 3].map(Arc::new);
    let updated = |old: &Arc<u32>, new: &Arc<u32>| {
        let (old, new) = (Arc::clone(old), Arc::clone(new));
        Event::Updated { key: key(1), old, new, reason: UpdateReason::Change }
    };
    let deleted = |old: &Arc<u32>| {
        let (old, last) = (Arc::clone(old), Arc::clone(&last));
        Event::Deleted(Deleted { key: key(1), old, last, final_state: FinalState::Known })
    };
    let olds = |capacity: usize, events: Vec<Event<u32>>| {
        let mut queue = EventQueue::new(capacity);
        events.into_iter().for_each(|event| queue.push(event));
        let mut batch = queue.take(usize::MAX).to_vec();
        let Some(Event::Deleted(gone)) = batch.pop() else {
            panic!("the last of {batch:?} is a delete")
        };
        assert!(Arc::ptr_eq(&gone.last, &last));
        (batch.len(), *gone.old)
    };
    let changes = || vec![updated(&given, &between), deleted(&between)];
    assert_eq!(olds(1, vec![deleted(&given)]), (0, 1));
    assert_eq!(olds(1, changes()), (0, 1), "merged with the update before it");
    assert_eq!(olds(8, changes()), (1, 2), "the update was given");
    let twice = vec![updated(&given, &between), updated(&between, &given), deleted(&given)];
    assert_eq!(olds(1, twice), (0, 1));
    let successor = Event::Added { key: key(1), object: Arc::clone(&between), initial: false };
    let all = changes().into_iter().chain([successor, updated(&between, &given), deleted(&given)]);
    assert_eq!(olds(1, all.collect()), (0, 1), "its successor came and went");
}

#[test]
fn g16_objects_that_come_and_go_behind_a_blocked_reader_leave_nothing() {
    let mut queue = EventQueue::new(1);
    queue.push(added(0));
    for name in 1..100_000 {
        queue.push(added(name));
        queue.push(deleted(name));
    }
    assert_eq!(queue.depth(), 1);
    assert!(queue.slots_in_memory() < 200, "{} slots", queue.slots_in_memory());
    assert_eq!(drain(&mut queue), ["Added(0)"]);
}

#[test]
fn g16_merging_goes_on_after_the_gaps_were_closed() {
    let mut queue = EventQueue::new(1);
    for name in [1, 2, 3] {
        queue.push(added(name));
    }
    assert_eq!(queue.take(1).len(), 1);
    for name in 10..1000 {
        queue.push(added(name));
        queue.push(deleted(name));
    }
    for event in [updated(3), deleted(2), added(4), updated(4)] {
        queue.push(event);
    }
    assert_eq!(drain(&mut queue), ["Added(3)", "Added(4)"]);
}

#[test]
fn g35_what_a_long_backlog_took_is_free_again() {
    let mut queue = EventQueue::new(10);
    for name in 0..10_000 {
        queue.push(added(name));
    }
    assert!(queue.slots_in_memory() >= 10_000);
    assert_eq!(drain(&mut queue).len(), 10_000);
    assert!(queue.slots_in_memory() <= 256, "{} slots", queue.slots_in_memory());
    queue.push(added(3));
    assert_eq!(drain(&mut queue), ["Added(3)"], "and the queue goes on");
}

#[test]
fn g18_a_removed_registration_gets_nothing_more() {
    let mut fan_out = FanOut::new();
    let (id, queue) = fan_out.add(10, None, || {});
    fan_out.distribute(&mut vec![added(1)]);
    assert!(fan_out.remove(id));
    assert!(!fan_out.remove(id), "removing twice does nothing");
    fan_out.distribute(&mut vec![added(2)]);
    assert!(queue.lock().is_over());
    assert_eq!(drain(&mut queue.lock()), [""; 0]);
}

#[test]
fn g19_a_removed_registration_never_counts_as_synced() {
    let mut store = crate::store::Store::new();
    for name in 1..=3 {
        store.upsert(crate::Item::new(key(name), "u".into(), 1.into(), 1));
    }
    store.publish();
    let mut fan_out = FanOut::new();
    let (id, queue) = fan_out.add(10, None, || {});
    fan_out.start_initial(Duration::ZERO, &store.reader().snapshot(), None);
    assert_eq!(queue.lock().take(2).len(), 2);
    fan_out.remove(id);
    assert_eq!(queue.lock().take(2).len(), 0);
    assert!(!queue.lock().has_synced());
}

#[test]
fn g16_what_comes_after_a_backlog_that_vanished_is_merged() {
    let mut queue = EventQueue::new(1);
    queue.push(added(0));
    for name in 1..64 {
        queue.push(added(name));
        queue.push(deleted(name));
    }
    queue.push(deleted(0));
    assert!(queue.is_empty());
    for event in [added(7), updated(7), updated(7)] {
        queue.push_all(vec![event].into());
    }
    assert_eq!(drain(&mut queue), ["Added(7)"]);
}

#[test]
fn g35_whoever_reads_the_last_events_of_many_does_not_keep_all() {
    let mut fan_out = FanOut::new();
    let (_, queue) = fan_out.add(10_000, None, || {});
    let first = Arc::new(0);
    let event = |name| Event::Added { key: key(name), object: Arc::clone(&first), initial: false };
    fan_out.distribute(&mut (0..1000).map(event).collect());
    let mut taken = queue.lock().take(1);
    for _ in 1..1000 {
        taken = queue.lock().take(1);
    }
    assert_eq!(taken[0].key(), &key(999));
    assert!(Arc::strong_count(&first) < 70, "{} are kept", Arc::strong_count(&first));
}

#[test]
fn a_batch_of_events_wakes_each_registration_once() {
    let wakes = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut fan_out = FanOut::new();
    for _ in 0..3 {
        let wakes = Arc::clone(&wakes);
        fan_out.add(10, None, move || {
            wakes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
    }
    fan_out.distribute(&mut vec![added(1), updated(1), deleted(1)]);
    assert_eq!(wakes.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[test]
fn g15_registrations_share_what_all_are_told() {
    let mut fan_out = FanOut::new();
    let queues: Vec<_> = (0..3).map(|_| fan_out.add(10, None, || {}).1).collect();
    fan_out.distribute(&mut vec![added(1), updated(1), deleted(1)]);
    let taken: Vec<_> = queues.iter().map(|queue| queue.lock().take(2)).collect();
    for other in &taken {
        assert!(std::ptr::eq(&raw const other[0], &raw const taken[0][0]), "nobody has copied it");
        assert_eq!(format!("{other:?}"), "[Added(1), Updated(1, Change)]");
    }
    assert_eq!(queues[0].lock().depth(), 1);
    assert_eq!(drain(&mut queues[0].lock()), ["Deleted(1, final state Known)"]);
    assert_eq!(queues[1].lock().depth(), 1, "each at its own pace");
}

#[test]
fn the_last_reader_of_shared_events_gets_them_to_drop() {
    let mut fan_out = FanOut::new();
    let queues: Vec<_> = (0..2).map(|_| fan_out.add(10, None, || {}).1).collect();
    fan_out.distribute(&mut vec![added(1), added(2)]);
    let [first, last] = [0, 1].map(|reader: usize| queues[reader].lock().take(10));
    assert!(first.into_unshared().events.is_empty(), "another still reads them");
    assert_eq!(last.into_unshared().events.len(), 2);
}

#[test]
fn the_snapshot_of_an_initial_set_is_dropped_by_its_reader() {
    let mut store = crate::store::Store::new();
    store.upsert(crate::Item::new(key(1), "u".into(), 1.into(), 1));
    store.upsert(crate::Item::new(key(2), "u".into(), 2.into(), 2));
    store.publish();
    let mut queue = EventQueue::new(10);
    queue.start_initial(store.reader().snapshot());
    assert!(queue.take(1).into_unshared().snapshot.is_none(), "it is still walked");
    let Unshared { events, snapshot } = queue.take(1).into_unshared();
    assert_eq!((events.len(), snapshot.map(|it| it.len())), (1, Some(2)));
}

#[test]
fn g19_shared_events_taken_after_the_initial_set_say_that_it_was_handled() {
    let mut store = crate::store::Store::new();
    store.upsert(crate::Item::new(key(1), "u".into(), 1.into(), 1));
    store.publish();
    let mut fan_out = FanOut::new();
    let (_, queue) = fan_out.add(10, None, || {});
    fan_out.start_initial(Duration::ZERO, &store.reader().snapshot(), None);
    let initial = queue.lock().take(10);
    assert!(initial.len() == 1 && initial[0].is_initial());
    fan_out.distribute(&mut vec![updated(1)]);
    assert!(!queue.lock().has_synced(), "it is being handled");
    assert_eq!(queue.lock().take(10).len(), 1);
    assert!(queue.lock().has_synced());
}

#[test]
fn a_finished_queue_still_gives_what_it_holds() {
    let mut fan_out = FanOut::new();
    let (_, queue) = fan_out.add(10, None, || {});
    fan_out.distribute(&mut vec![added(1)]);
    fan_out.finish();
    assert!(!queue.lock().is_over());
    assert_eq!(drain(&mut queue.lock()), ["Added(1)"]);
    assert!(queue.lock().is_over());
}

#[test]
fn a_registration_that_comes_when_all_is_over_gets_what_there_is_and_ends() {
    let mut fan_out = FanOut::<u32>::new();
    fan_out.finish();
    let (_, queue) = fan_out.add(4, None, || {});
    let queue = queue.lock();
    assert!(queue.is_over(), "nobody would ever end it");
}

/// A snapshot of so many objects.
fn snapshot(objects: u32) -> Snapshot<u32> {
    let mut store = crate::store::Store::new();
    for name in 0..objects {
        store.upsert(crate::Item::new(key(name), "u".into(), 1.into(), name));
    }
    store.publish();
    store.reader().snapshot()
}

#[test]
fn g16_the_depth_counts_what_an_initial_set_and_a_resync_have_still_to_give() {
    let mut queue = EventQueue::new(10);
    queue.start_initial(snapshot(5));
    assert_eq!((queue.depth(), queue.in_hand()), (5, 0));
    assert_eq!(queue.take(2).len(), 2);
    assert_eq!((queue.depth(), queue.in_hand()), (3, 2));
    // One that was given, one that was not, and one that is new.
    for event in [updated(0), deleted(4), added(9)] {
        queue.push(event);
    }
    assert_eq!((queue.depth(), queue.in_hand()), (4, 2));
    queue.handled();
    assert_eq!((queue.depth(), queue.in_hand()), (4, 0));
    assert_eq!(queue.take(9).len(), 2, "the rest of the initial set");
    assert_eq!(queue.take(9).len(), 2);
    assert_eq!((queue.depth(), queue.in_hand()), (0, 2));
    assert!(queue.start_resync(snapshot(5)));
    queue.push(updated(3));
    assert_eq!(
        (queue.depth(), queue.in_hand()),
        (5, 2),
        "the change takes the place of the resync"
    );
}

#[test]
fn g19_an_initial_set_that_vanished_was_handled() {
    let mut queue = EventQueue::new(10);
    queue.start_initial(snapshot(2));
    queue.push(deleted(1));
    assert!(!queue.has_synced());
    queue.push(deleted(0));
    assert!(queue.has_synced() && queue.is_empty(), "nobody has to look into the queue for that");
    assert_eq!(queue.merged(), 2);
}

#[test]
fn g08_a_resync_waits_for_the_end_of_the_one_before() {
    let mut queue = EventQueue::new(10);
    queue.start_initial(snapshot(0));
    assert!(queue.start_resync(snapshot(2)));
    assert!(!queue.start_resync(snapshot(2)), "the first is still to be given");
    assert_eq!(queue.take(9).len(), 2);
    assert!(!queue.start_resync(snapshot(2)), "it is in hand");
    queue.handled();
    assert!(queue.start_resync(snapshot(2)));
    assert!(!EventQueue::<u32>::new(1).start_resync(snapshot(2)), "before the initial set");
}

#[test]
fn g08_a_period_under_a_second_is_raised_to_one() {
    let mut fan_out = FanOut::<u32>::new();
    for period in [
        Duration::from_nanos(1),
        Duration::from_millis(999),
        Duration::from_secs(3),
        Duration::ZERO,
    ] {
        fan_out.add(4, Some(period), || {});
    }
    let snapshot = snapshot(1);
    fan_out.start_initial(Duration::ZERO, &snapshot, None);
    let queues: Vec<_> = fan_out.registrations.iter().map(|it| it.queue.clone()).collect();
    let mut begun = Vec::new();
    for _ in 0..3 {
        let due = fan_out.next_resync().expect("three have a period");
        queues.iter().for_each(|queue| _ = drain(&mut queue.lock()));
        queues.iter().for_each(|queue| queue.lock().handled());
        begun.push((due.as_secs(), fan_out.resync(due, &snapshot)));
    }
    assert_eq!(begun, [(1, 2), (2, 2), (3, 3)]);
    assert_eq!(resync_period(Duration::ZERO), None);
    assert_eq!(resync_period(Duration::MAX), Some(Duration::MAX));
}

#[test]
fn g08_a_resync_period_without_end_never_comes() {
    let mut fan_out = FanOut::<u32>::new();
    let snapshot = crate::store::Store::new().reader().snapshot();
    fan_out.add(4, Some(Duration::MAX), || {});
    fan_out.start_initial(Duration::from_secs(1), &snapshot, None);
    assert_eq!(fan_out.next_resync(), Some(Duration::MAX));
}
