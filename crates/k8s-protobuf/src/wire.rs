//! Protobuf's own encoding: a sequence of numbered fields.

use std::borrow::Cow;
use std::fmt;

use crate::error::malformed;
use crate::{Error, utf8};

/// Iterates over the fields of one message. Cheap to copy: it is a position in the bytes.
///
/// # Examples
/// ```
/// use k8s_protobuf::Reader;
///
/// // 1: "hi", 2: 150
/// let mut fields = Reader::new(b"\x0a\x02hi\x10\x96\x01");
/// let (number, value) = fields.next()?.expect("there are two");
/// assert_eq!((number, value.text()?), (1, "hi"));
/// let (number, value) = fields.next()?.expect("there are two");
/// assert_eq!((number, value.varint()?), (2, 150));
/// assert_eq!(fields.next()?, None);
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// The value of one field as it is encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// The bits of an integer or a bool.
    Varint(u64),
    /// The bits of a double.
    Fixed64(u64),
    /// The bits of a float.
    Fixed32(u32),
    /// A text, bytes, a message, or one entry of a map.
    Bytes(&'a [u8]),
}

impl<'a> Reader<'a> {
    /// Begins at the message's first field.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The bytes not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next field: number and value; `None` at the end of the message.
    ///
    /// When the message ends within the field, or the field is not protobuf.
    // Inlined: the result is large and is taken apart at once. Unoptimized, it would fill the
    // callers' stacks.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[expect(
        clippy::should_implement_trait,
        reason = "an error ends it for good, which an iterator's user may not expect"
    )]
    pub fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, encoding) = self.tag()?;
        Ok(Some((number, self.value(encoding)?)))
    }

    /// The value with this encoding.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn value(&mut self, encoding: u8) -> Result<Value<'a>, Broken> {
        Ok(match encoding {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Broken::Truncated)?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Broken::Encoding),
        })
    }

    /// The tag before a field's value: the field's number, and the encoding of the value.
    #[inline]
    pub(crate) fn tag(&mut self) -> Result<(u32, u8), Broken> {
        let tag = self.varint()?;
        match u32::try_from(tag >> 3) {
            Ok(0) => Err(Broken::ZeroNumber),
            Ok(number) => Ok((number, (tag & 7) as u8)),
            Err(_) => Err(Broken::Number),
        }
    }

    /// The bytes of the value with this encoding; without the length prefix, if it has one.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn payload(&mut self, encoding: u8) -> Result<&'a [u8], Broken> {
        match encoding {
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Broken::Truncated)?;
                self.take(length)
            }
            0 => {
                let before = self.rest;
                self.varint()?;
                Ok(&before[..before.len() - self.rest.len()])
            }
            1 => self.take(8),
            5 => self.take(4),
            _ => Err(Broken::Encoding),
        }
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Broken> {
        // Nearly all tags and lengths take one byte.
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            // Tags from 16 on and the lengths of most messages take two.
            [low, high, rest @ ..] if *high < 0x80 => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    /// A number of one or two bytes; `None` if the next one is longer.
    #[inline]
    pub(crate) fn short(&mut self) -> Option<u16> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Some(u16::from(*byte))
            }
            [low, high, rest @ ..] if *high < 0x80 => {
                self.rest = rest;
                Some(u16::from(low & 0x7f) | u16::from(*high) << 7)
            }
            _ => None,
        }
    }

    /// A tag and the length or number after it, each of one or two bytes; `None` if they are not so
    /// short, and the position is then undefined.
    #[inline]
    pub(crate) fn pair(&mut self) -> Option<Pair<'a>> {
        // Usually one byte each.
        if let [tag, rest @ ..] = self.rest
            && let [number, behind @ ..] = rest
            && (tag | number) < 0x80
        {
            self.rest = behind;
            return Some(Pair {
                tag: u16::from(*tag),
                number: u16::from(*number),
                written: &rest[..1],
            });
        }
        let tag = self.short()?;
        let before = self.rest;
        let number = self.short()?;
        Some(Pair { tag, number, written: before.get(..before.len() - self.rest.len())? })
    }

    /// The bytes of the value that this pair begins, as [`payload`](Self::payload) returns them;
    /// `None` if the message is too short, or the encoding is another.
    #[inline]
    pub(crate) fn held(&mut self, pair: &Pair<'a>) -> Option<&'a [u8]> {
        match pair.tag & 7 {
            2 => self.take(pair.number.into()).ok(),
            0 => Some(pair.written),
            _ => None,
        }
    }

    /// The payload of the next field, if it has this tag and is short; otherwise the position is
    /// undefined.
    #[inline]
    pub(crate) fn next_of(&mut self, tag: u16) -> Option<&'a [u8]> {
        let pair = self.pair()?;
        if pair.tag == tag { self.held(&pair) } else { None }
    }

    fn long_varint(&mut self) -> Result<u64, Broken> {
        let mut value = 0u64;
        for (at, byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if at == 9 && bits > 1 {
                return Err(Broken::Long);
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { Broken::Truncated } else { Broken::Endless })
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Broken::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Broken::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// See [`Reader::pair`].
pub(crate) struct Pair<'a> {
    pub(crate) tag: u16,
    pub(crate) number: u16,
    /// The number as encoded.
    written: &'a [u8],
}

/// An error of a field that fits into a register, for loops over many fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    Truncated,
    Number,
    ZeroNumber,
    Encoding,
    Long,
    Endless,
}

