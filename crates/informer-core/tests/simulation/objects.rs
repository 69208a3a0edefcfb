//! Taking in one object: its head, what the store holds of it, its decoded form; what `informer`'s session does.

use std::sync::Arc;

use informer_core::reflector::Failure;
use informer_core::wire::{ObjectHead, WatchEventType, WireObject};
use informer_core::{Delta, Item, ObjectKey, ResourceVersion, Tombstone};

use crate::session::{Obj, malformed};
use crate::world::World;

/// What the store holds under a name.
pub(crate) enum Held {
    Nothing,
    Same(ObjectKey),
    Older(ObjectKey),
    Other(ObjectKey),
}

#[derive(serde::Deserialize)]
struct RawObject {
    spec: RawSpec,
}

#[derive(serde::Deserialize)]
struct RawSpec {
    name: u8,
    stamp: u64,
    #[serde(default)]
    refuse: bool,
}

impl World {
    /// Adds an object to the list that is being staged.
    pub(crate) fn stage(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
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
            self.queue.push(Delta::Kept(key.clone()));
            return Ok(head.version);
        }
        if let Some(object) = decode(object, &head) {
            list.usable += 1;
            let item = Item::new(held.into_key(&head), head.uid, head.version.clone(), object);
            self.queue.push(Delta::Listed(item));
        } else {
            self.keep_last_good(&head, held);
            self.cover("undecodable object listed");
        }
        Ok(head.version)
    }

    /// Leaves an item out that cannot be read, if the list may do without it.
    pub(crate) fn leave_out(&mut self, item: &WireObject, failure: Failure) -> Result<(), Failure> {
        let Some(list) = self.list.as_mut().filter(|list| list.skip_unreadable) else {
            return Err(failure);
        };
        list.objects += 1;
        match ObjectHead::of_beginning(item.wire()) {
            Ok(head) => {
                let held = self.held(&head);
                self.keep_last_good(&head, held);
                self.cover("broken item listed");
            }
            Err(_) => self.cover("item without a key listed"),
        }
        Ok(())
    }

    fn keep_last_good(&mut self, head: &ObjectHead<'_>, held: Held) {
        let keep = matches!(held, Held::Same(_) | Held::Older(_));
        if let Some(list) = &mut self.list {
            list.usable += usize::from(keep);
        }
        if keep {
            self.queue.push(Delta::Kept(held.into_key(head)));
        }
    }

    /// Takes an object out of the streaming list that is being staged.
    pub(crate) fn unlist(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
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
        self.cover("deleted while listed");
        self.queue.push(Delta::Unlisted(head.key()));
        Ok(head.version)
    }

    /// Applies an ADDED or MODIFIED.
    pub(crate) fn changed(
        &mut self,
        kind: WatchEventType,
        object: &WireObject,
    ) -> Result<ResourceVersion, Failure> {
        let head = ObjectHead::of(object.wire()).map_err(|error| malformed(&error))?;
        if let Some(object) = decode(object, &head) {
            let key = self.held(&head).into_key(&head);
            let item = Item::new(key, head.uid, head.version.clone(), object);
            let delta = if kind == WatchEventType::Added { Delta::Added } else { Delta::Updated };
            self.queue.push(delta(item));
        } else {
            // What is still queued may have put another object under this name.
            self.deliver(usize::MAX);
            let held = self.held(&head);
            let replaced = matches!(held, Held::Other(_));
            let key = held.into_key(&head);
            let version = head.version.clone();
            self.queue.push(match replaced {
                true => Delta::Deleted(Tombstone { key, uid: "".into(), version, last: None }),
                false => Delta::Bookmark(version),
            });
            self.cover("undecodable object watched");
        }
        Ok(head.version)
    }

    /// Applies a DELETED.
    pub(crate) fn deleted(&mut self, object: &WireObject) -> Result<ResourceVersion, Failure> {
        let head = ObjectHead::of(object.wire()).map_err(|error| malformed(&error))?;
        let key = self.held(&head).into_key(&head);
        let last = decode(object, &head).map(Arc::new);
        if last.is_none() {
            self.cover("undecodable object deleted");
        }
        let version = head.version.clone();
        self.queue.push(Delta::Deleted(Tombstone { key, uid: head.uid, version, last }));
        Ok(head.version)
    }

    fn held(&self, head: &ObjectHead<'_>) -> Held {
        match self.pipeline.store().find(&head.namespace, &head.name) {
            None => Held::Nothing,
            Some((key, record)) if record.is_state(&head.uid, &head.version) => Held::Same(key.clone()),
            Some((key, record)) if record.uid == head.uid => Held::Older(key.clone()),
            Some((key, _)) => Held::Other(key.clone()),
        }
    }
}

impl Held {
    fn into_key(self, head: &ObjectHead<'_>) -> ObjectKey {
        match self {
            Self::Nothing => head.key(),
            Self::Same(key) | Self::Older(key) | Self::Other(key) => key,
        }
    }
}

/// Decodes and transforms; `None` if either cannot be done.
fn decode(object: &WireObject, head: &ObjectHead<'_>) -> Option<Obj> {
    let mut scratch = Vec::new();
    let short = object.wire().without_managed_fields(head, &mut scratch);
    let raw: RawObject = serde_json::from_slice(short.bytes()).ok()?;
    let RawSpec { name, stamp, refuse } = raw.spec;
    (!refuse).then_some(Obj { name, stamp, transformed: true })
}
