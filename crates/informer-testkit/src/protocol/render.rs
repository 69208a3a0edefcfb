//! Objects as a server writes them.

use super::{Object, Representation};
use crate::resource::Resource;

/// The start of an object: brace, `kind` and `apiVersion`, comma. Custom resources have their fields in
/// alphabetical order, the Go types have `kind` first.
pub(crate) fn type_prefix(resource: &Resource) -> String {
    prefix(&resource.api_version(), &resource.kind, resource.custom)
}

pub(crate) fn list_prefix(resource: &Resource) -> String {
    prefix(&resource.api_version(), &format!("{}List", resource.kind), false)
}

fn prefix(api_version: &str, kind: &str, alphabetical: bool) -> String {
    if alphabetical {
        format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",")
    } else {
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",")
    }
}

const METADATA_PREFIX: &str =
    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";

/// Appends an object with its `apiVersion` and `kind`.
pub(crate) fn object(
    out: &mut Vec<u8>,
    resource: &Resource,
    object: &Object,
    representation: Representation,
) {
    match representation {
        Representation::Full => {
            out.extend_from_slice(type_prefix(resource).as_bytes());
            out.extend_from_slice(&object.json()[1..]);
        }
        Representation::Metadata => {
            out.extend_from_slice(METADATA_PREFIX.as_bytes());
            out.extend_from_slice(object.metadata_json());
            out.push(b'}');
        }
    }
}

/// Appends an object as an item of a list: built-in kinds leave out `apiVersion` and `kind`.
pub(crate) fn item(out: &mut Vec<u8>, resource: &Resource, item: &Object, representation: Representation) {
    if resource.custom || representation == Representation::Metadata {
        object(out, resource, item, representation);
    } else {
        out.extend_from_slice(item.json());
    }
}

/// Appends one line of a watch.
pub(crate) fn event(out: &mut Vec<u8>, kind: &str, write_object: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
    write_object(out);
    out.extend_from_slice(b"}\n");
}

/// Appends the object of a bookmark: a version, and for the Go types what they write even when empty.
pub(crate) fn bookmark(
    out: &mut Vec<u8>,
    resource: &Resource,
    version: u64,
    ends_initial_events: bool,
    representation: Representation,
) {
    let annotations =
        if ends_initial_events { ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" } else { "" };
    let metadata = format!("{{\"resourceVersion\":\"{version}\"{annotations}}}");
    if representation == Representation::Metadata {
        out.extend_from_slice(format!("{METADATA_PREFIX}{metadata}}}").as_bytes());
        return;
    }
    let rest = match resource.name().as_str() {
        "pods" => r#","spec":{"containers":null},"status":{}"#,
        "deployments.apps" => {
            r#","spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}"#
        }
        "nodes" => {
            r#","spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}"#
        }
        "namespaces" => r#","spec":{},"status":{}"#,
        "services" => r#","spec":{},"status":{"loadBalancer":{}}"#,
        _ => "",
    };
    out.extend_from_slice(format!("{}\"metadata\":{metadata}{rest}}}", type_prefix(resource)).as_bytes());
}
