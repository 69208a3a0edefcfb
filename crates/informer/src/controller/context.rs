//! What a reconcile is given besides the object.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use informer_core::{ObjectKey, Uid};

use super::error::WriteError;
use super::writer::Writer;
use crate::{Error, HasMetadata, Resource, SharedInformer, indexes};

/// What a reconcile is given besides the object; its methods that write are those of [`Writer`].
/// Cloning is cheap.
pub struct Context<S> {
    key: ObjectKey,
    uid: Uid,
    state: Arc<S>,
    writer: Writer,
    /// That of the object to reconcile.
    resource: Resource,
}

impl<S> Context<S> {
    pub(super) fn new(
        key: ObjectKey,
        uid: Uid,
        state: Arc<S>,
        writer: Writer,
        resource: Resource,
    ) -> Self {
        Self { key, uid, state, writer, resource }
    }

    /// The namespace and name of the object to reconcile.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The UID of the object to reconcile.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// What was given to [`run`](crate::Controller::run).
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The objects of an informer whose controller is the object to reconcile, by its UID, in key
    /// order. Objects that are being deleted are among them.
    ///
    /// # Errors
    /// [`IndexError::Missing`](crate::store::IndexError::Missing) if the controller does not
    /// [own](crate::Controller::owns) objects of this informer.
    pub fn owned<T: HasMetadata + Send + Sync + 'static>(
        &self,
        informer: &SharedInformer<T>,
    ) -> Result<Vec<Arc<T>>, Error> {
        let (index, uid) = (indexes::by_controller_uid(), self.uid.to_string());
        let snapshot = informer.shared.reader.snapshot();
        let owned = snapshot.by_index(&index, &uid)?;
        Ok(owned.map(|entry| Arc::clone(entry.object())).collect())
    }

    /// Patches the object to reconcile, whatever its representation (a JSON merge patch).
    pub(super) async fn patch_reconciled(
        &self,
        patch: &serde_json::Value,
    ) -> Result<(), WriteError> {
        self.writer.patch_key(&self.resource, patch).await
    }
}

/// The writes.
impl<S> Deref for Context<S> {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.writer
    }
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            uid: self.uid.clone(),
            state: Arc::clone(&self.state),
            writer: self.writer.clone(),
            resource: self.resource.clone(),
        }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("key", &self.key).finish_non_exhaustive()
    }
}
