//! An object's metadata, read from its message without decoding the rest.

use crate::Error;
use crate::utf8;
use crate::wire::{Reader, put_varint};

/// The number of the field that holds any object's `ObjectMeta`, and of fields of that.
const METADATA: u32 = 1;
const METADATA_TAG: u64 = (METADATA as u64) << 3 | 2;
const NAME: u32 = 1;
const NAMESPACE: u32 = 3;
const UID: u32 = 5;
const RESOURCE_VERSION: u32 = 6;
const LABELS: u32 = 11;
const ANNOTATIONS: u32 = 12;
const MANAGED_FIELDS: u32 = 17;

/// An object's identity, labels and annotations: borrowed from the bytes of its message, 0.1 to 0.2
/// µs for a Pod.
///
/// The message is that of any object, built in or not, or of its metadata alone
/// (`PartialObjectMetadata`): all of them have their `ObjectMeta` in the same place.
///
/// # Examples
/// ```
/// use k8s_protobuf::Metadata;
///
/// // metadata { name: "web-0", namespace: "default", labels { app: "web" } }
/// let pod = b"\x0a\x1c\x0a\x05web-0\x1a\x07default\x5a\x0a\x0a\x03app\x12\x03web";
/// let metadata = Metadata::of(pod)?;
/// assert_eq!((metadata.namespace, metadata.name), ("default", "web-0"));
/// assert_eq!(metadata.label("app"), Some("web"));
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Metadata<'a> {
    /// The name; empty where there is none.
    pub name: &'a str,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The UID; empty where there is none.
    pub uid: &'a str,
    /// The resource version; empty where there is none.
    pub resource_version: &'a str,
    managed: Managed,
    object: &'a [u8],
}

/// The position of an object's managed fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Managed {
    None,
    /// One run, as servers write it: the ranges of the object's metadata, of its content, and of
    /// the run within that.
    Run {
        field: usize,
        content: usize,
        end: usize,
        run: (usize, usize),
    },
    Scattered,
}

impl<'a> Metadata<'a> {
    /// Reads and checks the metadata of the object with this message. Other fields are skipped
    /// without looking into them.
    ///
    /// When the message or that of its metadata is incomplete, or one of the fields here is not
    /// UTF-8.
    pub fn of(object: &'a [u8]) -> Result<Self, Error> {
        let mut metadata = Self {
            name: "",
            namespace: "",
            uid: "",
            resource_version: "",
            managed: Managed::None,
            object,
        };
        let mut fields = Reader::new(object);
        loop {
            let field = object.len() - fields.rest().len();
            let Some((number, value)) = fields.next()? else { return Ok(metadata) };
            if number == METADATA {
                let content = value.bytes()?;
                let end = object.len() - fields.rest().len();
                let run = metadata.read(content)?;
                metadata.managed = match (metadata.managed, run) {
                    (managed, (from, to)) if from == to => managed,
                    (Managed::None, run) => {
                        Managed::Run { field, content: end - content.len(), end, run }
                    }
                    _ => Managed::Scattered,
                };
            }
        }
    }

    /// The position of the managed fields in `message`; empty if there are none.
    fn read(&mut self, message: &'a [u8]) -> Result<(usize, usize), Error> {
        let mut fields = Reader::new(message);
        let mut managed = (0, 0);
        loop {
            let at = message.len() - fields.rest().len();
            let Some((number, value)) = fields.next()? else { return Ok(managed) };
            match number {
                NAME => self.name = value.text()?,
                NAMESPACE => self.namespace = value.text()?,
                UID => self.uid = value.text()?,
                RESOURCE_VERSION => self.resource_version = value.text()?,
                LABELS | ANNOTATIONS => drop(entry(value.bytes()?)?),
                MANAGED_FIELDS => {
                    let end = message.len() - fields.rest().len();
                    match managed {
                        (_, 0) => managed = (at, end),
                        (start, last) if last == at => managed = (start, end),
                        _ => self.managed = Managed::Scattered,
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether `managedFields` has an entry.
    #[must_use]
    pub fn has_managed_fields(&self) -> bool {
        !matches!(self.managed, Managed::None)
    }

    /// The message of the object without its managed fields: the object itself if there are none,
    /// else assembled in `scratch`, whose content is replaced. The rest is kept byte for byte.
    #[must_use]
    pub fn without_managed_fields(&self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let object = self.object;
        let Managed::Run { field, content, end, run: (from, to) } = self.managed else {
            return match self.managed {
                // The message was found complete when the metadata was read.
                Managed::Scattered => without_scattered(object, scratch).unwrap_or(object),
                _ => object,
            };
        };
        scratch.clear();
        scratch.reserve(object.len() - (to - from));
        scratch.extend_from_slice(&object[..field]);
        put_varint(METADATA_TAG, scratch);
        put_varint((end - content - (to - from)) as u64, scratch);
        scratch.extend_from_slice(&object[content..content + from]);
        scratch.extend_from_slice(&object[content + to..]);
        scratch
    }

    /// The labels: keys and values, in the order of the bytes; servers sort them by key.
    #[must_use]
    pub fn labels(&self) -> Entries<'a> {
        self.entries(LABELS)
    }

    /// The annotations: keys and values, in the order of the bytes.
    #[must_use]
    pub fn annotations(&self) -> Entries<'a> {
        self.entries(ANNOTATIONS)
    }

    /// The value of one label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&'a str> {
        // Of repeated keys the last one counts.
        self.labels().filter(|(name, _)| *name == key).last().map(|(_, value)| value)
    }

    /// The value of one annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        self.annotations().filter(|(name, _)| *name == key).last().map(|(_, value)| value)
    }

    fn entries(&self, number: u32) -> Entries<'a> {
        Entries { number, object: Reader::new(self.object), metadata: Reader::new(&[]) }
    }
}

