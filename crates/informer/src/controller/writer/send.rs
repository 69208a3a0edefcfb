//! From the methods of a writer to requests.

use bytes::Bytes;
use http::{Request, Response};
use kube::client::Body;
use kube::core::request;
use serde::de::DeserializeOwned;

use super::{Writer, name};
use crate::controller::error::WriteError;
use crate::controller::exchange::Target;
use crate::controller::own_writes::answered;
use crate::{Resource, TypedResource};

impl Writer {
    pub(super) async fn serve(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
        let (parts, body) = request.into_parts();
        if parts.method.is_safe() {
            return Ok(self.own.client().send(Request::from_parts(parts, body)).await?);
        }
        let body = body.collect_bytes().await?;
        let Some(target) = Target::of(&parts, &body) else {
            self.gate.check().map_err(WriteError::from)?;
            let request = Request::from_parts(parts, Body::from(body));
            return Ok(self.own.client().send(request).await?);
        };
        let request = Request::from_parts(parts, body);
        let response = self.own.exchange(&self.key, &self.gate, &target, request).await?;
        Ok(response.map(Body::from))
    }

    /// Sends a write and decodes the object in its answer.
    pub(super) async fn object<K: TypedResource, S: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, request::Error>,
        verb: &str,
        object: &K,
    ) -> Result<S, WriteError> {
        let (operation, body) = self.send(request, verb, object).await?;
        if k8s_protobuf::hides_levels(&body) {
            let cause = "JSON in the texts of JSON is nested too deep".to_owned();
            return Err(WriteError::Undecodable { operation, cause });
        }
        serde_json::from_slice(&body).map_err(|error| {
            // Not the error's own text, which may quote the value (G34).
            let (line, column) = (error.line(), error.column());
            let cause = format!("it is not what was expected at line {line}, column {column}");
            WriteError::Undecodable { operation, cause }
        })
    }

    /// Sends a write; returns its name and the answer.
    pub(super) async fn send<K: TypedResource>(
        &self,
        request: Result<Request<Vec<u8>>, request::Error>,
        verb: &str,
        object: &K,
    ) -> Result<(String, Bytes), WriteError> {
        let named = || {
            let namespace = object.meta().namespace.as_deref().unwrap_or_default();
            format!("{verb} {} {namespace}/{}", Resource::of::<K>(), name(object))
        };
        self.send_named(request, named).await
    }

    /// Sends a write that is called so should it not even be a request.
    pub(super) async fn send_named(
        &self,
        request: Result<Request<Vec<u8>>, request::Error>,
        named: impl Fn() -> String,
    ) -> Result<(String, Bytes), WriteError> {
        let request = request.map_err(|error| WriteError::Invalid {
            operation: named(),
            problem: error.to_string(),
        })?;
        let (parts, body) = request.map(Bytes::from).into_parts();
        let Some(target) = Target::of(&parts, &body) else {
            let problem = format!("{} is no path of a resource", parts.uri.path());
            return Err(WriteError::Invalid { operation: named(), problem });
        };
        let request = Request::from_parts(parts, body);
        let response = self.own.exchange(&self.key, &self.gate, &target, request).await?;
        let (code, body) = (response.status(), response.into_body());
        match code.is_success() {
            true => Ok((target.to_string(), body)),
            false => Err(answered(target.to_string(), code, &body)),
        }
    }

    /// Requests about objects of the kind and namespace of `object`.
    pub(super) fn collection<K: TypedResource>(
        &self,
        object: &K,
    ) -> Result<request::Request, request::Error> {
        let resource = Resource::of::<K>();
        let own = object.meta().namespace.as_deref().filter(|it| !it.is_empty());
        let namespace = own.or_else(|| Some(self.key.namespace()).filter(|it| !it.is_empty()));
        if resource.namespaced && namespace.is_none() {
            let problem = "an object of a namespaced kind needs a namespace".to_owned();
            return Err(request::Error::Validation(problem));
        }
        Ok(request::Request::new(resource.path(namespace)))
    }
}
