//! Handles one object: reads its head, looks it up in the sink, decodes it.

use std::sync::Arc;

use super::{Decoder, Held, Ingest, Phase, Report, Sink, Undecodable, malformed};
use crate::reflector::{Failure, FailureKind};
use crate::wire::{ObjectHead, WireObject};
use crate::{Delta, Item, ResourceVersion, Tombstone};

impl<D: Decoder, S: Sink<D::Object>> Ingest<D, S> {
    /// Adds an object to the list that is being staged.
    pub(super) fn stage(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
        let head = match ObjectHead::of(object.wire()) {
            Ok(head) => head,
            Err(error) => {
                self.leave_out(object, malformed(&error))?;
                return Ok(ResourceVersion::unset());
            }
        };
        let held = self.held(&head);
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

    /// Leaves out an unreadable item if the list allows that, and fails otherwise (G30). If the
    /// item's head can be read, the item counts as an undecodable object. Otherwise its key is
    /// unknown, and the object is missing from the list.
    pub(super) fn leave_out(&mut self, item: &WireObject, failure: Failure) -> Result<(), Failure> {
        let Some(list) = self.list.as_mut().filter(|list| list.skip_unreadable) else {
            return Err(failure);
        };
        list.objects += 1;
        let cause = failure.message;
        if let Ok(head) = ObjectHead::of(item.wire()) {
            let held = self.held(&head);
            return self.keep_last_good(&head, held, Undecodable { phase: Phase::Decode, cause });
        }
        let number = list.objects;
        self.sink.report(Report::Unreadable { number, cause: &cause });
        list.last_cause = cause;
        Ok(())
    }

    /// Handles a listed object that cannot be decoded: the sink keeps its last good state, if any.
    fn keep_last_good(
        &mut self,
        head: &ObjectHead<'_>,
        held: Held,
        undecodable: Undecodable,
    ) -> Result<(), Failure> {
        let keep = matches!(held, Held::Same(_) | Held::Older(_));
        let key = held.into_key(head);
        self.sink.report(Report::Undecodable { key: &key, why: &undecodable });
        let cause = undecodable.cause;
        if self.strict {
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

    /// Handles a DELETED among the initial events: removes the object from the staged list.
    pub(super) fn unlist(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
        let skips = self.list.as_ref().is_some_and(|list| list.skip_unreadable);
        let head = match object.wire().check() {
            Err(error) if !skips => Err(error),
            _ => ObjectHead::of(object.wire()),
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

    /// Handles an ADDED or MODIFIED event; `delta` is the constructor for its delta.
    pub(super) fn changed(
        &mut self,
        object: &WireObject,
        delta: fn(Item<D::Object>) -> Delta<D::Object>,
    ) -> Result<ResourceVersion, Failure> {
        let head = ObjectHead::of(object.wire()).map_err(|error| malformed(&error))?;
        match self.decoder.decode(object.wire(), &head) {
            Ok(object) => {
                // Sharing the store's key would cost a search here; the store searches for the key
                // anyway.
                let item = Item::new(head.key(), head.uid, head.version.clone(), object);
                self.sink.report(Report::Object { decoded: true });
                self.sink.report(Report::Decodable { key: &item.key });
                self.queue.push(delta(item));
            }
            Err(undecodable) => {
                whole(object)?;
                let key = head.key();
                self.sink.report(Report::Undecodable { key: &key, why: &undecodable });
                if self.strict {
                    let message = format!("{key}: {}", undecodable.cause);
                    return Err(Failure::new(FailureKind::Undecodable, message));
                }
                let version = head.version.clone();
                self.queue.push(Delta::Undecodable { key, uid: head.uid, version });
            }
        }
        Ok(head.version)
    }

    /// Handles a DELETED event; the object is gone even if its final state cannot be decoded (G30).
    pub(super) fn deleted(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
        let head = ObjectHead::of(object.wire()).map_err(|error| malformed(&error))?;
        let key = self.held(&head).into_key(&head);
        let last = match self.decoder.decode(object.wire(), &head) {
            Ok(object) => Some(Arc::new(object)),
            Err(undecodable) => {
                whole(object)?;
                self.sink.report(Report::Undecodable { key: &key, why: &undecodable });
                None
            }
        };
        self.sink.report(Report::Decodable { key: &key });
        let version = head.version.clone();
        self.queue.push(Delta::Deleted(Tombstone { key, uid: head.uid, version, last }));
        Ok(head.version)
    }

    fn held(&self, head: &ObjectHead<'_>) -> Held {
        self.sink.held(&head.namespace, &head.name, &head.uid, &head.version)
    }
}

/// Fails if an undecodable object is malformed on the wire, rather than only of another shape
/// (G30). Reading the head does not check the rest of the object.
fn whole(object: &WireObject) -> Result<(), Failure> {
    object.wire().check().map_err(|error| malformed(&error))
}
