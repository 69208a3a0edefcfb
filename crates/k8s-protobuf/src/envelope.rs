//! The envelope of an object: `k8s\0` and a `runtime.Unknown`.

use crate::error::malformed;
use crate::wire::{Reader, put_bytes};
use crate::{Error, Kind};

/// The four bytes that every object in Kubernetes' protobuf begins with, except items of lists.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// The content type of an object or a list; that of a watch adds `;stream=watch`.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Whether the bytes are Kubernetes' protobuf.
#[must_use]
pub fn is_protobuf(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// An object on the wire: its kind, and the bytes of its message (apimachinery's
/// `runtime.Unknown`).
///
/// # Examples
/// ```
/// use k8s_protobuf::Envelope;
///
/// let bytes = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x00";
/// let envelope = Envelope::parse(bytes)?;
/// assert_eq!((envelope.api_version, envelope.kind, envelope.raw), ("v1", "Pod", &b""[..]));
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Group and version, such as `apps/v1`; empty in discovery.
    pub api_version: &'a str,
    /// The kind, such as `Deployment`.
    pub kind: &'a str,
    /// The object's message, or the object in the encoding that `content_type` names.
    pub raw: &'a [u8],
    /// The encoding of `raw`; empty for protobuf.
    pub content_type: &'a str,
    /// The compression of `raw`; empty, as servers send it, for none.
    pub content_encoding: &'a str,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope.
    ///
    /// # Errors
    /// When the bytes have none, or it is malformed.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let unknown = bytes.strip_prefix(&MAGIC).ok_or(Error::NoEnvelope)?;
        let mut envelope =
            Self { api_version: "", kind: "", raw: &[], content_type: "", content_encoding: "" };
        let mut fields = Reader::new(unknown);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => {
                    let mut types = Reader::new(value.bytes()?);
                    while let Some((number, value)) = types.next()? {
                        match number {
                            1 => envelope.api_version = value.text()?,
                            2 => envelope.kind = value.text()?,
                            _ => {}
                        }
                    }
                }
                2 => envelope.raw = value.bytes()?,
                3 => envelope.content_encoding = value.text()?,
                4 => envelope.content_type = value.text()?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// The object's kind and message.
    ///
    /// # Errors
    /// When the kind is not in the table, or the object is not in protobuf within its envelope.
    pub fn message(&self) -> Result<(Kind, &'a [u8]), Error> {
        if !self.content_type.is_empty() && !self.content_type.starts_with(CONTENT_TYPE) {
            return Err(malformed("an envelope around something other than protobuf"));
        }
        if !self.content_encoding.is_empty() {
            return Err(malformed("an envelope around something compressed"));
        }
        let kind = Kind::find(self.api_version, self.kind)?;
        Ok((kind, self.raw))
    }

    /// Appends the envelope and the message of an object of this kind to `out`.
    pub fn write(api_version: &str, kind: &str, raw: &[u8], out: &mut Vec<u8>) {
        let mut types = Vec::with_capacity(api_version.len() + kind.len() + 8);
        put_bytes(1, api_version.as_bytes(), &mut types);
        put_bytes(2, kind.as_bytes(), &mut types);
        out.extend_from_slice(&MAGIC);
        put_bytes(1, &types, out);
        put_bytes(2, raw, out);
        // Go writes these two fields even if they are empty.
        put_bytes(3, b"", out);
        put_bytes(4, b"", out);
    }
}

/// Without the object's content.
impl std::fmt::Debug for Envelope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Envelope")
            .field("api_version", &self.api_version)
            .field("kind", &self.kind)
            .field("raw_bytes", &self.raw.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        Envelope::write("apps/v1", "Deployment", b"\x0a\x00", &mut bytes);
        let envelope = Envelope::parse(&bytes).unwrap();
        assert_eq!((envelope.api_version, envelope.kind), ("apps/v1", "Deployment"));
        let (kind, raw) = envelope.message().unwrap();
        assert_eq!((kind, raw), (Kind::of("apps/v1", "Deployment").unwrap(), &b"\x0a\x00"[..]));
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        assert_eq!(Envelope::parse(b"{}"), Err(Error::NoEnvelope));
        assert_eq!(Envelope::parse(b"k8s\0\x0a\x09"), Err(Error::Truncated));
        let mut custom = Vec::new();
        Envelope::write("example.com/v1", "Widget", b"", &mut custom);
        let error = Envelope::parse(&custom).unwrap().message().unwrap_err();
        assert_eq!(
            error.to_string(),
            "example.com/v1 Widget is no built-in kind: ask the server for JSON"
        );
    }
}
