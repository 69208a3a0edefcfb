//! Taking in one object: its head, what the sink holds of it, its decoded form.

use std::sync::Arc;

use informer_core::reflector::{Failure, FailureKind};
use informer_core::wire::{ObjectHead, WatchEventType, WireObject};
use informer_core::{Delta, Item, ObjectKey, ResourceVersion, Tombstone};

use super::{Session, malformed};
use crate::decode::Decode;
use crate::reflector::decoder::Undecodable;
use crate::reflector::{Held, Report, Sink};
use crate::source::ListWatch;

impl<T: Decode, S: ListWatch, K: Sink<T>> Session<T, S, K> {
    /// Adds an object to the list that is being staged.
    pub(super) fn stage(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
        let head = match ObjectHead::glance(object.wire()) {
            Ok(head) => head,
            Err(error) => {
                self.leave_out(object, malformed(&error))?;
                return Ok(ResourceVersion::unset());
            }
        };
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
                if !list.skip_unreadable {
                    whole(object)?;
                }
                self.keep_last_good(&head, held, undecodable)?;
            }
        }
        Ok(head.version)
    }

    /// Leaves an item out that cannot be read, if the list may do without it, else fails. If the item says who it is, it
    /// counts as present in a state that cannot be decoded; else it stands for no object (G30).
    pub(super) fn leave_out(&mut self, item: &WireObject, failure: Failure) -> Result<(), Failure> {
        let Some(list) = self.list.as_mut().filter(|list| list.skip_unreadable) else {
            return Err(failure);
        };
        list.objects += 1;
        let cause = failure.message;
        if let Ok(head) = ObjectHead::of_beginning(item.wire()) {
            let held = self.sink.held(&head.namespace, &head.name, &head.uid, &head.version);
            return self.keep_last_good(&head, held, Undecodable { phase: "decode", cause });
        }
        list.last_cause.clone_from(&cause);
        let number = list.objects;
        self.sink.report(Report::Unreadable { number, cause: &cause });
        Ok(())
    }

    /// An object that was listed in a state that cannot be decoded keeps the one that the sink has of it.
    fn keep_last_good(
        &mut self,
        head: &ObjectHead<'_>,
        held: Held,
        undecodable: Undecodable,
    ) -> Result<(), Failure> {
        let Undecodable { phase, cause } = undecodable;
        let keep = matches!(held, Held::Same(_) | Held::Older(_));
        let key = held.into_key(head);
        self.sink.report(Report::Undecodable { key: &key, phase, cause: &cause });
        if self.decoder.strict {
            return Err(Failure::new(FailureKind::Undecodable, format!("{key}: {cause}")));
        }
        if let Some(list) = &mut self.list {
            list.last_cause = cause;
            list.usable += usize::from(keep);
        }
        if keep {
            self.queue.push(Delta::Kept(key));
        }
        Ok(())
    }

    /// Takes an object out of the streaming list that is being staged.
    pub(super) fn unlist(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
        let skips = self.list.as_ref().is_some_and(|list| list.skip_unreadable);
        let head = match ObjectHead::of(object.wire()) {
            Err(_) if skips => ObjectHead::of_beginning(object.wire()),
            read => read,
        };
        let head = match head {
            Ok(head) => head,
            Err(error) => {
                self.leave_out(object, malformed(&error))?;
                return Ok(ResourceVersion::unset());
            }
        };
        let key = head.key();
        self.sink.report(Report::Decodable { key: &key });
        self.queue.push(Delta::Unlisted(key));
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
