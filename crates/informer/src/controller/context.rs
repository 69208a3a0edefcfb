//! What a reconcile is given besides the object.

use std::fmt;
use std::sync::Arc;

use informer_core::{ObjectKey, Uid};
use kube::Client;

use crate::{Error, HasMetadata, SharedInformer, indexes};

/// What a reconcile is given besides the object. Cloning is cheap.
pub struct Context<S> {
    key: ObjectKey,
    uid: Uid,
    state: Arc<S>,
    client: Client,
}

impl<S> Context<S> {
    pub(super) fn new(key: ObjectKey, uid: Uid, state: Arc<S>, client: Client) -> Self {
        Self { key, uid, state, client }
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

    /// The client that was given to [`Controller::new`](crate::Controller::new), for reads.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
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
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            uid: self.uid.clone(),
            state: Arc::clone(&self.state),
            client: self.client.clone(),
        }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("key", &self.key).finish_non_exhaustive()
    }
}
