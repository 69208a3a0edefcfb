//! What observers of publications are told: by a table, and replayed onto a naive map in random
//! histories.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;
use crate::store::Snapshot;

/// An observer's copy of the store, made of publications alone.
pub(super) struct Mirror<T>(Arc<Mutex<Copied<T>>>);

struct Copied<T> {
    /// `None` before the first list.
    objects: Option<BTreeMap<ObjectKey, Arc<T>>>,
    version: ResourceVersion,
    epoch: u64,
}

impl<T: Send + Sync + 'static> Mirror<T> {
    pub(super) fn of(pipeline: &mut Pipeline<T>) -> Self {
        let version = ResourceVersion::unset();
        let copied = Arc::new(Mutex::new(Copied { objects: None, version, epoch: 0 }));
        let own = Arc::clone(&copied);
        let (_, start) = pipeline.observe(move |publication| own.lock().unwrap().told(publication));
        if let Some(start) = start {
            copied.lock().unwrap().begin(&start);
        }
        Self(copied)
    }

    /// Whether it equals the store.
    pub(super) fn check(&self, store: &Snapshot<T>, has_synced: bool) {
        let copied = self.0.lock().unwrap();
        assert_eq!(copied.objects.is_some(), has_synced);
        if has_synced {
            copied.compare(store);
        }
    }
}

impl<T> Copied<T> {
    fn begin(&mut self, start: &Snapshot<T>) {
        assert!(self.objects.is_none());
        let entries = start.iter().map(|entry| (entry.key.clone(), Arc::clone(entry.object())));
        self.objects = Some(entries.collect());
        (self.version, self.epoch) = (start.version().clone(), start.epoch());
    }

    fn compare(&self, store: &Snapshot<T>) {
        let own = self.objects.iter().flatten().map(|(key, object)| (key, Arc::as_ptr(object)));
        let store_entries = store.iter().map(|entry| (entry.key, Arc::as_ptr(entry.object())));
        assert!(own.eq(store_entries), "replayed publications are not the store");
        assert_eq!(self.version, *store.version());
        assert_eq!(self.epoch, store.epoch());
    }

    fn told(&mut self, publication: &Publication<'_, T>) {
        let kind = publication.kind();
        if kind == PublicationKind::FirstList {
            assert_eq!(publication.changes().len(), 0);
            return self.begin(publication.snapshot());
        }
        let objects = self.objects.as_mut().expect("nothing is told before the first list");
        assert_eq!(*publication.before(), self.version, "a publication is missing");
        let mut last = publication.before().clone();
        for (version, event) in publication.changes() {
            match event {
                Event::Added { key, object, initial } => {
                    assert!(!initial);
                    assert!(objects.insert(key.clone(), Arc::clone(object)).is_none());
                }
                Event::Updated { key, old, new, reason: UpdateReason::Change } => {
                    let given = objects.insert(key.clone(), Arc::clone(new)).expect("added");
                    assert!(Arc::ptr_eq(&given, old));
                }
                Event::Updated { .. } => panic!("a resync is not published"),
                Event::Deleted(deleted) => {
                    let given = objects.remove(&deleted.key).expect("added");
                    assert!(Arc::ptr_eq(&given, &deleted.old));
                    assert!(kind == PublicationKind::Changes || version == publication.before());
                }
            }
            if kind == PublicationKind::Changes {
                assert!(version.has_reached(&last), "changes of a watch come in order");
                assert!(publication.version().has_reached(version));
                last.clone_from(version);
            }
        }
        let history_changed = matches!(kind, PublicationKind::Relist { history_changed: true });
        self.epoch += u64::from(history_changed);
        self.version.clone_from(publication.version());
        self.compare(publication.snapshot());
    }
}

/// What observers are told of these deltas, one text for each publication.
fn told(pipeline: &mut Pipeline<Obj>, deltas: Vec<Delta<Obj>>) -> Vec<String> {
    let texts = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&texts);
    let (id, _) = pipeline.observe(move |publication| {
        let changes = publication.changes().map(|(version, event)| {
            let (word, key) = match event {
                Event::Added { key, .. } => ("+", key),
                Event::Updated { key, .. } => ("~", key),
                Event::Deleted(deleted) => ("-", &deleted.key),
            };
            format!(" {word}{}@{version}", key.name())
        });
        let (kind, before, version) =
            (publication.kind(), publication.before(), publication.version());
        let changes: String = changes.collect();
        own.lock().unwrap().push(format!("{kind:?} {before}..{version}:{changes}"));
    });
    pipeline.apply(Duration::ZERO, deltas);
    pipeline.unobserve(id);
    std::mem::take(&mut *texts.lock().unwrap())
}

