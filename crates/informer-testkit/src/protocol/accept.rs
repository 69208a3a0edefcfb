//! Which of the forms that a client accepts it gets.

use http::{HeaderMap, HeaderValue, header};
use k8s_protobuf::Kind;

use super::ProtobufSupport;
use crate::resource::Resource;
use crate::status::Status;

const JSON: &str = "application/json";
const PROTOBUF: &str = k8s_protobuf::CONTENT_TYPE;

/// How something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Protobuf,
}

/// How much of an object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The whole object.
    Full,
    /// `PartialObjectMetadata`: the metadata alone.
    Metadata,
}

/// The form in which objects are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json(Representation),
    /// With the kinds of the objects, and of a list of them, as they are sent.
    Protobuf {
        part: Representation,
        object: Kind,
        list: Kind,
    },
}

/// What of the accepted was chosen for objects of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Negotiated {
    media: Media,
    transform: Transform,
    kinds: Option<(Kind, Kind)>,
}

/// What shall be made of an object, or of a document of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transform {
    Nothing,
    Metadata,
    MetadataList,
    AggregatedDiscovery,
}

/// One entry of the header.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// `None` stands for any.
    media: Option<Media>,
    /// `None` if it is nothing that is served here.
    transform: Option<Transform>,
    /// Whether a kube-apiserver knows it outside of custom resources: not so `application/*`.
    exact: bool,
    weight: f32,
}

impl Media {
    /// How the body of an answer is written.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if value.is_some_and(|value| value.starts_with(PROTOBUF)) {
            Self::Protobuf
        } else {
            Self::Json
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Protobuf => PROTOBUF,
        }
    }

    /// The content type of a watch.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            // A real server does not add `;stream=watch` here, even if it was asked for.
            Self::Json => JSON,
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }
}

impl Form {
    pub(crate) fn media(self) -> Media {
        match self {
            Self::Json(_) => Media::Json,
            Self::Protobuf { .. } => Media::Protobuf,
        }
    }

    /// The kind of the objects as they are sent, if it is built in.
    pub(crate) fn kind(self, resource: &Resource) -> Option<Kind> {
        let kinds = match self {
            Self::Protobuf { object, .. } => return Some(object),
            Self::Json(Representation::Full) => built_in(resource),
            Self::Json(Representation::Metadata) => metadata_kinds(),
        };
        kinds.map(|(object, _)| object)
    }
}

impl Negotiated {
    /// The form of a single object, and of those in a watch.
    pub(crate) fn object(self) -> Result<Form, Status> {
        match self.transform {
            Transform::MetadataList => Err(not_acceptable(
                "you requested PartialObjectMetadataList, but the requested object is not a list",
            )),
            transform => self.form(transform == Transform::Metadata),
        }
    }

    /// The form of a list.
    pub(crate) fn list(self) -> Result<Form, Status> {
        match self.transform {
            Transform::Metadata => Err(not_acceptable(
                "you requested PartialObjectMetadata, but the requested object is a list",
            )),
            transform => self.form(transform == Transform::MetadataList),
        }
    }

    fn form(self, metadata: bool) -> Result<Form, Status> {
        let part = if metadata { Representation::Metadata } else { Representation::Full };
        match (self.media, self.kinds) {
            (Media::Json, _) => Ok(Form::Json(part)),
            (Media::Protobuf, Some((object, list))) => Ok(Form::Protobuf { part, object, list }),
            (Media::Protobuf, None) => Err(only(ProtobufSupport::Served)),
        }
    }
}

/// Chooses the form of objects of a resource. `Table` is not served: clients that ask for it,
/// `kubectl get` for one, accept plain JSON as well.
///
/// Whole objects are served in protobuf where they are of a built-in kind, metadata of all objects
/// are.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    resource: &Resource,
    support: ProtobufSupport,
) -> Result<Negotiated, Status> {
    let Some(entries) = entries(headers, support) else {
        return Ok(Negotiated { media: Media::Json, transform: Transform::Nothing, kinds: None });
    };
    if !resource.custom && !entries.iter().any(|entry| entry.exact) {
        return Err(only(support));
    }
    entries.iter().find_map(|entry| entry.serve(resource)).ok_or_else(|| only(support))
}

/// How a failure is told: as the first of the accepted that asks for nothing special, else in JSON.
pub(crate) fn status_media(headers: &HeaderMap, support: ProtobufSupport) -> Media {
    let entries = entries(headers, support).unwrap_or_default();
    let plain = entries.iter().find(|entry| entry.transform == Some(Transform::Nothing));
    plain.and_then(|entry| entry.media).unwrap_or(Media::Json)
}