impl From<Broken> for Error {
    #[cold]
    fn from(broken: Broken) -> Self {
        malformed(match broken {
            Broken::Truncated => return Self::Truncated,
            Broken::Number => "a field number out of range",
            Broken::ZeroNumber => "a field with the number 0",
            Broken::Encoding => "a wire type that Kubernetes does not use",
            Broken::Long => "a number of more than 64 bits",
            Broken::Endless => "a number without end",
        })
    }
}

impl<'a> Value<'a> {
    /// The bytes of a text, bytes, message or map entry.
    ///
    /// # Errors
    /// When it is a number.
    pub fn bytes(self) -> Result<&'a [u8], Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(malformed("a number where bytes should be")),
        }
    }

    /// The number of this encoding in a tag.
    pub(crate) fn encoding(self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32(_) => 5,
        }
    }

    /// The text.
    ///
    /// # Errors
    /// When it is a number, or not UTF-8.
    pub fn text(self) -> Result<&'a str, Error> {
        utf8::text(self.bytes()?)
    }

    /// The bits of an integer or a bool.
    ///
    /// # Errors
    /// When it is encoded otherwise.
    pub fn varint(self) -> Result<u64, Error> {
        match self {
            Self::Varint(value) => Ok(value),
            _ => Err(malformed("another encoding where an integer should be")),
        }
    }
}

/// The text as Go has it in JSON: `U+FFFD` for each byte that is not UTF-8, which servers store as
/// they get it.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match utf8::checked(bytes) {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(replaced(bytes)),
    }
}

#[cold]
fn replaced(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Without the content.
impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("rest", &self.rest.len()).finish()
    }
}

/// Without the content.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Varint(_) => f.write_str("Varint"),
            Self::Fixed64(_) => f.write_str("Fixed64"),
            Self::Fixed32(_) => f.write_str("Fixed32"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
        }
    }
}

/// Appends a varint.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field with a length: a text, bytes, a message.
pub(crate) fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Messages to test with.
#[cfg(test)]
pub(crate) mod testing {
    use super::put_bytes;

    /// A message of fields with bytes in them.
    pub(crate) fn fields(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut message = Vec::new();
        fields.iter().for_each(|(number, bytes)| put_bytes(*number, bytes, &mut message));
        message
    }

    /// The bytes, within messages with these numbers.
    pub(crate) fn within(numbers: &[u32], bytes: &[u8]) -> Vec<u8> {
        numbers.iter().rev().fold(bytes.to_vec(), |inner, number| fields(&[(*number, &inner)]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_encoding_is_read() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: 150
            0x12, 0x02, b'h', b'i', // 2: "hi"
            0x19, 1, 0, 0, 0, 0, 0, 0, 0, // 3: fixed64
            0x25, 2, 0, 0, 0, // 4: fixed32
        ];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.next(), Ok(Some((1, Value::Varint(150)))));
        assert_eq!(reader.next(), Ok(Some((2, Value::Bytes(b"hi")))));
        assert_eq!(reader.next(), Ok(Some((3, Value::Fixed64(1)))));
        assert_eq!(reader.next(), Ok(Some((4, Value::Fixed32(2)))));
        assert_eq!(reader.next(), Ok(None));
    }

    #[test]
    fn what_is_not_whole_or_not_protobuf_is_an_error() {
        for bytes in [&[0x80][..], &[0x08], &[0x08, 0x80], &[0x12, 5, 1], &[0x19, 1, 2], &[0x25, 0]]
        {
            assert_eq!(Reader::new(bytes).next(), Err(Error::Truncated), "{bytes:?}");
        }
        // Groups, the number 0, and numbers that are too long.
        for bytes in [
            &[0x0b][..],
            &[0x0c],
            &[0x0e],
            &[0x02, 0],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert!(matches!(Reader::new(bytes).next(), Err(Error::Malformed { .. })), "{bytes:?}");
        }
        let endless = [0xff; 20];
        assert!(matches!(Reader::new(&endless).next(), Err(Error::Malformed { .. })));
        let huge_length = [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(Reader::new(&huge_length).next(), Err(Error::Truncated));
    }

    #[test]
    fn what_is_no_utf8_is_replaced_byte_by_byte_as_go_does() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            (b"a\xffb", "a\u{fffd}b"),
            // The beginning of a character of three bytes, and a surrogate.
            (b"\xe2\x82A", "\u{fffd}\u{fffd}A"),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{20ac}".as_bytes(), "\u{20ac}"),
        ] {
            assert_eq!(lossy(bytes), text, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(value: u64) {
            let mut bytes = vec![0x08];
            put_varint(value, &mut bytes);
            prop_assert_eq!(Reader::new(&bytes).next(), Ok(Some((1, Value::Varint(value)))));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while let Ok(Some(_)) = reader.next() {}
        }
    }
}
