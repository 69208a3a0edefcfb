//! Which of the forms that a client accepts it gets.

use http::{HeaderMap, header};
use informer_core::wire::MediaType;
use k8s_protobuf::Kind;

use crate::options::ProtobufSupport;
use crate::resource::Resource;
use crate::status::Status;

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
pub struct Form(pub(crate) FormKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormKind {
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
pub struct Negotiated {
    media: MediaType,
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
    media: Option<MediaType>,
    /// `None` if it is nothing that is served here.
    transform: Option<Transform>,
    /// Whether a kube-apiserver knows it outside of custom resources: not so `application/*`.
    exact: bool,
    weight: f32,
}

/// The content type of a watch.
pub(crate) fn stream_type(media: MediaType) -> &'static str {
    match media {
        // A real server does not add `;stream=watch` here, even if it was asked for.
        MediaType::Json => media.as_str(),
        MediaType::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
    }
}

impl Form {
    /// How it is encoded.
    #[must_use]
    pub fn media(self) -> MediaType {
        match self.0 {
            FormKind::Json(_) => MediaType::Json,
            FormKind::Protobuf { .. } => MediaType::Protobuf,
        }
    }

    /// The kind of the objects as they are sent, if it is built in.
    pub(crate) fn kind(self, resource: &Resource) -> Option<Kind> {
        let kinds = match self.0 {
            FormKind::Protobuf { object, .. } => return Some(object),
            FormKind::Json(Representation::Full) => built_in(resource),
            FormKind::Json(Representation::Metadata) => metadata_kinds(),
        };
        kinds.map(|(object, _)| object)
    }
}

impl Negotiated {
    /// The form of a single object, and of those in a watch.
    ///
    /// # Errors
    /// 406 if that of a list was asked for.
    pub fn object(self) -> Result<Form, Status> {
        match self.transform {
            Transform::MetadataList => Err(not_acceptable(
                "you requested PartialObjectMetadataList, but the requested object is not a list",
            )),
            transform => self.form(transform == Transform::Metadata),
        }
    }

    /// The form of a list.
    ///
    /// # Errors
    /// 406 if that of an object was asked for.
    pub fn list(self) -> Result<Form, Status> {
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
            (MediaType::Json, _) => Ok(Form(FormKind::Json(part))),
            (MediaType::Protobuf, Some((object, list))) => {
                Ok(Form(FormKind::Protobuf { part, object, list }))
            }
            (MediaType::Protobuf, None) => Err(only(ProtobufSupport::Served)),
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
        return Ok(Negotiated {
            media: MediaType::Json,
            transform: Transform::Nothing,
            kinds: None,
        });
    };
    if !resource.custom && !entries.iter().any(|entry| entry.exact) {
        return Err(only(support));
    }
    entries.iter().find_map(|entry| entry.serve(resource)).ok_or_else(|| only(support))
}

/// How a failure is told: as the first of the accepted that asks for nothing special, else in JSON.
pub(crate) fn status_media(headers: &HeaderMap, support: ProtobufSupport) -> MediaType {
    let entries = entries(headers, support).unwrap_or_default();
    let plain = entries.iter().find(|entry| entry.transform == Some(Transform::Nothing));
    plain.and_then(|entry| entry.media).unwrap_or(MediaType::Json)
}

/// How documents of discovery are written, and whether as one for all groups. What fits nothing is
/// not an error here.
pub(crate) fn discovery(headers: &HeaderMap, support: ProtobufSupport) -> (MediaType, bool) {
    let entries = entries(headers, support).unwrap_or_default();
    let served = |entry: &&Entry| {
        matches!(entry.transform, Some(Transform::Nothing | Transform::AggregatedDiscovery))
    };
    entries.iter().find(served).map_or((MediaType::Json, false), |entry| {
        let aggregated = entry.transform == Some(Transform::AggregatedDiscovery);
        (entry.media.unwrap_or(MediaType::Json), aggregated)
    })
}

/// Refuses who does not take JSON, for what has no other form.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Status> {
    match entries(headers, ProtobufSupport::Unknown) {
        Some(entries) if !entries.iter().any(|entry| entry.exact) => {
            Err(only(ProtobufSupport::Unknown))
        }
        _ => Ok(()),
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
        let media = match MediaType::ALL.into_iter().find(|media| media.as_str() == name) {
            None if matches!(name, "application/*" | "*/*") => None,
            None => return None,
            Some(MediaType::Json) => Some(MediaType::Json),
            Some(MediaType::Protobuf) => match support {
                ProtobufSupport::Served => Some(MediaType::Protobuf),
                ProtobufSupport::Unknown => return None,
                ProtobufSupport::Ignored => Some(MediaType::Json),
            },
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
        let media = self.media.unwrap_or(MediaType::Json);
        let kinds = match transform {
            _ if media == MediaType::Json => None,
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
    let served: Vec<&str> = match support {
        ProtobufSupport::Served => MediaType::ALL.map(MediaType::as_str).to_vec(),
        ProtobufSupport::Unknown | ProtobufSupport::Ignored => vec![MediaType::Json.as_str()],
    };
    not_acceptable(&format!("only the following media types are accepted: {}", served.join(", ")))
}

fn not_acceptable(message: &str) -> Status {
    Status::new(406, "NotAcceptable", message)
}

#[cfg(test)]
mod tests;
