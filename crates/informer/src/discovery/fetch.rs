//! Asking the server.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use http::header::ACCEPT;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::documents::{ResourceList, Root, group_version as joined};
use super::{ApiResourceInfo, Discovery, DiscoveryError, FailedGroup};
use crate::error::{connection_error, quoted_answer};
use crate::resource::group_version_path;
use crate::source::{retry_after, unretried_body};

/// Aggregated if the server has it, in the version of 1.30 and later or of 1.27 and later.
const ACCEPT_AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
const ACCEPT_PLAIN: &str = "application/json";
/// The largest document that is read. A cluster with 1,000 CRDs has about 1 MB.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;
/// How many of the older documents are asked for at a time.
const CONCURRENT_REQUESTS: usize = 8;

/// What one of the two roots told.
#[derive(Default)]
struct Part {
    resources: Vec<ApiResourceInfo>,
    failed: Vec<FailedGroup>,
}

pub(super) async fn all(client: &Client) -> Result<Discovery, DiscoveryError> {
    let (core, groups) = future::join(part(client, "/api"), part(client, "/apis")).await;
    let (mut core, mut groups) = match (core, groups) {
        (Err(error), Err(_)) => return Err(error),
        (core, groups) => {
            (or_failed(core, "v1"), or_failed(groups, "all groups but the core group"))
        }
    };
    core.resources.append(&mut groups.resources);
    core.failed.append(&mut groups.failed);
    Ok(Discovery::new(core.resources, core.failed))
}

pub(super) async fn group_version(
    client: &Client,
    group: &str,
    version: &str,
) -> Result<Discovery, DiscoveryError> {
    group_version_with(client, group, version, Body::empty()).await
}

/// Without the client's own retries, for somebody who asks again and again and spaces that himself
/// (G28).
pub(super) async fn group_version_once(
    client: &Client,
    group: &str,
    version: &str,
) -> Result<Discovery, DiscoveryError> {
    let body = unretried_body(Bytes::new()).await;
    let body =
        body.map_err(|error| DiscoveryError::Unreachable { message: connection_error(&error) })?;
    group_version_with(client, group, version, body).await
}

async fn group_version_with(
    client: &Client,
    group: &str,
    version: &str,
    body: Body,
) -> Result<Discovery, DiscoveryError> {
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let path = format!("{root}/{}", group_version_path(group, version));
    let list: ResourceList = document(client, &path, ACCEPT_PLAIN, body).await?;
    Ok(Discovery::new(list.into_infos(group, version), Vec::new()))
}

fn or_failed(part: Result<Part, DiscoveryError>, what: &str) -> Part {
    part.unwrap_or_else(|error| Part {
        resources: Vec::new(),
        failed: vec![FailedGroup { group_version: what.to_owned(), cause: error.to_string() }],
    })
}

async fn part(client: &Client, path: &str) -> Result<Part, DiscoveryError> {
    match document(client, path, ACCEPT_AGGREGATED, Body::empty()).await? {
        Root::Aggregated(aggregated) => {
            let (resources, failed) = aggregated.into_parts();
            Ok(Part { resources, failed })
        }
        Root::CoreVersions(core) => {
            let versions = core.versions.into_iter().map(|version| (String::new(), version));
            Ok(one_by_one(client, versions).await)
        }
        Root::Groups(groups) => {
            let versions = groups.groups.into_iter().flat_map(|group| {
                let name = group.name.clone();
                group.into_versions().into_iter().map(move |version| (name.clone(), version))
            });
            Ok(one_by_one(client, versions).await)
        }
    }
}

/// Reads the older documents, some at a time, and keeps their order.
async fn one_by_one(client: &Client, versions: impl Iterator<Item = (String, String)>) -> Part {
    let requests = versions.map(|(group, version)| async move {
        let told = group_version(client, &group, &version).await;
        (joined(&group, &version), told)
    });
    let mut answers = stream::iter(requests).buffered(CONCURRENT_REQUESTS);
    let mut part = Part::default();
    while let Some((name, told)) = answers.next().await {
        match told {
            Ok(mut told) => part.resources.append(&mut told.resources),
            Err(error) => {
                part.failed.push(FailedGroup { group_version: name, cause: error.to_string() });
            }
        }
    }
    part
}

async fn document<D: DeserializeOwned>(
    client: &Client,
    path: &str,
    accept: &str,
    body: Body,
) -> Result<D, DiscoveryError> {
    let unreachable = |message: String| DiscoveryError::Unreachable { message };
    let request = Request::get(path)
        .header(ACCEPT, accept)
        .body(body)
        .map_err(|_| DiscoveryError::NotFound { path: path.to_owned() })?;
    let response =
        client.send(request).await.map_err(|error| unreachable(connection_error(&error)))?;
    let status = response.status();
    let retry_after = retry_after(response.headers(), SystemTime::now());
    let body = Limited::new(response.into_body(), MAX_DOCUMENT_BYTES);
    let body = body.collect().await.map_err(|error| unreachable(error.to_string()))?.to_bytes();
    if !status.is_success() {
        return Err(refused(path, status, retry_after, &body));
    }
    serde_json::from_slice(&body).map_err(|error| DiscoveryError::Malformed {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

/// What a status other than success means; the body is a `Status` object, if it is the API server
/// that answers.
fn refused(
    path: &str,
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
) -> DiscoveryError {
    #[derive(Deserialize)]
    struct Told {
        message: String,
    }
    let message = match serde_json::from_slice(body) {
        Ok(Told { message }) => message,
        Err(_) => quoted_answer(status, body),
    };
    let path = path.to_owned();
    match status {
        StatusCode::UNAUTHORIZED => DiscoveryError::Unauthorized { message },
        StatusCode::FORBIDDEN => DiscoveryError::Forbidden { message },
        StatusCode::NOT_FOUND => DiscoveryError::NotFound { path },
        _ => DiscoveryError::Refused { path, code: status.as_u16(), message, retry_after },
    }
}
