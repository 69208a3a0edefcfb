//! Which of the forms that a client accepts it gets.

use http::{HeaderMap, header};
use informer_core::wire::MediaType;
use k8s_protobuf::Kind;

use crate::form::{Form, FormKind, Include, MetaVersion, Part, Shape, built_in};
use crate::options::ProtobufSupport;
use crate::params::Parameters;
use crate::resource::Resource;
use crate::status::Status;

/// What of the accepted was chosen for objects of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    media: MediaType,
    transform: Transform,
    /// The kinds of what is sent, if it is in protobuf.
    kinds: Option<Kinds>,
    /// What Go calls the type of an object.
    go_type: String,
}

/// The kinds of objects and of a list of them.
type Kinds = (Kind, Kind);

/// What shall be made of an object, or of a document of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transform {
    Nothing,
    Metadata(MetaVersion),
    MetadataList(MetaVersion),
    Table(MetaVersion),
    Discovery(DiscoveryVersion),
}

/// A version of the group `apidiscovery.k8s.io`, in which all groups are in one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscoveryVersion {
    V2,
    V2Beta1,
}

/// How a failure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusForm {
    Media(MediaType),
    /// Indented JSON, which tells a client that accepts nothing that is served.
    Raw,
}

/// What a path serves, in the words that tell a client that accepts nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    /// JSON alone.
    Json,
    /// Documents and single objects.
    Documents,
    /// What can be watched, too.
    Collections,
}

/// One entry of the header.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// `None` stands for any.
    media: Option<MediaType>,
    /// `None` if it is nothing that is served here.
    transform: Option<Transform>,
    /// Whether the version of options is unknown to the whole server, or to documents alone.
    names_server_version: bool,
    weight: f32,
}

impl Negotiated {
    /// The form of a single object, and of those in a watch.
    ///
    /// # Errors
    /// 406 if that of a list was asked for, 400 if the parameters do not fit the form.
    pub fn object(&self, parameters: &Parameters) -> Result<Form, Status> {
        match self.transform {
            // What has no Go type is no list to an API server before it is no object.
            Transform::MetadataList(_) if self.go_type == UNSTRUCTURED => {
                Err(Status::new(500, "", "content is not a list"))
            }
            Transform::MetadataList(_) => Err(not_acceptable(&format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                self.go_type
            ))),
            Transform::Metadata(version) => self.form(Some(version), parameters),
            Transform::Nothing | Transform::Table(_) | Transform::Discovery(_) => {
                self.form(None, parameters)
            }
        }
    }

    /// The form of a list.
    ///
    /// # Errors
    /// 406 if that of an object was asked for, 400 if the parameters do not fit the form.
    pub fn list(&self, parameters: &Parameters) -> Result<Form, Status> {
        match self.transform {
            Transform::Metadata(_) => Err(not_acceptable(&format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({}List)",
                self.go_type
            ))),
            Transform::MetadataList(version) => self.form(Some(version), parameters),
            Transform::Nothing | Transform::Table(_) | Transform::Discovery(_) => {
                self.form(None, parameters)
            }
        }
    }

    fn form(&self, metadata: Option<MetaVersion>, parameters: &Parameters) -> Result<Form, Status> {
        Ok(Form(match (self.media, self.kinds, self.transform, metadata) {
            (MediaType::Json, _, Transform::Table(version), _) => {
                FormKind::Json(Shape::Table(version, include(parameters)?))
            }
            (MediaType::Json, _, _, Some(version)) => FormKind::Json(Shape::Metadata(version)),
            (MediaType::Json, _, _, None) => FormKind::Json(Shape::Full),
            (MediaType::Protobuf, Some((object, list)), _, metadata) => {
                let part = if metadata.is_some() { Part::Metadata } else { Part::Full };
                FormKind::Protobuf { part, object, list }
            }
            (MediaType::Protobuf, None, ..) => return Err(only(ProtobufSupport::Served)),
        }))
    }
}