/// Without the object's content.
impl std::fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metadata")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Labels or annotations: pairs of key and value. Pairs that are not UTF-8 are left out: servers
/// accept any annotation from clients that write protobuf, and one must not hide the object.
#[derive(Clone)]
pub struct Entries<'a> {
    number: u32,
    object: Reader<'a>,
    metadata: Reader<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        // All of it was checked when the metadata was read.
        loop {
            while let Ok(Some((number, value))) = self.metadata.next() {
                if number != self.number {
                    continue;
                }
                let (key, value) = entry(value.bytes().ok()?).ok()?;
                if let (Some(key), Some(value)) = (utf8::checked(key), utf8::checked(value)) {
                    return Some((key, value));
                }
            }
            let (number, value) = self.object.next().ok()??;
            if number == METADATA {
                self.metadata = Reader::new(value.bytes().ok()?);
            }
        }
    }
}

/// Without the object's content.
impl std::fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").finish_non_exhaustive()
    }
}

/// The message of an object without its managed fields: `object` itself if there are none, else
/// assembled in `scratch`, whose content is replaced. The rest is kept byte for byte.
///
/// # Errors
/// When the message or that of its metadata is incomplete.
///
/// # Examples
/// ```
/// // metadata { name: "a", managedFields: [{ manager: "kubectl" }] }
/// let object = b"\x0a\x0f\x0a\x01a\x8a\x01\x09\x0a\x07kubectl";
/// let mut scratch = Vec::new();
/// assert_eq!(k8s_protobuf::without_managed_fields(object, &mut scratch)?, b"\x0a\x03\x0a\x01a");
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
pub fn without_managed_fields<'a>(
    object: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    Ok(Metadata::of(object)?.without_managed_fields(scratch))
}

/// For objects whose managed fields are not in one run, or that have more than one metadata.
fn without_scattered<'a>(object: &[u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
    scratch.clear();
    scratch.reserve(object.len());
    let mut fields = Reader::new(object);
    loop {
        let before = fields.rest();
        let Some((number, value)) = fields.next()? else { return Ok(scratch) };
        if number != METADATA {
            scratch.extend_from_slice(&before[..before.len() - fields.rest().len()]);
            continue;
        }
        let metadata = value.bytes()?;
        let kept = kept(metadata)?;
        put_varint(METADATA_TAG, scratch);
        put_varint(kept.iter().map(|part| part.len() as u64).sum(), scratch);
        kept.iter().for_each(|part| scratch.extend_from_slice(part));
    }
}

/// The parts of an `ObjectMeta` between its managed fields. Servers write these in one run, so
/// there are two parts.
fn kept(metadata: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let mut parts = Vec::with_capacity(2);
    let (mut fields, mut part, mut rest) = (Reader::new(metadata), metadata, metadata);
    while let Some((number, _)) = fields.next()? {
        if number == MANAGED_FIELDS {
            parts.push(&part[..part.len() - rest.len()]);
            part = fields.rest();
        }
        rest = fields.rest();
    }
    parts.push(part);
    Ok(parts)
}

