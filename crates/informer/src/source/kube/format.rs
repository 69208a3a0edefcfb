//! In which encoding objects come: what is asked for, and what the answer says.

use informer_core::wire::MediaType;
use k8s_protobuf::Kind;

use super::{Projection, Target};

/// In which encoding the server shall send objects.
///
/// Protobuf is less on the wire and cheaper for the server, and managed fields are cut from it for
/// nothing. It is the same objects: what a type decodes to does not depend on it, with two
/// exceptions. Fields that are newer than this library have no name in protobuf, and are left out:
/// whoever keeps or writes back all that the server has, whatever its version, takes
/// [`Json`](Self::Json). And objects within objects, such as a StatefulSet's volume claim
/// templates, have no `apiVersion` and `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WireFormat {
    /// Protobuf where there is: for the kinds that are built into Kubernetes, and for the metadata
    /// of any. JSON for custom resources and others, from servers and proxies that refuse protobuf,
    /// and whenever the server says so. A factory asks for JSON also if it shall be
    /// `DynamicObject`s, which are decoded faster from that.
    #[default]
    Auto,
    /// JSON only.
    Json,
    /// Protobuf only. For a kind that has none, or from a server that does not send it, requests
    /// fail.
    Protobuf,
}

/// In which encodings a request is answered: those asked for, the one that is liked best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted(&'static [MediaType]);

impl Accepted {
    /// What is asked for, or why nothing is; `json_only` if the others were refused or could not be
    /// read.
    pub(super) fn of(target: &Target, json_only: bool) -> Result<Self, String> {
        use MediaType::{Json, Protobuf};
        match target.format {
            WireFormat::Auto if !json_only && has_protobuf(target) => Ok(Self(&[Protobuf, Json])),
            WireFormat::Auto | WireFormat::Json => Ok(Self(&[Json])),
            WireFormat::Protobuf if has_protobuf(target) => Ok(Self(&[Protobuf])),
            WireFormat::Protobuf => Err(format!(
                "{} {} is no built-in kind and has no protobuf; ask for it with WireFormat::Auto or WireFormat::Json",
                target.resource.api_version(),
                target.resource.kind
            )),
        }
    }

    /// Whether JSON would do where the others are refused.
    pub(super) fn gives_way(self) -> bool {
        self.0.len() > 1 && self.0.contains(&MediaType::Json)
    }

    /// The header `Accept`; `list` is `List` or nothing.
    pub(super) fn header(self, projection: Projection, list: &str) -> String {
        let names = self.0.iter().map(|media_type| media_type.as_str());
        match projection {
            Projection::Whole => names.collect::<Vec<_>>().join(","),
            Projection::Metadata => {
                let form = format!("as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1");
                let mut accept = names.map(|name| format!("{name};{form}")).collect::<Vec<_>>();
                // From servers that have no such form, whole objects do.
                accept.extend(
                    self.0.contains(&MediaType::Json).then(|| MediaType::Json.as_str().to_owned()),
                );
                accept.join(",")
            }
        }
    }

    /// What is asked for.
    pub(super) fn media_types(self) -> &'static [MediaType] {
        self.0
    }
}

/// Whether there is protobuf of these objects, and it can be read.
fn has_protobuf(target: &Target) -> bool {
    let resource = &target.resource;
    match target.projection {
        Projection::Whole => {
            let list = Kind::of(&resource.api_version(), &format!("{}List", resource.kind));
            list.and_then(Kind::item).is_some()
        }
        Projection::Metadata => true,
    }
}
