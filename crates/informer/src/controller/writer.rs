//! Writes of a reconcile, each of them remembered.

mod send;

use std::fmt;
use std::sync::{Arc, OnceLock};

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::client::Body;
use kube::core::request;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::WriteError;
use super::gate::Gate;
use super::own_writes::OwnWrites;
use crate::{ObjectKey, Resource, TypedResource};

/// Writes of the reconciles of one key.
///
/// Each write is remembered: the next reconcile of the key starts once every informer of the
/// controller on the written resource shows it. A write whose answer is lost is looked up before
/// that. Dry runs are not remembered.
///
/// Objects of namespaced kinds that name no namespace are those of the reconciled object's
/// namespace.
///
/// Requests are sent once, whatever retries the client was built with: a repeated write could be
/// applied twice.
#[derive(Clone)]
pub struct Writer {
    own: Arc<OwnWrites>,
    key: ObjectKey,
    gate: Gate,
    client: Arc<OnceLock<Client>>,
}

impl Writer {
    pub(super) fn new(own: Arc<OwnWrites>, key: ObjectKey, gate: Gate) -> Self {
        Self { own, key, gate, client: Arc::default() }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// [`WriteError`]; [`is_already_exists`](WriteError::is_already_exists) if the name is taken.
    ///
    /// # Cancel safety
    /// If the future is dropped the request goes on in a task, until its answer tells the outcome or
    /// the controller ends; the next reconcile waits for that. This holds for all writes.
    pub async fn create<K>(&self, object: &K) -> Result<K, WriteError>
    where
        K: TypedResource + Serialize + DeserializeOwned,
    {
        self.create_with(object, &PostParams::default()).await
    }

    /// [`create`](Self::create), with parameters.
    ///
    /// # Errors
    /// As `create`.
    ///
    /// # Cancel safety
    /// As for `create`.
    pub async fn create_with<K>(&self, object: &K, params: &PostParams) -> Result<K, WriteError>
    where
        K: TypedResource + Serialize + DeserializeOwned,
    {
        let request = match (self.collection(object), json(object)) {
            (Ok(collection), Ok(body)) => collection.create(params, body),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        self.object(request, "create", object).await
    }

    /// Replaces an object (PUT). It should carry the version that it was read at: then the server
    /// refuses to overwrite what was changed since.
    ///
    /// # Errors
    /// [`WriteError`]; [`is_conflict`](WriteError::is_conflict) if the object has another version.
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn replace<K>(&self, object: &K) -> Result<K, WriteError>
    where
        K: TypedResource + Serialize + DeserializeOwned,
    {
        self.replace_with(object, &PostParams::default()).await
    }

    /// [`replace`](Self::replace), with parameters.
    ///
    /// # Errors
    /// As `replace`.
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn replace_with<K>(&self, object: &K, params: &PostParams) -> Result<K, WriteError>
    where
        K: TypedResource + Serialize + DeserializeOwned,
    {
        let request = match (self.collection(object), json(object)) {
            (Ok(collection), Ok(body)) => collection.replace(name(object), params, body),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        self.object(request, "update", object).await
    }

    /// Replaces the status of an object (PUT of the subresource `status`).
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn replace_status<K>(&self, object: &K) -> Result<K, WriteError>
    where
        K: TypedResource + Serialize + DeserializeOwned,
    {
        self.replace_subresource("status", object, object, &PostParams::default()).await
    }

    /// Replaces a subresource of an object, such as its `scale`; what it answers with may be of
    /// another kind.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn replace_subresource<K, S>(
        &self,
        subresource: &str,
        object: &K,
        data: &S,
        params: &PostParams,
    ) -> Result<S, WriteError>
    where
        K: TypedResource,
        S: Serialize + DeserializeOwned,
    {
        let request = match (self.collection(object), json(data)) {
            (Ok(collection), Ok(body)) => {
                collection.replace_subresource(subresource, name(object), params, body)
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        self.object(request, "update", object).await
    }

    /// Patches the object with the name of `object`, of which nothing else is read.
    ///
    /// # Errors
    /// [`WriteError`].
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn patch<K, P>(
        &self,
        object: &K,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, WriteError>
    where
        K: TypedResource + DeserializeOwned,
        P: Serialize,
    {
        let collection = self.collection(object);
        let request = collection.and_then(|it| it.patch(name(object), params, patch));
        self.object(request, "patch", object).await
    }

    /// Patches the status of the object with the name of `object`.
    ///
    /// # Errors
    /// [`WriteError`].
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn patch_status<K, P>(
        &self,
        object: &K,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, WriteError>
    where
        K: TypedResource + DeserializeOwned,
        P: Serialize,
    {
        self.patch_subresource("status", object, params, patch).await
    }

    /// Patches a subresource of the object with the name of `object`, such as its `scale`; what it
    /// answers with, `S`, may be of another kind.
    ///
    /// # Errors
    /// [`WriteError`].
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn patch_subresource<K, P, S>(
        &self,
        subresource: &str,
        object: &K,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<S, WriteError>
    where
        K: TypedResource,
        P: Serialize,
        S: DeserializeOwned,
    {
        let collection = self.collection(object);
        let request = collection
            .and_then(|it| it.patch_subresource(subresource, name(object), params, patch));
        self.object(request, "patch", object).await
    }

    /// Applies an object (server-side apply) as `manager`, which takes over fields of others.
    ///
    /// # Errors
    /// [`WriteError`].
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn apply<K>(&self, object: &K, manager: &str) -> Result<K, WriteError>
    where
        K: TypedResource + Serialize + DeserializeOwned,
    {
        self.patch(object, &PatchParams::apply(manager).force(), &Patch::Apply(object)).await
    }

    /// Deletes this very object: if it has a UID, the server refuses to delete another one that has
    /// taken its name.
    ///
    /// # Errors
    /// [`WriteError`]; [`is_not_found`](WriteError::is_not_found) if it is gone,
    /// [`is_conflict`](WriteError::is_conflict) if another object has its name.
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn delete<K: TypedResource>(&self, object: &K) -> Result<(), WriteError> {
        self.delete_with(object, &DeleteParams::default()).await
    }

    /// [`delete`](Self::delete), with parameters. Preconditions given there replace that of the
    /// UID.
    ///
    /// # Errors
    /// As `delete`.
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn delete_with<K: TypedResource>(
        &self,
        object: &K,
        params: &DeleteParams,
    ) -> Result<(), WriteError> {
        let params = of_this_very(object, params);
        let request = self.collection(object).and_then(|it| it.delete(name(object), &params));
        self.send(request, "delete", object).await.map(drop)
    }

    /// Evicts this very Pod: deletes it if its disruption budgets allow that; else it is
    /// [refused](WriteError::Refused) with 429.
    ///
    /// # Errors
    /// [`WriteError`].
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn evict(&self, pod: &Pod, params: &DeleteParams) -> Result<(), WriteError> {
        let eviction = serde_json::json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "name": name(pod) },
            "deleteOptions": of_this_very(pod, params),
        });
        let request = match (self.collection(pod), json(&eviction)) {
            (Ok(collection), Ok(body)) => {
                let params = PostParams::default();
                collection.create_subresource("eviction", name(pod), &params, body)
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        self.send(request, "evict", pod).await.map(drop)
    }

    /// A client whose writes are remembered and refused like those of the other methods; reads go
    /// through. For dynamic types, and for what takes a client or an `Api`, such as kube-runtime's
    /// `finalizer` and `Recorder`. Where a write was not sent, [`WriteError::of_client`] says why.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn client(&self) -> Client {
        let client = self.client.get_or_init(|| {
            // Without the client, which would own itself.
            let writer = Self { client: Arc::default(), ..self.clone() };
            let serve = move |request: Request<Body>| {
                let writer = writer.clone();
                async move { writer.serve(request).await }
            };
            Client::new(tower::service_fn(serve), self.own.client().default_namespace())
        });
        client.clone()
    }

    /// Patches the object of the writer's key, whatever its representation (a JSON merge patch).
    pub(super) async fn patch_key(
        &self,
        resource: &Resource,
        patch: &serde_json::Value,
    ) -> Result<(), WriteError> {
        let namespace = Some(self.key.namespace()).filter(|it| !it.is_empty());
        let collection = request::Request::new(resource.path(namespace));
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let request = collection.patch(self.key.name(), &params, &patch);
        let named = || format!("patch {resource} {}", self.key);
        self.send_named(request, named).await.map(drop)
    }
}

fn name<K: kube::Resource>(object: &K) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}

/// With the UID as precondition, unless there are others.
fn of_this_very<K: kube::Resource>(object: &K, params: &DeleteParams) -> DeleteParams {
    let mut params = params.clone();
    if params.preconditions.is_none() {
        let uid = object.meta().uid.clone();
        params.preconditions =
            uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None });
    }
    params
}

fn json(object: &impl Serialize) -> Result<Vec<u8>, request::Error> {
    serde_json::to_vec(object).map_err(request::Error::SerializeBody)
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("key", &self.key).finish_non_exhaustive()
    }
}