fn list(items: &[(u8, (u64, u64))], version: u64, history_changed: bool) -> Vec<Delta<Obj>> {
    let started = Delta::ReplaceStarted { distrust: history_changed };
    let finished =
        Delta::ReplaceFinished { version: version.into(), history_changed, refreshes: None };
    let listed = items.iter().map(|(name, state)| Delta::Listed(item(*name, *state)));
    std::iter::once(started).chain(listed).chain([finished]).collect()
}

fn gone(name: u8, uid: u64, version: u64) -> Delta<Obj> {
    let uid_text = Uid::new(&uid.to_string());
    let last = Some(Arc::new(Obj { uid, version }));
    Delta::Deleted(Tombstone { key: key(name), uid: uid_text, version: version.into(), last })
}

#[test]
fn publications_are_told_with_versions_and_relists_stand_alone() {
    let mut pipeline = Pipeline::new();
    let first = list(&[(0, (1, 3)), (1, (2, 4))], 10, false);
    assert_eq!(told(&mut pipeline, first), ["FirstList ..10:"]);

    // A bookmark has no events; a resync is no publication.
    let bookmark = vec![Delta::Bookmark(11.into()), Delta::Sync];
    assert_eq!(told(&mut pipeline, bookmark), ["Changes 10..11:"]);
    assert_eq!(told(&mut pipeline, vec![Delta::Sync]), Vec::<String>::new());

    // What a watch said before a relist is published before it.
    let mut deltas =
        vec![Delta::Updated(item(0, (1, 12))), gone(1, 2, 13), Delta::Added(item(2, (3, 14)))];
    deltas.extend(list(&[(0, (9, 17)), (3, (4, 16))], 20, false));
    deltas.push(Delta::Bookmark(21.into()));
    assert_eq!(
        told(&mut pipeline, deltas),
        [
            "Changes 11..14: ~0@12 -1@13 +2@14",
            // Another object under the name 0, and 2 is gone: nobody knows since when.
            "Relist { history_changed: false } 14..20: -2@14 -0@14 +0@17 +3@16",
            "Changes 20..21:",
        ]
    );
    let same = list(&[(0, (9, 17)), (3, (4, 16))], 22, false);
    assert_eq!(told(&mut pipeline, same), ["Relist { history_changed: false } 21..22:"]);
    let restored = list(&[(0, (9, 5))], 7, true);
    assert_eq!(
        told(&mut pipeline, restored),
        ["Relist { history_changed: true } 22..7: -3@22 ~0@5"]
    );
    let cleared = vec![Delta::Cleared { refreshes: 0 }];
    assert_eq!(told(&mut pipeline, cleared), ["Cleared 7..7: -0@7"]);
}

#[test]
fn an_observer_that_panics_is_removed_and_named() {
    let mut pipeline = Pipeline::new();
    let mirror = Mirror::of(&mut pipeline);
    let dropped = Arc::new(());
    let held = Arc::clone(&dropped);
    let line = line!() + 1;
    pipeline.observe(move |_| panic!("{held:?}: hunter2"));
    pipeline.apply(Duration::ZERO, list(&[], 1, false));
    let faults = pipeline.take_observer_faults();
    assert_eq!(faults.iter().map(|it| it.added_at.line()).collect::<Vec<_>>(), [line]);
    assert_eq!(Arc::strong_count(&dropped), 1);
    pipeline.apply(Duration::ZERO, [Delta::Added(item(0, (1, 2)))]);
    assert_eq!(pipeline.take_observer_faults(), []);
    // The others are still told.
    mirror.check(&pipeline.reader().snapshot(), true);
}

#[test]
fn observers_end_with_the_pipeline() {
    let mut pipeline = Pipeline::<Obj>::new();
    let dropped = Arc::new(());
    let held = Arc::clone(&dropped);
    let (id, _) = pipeline.observe(move |_| drop(Arc::clone(&held)));
    pipeline.finish();
    assert_eq!(Arc::strong_count(&dropped), 1);
    assert!(!pipeline.unobserve(id));
}
