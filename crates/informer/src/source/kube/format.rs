//! In which encoding objects come: what is asked for, and what the answer says.

use http::header::{CONTENT_TYPE, HeaderMap};
use k8s_protobuf::Kind;

use super::{Projection, Target};

/// In which encoding the server shall send objects.
///
/// Protobuf is less on the wire and cheaper for the server, and managed fields are cut from it for nothing. It is the
/// same objects: what a type decodes to does not depend on it, with two exceptions. Fields that are newer than this library
/// have no name in protobuf, and are left out: whoever keeps or writes back all that the server has, whatever its version,
/// takes [`Json`](Self::Json). And objects within objects, such as a
/// StatefulSet's volume claim templates, have no `apiVersion` and `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WireFormat {
    /// Protobuf where there is: for the kinds that are built into Kubernetes, and for the metadata of any. JSON for
    /// custom resources and others, from servers and proxies that refuse protobuf, and whenever the server says so. A
    /// factory asks for JSON also if it shall be `DynamicObject`s, which are decoded faster from that.
    #[default]
    Auto,
    /// JSON only.
    Json,
    /// Protobuf only. For a kind that has none, or from a server that does not send it, requests fail.
    Protobuf,
}

/// How the objects of an answer are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

/// The encodings that are asked for; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    protobuf: bool,
    json: bool,
}

const JSON: &str = "application/json";
const PROTOBUF: &str = k8s_protobuf::CONTENT_TYPE;

impl Offer {
    /// What is offered for these objects, or why nothing is.
    pub(super) fn of(target: &Target, json_only: bool) -> Result<Self, String> {
        match target.format {
            WireFormat::Auto => Ok(Self { protobuf: !json_only && has_protobuf(target), json: true }),
            WireFormat::Json => Ok(Self { protobuf: false, json: true }),
            WireFormat::Protobuf if has_protobuf(target) => Ok(Self { protobuf: true, json: false }),
            WireFormat::Protobuf => Err(format!(
                "{} {} is no built-in kind and has no protobuf; ask for it with WireFormat::Auto or WireFormat::Json",
                target.resource.api_version(),
                target.resource.kind
            )),
        }
    }

    /// Whether JSON would do where protobuf is refused.
    pub(super) fn gives_way(self) -> bool {
        self.protobuf && self.json
    }

    /// The header `Accept`; `list` is `List` or nothing.
    pub(super) fn accept(self, projection: Projection, list: &str) -> String {
        let encodings = [(self.protobuf, PROTOBUF), (self.json, JSON)];
        let asked = encodings.iter().filter(|(asked, _)| *asked).map(|(_, name)| *name);
        match projection {
            Projection::Whole => asked.collect::<Vec<_>>().join(","),
            Projection::Metadata => {
                let form = format!("as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1");
                let mut accept = asked.map(|name| format!("{name};{form}")).collect::<Vec<_>>();
                accept.extend(self.json.then(|| JSON.to_owned()));
                accept.join(",")
            }
        }
    }

    /// The encoding, if it is one that may be: who wants JSON understands protobuf as well.
    pub(super) fn admit(self, encoding: Encoding) -> Result<Encoding, String> {
        match encoding {
            Encoding::Json if !self.json => Err(
                "the answer is JSON although only protobuf was asked for; allow both with WireFormat::Auto"
                    .to_owned(),
            ),
            encoding => Ok(encoding),
        }
    }
}

impl Encoding {
    /// What the header `Content-Type` says, or why that cannot be read. Without one it is JSON, the default of API
    /// servers.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, String> {
        let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(Self::Json) };
        let media_type = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case(JSON) {
            Ok(Self::Json)
        } else if media_type.eq_ignore_ascii_case(PROTOBUF) {
            Ok(Self::Protobuf)
        } else {
            let shown: String = media_type.chars().take(128).collect();
            Err(format!(
                "the answer is of the type {shown:?}, neither JSON nor protobuf; is it an API server that answers?"
            ))
        }
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
