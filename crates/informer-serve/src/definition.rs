//! How the read side names a resource; for custom ones, what their CustomResourceDefinition says
//! of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use informer::Resource;
use informer::discovery::ApiResourceInfo;
use k8s_protobuf::Kind;
use k8s_serve::table::Columns;
use kube::Client;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::forward::send;

/// How long a CustomResourceDefinition is believed.
const FRESH: Duration = Duration::from_secs(30);
/// How long a reader waits for it.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The largest that is read, in bytes.
const MAX_BYTES: usize = 8 << 20;

/// A resource as the read side knows it.
pub(crate) struct Definition {
    client: Client,
    plain: Arc<k8s_serve::Resource>,
    custom: Mutex<Option<Custom>>,
}

/// What a CustomResourceDefinition adds.
#[derive(Clone)]
struct Custom {
    resource: Arc<k8s_serve::Resource>,
    columns: Option<Columns>,
    at: Instant,
}

impl Definition {
    pub(crate) fn new(client: Client, resource: k8s_serve::Resource) -> Self {
        Self { client, plain: Arc::new(resource), custom: Mutex::default() }
    }

    /// The resource, with the fields that it may be selected by.
    pub(crate) async fn resource(&self) -> Arc<k8s_serve::Resource> {
        match self.plain.custom {
            true => self.custom().await.resource,
            false => Arc::clone(&self.plain),
        }
    }

    /// The columns of tables.
    pub(crate) async fn columns(&self) -> Columns {
        let custom = if self.plain.custom { self.custom().await.columns } else { None };
        custom.unwrap_or_else(|| Columns::of_kind(&self.plain.group, &self.plain.kind))
    }

    async fn custom(&self) -> Custom {
        let mut known = self.custom.lock().await;
        if let Some(fresh) = known.as_ref().filter(|it| it.at.elapsed() < FRESH) {
            return fresh.clone();
        }
        let fetched = tokio::time::timeout(TIMEOUT, self.fetch()).await.ok().flatten();
        let found = match (fetched, known.take()) {
            (Some(definition), _) => self.read(&definition),
            // What was known is better than nothing.
            (None, Some(known)) => Custom { at: Instant::now(), ..known },
            (None, None) => {
                Custom { resource: Arc::clone(&self.plain), columns: None, at: Instant::now() }
            }
        };
        known.insert(found).clone()
    }

    async fn fetch(&self) -> Option<Value> {
        let k8s_serve::Resource { plural, group, .. } = &*self.plain;
        let path =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
        let headers = HeaderMap::new();
        let sent = send(&self.client, Method::GET, &path, &headers, Bytes::new()).await.ok();
        let response = sent.filter(|it| it.status() == StatusCode::OK)?;
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await.ok()?.to_bytes();
        if k8s_protobuf::hides_levels(&body) {
            return None;
        }
        serde_json::from_slice(&body).ok()
    }

    fn read(&self, definition: &Value) -> Custom {
        let version = &self.plain.version;
        let versions = definition["spec"]["versions"].as_array();
        let own = versions.and_then(|all| all.iter().find(|it| it["name"] == **version));
        let fields = own.and_then(|own| own["selectableFields"].as_array());
        let fields = fields.into_iter().flatten().filter_map(|it| it["jsonPath"].as_str());
        let resource = k8s_serve::Resource {
            selectable_fields: fields.map(|it| it.trim_start_matches('.').to_owned()).collect(),
            ..(*self.plain).clone()
        };
        Custom {
            resource: Arc::new(resource),
            columns: Columns::of_definition(definition, version),
            at: Instant::now(),
        }
    }
}

/// A resource as discovery describes it.
pub(crate) fn described(info: &ApiResourceInfo) -> k8s_serve::Resource {
    k8s_serve::Resource {
        singular: info.singular.clone(),
        short_names: info.short_names.clone(),
        categories: info.categories.clone(),
        verbs: info.verbs.clone(),
        ..plain(&info.resource)
    }
}

/// A resource of which nothing else is known.
pub(crate) fn plain(resource: &Resource) -> k8s_serve::Resource {
    let Resource { group, version, plural, kind, namespaced } = resource;
    k8s_serve::Resource {
        namespaced: *namespaced,
        custom: Kind::of(&resource.api_version(), kind).is_none(),
        ..k8s_serve::Resource::new(group, version, plural, kind)
    }
}
