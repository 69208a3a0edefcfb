//! Deltas in a row and what they come to, as client-go's queue and controller have it in their
//! tests: the table in `tests/CASES.md` says which is which.

use super::*;

const ZERO: Duration = Duration::ZERO;

/// The delta of an object's deletion, at the version of its final state.
fn deleted(name: u8, (uid, version): (u64, u64)) -> Delta<Obj> {
    let uid_text = Uid::new(&uid.to_string());
    let last = Some(Arc::new(Obj { uid, version }));
    Delta::Deleted(Tombstone { key: key(name), uid: uid_text, version: version.into(), last })
}

fn added(name: u8, state: (u64, u64)) -> Delta<Obj> {
    Delta::Added(item(name, state))
}

fn updated(name: u8, state: (u64, u64)) -> Delta<Obj> {
    Delta::Updated(item(name, state))
}

/// A complete list.
fn replaced(items: impl IntoIterator<Item = (u8, (u64, u64))>, version: u64) -> Vec<Delta<Obj>> {
    let started = Delta::ReplaceStarted { distrust: false };
    let finished =
        Delta::ReplaceFinished { version: version.into(), history_changed: false, refreshes: None };
    let items = items.into_iter().map(|(name, state)| Delta::Listed(item(name, state)));
    std::iter::once(started).chain(items).chain([finished]).collect()
}

/// A pipeline that has listed these, and a registration that was given them.
fn synced(items: &[(u8, (u64, u64))]) -> (Pipeline<Obj>, RegistrationQueue<Obj>) {
    let mut pipeline = Pipeline::new();
    pipeline.apply(ZERO, replaced(items.iter().copied(), 10));
    let (_, queue) = pipeline.register(ZERO, 100, None, || {});
    assert_eq!(told(&queue).len(), items.len());
    (pipeline, queue)
}

/// What one batch of these deltas tells, without the words that do not differ.
fn tells(
    pipeline: &mut Pipeline<Obj>,
    queue: &RegistrationQueue<Obj>,
    deltas: Vec<Delta<Obj>>,
) -> String {
    pipeline.apply(ZERO, deltas);
    told(queue).join(" ").replace(", final state ", ":").replace(", Change", "")
}

fn chain(parts: Vec<Vec<Delta<Obj>>>) -> Vec<Delta<Obj>> {
    parts.into_iter().flatten().collect()
}

#[test]
fn g05_a_delete_before_a_relist_is_not_absorbed_by_it() {
    let (mut pipeline, queue) = synced(&[(0, (1, 1))]);
    let deltas = chain(vec![vec![deleted(0, (1, 11))], replaced([(0, (2, 12))], 13)]);
    assert_eq!(tells(&mut pipeline, &queue, deltas), "Deleted(a/0:Known) Added(a/0)");
}

#[test]
fn g06_what_a_list_leaves_out_is_deleted_once() {
    let (mut pipeline, queue) = synced(&[]);
    let deltas = chain(vec![vec![added(0, (1, 11))], replaced([], 12), replaced([], 13)]);
    assert_eq!(tells(&mut pipeline, &queue, deltas), "Added(a/0) Deleted(a/0:Unknown)");
    // Listed twice as it is: nothing to tell (G7).
    let same = [(0, (2, 20))];
    let deltas = chain(vec![
        vec![added(0, (2, 20))],
        replaced(same, 21),
        replaced(same, 22),
        replaced([], 23),
    ]);
    assert_eq!(tells(&mut pipeline, &queue, deltas), "Added(a/0) Deleted(a/0:Unknown)");
    // A delete that was seen is not found missing again.
    let deltas = chain(vec![vec![added(0, (3, 30)), deleted(0, (3, 31))], replaced([], 32)]);
    assert_eq!(tells(&mut pipeline, &queue, deltas), "Added(a/0) Deleted(a/0:Known)");
}

#[test]
fn g06_a_missed_delete_has_the_newest_state_that_was_seen() {
    let (mut pipeline, queue) = synced(&[]);
    let steps =
        vec![added(0, (1, 11)), deleted(0, (1, 12)), added(0, (2, 13)), updated(0, (2, 14))];
    pipeline.apply(ZERO, chain(vec![steps, replaced([], 15)]));
    let batch = queue.lock().take(100).to_vec();
    let states: Vec<_> =
        batch.iter().map(|event| (event.object().uid, event.object().version)).collect();
    assert_eq!(states, [(1, 11), (1, 12), (2, 13), (2, 14), (2, 14)]);
}

#[test]
fn g03_a_delete_of_what_is_not_there_is_no_event() {
    let (mut pipeline, queue) = synced(&[(2, (2, 2)), (4, (8, 8))]);
    let deltas =
        vec![deleted(0, (1, 11)), deleted(2, (2, 12)), deleted(2, (2, 12)), deleted(4, (3, 13))];
    // The last one is old news: another object has the name by now.
    assert_eq!(tells(&mut pipeline, &queue, deltas), "Deleted(a/2:Known)");
    assert!(pipeline.store.get(&key(4)).is_some());
    assert_eq!(*pipeline.store.version(), ResourceVersion::from(13));
}

