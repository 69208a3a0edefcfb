//! The forms in which objects are sent.

use informer_core::wire::MediaType;
use k8s_protobuf::Kind;

use crate::resource::Resource;

/// The form in which the objects of one request are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form(pub(crate) FormKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormKind {
    Json(Shape),
    Protobuf {
        part: Part,
        /// The kinds of the objects, and of a list of them, as they are sent.
        object: Kind,
        list: Kind,
    },
}

/// What JSON has of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The whole object.
    Full,
    /// `PartialObjectMetadata`: the metadata alone.
    Metadata(MetaVersion),
    /// `Table`: a row for each object.
    Table(MetaVersion, Include),
}

/// What a protobuf message has of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Full,
    Metadata,
}

/// A version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

/// What a row of a table has of its object besides the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Include {
    None,
    #[default]
    Metadata,
    Object,
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
}

impl MetaVersion {
    pub(crate) fn parse(version: &str) -> Option<Self> {
        match version {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }

    /// The kinds of metadata alone, and of a list of them.
    pub(crate) fn metadata_kinds(self) -> Option<(Kind, Kind)> {
        let of = |kind| Kind::of(self.api_version(), kind);
        Some((of("PartialObjectMetadata")?, of("PartialObjectMetadataList")?))
    }
}

/// The kinds of a resource and of its lists, if they are built in.
pub(crate) fn built_in(resource: &Resource) -> Option<(Kind, Kind)> {
    if resource.custom {
        return None;
    }
    let api_version = resource.api_version();
    let list = Kind::of(&api_version, &format!("{}List", resource.kind))?;
    Some((Kind::of(&api_version, &resource.kind)?, list))
}
