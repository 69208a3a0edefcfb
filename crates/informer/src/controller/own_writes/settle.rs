//! Reads that settle writes: those whose outcome is unknown, and those that met a conflict.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use http::{Request, StatusCode};
use informer_core::own_writes::{Found, Selection, Unsettled, Write};
use kube::client::Body;
use tokio::time::Instant;

use super::{Memory, OwnWrites, answered};
use crate::ObjectKey;
use crate::controller::error::WriteError;
use crate::controller::exchange::{Conflict, ConflictReason, GroupResource, Returned, send};
use crate::controller::followed::{Followed, includes};

/// An object that a write conflicts with, and that no informer of its resource will ever show.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "{object} exists already, and is excluded by the namespace or the selectors of every informer of its resource ({}): a reconcile cannot see it",
    informers.join("; ")
)]
struct Excluded {
    object: String,
    informers: Vec<String>,
}

/// What a read by name has found.
enum ReadObject {
    Present(Returned),
    Absent,
}

impl ReadObject {
    fn found(&self) -> Found {
        match self {
            Self::Present(returned) => returned.written().map_or(Found::Absent, Found::Object),
            Self::Absent => Found::Absent,
        }
    }
}

impl OwnWrites {
    /// The conflict that the last write of `key` met, if that was answered with 409, and how many
    /// reconciles of it in a row have ended with one.
    pub(crate) fn take_conflict(&self, key: &ObjectKey) -> Option<(Conflict, u32)> {
        let mut memory = self.memory();
        let conflicts = memory.conflicts.get_mut(key)?;
        let Some(conflict) = conflicts.last.take() else {
            memory.conflicts.remove(key);
            return None;
        };
        conflicts.in_a_row += 1;
        Some((conflict, conflicts.in_a_row))
    }

    /// A reconcile of `key` has succeeded, or its object is gone.
    pub(crate) fn forget_conflicts(&self, key: &ObjectKey) {
        self.memory().conflicts.remove(key);
    }

    /// Reads the object that a write of `key` conflicted with, and waits until the informers of its
    /// resource show it as it was read.
    ///
    /// # Errors
    /// If the object cannot be read, if the scopes of all informers of its resource exclude it, so
    /// that a further attempt would conflict again, and as [`caught_up`](Self::caught_up).
    ///
    /// # Cancel safety
    /// Dropping the future forgets nothing but the conflict.
    pub(crate) async fn settle(
        &self,
        key: &ObjectKey,
        conflict: Conflict,
        deadline: Duration,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let begun = Instant::now();
        let Conflict { write, reason } = conflict;
        let Some(name) = &write.name else { return Ok(()) };
        let read = self.read(&write.resource, &write.namespace, name);
        let Some(read) = tokio::time::timeout(deadline, read).await?? else { return Ok(()) };
        self.expect(key, write, reason, &read)?;
        Ok(self.caught_up(key, deadline.saturating_sub(begun.elapsed())).await?)
    }

    /// Has `key` wait for what was found after a conflict.
    fn expect(
        &self,
        key: &ObjectKey,
        write: Write<GroupResource>,
        reason: ConflictReason,
        read: &ReadObject,
    ) -> Result<(), Excluded> {
        let (mut memory, selections) = self.select(&write.resource, read);
        let (writes, stores) = memory.parts();
        if let (ReadObject::Present(_), ConflictReason::AlreadyExists, Some(object)) =
            (read, reason, write.object())
        {
            let may_show = |(store, selection): (&Arc<dyn Followed>, &Selection)| {
                write.resource.is_of(store.resource())
                    && (store.held(&object).is_some()
                        || *selection != Selection::Excluded
                            && includes(&**store, object.namespace()))
            };
            let informers: Vec<String> =
                stores.of(&write.resource).map(|it| it.missing().informer).collect();
            let is_shown = stores.0.iter().zip(&selections).any(may_show);
            if !informers.is_empty() && !is_shown {
                return Err(Excluded { object: format!("{} {object}", write.resource), informers });
            }
        }
        if let (ReadObject::Absent, ConflictReason::AlreadyExists, Some(object)) =
            (read, reason, write.object())
            && stores.of(&write.resource).all(|store| store.held(&object).is_none())
        {
            // It was another's, and is gone: the next create is free to succeed.
            return Ok(());
        }
        let ticket = writes.begin(key.clone(), write, stores);
        writes.settled(ticket, read.found(), |it| selections[it.index()], stores);
        Ok(())
    }

    /// Reads the objects of writes whose outcome is unknown. Says how many of them that has not
    /// settled.
    pub(super) async fn settle_by_reads(
        &self,
        unsettled: Vec<Unsettled<GroupResource>>,
        deadline: Duration,
    ) -> usize {
        let reads = unsettled.into_iter().map(|it| self.settle_by_read(it, deadline));
        join_all(reads).await.into_iter().filter(|is_settled| !is_settled).count()
    }

    /// Whether the read has settled the write.
    async fn settle_by_read(
        &self,
        unsettled: Unsettled<GroupResource>,
        deadline: Duration,
    ) -> bool {
        let Unsettled { ticket, resource, namespace, name } = unsettled;
        let read = self.read(&resource, &namespace, &name);
        let Ok(Ok(Some(read))) = tokio::time::timeout(deadline, read).await else { return false };
        let (mut memory, selections) = self.select(&resource, &read);
        let (writes, stores) = memory.parts();
        writes.settled(ticket, read.found(), |it| selections[it.index()], stores);
        true
    }

    /// Reads an object by its name at the newest version; `None` if no informer tells its path.
    async fn read(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ReadObject>, WriteError> {
        let path = {
            let memory = self.memory();
            let mut informers = memory.stores.of(resource);
            let Some(informer) = informers.next() else { return Ok(None) };
            informer.resource().object_path(namespace, name)
        };
        self.reads.fetch_add(1, Ordering::Relaxed);
        let operation = format!("read {resource} {namespace}/{name}");
        let request = Request::get(path).body(Body::empty()).map_err(|error| {
            WriteError::Invalid { operation: operation.clone(), problem: error.to_string() }
        })?;
        let response = send(&self.client, &operation, request).await?;
        let (code, body) = (response.status(), response.into_body());
        match code {
            StatusCode::NOT_FOUND => return Ok(Some(ReadObject::Absent)),
            code if code.is_success() => {}
            code => return Err(answered(operation, code, &body)),
        }
        let returned = Returned::read(body, false);
        match returned.written() {
            Some(_) => Ok(Some(ReadObject::Present(returned))),
            None => {
                let cause = "it has no UID or no version".to_owned();
                Err(WriteError::Undecodable { operation, cause })
            }
        }
    }

    /// The memory, and which informers select what was read.
    fn select(
        &self,
        resource: &GroupResource,
        read: &ReadObject,
    ) -> (MutexGuard<'_, Memory>, Vec<Selection>) {
        let memory = self.memory();
        let selections = match read {
            ReadObject::Present(returned) => memory.stores.select(resource, returned),
            ReadObject::Absent => vec![Selection::Unknown; memory.stores.0.len()],
        };
        (memory, selections)
    }
}