fn include(parameters: &Parameters) -> Result<Include, Status> {
    match parameters.include_object.as_str() {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::None),
        "Object" => Ok(Include::Object),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
             must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// Chooses the form of objects of a resource.
///
/// Whole objects are served in protobuf where they are of a built-in kind, metadata of all objects
/// are. Tables are served in JSON.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    resource: &Resource,
    served: Served,
    support: ProtobufSupport,
) -> Result<Negotiated, Status> {
    let chosen = |media, transform, kinds| Negotiated {
        media,
        transform,
        kinds,
        go_type: go_type(resource),
    };
    let Some(entries) = entries(headers, support) else {
        return Ok(chosen(MediaType::Json, Transform::Nothing, None));
    };
    if !resource.custom {
        require_any(headers, served, support)?;
    }
    entries
        .iter()
        .find_map(|entry| entry.serve(resource))
        .map(|(media, transform, kinds)| chosen(media, transform, kinds))
        .ok_or_else(|| only(support))
}

/// How a failure is told: as the first of the accepted that asks for nothing special.
pub(crate) fn status_form(headers: &HeaderMap, support: ProtobufSupport) -> StatusForm {
    let Some(entries) = entries(headers, support) else {
        return StatusForm::Media(MediaType::Json);
    };
    match entries.iter().find(|entry| entry.is_plain()) {
        Some(entry) => StatusForm::Media(entry.media.unwrap_or(MediaType::Json)),
        None => StatusForm::Raw,
    }
}

/// How a document of discovery is written, and whether as one for all groups, which not all paths
/// have.
pub(crate) fn discovery(
    headers: &HeaderMap,
    aggregates: bool,
    support: ProtobufSupport,
) -> Result<(MediaType, Option<DiscoveryVersion>), Status> {
    let Some(entries) = entries(headers, support) else {
        return Ok((MediaType::Json, None));
    };
    for entry in &entries {
        let media = entry.media.unwrap_or(MediaType::Json);
        match entry.transform {
            Some(Transform::Discovery(version)) if aggregates => return Ok((media, Some(version))),
            _ if entry.is_plain() => return Ok((media, None)),
            _ => {}
        }
    }
    require_any(headers, Served::Documents, support)?;
    Err(only(support))
}

/// Refuses who does not take JSON, for what has no other form.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Status> {
    require_any(headers, Served::Json, ProtobufSupport::Unknown)
}

/// Whether JSON shall be for people: asked for, or by programs that people use by hand.
pub(crate) fn wants_indented(headers: &HeaderMap, query: &str) -> bool {
    if query.contains("pretty") {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let value = pairs.find(|(name, _)| name == "pretty").map(|(_, value)| value.into_owned());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            return matches!(&*value, "1" | "t" | "T" | "true" | "TRUE" | "True");
        }
    }
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let agent = agent.unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|program| agent.starts_with(program))
        || parts(headers).any(|entry| parameters(entry).any(|pair| pair == ("pretty", "1")))
}