#[test]
fn g04_each_change_of_a_key_is_told_in_order() {
    let (mut pipeline, queue) = synced(&[]);
    let deltas = vec![
        added(0, (1, 10)),
        added(2, (2, 11)),
        updated(0, (1, 12)),
        deleted(0, (1, 15)),
        added(4, (3, 16)),
    ];
    let all = "Added(a/0) Added(a/2) Updated(a/0) Deleted(a/0:Known) Added(a/4)";
    assert_eq!(tells(&mut pipeline, &queue, deltas), all);
    assert!(queue.lock().is_empty());
    assert_eq!(queue.lock().merged(), 0);
}

#[test]
fn g06_g07_a_relist_tells_deletes_first_then_the_rest_each_by_key() {
    let known = [(0, (1, 1)), (2, (2, 2)), (4, (3, 3))];
    let (mut pipeline, queue) = synced(&known);
    let deltas = replaced([(6, (9, 12)), (2, (2, 11)), (0, (1, 11))], 13);
    let all = "Deleted(a/4:Unknown) Updated(a/0) Updated(a/2) Added(a/6)";
    assert_eq!(tells(&mut pipeline, &queue, deltas), all);

    // A delete that the watch showed, before a list that lacks another one too.
    let (mut pipeline, queue) = synced(&known);
    let deltas = chain(vec![vec![deleted(4, (3, 11))], replaced([known[1]], 12)]);
    assert_eq!(tells(&mut pipeline, &queue, deltas), "Deleted(a/4:Known) Deleted(a/0:Unknown)");

    // A change, before a list that lacks what changed.
    let (mut pipeline, queue) = synced(&known);
    let deltas = chain(vec![vec![updated(4, (3, 11))], replaced([known[1]], 12)]);
    let all = "Updated(a/4) Deleted(a/0:Unknown) Deleted(a/4:Unknown)";
    assert_eq!(tells(&mut pipeline, &queue, deltas), all);

    // Two lists in a row are told apart, although they come in one batch.
    let (mut pipeline, queue) = synced(&known);
    let deltas =
        chain(vec![replaced([(0, (1, 1)), (2, (2, 11))], 12), replaced([(0, (1, 1))], 13)]);
    let all = "Deleted(a/4:Unknown) Updated(a/2) Deleted(a/2:Unknown)";
    assert_eq!(tells(&mut pipeline, &queue, deltas), all);
}

#[test]
fn g09_an_empty_list_is_a_list() {
    let mut pipeline = Pipeline::<Obj>::new();
    pipeline.apply(ZERO, replaced([], 7));
    assert!(pipeline.has_synced());
    assert_eq!(*pipeline.reader().snapshot().version(), ResourceVersion::from(7));
    let deltas = chain(vec![
        vec![Delta::Bookmark(8.into())],
        replaced([(0, (1, 9))], 9),
        replaced([], 10),
        replaced([(2, (2, 11))], 12),
    ]);
    let (_, queue) = pipeline.register(ZERO, 100, None, || {});
    assert_eq!(tells(&mut pipeline, &queue, deltas), "Added(a/0) Deleted(a/0:Unknown) Added(a/2)");
    assert_eq!(*pipeline.store.version(), ResourceVersion::from(12));
}

#[test]
fn g09_a_key_that_a_list_has_twice_is_one_object() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(ZERO, 100, None, || {});
    pipeline.apply(ZERO, replaced([(0, (1, 1)), (2, (2, 2)), (0, (1, 3))], 4));
    assert_eq!(pipeline.store.get(&key(0)).map(|held| held.object.version), Some(3));
    assert_eq!(told(&queue), ["Added(a/0, initial)", "Added(a/2, initial)"]);
    assert!(queue.lock().has_synced(), "G19: two objects are the initial set");
}

#[test]
fn g14_the_version_follows_every_event_and_bookmarks_tell_nobody() {
    let (mut pipeline, queue) = synced(&[(0, (1, 1))]);
    let reader = pipeline.reader();
    let steps = [
        (Delta::Bookmark(11.into()), 11),
        (added(2, (2, 12)), 12),
        (updated(0, (1, 13)), 13),
        (deleted(0, (1, 14)), 14),
        (Delta::Bookmark(20.into()), 20),
    ];
    for (delta, version) in steps {
        pipeline.apply(ZERO, [delta]);
        assert_eq!(*reader.snapshot().version(), ResourceVersion::from(version));
    }
    assert_eq!(told(&queue).len(), 3);
    pipeline.apply(ZERO, replaced([(2, (2, 12))], 30));
    assert_eq!(*reader.snapshot().version(), ResourceVersion::from(30), "that of the list");
    pipeline.apply(ZERO, [Delta::Updated(item(2, (2, 12)))]);
    assert_eq!(told(&queue), [""; 0], "the same state again is no event");
}

