//! Discovery: which groups, versions and resources there are; one document each, or all in two.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use informer_core::wire::MediaType;
use serde_json::{Value, json};

use crate::accept::DiscoveryVersion;
use crate::answer::{Body, document_response, json_response};
use crate::json::Indenter;
use crate::resource::Resource;
use crate::route::DiscoveryPath;

const OPENAPI_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document at a path; `None` if there is none. With a version, it is that of all groups.
pub(crate) fn respond(
    resources: &[Arc<Resource>],
    path: &DiscoveryPath,
    media: MediaType,
    version: Option<DiscoveryVersion>,
    request: &HeaderMap,
) -> Option<Response<Body>> {
    let document = match path {
        DiscoveryPath::Core | DiscoveryPath::Groups if version.is_some() => {
            let core = *path == DiscoveryPath::Core;
            let version = match version {
                Some(DiscoveryVersion::V2Beta1) => "v2beta1",
                Some(DiscoveryVersion::V2) | None => "v2",
            };
            return Some(aggregated(resources, core, version, media, request));
        }
        DiscoveryPath::Core => {
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        }
        DiscoveryPath::Groups => json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups(resources).iter().filter(|g| !g.is_empty()).map(|g| group(resources, g)).collect::<Vec<_>>(),
        }),
        DiscoveryPath::Group(name) => {
            if name.is_empty() || !resources.iter().any(|r| r.group == *name) {
                return None;
            }
            let mut document = group(resources, name);
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            document
        }
        DiscoveryPath::Version { group, version } => {
            let own: Vec<&Arc<Resource>> =
                resources.iter().filter(|r| r.group == *group && r.version == *version).collect();
            let first = own.first()?;
            json!({
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": first.api_version(),
                "resources": own.iter().flat_map(|r| api_resources(r)).collect::<Vec<_>>(),
            })
        }
    };
    let mut response = document_response(200, &document, media);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    Some(response)
}

/// The document of all groups, or of the core group, with an `ETag` for clients that have it
/// already.
fn aggregated(
    resources: &[Arc<Resource>],
    core: bool,
    version: &str,
    media: MediaType,
    request: &HeaderMap,
) -> Response<Body> {
    let document = aggregate(resources, core, version);
    let mut hasher = DefaultHasher::new();
    document.to_string().hash(&mut hasher);
    let tag = HeaderValue::from_str(&format!("\"{:016X}\"", hasher.finish()));
    let mut response = document_response(200, &document, media);
    if let Ok(tag) = &tag
        && request.get(header::IF_NONE_MATCH) == Some(tag)
    {
        response = Response::new(Body::full(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let content_type =
        format!("{};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList", media.as_str());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if let (Ok(tag), Ok(content_type)) = (tag, HeaderValue::from_str(&content_type)) {
        headers.insert(header::ETAG, tag);
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    response
}

/// `/version`, which is always indented.
pub(crate) fn version(git_version: &str) -> Response<Body> {
    let mut numbers = git_version.trim_start_matches('v').split('.');
    let mut number = || numbers.next().unwrap_or("0").to_owned();
    let (major, minor) = (number(), number());
    let document = json!({
        "major": major,
        "minor": minor,
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    });
    let mut body = Vec::new();
    Indenter::default().push(document.to_string().as_bytes(), &mut body);
    json_response(200, String::from_utf8(body).unwrap_or_default())
}

/// `/openapi/v2`, without a single schema: clients that validate what they send
/// (`kubectl create -f`) then find nothing to validate against, where a missing document would stop
/// them.
pub(crate) fn no_schemas(headers: &HeaderMap) -> Response<Body> {
    let accept =
        headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accept.contains("proto-openapi") {
        let document = json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": {}});
        return json_response(200, document.to_string());
    }
    // Field 1, a string: the version of the format.
    let mut response = Response::new(Body::full(Bytes::from_static(b"\x0a\x032.0")));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(OPENAPI_PROTOBUF));
    response
}

/// The groups, each once, in order of appearance.
fn groups(resources: &[Arc<Resource>]) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for resource in resources {
        if !groups.contains(&resource.group.as_str()) {
            groups.push(&resource.group);
        }
    }
    groups
}

/// The versions of a group, the preferred one first.
fn versions<'a>(resources: &'a [Arc<Resource>], group: &str) -> Vec<&'a str> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in resources.iter().filter(|r| r.group == group) {
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    versions
}

fn group(resources: &[Arc<Resource>], name: &str) -> Value {
    let versions: Vec<Value> = versions(resources, name)
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

/// A resource and its status, as `APIResourceList` lists them.
fn api_resources(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        main["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        main["categories"] = resource.categories.clone().into();
    }
    let mut all = vec![main];
    if resource.has_status {
        all.push(json!({
            "name": format!("{}/status", resource.plural),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": status_verbs(resource),
        }));
    }
    all
}

fn status_verbs(resource: &Resource) -> Vec<&str> {
    ["get", "patch", "update"]
        .into_iter()
        .filter(|verb| resource.verbs.iter().any(|own| own == verb))
        .collect()
}

fn aggregate(resources: &[Arc<Resource>], core: bool, version: &str) -> Value {
    let items: Vec<Value> = groups(resources)
        .into_iter()
        .filter(|group| group.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = versions(resources, group)
                .into_iter()
                .map(|version| {
                    let own: Vec<Value> = resources
                        .iter()
                        .filter(|r| r.group == group && r.version == version)
                        .map(|r| aggregated_resource(r))
                        .collect();
                    json!({"version": version, "freshness": "Current", "resources": own})
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {}, "items": items})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let mut document = json!({
        "resource": resource.plural,
        "responseKind": kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        document["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        document["categories"] = resource.categories.clone().into();
    }
    if resource.has_status {
        document["subresources"] = json!([{"subresource": "status", "responseKind": kind, "verbs": status_verbs(resource)}]);
    }
    document
}