/// The key and value of an entry of a map of texts.
fn entry(message: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let (mut key, mut found) = (&b""[..], &b""[..]);
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => key = value.bytes()?,
            2 => found = value.bytes()?,
            _ => {}
        }
    }
    Ok((key, found))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::put_bytes;
    use crate::wire::testing::fields as message;

    /// `metadata` as field 1, with this content.
    fn object(metadata: &[u8]) -> Vec<u8> {
        let mut object = Vec::new();
        put_bytes(1, metadata, &mut object);
        object
    }

    #[test]
    fn what_identifies_an_object_is_read() {
        let label = message(&[(1, b"app"), (2, b"web")]);
        let note = message(&[(1, b"note"), (2, b"x")]);
        let metadata = message(&[
            (1, b"a"),
            (3, b"default"),
            (5, b"u-1"),
            (6, b"7"),
            (11, &label),
            (12, &note),
        ]);
        let mut object = object(&metadata);
        put_bytes(2, b"whatever", &mut object);
        let metadata = Metadata::of(&object).unwrap();
        let Metadata { name, namespace, uid, resource_version, .. } = metadata;
        assert_eq!((name, namespace, uid, resource_version), ("a", "default", "u-1", "7"));
        assert!(!metadata.has_managed_fields());
        assert_eq!(metadata.labels().collect::<Vec<_>>(), [("app", "web")]);
        assert_eq!(metadata.annotation("note"), Some("x"));
        assert_eq!(metadata.label("note"), None);
    }

    #[test]
    fn metadata_in_two_parts_is_one() {
        let (first, second) = (
            message(&[(11, &message(&[(1, b"a"), (2, b"1")])), (1, b"x")]),
            message(&[(1, b"y"), (11, &message(&[(1, b"a"), (2, b"2")]))]),
        );
        let object = message(&[(1, &first), (2, b"spec"), (1, &second)]);
        let metadata = Metadata::of(&object).unwrap();
        assert_eq!((metadata.name, metadata.label("a")), ("y", Some("2")));
        assert_eq!(metadata.labels().count(), 2);
    }

    #[test]
    fn an_annotation_that_is_not_utf8_hides_itself_only() {
        // Servers check the keys of annotations but no values: a client can write this in protobuf.
        let (good, bad) = (message(&[(1, b"a"), (2, b"x")]), message(&[(1, b"b"), (2, b"\xff")]));
        let object =
            object(&message(&[(1, b"name"), (6, b"7"), (12, &good), (12, &bad), (12, &good)]));
        let metadata = Metadata::of(&object).unwrap();
        assert_eq!((metadata.name, metadata.resource_version), ("name", "7"));
        assert_eq!((metadata.annotation("a"), metadata.annotation("b")), (Some("x"), None));
        assert_eq!(metadata.annotations().count(), 2);
    }

    #[test]
    fn metadata_that_is_broken_is_an_error() {
        for broken in
            [&b"\x0a\x05a"[..], b"\x0a\x03\x0a\x01\xff", b"\x0a\x04\x5a\x05ab", b"\x08\x01"]
        {
            assert!(Metadata::of(broken).is_err(), "{broken:?}");
        }
    }

    proptest! {
        #[test]
        fn managed_fields_are_cut_wherever_they_stand(
            parts in prop::collection::vec((prop::sample::select(vec![1u32, 3, 11, 17, 17, 20]), "[a-z]{0,200}"), 0..8),
            other in "[a-z]{0,5}",
        ) {
            let build = |keep: &dyn Fn(u32) -> bool| {
                let mut metadata = Vec::new();
                for (number, text) in parts.iter().filter(|(number, _)| keep(*number)) {
                    let entry = message(&[(1, text.as_bytes())]);
                    put_bytes(*number, if *number == 11 { &entry } else { text.as_bytes() }, &mut metadata);
                }
                message(&[(1, &metadata), (2, other.as_bytes()), (1, &metadata)])
            };
            let mut scratch = b"left over".to_vec();
            let whole = build(&|_| true);
            prop_assert_eq!(without_managed_fields(&whole, &mut scratch).unwrap(), build(&|number| number != 17));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut scratch = Vec::new();
            let cut = without_managed_fields(&bytes, &mut scratch).map(<[u8]>::to_vec);
            prop_assert_eq!(cut.is_ok(), Metadata::of(&bytes).is_ok());
            if let Ok(metadata) = Metadata::of(&bytes) {
                let _ = metadata.labels().count();
            }
            if let Ok(cut) = cut {
                prop_assert!(cut.len() <= bytes.len() + 10);
            }
        }
    }
}
