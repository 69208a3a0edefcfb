//! Any sequence of deltas, also those that no server sends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use informer_core::fan_out::{RegistrationId, RegistrationQueue};
use informer_core::store::{Index, Snapshot};
use informer_core::{Delta, Event, Item, ObjectKey, Pipeline, ResourceVersion, Tombstone, Uid};

/// What is stored: the identity, so that readers can check it, and a number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    uid: u8,
    number: u64,
}

struct Reader {
    id: RegistrationId,
    queue: RegistrationQueue<State>,
    view: BTreeMap<ObjectKey, Arc<State>>,
}

/// Whatever comes, the pipeline does not panic, every registration sees a legal history that ends
/// in the store, indexes are exact, and old snapshots stay as they were.
pub fn deltas(data: &[u8]) {
    let mut pipeline = Pipeline::<State>::new();
    let by_uid = Index::new("uid", |state: &State, out| out.push(state.uid.to_string()));
    let mut readers: Vec<Reader> = Vec::new();
    let mut kept: Option<(Snapshot<State>, BTreeMap<ObjectKey, Arc<State>>)> = None;
    let mut has_index = false;
    let mut number = 0;
    for operation in data.chunks_exact(2) {
        let (what, which) = (operation[0] % 16, operation[1]);
        number += 1;
        let now = Duration::from_secs(number);
        let key = ObjectKey::namespaced(
            if which & 1 == 0 { "a" } else { "b" },
            &format!("o{}", which >> 1 & 3),
        );
        let uid = which >> 3 & 3;
        let version = ResourceVersion::from(if which >> 7 == 0 { number } else { number / 2 });
        let item = || {
            let state = State { uid, number };
            Item::new(key.clone(), Uid::from(uid.to_string()), version.clone(), state)
        };
        let delta = match what {
            0 | 1 => Delta::Added(item()),
            2 | 3 => Delta::Updated(item()),
            4 => Delta::Deleted(Tombstone {
                key: key.clone(),
                uid: if which >> 5 & 1 == 0 { Uid::from(uid.to_string()) } else { Uid::from("") },
                version,
                last: (which >> 5 & 3 == 0).then(|| Arc::new(State { uid, number })),
            }),
            5 => Delta::Bookmark(version),
            6 => Delta::ReplaceStarted { distrust: which & 1 == 1 },
            7 | 8 => Delta::Listed(item()),
            9 => Delta::Kept(key.clone()),
            10 => Delta::Unlisted(key.clone()),
            11 => {
                let history_changed = which >> 5 & 1 == 1;
                Delta::ReplaceFinished { version, history_changed, refreshes: None }
            }
            12 if which < 16 => Delta::Cleared { refreshes: 0 },
            12 if which < 64 => Delta::ReplaceAbandoned,
            12 => Delta::Sync,
            13 if readers.len() < 4 => {
                let resync = (which & 1 == 1).then_some(Duration::from_secs(3));
                let (id, queue) = pipeline.register(now, usize::from(which % 8), resync, || {});
                readers.push(Reader { id, queue, view: BTreeMap::new() });
                continue;
            }
            13 => {
                let reader = readers.swap_remove(usize::from(which) % readers.len());
                assert!(pipeline.unregister(reader.id));
                continue;
            }
            14 => {
                if let Some(reader) = readers.get_mut(usize::from(which & 3)) {
                    reader.take(usize::from(which >> 2) + 1);
                }
                continue;
            }
            _ if !has_index => {
                pipeline.build_index(&by_uid, usize::MAX).expect("the first of its name");
                has_index = true;
                continue;
            }
            _ => {
                let snapshot = pipeline.reader().snapshot();
                let content = content(&snapshot);
                kept = Some((snapshot, content));
                continue;
            }
        };
        pipeline.apply(now, [delta]);
        if has_index {
            let snapshot = pipeline.reader().snapshot();
            for uid in 0..4 {
                let value = uid.to_string();
                let filed = snapshot.by_index(&by_uid, &value).expect("it was added");
                let filed: Vec<_> = filed.map(|entry| entry.key.clone()).collect();
                let naive: Vec<_> = snapshot
                    .iter()
                    .filter(|entry| entry.object().uid == uid)
                    .map(|entry| entry.key.clone())
                    .collect();
                assert_eq!(filed, naive, "G11");
            }
        }
    }
    if let Some((snapshot, before)) = kept {
        assert_eq!(content(&snapshot), before, "G10");
    }
    let end = content(&pipeline.reader().snapshot());
    for reader in &mut readers {
        reader.take(usize::MAX);
        if pipeline.has_synced() {
            assert_eq!(reader.view, end, "G1");
        }
    }
}

impl Reader {
    fn take(&mut self, max: usize) {
        let mut events = Vec::new();
        while events.len() < max {
            let batch = self.queue.lock().take(max - events.len());
            if batch.is_empty() {
                break;
            }
            events.extend_from_slice(&batch);
        }
        for event in events {
            match event {
                Event::Added { key, object, .. } => {
                    assert!(self.view.insert(key, object).is_none(), "G3: added twice");
                }
                Event::Updated { key, old, new, .. } => {
                    assert_eq!(old.uid, new.uid, "G5");
                    let given = self.view.insert(key, new).expect("G3: updated before added");
                    assert!(Arc::ptr_eq(&given, &old), "G3: old is not what was last given");
                }
                Event::Deleted(gone) => {
                    let given = self.view.remove(&gone.key).expect("G3: deleted before added");
                    assert!(Arc::ptr_eq(&given, &gone.old), "G3: old is not what was last given");
                    assert_eq!(given.uid, gone.last.uid, "G5");
                }
            }
        }
    }
}

fn content(snapshot: &Snapshot<State>) -> BTreeMap<ObjectKey, Arc<State>> {
    snapshot.iter().map(|entry| (entry.key.clone(), Arc::clone(entry.object()))).collect()
}