#[test]
fn g08_a_resync_shows_what_is_there_and_nothing_that_changes_or_goes() {
    let mut pipeline = Pipeline::new();
    pipeline.apply(ZERO, replaced([(0, (1, 1)), (2, (2, 2))], 10));
    let period = Duration::from_secs(5);
    let (_, queue) = pipeline.register(ZERO, 100, Some(period), || {});
    told(&queue);
    pipeline.apply(period, [Delta::Sync]);
    assert_eq!(told(&queue), ["Updated(a/0, Resync)", "Updated(a/2, Resync)"]);
    pipeline.apply(period * 2, [deleted(0, (1, 11)), added(4, (3, 12)), Delta::Sync]);
    assert_eq!(
        told(&queue),
        ["Updated(a/2, Resync)", "Deleted(a/0, final state Known)", "Added(a/4)"],
        "a delete and an add that wait are all that is told of their keys"
    );
}

#[test]
fn g08_each_registration_has_a_period_of_its_own() {
    let mut pipeline = Pipeline::new();
    let periods = [None, Some(2), Some(3)].map(|period| period.map(Duration::from_secs));
    let queues = periods.map(|period| pipeline.register(ZERO, 100, period, || {}).1);
    assert_eq!(pipeline.next_resync(), None, "periods begin with the initial set");
    pipeline.apply(ZERO, replaced([(0, (1, 1))], 10));
    for queue in &queues {
        assert_eq!(told(queue), ["Added(a/0, initial)"]);
    }
    let mut times = Vec::new();
    while let Some(due) = pipeline.next_resync().filter(|due| *due <= Duration::from_secs(9)) {
        pipeline.apply(due, [Delta::Sync]);
        times.push((due.as_secs(), queues.each_ref().map(|queue| told(queue).len())));
    }
    let expected = [
        (2, [0, 1, 0]),
        (3, [0, 0, 1]),
        (4, [0, 1, 0]),
        (6, [0, 1, 1]),
        (8, [0, 1, 0]),
        (9, [0, 0, 1]),
    ];
    assert_eq!(times, expected);
}

#[test]
fn g17_a_batch_never_mixes_the_initial_set_with_what_follows() {
    let batches = |max: usize| {
        let mut pipeline = Pipeline::new();
        pipeline.apply(ZERO, replaced([(0, (1, 1)), (2, (2, 2)), (4, (3, 3))], 10));
        let (_, queue) = pipeline.register(ZERO, 100, None, || {});
        pipeline.apply(ZERO, [added(6, (4, 11)), updated(6, (4, 12)), updated(6, (4, 13))]);
        let mut sizes = Vec::new();
        loop {
            let batch = queue.lock().take(max).to_vec();
            let Some(first) = batch.first() else { return sizes };
            assert!(batch.iter().all(|event| event.is_initial() == first.is_initial()));
            sizes.push((batch.len(), first.is_initial()));
        }
    };
    assert_eq!(batches(100), [(3, true), (3, false)]);
    assert_eq!(batches(2), [(2, true), (1, true), (2, false), (1, false)]);
    assert_eq!(batches(3), [(3, true), (3, false)]);
}

#[test]
fn every_event_names_its_key_and_carries_its_object() {
    let (mut pipeline, queue) = synced(&[(2, (2, 2))]);
    let mut undecodable = deleted(0, (1, 13));
    if let Delta::Deleted(tombstone) = &mut undecodable {
        tombstone.last = None;
    }
    pipeline
        .apply(ZERO, [added(0, (1, 11)), updated(0, (1, 12)), undecodable, deleted(2, (2, 14))]);
    let batch = queue.lock().take(100).to_vec();
    let of: Vec<_> =
        batch.iter().map(|event| (event.key().to_string(), event.object().version)).collect();
    let expected = [("a/0", 11), ("a/0", 12), ("a/0", 12), ("a/2", 14)];
    assert_eq!(of, expected.map(|(key, version)| (key.to_owned(), version)));
}

#[test]
fn g16_the_delta_queue_is_full_from_its_capacity_on_and_keeps_the_order() {
    let mut deltas = crate::DeltaQueue::new(2);
    deltas.push(added(0, (1, 1)));
    assert!(!deltas.is_full());
    deltas.push(Delta::Bookmark(2.into()));
    assert!(deltas.is_full(), "the reflector stops reading");
    for delta in replaced([], 3) {
        deltas.push(delta);
    }
    let popped: Vec<_> = deltas.pop_batch(2).map(|delta| format!("{delta:?}")).collect();
    assert_eq!(popped.len(), 2);
    assert!(popped[0].starts_with("Added(") && popped[1] == "Bookmark(2)", "{popped:?}");
    assert_eq!(deltas.pop_batch(usize::MAX).count(), 2);
    assert!(deltas.is_empty());
}