/// How documents of discovery are written, and whether as one for all groups. What fits nothing is
/// not an error here.
pub(super) fn discovery(headers: &HeaderMap, support: ProtobufSupport) -> (Media, bool) {
    let entries = entries(headers, support).unwrap_or_default();
    let served = |entry: &&Entry| {
        matches!(entry.transform, Some(Transform::Nothing | Transform::AggregatedDiscovery))
    };
    entries.iter().find(served).map_or((Media::Json, false), |entry| {
        let aggregated = entry.transform == Some(Transform::AggregatedDiscovery);
        (entry.media.unwrap_or(Media::Json), aggregated)
    })
}

/// Refuses who does not take JSON, for what has no other form.
pub(super) fn require_json(headers: &HeaderMap) -> Result<(), Status> {
    match entries(headers, ProtobufSupport::Unknown) {
        Some(entries) if !entries.iter().any(|entry| entry.exact) => {
            Err(only(ProtobufSupport::Unknown))
        }
        _ => Ok(()),
    }
}

/// Whether protobuf is among the accepted.
pub(crate) fn names_protobuf(headers: &HeaderMap) -> bool {
    values(headers).any(|value| value.contains(PROTOBUF))
}

/// Leaves of the accepted what a server would understand that has never heard of protobuf.
pub(crate) fn forget_protobuf(headers: &mut HeaderMap) {
    let known: Vec<&str> = values(headers)
        .flat_map(|value| value.split(','))
        .filter(|entry| !entry.contains(PROTOBUF))
        .collect();
    let known = if known.is_empty() { "application/unknown".to_owned() } else { known.join(",") };
    if let Ok(value) = HeaderValue::from_str(&known) {
        headers.insert(header::ACCEPT, value);
    }
}

/// What is accepted, the best first; `None` if nothing is asked for.
fn entries(headers: &HeaderMap, support: ProtobufSupport) -> Option<Vec<Entry>> {
    let mut asked = false;
    let mut entries = Vec::new();
    for entry in values(headers).flat_map(|value| value.split(',')) {
        asked |= !entry.trim().is_empty();
        entries.extend(Entry::read(entry, support));
    }
    // A stable sort keeps the client's order among equals.
    entries.sort_by(|a, b| {
        a.media.is_none().cmp(&b.media.is_none()).then_with(|| b.weight.total_cmp(&a.weight))
    });
    asked.then_some(entries)
}

fn values(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok())
}

impl Entry {
    fn read(entry: &str, support: ProtobufSupport) -> Option<Self> {
        let mut parts = entry.split(';').map(str::trim);
        let name = parts.next()?;
        let media = match (name, support) {
            (JSON, _) | (PROTOBUF, ProtobufSupport::Ignored) => Some(Media::Json),
            (PROTOBUF, ProtobufSupport::Served) => Some(Media::Protobuf),
            ("application/*" | "*/*", _) => None,
            _ => return None,
        };
        let (mut form, mut group, mut version, mut weight) = ("", "", "", 1.0);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "as" => form = value,
                "g" => group = value,
                "v" => version = value,
                "q" => weight = value.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        let transform = match (form, group, version) {
            ("", ..) => Some(Transform::Nothing),
            ("PartialObjectMetadata", "meta.k8s.io", "v1") => Some(Transform::Metadata),
            ("PartialObjectMetadataList", "meta.k8s.io", "v1") => Some(Transform::MetadataList),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => {
                Some(Transform::AggregatedDiscovery)
            }
            _ => None,
        };
        Some(Self { media, transform, exact: name != "application/*", weight })
    }

    /// What a client gets by this entry; `None` if nothing, and another one has to do.
    fn serve(&self, resource: &Resource) -> Option<Negotiated> {
        let transform = self.transform?;
        let media = self.media.unwrap_or(Media::Json);
        let kinds = match transform {
            _ if media == Media::Json => None,
            Transform::Nothing => Some(built_in(resource)?),
            _ => Some(metadata_kinds()?),
        };
        let served = transform != Transform::AggregatedDiscovery;
        served.then_some(Negotiated { media, transform, kinds })
    }
}

/// The kinds of a resource and of its lists, if they are built in.
fn built_in(resource: &Resource) -> Option<(Kind, Kind)> {
    if resource.custom {
        return None;
    }
    let api_version = resource.api_version();
    let list = Kind::of(&api_version, &format!("{}List", resource.kind))?;
    Some((Kind::of(&api_version, &resource.kind)?, list))
}

fn metadata_kinds() -> Option<(Kind, Kind)> {
    let of = |kind| Kind::of("meta.k8s.io/v1", kind);
    Some((of("PartialObjectMetadata")?, of("PartialObjectMetadataList")?))
}

fn only(support: ProtobufSupport) -> Status {
    let mut message = format!("only the following media types are accepted: {JSON}");
    if support == ProtobufSupport::Served {
        message.push_str(", ");
        message.push_str(PROTOBUF);
    }
    not_acceptable(&message)
}

fn not_acceptable(message: &str) -> Status {
    Status::new(406, "NotAcceptable", message)
}

#[cfg(test)]
mod tests;
