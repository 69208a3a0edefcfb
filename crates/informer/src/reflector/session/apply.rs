//! Taking in one object: its head, what the sink holds of it, its decoded form.

use std::sync::Arc;

use informer_core::reflector::{Failure, FailureKind};
use informer_core::wire::{ObjectHead, WatchEventType, WireObject};
use informer_core::{Delta, Item, ObjectKey, ResourceVersion, Tombstone};

use super::{Session, malformed};
use crate::decode::Decode;
use crate::reflector::{Held, Report, Sink};
use crate::source::ListWatch;

impl<T: Decode, S: ListWatch, K: Sink<T>> Session<T, S, K> {
    /// Adds an object to the list that is being staged.
    pub(super) fn stage(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
        let head = ObjectHead::glance(object.wire()).map_err(|error| malformed(&error))?;
        let held = self.sink.held(&head.namespace, &head.name, &head.uid, &head.version);
        let Some(list) = &mut self.list else { return Ok(head.version) };
        list.objects += 1;
        if let Held::Same(key) = &held
            && list.shortcut
        {
            list.usable += 1;
            self.sink.report(Report::Object { decoded: false });
            self.queue.push(Delta::Kept(key.clone()));
            return Ok(head.version);
        }
        match self.decoder.decode(object.wire(), &head) {
            Ok(object) => {
                list.usable += 1;
                let item = Item::new(held.into_key(&head), head.uid, head.version.clone(), object);
                self.sink.report(Report::Object { decoded: true });
                self.sink.report(Report::Decodable { key: &item.key });
                self.queue.push(Delta::Listed(item));
            }
            Err(undecodable) => {
                whole(object)?;
                list.last_cause.clone_from(&undecodable.cause);
                let keep = matches!(held, Held::Same(_) | Held::Older(_));
                list.usable += usize::from(keep);
                let key = held.into_key(&head);
                let (phase, cause) = (undecodable.phase, undecodable.cause);
                self.sink.report(Report::Undecodable { key: &key, phase, cause: &cause });
                if self.decoder.strict {
                    return Err(Failure::new(FailureKind::Undecodable, format!("{key}: {cause}")));
                }
                if keep {
                    self.queue.push(Delta::Kept(key));
                }
            }
        }
        Ok(head.version)
    }

    /// Applies an ADDED or MODIFIED.
    pub(super) fn changed(
        &mut self,
        kind: WatchEventType,
        object: &WireObject,
    ) -> Result<ResourceVersion, Failure> {
        let head = ObjectHead::glance(object.wire()).map_err(|error| malformed(&error))?;
        match self.decoder.decode(object.wire(), &head) {
            Ok(object) => {
                // To share the key that the store has would cost a search, and the store searches anyway.
                let item = Item::new(head.key(), head.uid, head.version.clone(), object);
                self.sink.report(Report::Object { decoded: true });
                self.sink.report(Report::Decodable { key: &item.key });
                let delta = if kind == WatchEventType::Added { Delta::Added } else { Delta::Updated };
                self.queue.push(delta(item));
            }
            Err(undecodable) => {
                whole(object)?;
                // What is still queued may have put another object under this name.
                self.deliver();
                let held = self.sink.held(&head.namespace, &head.name, &head.uid, &head.version);
                let replaced = matches!(held, Held::Other(_));
                let key = held.into_key(&head);
                let (phase, cause) = (undecodable.phase, undecodable.cause);
                self.sink.report(Report::Undecodable { key: &key, phase, cause: &cause });
                if self.decoder.strict {
                    return Err(Failure::new(FailureKind::Undecodable, format!("{key}: {cause}")));
                }
                let version = head.version.clone();
                // What the store holds is another object, which is gone whatever its successor looks like.
                self.queue.push(match replaced {
                    true => Delta::Deleted(Tombstone { key, uid: "".into(), version, last: None }),
                    false => Delta::Bookmark(version),
                });
            }
        }
        Ok(head.version)
    }

    /// Applies a DELETED; that the object is gone is clear even if its final state cannot be decoded (G30).
    pub(super) fn deleted(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
        let head = ObjectHead::glance(object.wire()).map_err(|error| malformed(&error))?;
        let key = self.sink.held(&head.namespace, &head.name, &head.uid, &head.version).into_key(&head);
        let last = match self.decoder.decode(object.wire(), &head) {
            Ok(object) => Some(Arc::new(object)),
            Err(undecodable) => {
                whole(object)?;
                let (phase, cause) = (undecodable.phase, &undecodable.cause);
                self.sink.report(Report::Undecodable { key: &key, phase, cause });
                None
            }
        };
        self.sink.report(Report::Decodable { key: &key });
        let version = head.version.clone();
        self.queue.push(Delta::Deleted(Tombstone { key, uid: head.uid, version, last }));
        Ok(head.version)
    }
}

/// Tells an object that is broken on the wire from one that only has another shape (G30): its metadata alone was read.
fn whole(object: &WireObject) -> Result<(), Failure> {
    ObjectHead::of(object.wire()).map(|_| ()).map_err(|error| malformed(&error))
}

impl Held {
    /// The key, sharing the one that the sink holds already.
    fn into_key(self, head: &ObjectHead<'_>) -> ObjectKey {
        match self {
            Self::Nothing => head.key(),
            Self::Same(key) | Self::Older(key) | Self::Other(key) => key,
        }
    }
}
