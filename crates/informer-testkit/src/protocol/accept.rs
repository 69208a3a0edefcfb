//! Which of the forms that a client accepts it gets.

use http::{HeaderMap, header};

use crate::status::Status;

/// The form in which objects are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// The whole object.
    Full,
    /// `PartialObjectMetadata`: the metadata alone.
    Metadata,
}

/// What an `Accept` header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Negotiated {
    /// Plain JSON.
    Json,
    /// JSON as `PartialObjectMetadata`.
    Metadata,
    /// JSON as `PartialObjectMetadataList`.
    MetadataList,
    /// JSON as `APIGroupDiscoveryList`.
    AggregatedDiscovery,
}

impl Negotiated {
    /// The form of a single object, and of those in a watch.
    pub(crate) fn object(self) -> Result<Representation, Status> {
        match self {
            Self::Json => Ok(Representation::Full),
            Self::Metadata => Ok(Representation::Metadata),
            Self::MetadataList | Self::AggregatedDiscovery => Err(not_acceptable()),
        }
    }

    /// The form of a list.
    pub(crate) fn list(self) -> Result<Representation, Status> {
        match self {
            Self::Json => Ok(Representation::Full),
            Self::MetadataList => Ok(Representation::Metadata),
            Self::Metadata | Self::AggregatedDiscovery => Err(not_acceptable()),
        }
    }
}

/// Takes the first accepted form that is served. `Table` is not: clients that ask for it, `kubectl get`
/// for one, accept plain JSON as well.
pub(crate) fn negotiate(headers: &HeaderMap) -> Result<Negotiated, Status> {
    let mut accepted: Vec<(f32, Negotiated)> = Vec::new();
    let mut asked = false;
    for value in headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for entry in value.split(',') {
            asked |= !entry.trim().is_empty();
            accepted.extend(read_entry(entry));
        }
    }
    if !asked {
        return Ok(Negotiated::Json);
    }
    // A stable sort keeps the client's order among equal weights.
    accepted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    accepted.first().map(|(_, form)| *form).ok_or_else(not_acceptable)
}

/// One entry of the header, if it can be served, with its weight.
fn read_entry(entry: &str) -> Option<(f32, Negotiated)> {
    let mut parts = entry.split(';').map(str::trim);
    if !matches!(parts.next()?, "application/json" | "application/*" | "*/*") {
        return None;
    }
    let (mut form, mut group, mut version, mut weight) = ("", "", "", 1.0);
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim() {
            "as" => form = value,
            "g" => group = value,
            "v" => version = value,
            "q" => weight = value.parse().unwrap_or(1.0),
            _ => {}
        }
    }
    let negotiated = match (form, group, version) {
        ("", ..) => Negotiated::Json,
        ("PartialObjectMetadata", "meta.k8s.io", "v1") => Negotiated::Metadata,
        ("PartialObjectMetadataList", "meta.k8s.io", "v1") => Negotiated::MetadataList,
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Negotiated::AggregatedDiscovery,
        _ => return None,
    };
    Some((weight, negotiated))
}

fn not_acceptable() -> Status {
    Status::new(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/json;stream=watch",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_served_form_wins() {
        let table = [
            ("", Some(Negotiated::Json)),
            ("*/*", Some(Negotiated::Json)),
            ("application/json;stream=watch", Some(Negotiated::Json)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(Negotiated::Json)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", None),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Some(Negotiated::Metadata)),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
                Some(Negotiated::MetadataList),
            ),
            ("application/cbor;q=1,application/json;q=0.9", Some(Negotiated::Json)),
            ("application/cbor", None),
            (
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
                Some(Negotiated::AggregatedDiscovery),
            ),
        ];
        for (accept, form) in table {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(negotiate(&headers).ok(), form, "{accept}");
        }
    }
}
