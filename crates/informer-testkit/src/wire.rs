//! Protobuf's own encoding, as far as faults take messages apart and put them together.

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) number: u64,
    /// Tag, length and value.
    pub(crate) whole: &'a [u8],
    /// The value of a text, of bytes or of a message; `None` for numbers.
    pub(crate) bytes: Option<&'a [u8]>,
    /// Where the value starts within the message.
    pub(crate) start: usize,
}

/// The fields of a message, up to its end or to what is no field.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let field = field(message, at)?;
        at += field.whole.len();
        Some(field)
    })
}

fn field(message: &[u8], at: usize) -> Option<Field<'_>> {
    let (tag, mut start) = varint(message, at)?;
    let mut bytes = None;
    let end = match tag & 7 {
        0 => varint(message, start)?.1,
        1 => start.checked_add(8)?,
        2 => {
            let (length, value) = varint(message, start)?;
            start = value;
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            bytes = Some(message.get(start..end)?);
            end
        }
        5 => start.checked_add(4)?,
        _ => return None,
    };
    Some(Field { number: tag >> 3, whole: message.get(at..end)?, bytes, start })
}

/// The number at a place, and where it ends.
fn varint(message: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (place, byte) in message.get(at..)?.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(place).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, at + place + 1));
        }
    }
    None
}

/// Appends a text, bytes or a message.
pub(crate) fn put_bytes(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(number << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a number.
fn put_number(number: u64, value: u64, out: &mut Vec<u8>) {
    put_varint(number << 3, out);
    put_varint(value, out);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

const METADATA: u64 = 1;
const CREATION_TIMESTAMP: u64 = 8;

/// The object with its metadata, and all other fields encoded as no decoder of its kind takes them.
pub(crate) fn undecodable(object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len());
    let mut others = false;
    for field in fields(object) {
        match field.bytes {
            _ if field.number == METADATA => out.extend_from_slice(field.whole),
            Some(_) => put_number(field.number, 1, &mut out),
            None => put_bytes(field.number, b"of another type", &mut out),
        }
        others |= field.number != METADATA;
    }
    if !others {
        // All kinds that have other fields have a message, a map or a text there.
        put_number(2, 1, &mut out);
    }
    out
}

/// Metadata with what says who it is, and a time that no decoder takes.
pub(crate) fn undecodable_metadata(object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len());
    for field in fields(object) {
        let Some(metadata) = field.bytes.filter(|_| field.number == METADATA) else {
            out.extend_from_slice(field.whole);
            continue;
        };
        let mut broken = Vec::with_capacity(metadata.len() + 2);
        for field in fields(metadata).filter(|field| field.number != CREATION_TIMESTAMP) {
            broken.extend_from_slice(field.whole);
        }
        put_number(CREATION_TIMESTAMP, 1, &mut broken);
        put_bytes(METADATA, &broken, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use k8s_protobuf::{Kind, Metadata, encode};
    use serde_json::json;

    use super::*;

    fn message(kind: &str) -> Vec<u8> {
        let object = json!({
            "metadata": {"name": "a", "namespace": "b", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"},
        });
        let mut out = Vec::new();
        let kind = Kind::of("v1", kind).or_else(|| Kind::of("meta.k8s.io/v1", kind)).unwrap();
        encode::message(kind, &object, &mut out).unwrap();
        out
    }

    #[test]
    fn fields_put_together_are_the_message() {
        let pod = message("Pod");
        assert_eq!(fields(&pod).flat_map(|field| field.whole.to_vec()).collect::<Vec<_>>(), pod);
        for field in fields(&pod) {
            let bytes = field.bytes.unwrap();
            assert_eq!(&pod[field.start..field.start + bytes.len()], bytes);
        }
        assert_eq!(fields(&pod[..pod.len() - 1]).count(), fields(&pod).count() - 1);
        for broken in [&[0x0f][..], &[0x0a, 5, 1], &[0xff; 12], &[0x09, 1]] {
            assert_eq!(fields(broken).count(), 0);
        }
    }

    #[test]
    fn undecodable_objects_say_who_they_are() {
        for kind in ["Pod", "ConfigMap"] {
            let (good, broken) = (message(kind), undecodable(&message(kind)));
            let (good, broken) =
                (fields(&good).collect::<Vec<_>>(), fields(&broken).collect::<Vec<_>>());
            assert_eq!(good[0].whole, broken[0].whole);
            assert!(broken.len() > 1 && broken[1..].iter().all(|field| field.bytes.is_none()));
        }
        let broken = undecodable_metadata(&message("PartialObjectMetadata"));
        let metadata = Metadata::of(&broken).unwrap();
        assert_eq!((metadata.namespace, metadata.name, metadata.uid), ("b", "a", "u"));
        assert!(broken.ends_with(&[8 << 3, 1]));
    }
}