/// Refuses who accepts nothing that a path serves, whatever its parameters: not so `application/*`,
/// which an API server does not look at here.
fn require_any(
    headers: &HeaderMap,
    served: Served,
    support: ProtobufSupport,
) -> Result<(), Status> {
    let known = |name: &str| {
        name == "*/*"
            || match MediaType::ALL.into_iter().find(|media| media.as_str() == name) {
                None => false,
                Some(MediaType::Json) => true,
                Some(MediaType::Protobuf) => {
                    served != Served::Json && support != ProtobufSupport::Unknown
                }
            }
    };
    let mut asked = parts(headers).peekable();
    if asked.peek().is_none() || asked.any(|entry| known(name(entry))) {
        return Ok(());
    }
    let media = match served {
        Served::Json => vec![MediaType::Json.as_str()],
        Served::Documents | Served::Collections => offered(support),
    };
    let streams = media.iter().map(|media| format!("{media};stream=watch"));
    let mut all: Vec<String> = media.iter().map(|media| (*media).to_owned()).collect();
    if served == Served::Collections {
        all.extend(streams);
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", all.join(", "));
    Err(Status { sends_empty_details: true, ..not_acceptable(&message) })
}

/// What is accepted, the best first; `None` if nothing is asked for.
fn entries(headers: &HeaderMap, support: ProtobufSupport) -> Option<Vec<Entry>> {
    let mut asked = false;
    let mut entries = Vec::new();
    for entry in parts(headers) {
        asked = true;
        entries.extend(Entry::read(entry, support));
    }
    // A stable sort keeps the client's order among equals.
    entries.sort_by(|a, b| {
        a.media.is_none().cmp(&b.media.is_none()).then_with(|| b.weight.total_cmp(&a.weight))
    });
    asked.then_some(entries)
}

/// The entries of the header as they are written.
fn parts(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter(|entry| !entry.trim().is_empty())
}

fn name(entry: &str) -> &str {
    entry.split(';').next().unwrap_or_default().trim()
}

fn parameters(entry: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = entry.split(';').skip(1).filter_map(|part| part.split_once('='));
    pairs.map(|(name, value)| (name.trim(), value.trim()))
}

impl Entry {
    fn read(entry: &str, support: ProtobufSupport) -> Option<Self> {
        let name = name(entry);
        let media = match MediaType::ALL.into_iter().find(|media| media.as_str() == name) {
            None if matches!(name, "application/*" | "*/*" | "*") => None,
            None => return None,
            Some(MediaType::Json) => Some(MediaType::Json),
            Some(MediaType::Protobuf) => match support {
                ProtobufSupport::Served => Some(MediaType::Protobuf),
                ProtobufSupport::Unknown => return None,
                ProtobufSupport::Ignored => Some(MediaType::Json),
            },
        };
        let (mut form, mut group, mut version, mut weight) = ("", "", "", 1.0);
        let (mut converts, mut names_server_version) = (false, false);
        for (name, value) in parameters(entry) {
            match name {
                "as" => (form, converts) = (value, true),
                "g" => (group, converts) = (value, true),
                "v" => (version, converts) = (value, true),
                "q" => weight = value.parse().unwrap_or(0.0),
                "stream" if !matches!(value, "" | "watch") => return None,
                "sv" if !value.is_empty() => {
                    if value != "v1" {
                        return None;
                    }
                    names_server_version = true;
                }
                _ => {}
            }
        }
        let meta = MetaVersion::parse(version).filter(|_| group == "meta.k8s.io");
        let transform = match (form, meta, group, version) {
            _ if !converts => Some(Transform::Nothing),
            ("PartialObjectMetadata", Some(version), ..) => Some(Transform::Metadata(version)),
            ("PartialObjectMetadataList", Some(version), ..) => {
                Some(Transform::MetadataList(version))
            }
            ("Table", Some(version), ..) => Some(Transform::Table(version)),
            ("APIGroupDiscoveryList", _, "apidiscovery.k8s.io", "v2") => {
                Some(Transform::Discovery(DiscoveryVersion::V2))
            }
            ("APIGroupDiscoveryList", _, "apidiscovery.k8s.io", "v2beta1") => {
                Some(Transform::Discovery(DiscoveryVersion::V2Beta1))
            }
            _ => None,
        };
        Some(Self { media, transform, names_server_version, weight })
    }

    /// Whether it asks for nothing special.
    fn is_plain(&self) -> bool {
        self.transform == Some(Transform::Nothing) && !self.names_server_version
    }

    /// What a client gets by this entry; `None` if nothing, and another one has to do.
    fn serve(&self, resource: &Resource) -> Option<(MediaType, Transform, Option<Kinds>)> {
        let transform = self.transform?;
        let media = self.media.unwrap_or(MediaType::Json);
        let kinds = match (media, transform) {
            (_, Transform::Discovery(_)) => return None,
            (MediaType::Json, _) => None,
            (MediaType::Protobuf, Transform::Nothing) => Some(built_in(resource)?),
            (
                MediaType::Protobuf,
                Transform::Metadata(version) | Transform::MetadataList(version),
            ) => Some(version.metadata_kinds()?),
            (MediaType::Protobuf, Transform::Table(_)) => return None,
        };
        Some((media, transform, kinds))
    }
}

/// The type of custom resources.
const UNSTRUCTURED: &str = "*unstructured.Unstructured";

/// What Go calls the type of a resource's objects within an API server: the package is that of the
/// group.
fn go_type(resource: &Resource) -> String {
    if resource.custom {
        return UNSTRUCTURED.to_owned();
    }
    let package = match resource.group.as_str() {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("*{package}.{}", resource.kind)
}

fn offered(support: ProtobufSupport) -> Vec<&'static str> {
    match support {
        ProtobufSupport::Served => MediaType::ALL.map(MediaType::as_str).to_vec(),
        ProtobufSupport::Unknown | ProtobufSupport::Ignored => vec![MediaType::Json.as_str()],
    }
}

fn only(support: ProtobufSupport) -> Status {
    let offered = offered(support).join(", ");
    not_acceptable(&format!("only the following media types are accepted: {offered}"))
}

fn not_acceptable(message: &str) -> Status {
    Status::new(406, "NotAcceptable", message)
}

#[cfg(test)]
mod tests;
