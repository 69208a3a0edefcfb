//! Splitting the protobuf body of a list.

use bytes::Bytes;
use k8s_protobuf::{CONTENT_TYPE, Kind, MAGIC, Reader};

use crate::version::ResourceVersion;
use crate::wire::collect::Collector;
use crate::wire::format::SplitList;
use crate::wire::{Encoding, FrameError, ListHead, ListPart, WireObject};

/// Cuts the protobuf body of a list into its items, as its chunks arrive.
///
/// The body is `k8s\0` and a `runtime.Unknown` around a list's message. An item within one chunk is
/// a slice of it. Other items are assembled in a buffer, which holds one item at most. Other fields
/// are skipped without being held. A body that is not a list, such as a `Status`, is recognized by
/// its [kind](ListHead::kind).
#[derive(Debug)]
pub(in crate::wire) struct ProtobufListSplitter {
    state: State,
    /// Where in the message the bytes are.
    level: Level,
    number: Varint,
    collector: Collector,
    head: ListHead,
    content: Content,
    /// The length of what was read.
    offset: u64,
    failed: Option<FrameError>,
}

impl ProtobufListSplitter {
    /// A splitter for a new body whose items may be `limit` bytes long.
    pub(in crate::wire) fn new(limit: usize) -> Self {
        Self {
            state: State::Magic(0),
            level: Level::Envelope,
            number: Varint::default(),
            collector: Collector::new(limit),
            head: ListHead::default(),
            content: Content::Unknown,
            offset: 0,
            failed: None,
        }
    }

    fn advance(&mut self, chunk: &Bytes, out: &mut Vec<ListPart>) -> Result<(), FrameError> {
        let mut at = 0;
        while at < chunk.len() {
            let rest = chunk.len() - at;
            match self.state {
                State::Magic(seen) => {
                    if chunk[at] != MAGIC[seen] {
                        return Err(self.malformed("\"k8s\\0\", with which protobuf begins"));
                    }
                    at += 1;
                    self.offset += 1;
                    let is_last = seen + 1 == MAGIC.len();
                    self.state = if is_last { State::Tag } else { State::Magic(seen + 1) };
                }
                State::Tag | State::Length(_) | State::SkipNumber => {
                    if self.level.end() == Some(self.offset) {
                        return Err(self.malformed(WITHIN));
                    }
                    let Ok(number) = self.number.push(chunk[at]) else {
                        return Err(self.malformed("a number of at most 64 bits"));
                    };
                    at += 1;
                    self.offset += 1;
                    if let Some(number) = number {
                        self.number(number, out)?;
                    }
                }
                State::Skip(left) => {
                    let skipped = usize::try_from(left).map_or(rest, |left| left.min(rest));
                    at += skipped;
                    self.offset += skipped as u64;
                    match left - skipped as u64 {
                        0 => self.next_field(),
                        left => self.state = State::Skip(left),
                    }
                }
                State::Collect(field, left, more) if left > rest => {
                    self.collector.keep(&chunk[at..]).map_err(|_| self.too_large())?;
                    at += rest;
                    self.offset += rest as u64;
                    self.state = State::Collect(field, left - rest, more);
                }
                State::Collect(field, left, more) => {
                    let value = self.collector.complete(chunk, at, at + left);
                    let value = value.map_err(|_| self.too_large())?;
                    at += left;
                    self.offset += left as u64;
                    match more {
                        0 => self.value(field, value, out)?,
                        more => self.beginning(value, more, out),
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles a complete number: a tag, a length, or one to be skipped.
    fn number(&mut self, number: u64, out: &mut Vec<ListPart>) -> Result<(), FrameError> {
        match self.state {
            State::Tag => self.tag(number)?,
            State::Length(field) => self.length(field, number, out)?,
            _ => self.next_field(),
        }
        Ok(())
    }

    fn tag(&mut self, tag: u64) -> Result<(), FrameError> {
        let field = match (self.level, tag >> 3) {
            (_, 0 | TOO_HIGH..) => return Err(self.malformed("the number of a field")),
            (Level::Envelope, 1) => Field::Types,
            (Level::Envelope, 2) => Field::Content,
            (Level::Envelope, 3) => Field::Encoding,
            (Level::Envelope, 4) => Field::ContentType,
            (Level::List { .. }, 1) => Field::Metadata,
            (Level::List { .. }, 2) => Field::Item,
            _ => Field::Unknown,
        };
        self.state = match (tag & 7, field) {
            (2, field) => State::Length(field),
            (0, Field::Unknown) => State::SkipNumber,
            (1, Field::Unknown) => State::Skip(8),
            (5, Field::Unknown) => State::Skip(4),
            _ => return Err(self.malformed("a field as it is encoded in lists")),
        };
        if let State::Skip(length) = self.state {
            self.end_of(length)?;
        }
        Ok(())
    }

    fn length(
        &mut self,
        field: Field,
        length: u64,
        out: &mut Vec<ListPart>,
    ) -> Result<(), FrameError> {
        let end = self.end_of(length)?;
        match field {
            Field::Unknown => self.state = State::Skip(length),
            Field::Content => match self.content {
                Content::Unknown => {
                    return Err(self.malformed("the kind before the content, and both once"));
                }
                Content::Read => return Err(self.malformed("the content once")),
                Content::Other => {
                    self.content = Content::Read;
                    self.state = State::Skip(length);
                }
                Content::ItemsOf(item) => {
                    self.content = Content::Read;
                    self.level = Level::List { item, end };
                    self.state = State::Tag;
                }
            },
            _ => {
                let limit = self.collector.limit();
                match usize::try_from(length) {
                    Ok(length) if length <= limit => self.state = State::Collect(field, length, 0),
                    _ if field == Field::Item => {
                        self.state = State::Collect(field, limit, length - limit as u64);
                    }
                    _ => return Err(self.too_large()),
                }
            }
        }
        match self.state {
            // There may be no byte that would come next.
            State::Collect(field, 0, 0) => self.value(field, Bytes::new(), out)?,
            State::Collect(_, 0, more) => self.beginning(Bytes::new(), more, out),
            State::Skip(0) | State::Tag => self.next_field(),
            _ => {}
        }
        Ok(())
    }

    /// Handles the collected value of a field.
    fn value(
        &mut self,
        field: Field,
        value: Bytes,
        out: &mut Vec<ListPart>,
    ) -> Result<(), FrameError> {
        match (field, self.level) {
            (Field::Item, Level::List { item, .. }) => {
                out.push(ListPart::Item(WireObject {
                    encoding: Encoding::Protobuf(item),
                    bytes: value,
                }));
            }
            (Field::Types, _) => {
                if matches!(self.content, Content::Read) {
                    return Err(self.malformed("the kind before the content"));
                }
                self.head.read_types(&value).map_err(|_| self.malformed("apiVersion and kind"))?;
                self.content = self.content()?;
            }
            (Field::Metadata, _) => {
                self.head
                    .read_metadata(&value)
                    .map_err(|_| self.malformed("the metadata of a list"))?;
            }
            (Field::Encoding, _) if !value.is_empty() => {
                return Err(self.malformed("content that is not compressed within its envelope"));
            }
            (Field::ContentType, _)
                if !value.is_empty() && !value.starts_with(CONTENT_TYPE.as_bytes()) =>
            {
                return Err(self.malformed("protobuf within the envelope"));
            }
            _ => {}
        }
        self.next_field();
        Ok(())
    }

    /// Handles the beginning of an item that is too large, of which `more` bytes follow.
    fn beginning(&mut self, beginning: Bytes, more: u64, out: &mut Vec<ListPart>) {
        if let Level::List { item, .. } = self.level {
            let offset = self.offset - beginning.len() as u64;
            let error = FrameError::TooLarge { offset, limit: self.collector.limit() };
            let beginning = WireObject { encoding: Encoding::Protobuf(item), bytes: beginning };
            out.push(ListPart::TooLarge { beginning, error });
        }
        self.state = State::Skip(more);
    }

    /// The kind of content, once the kind of the object is known.
    fn content(&self) -> Result<Content, FrameError> {
        let ListHead { api_version, kind, .. } = &self.head;
        let Some(known) = Kind::of(api_version, kind) else {
            return Err(FrameError::unknown_kind(api_version, kind));
        };
        match known.item() {
            Some(item) => Ok(Content::ItemsOf(item)),
            None if kind.ends_with("List") => Err(self.malformed("a list of objects of one kind")),
            None => Ok(Content::Other),
        }
    }

    /// The offset at which a value of this length ends, if it fits.
    fn end_of(&self, length: u64) -> Result<u64, FrameError> {
        let end = self.offset.checked_add(length);
        end.filter(|end| *end <= self.level.end().unwrap_or(u64::MAX))
            .ok_or_else(|| self.malformed(WITHIN))
    }

    /// Ends a field; after the last one, ends the list, too.
    fn next_field(&mut self) {
        self.state = State::Tag;
        if self.level.end() == Some(self.offset) {
            self.level = Level::Envelope;
        }
    }

    fn malformed(&self, expected: &'static str) -> FrameError {
        FrameError::Malformed { offset: self.offset, expected }
    }

    fn too_large(&self) -> FrameError {
        let offset = self.offset - self.collector.len() as u64;
        FrameError::TooLarge { offset, limit: self.collector.limit() }
    }
}

impl SplitList for ProtobufListSplitter {
    fn push(&mut self, chunk: Bytes, out: &mut Vec<ListPart>) -> Result<(), FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.advance(&chunk, out);
        self.failed = result.clone().err();
        result
    }

    fn finish(self: Box<Self>) -> Result<ListHead, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let is_between_fields = matches!(self.state, State::Tag) && self.number.is_empty();
        match (self.level, self.content) {
            (Level::Envelope, Content::Read) if is_between_fields => Ok(self.head),
            _ => Err(FrameError::Truncated { offset: self.offset }),
        }
    }
}

impl ListHead {
    /// Reads a `runtime.TypeMeta`.
    fn read_types(&mut self, message: &[u8]) -> Result<(), k8s_protobuf::Error> {
        let mut fields = Reader::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => value.text()?.clone_into(&mut self.api_version),
                2 => value.text()?.clone_into(&mut self.kind),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a `ListMeta`.
    fn read_metadata(&mut self, message: &[u8]) -> Result<(), k8s_protobuf::Error> {
        let mut fields = Reader::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                2 => self.resource_version = ResourceVersion::new(value.text()?),
                3 => {
                    self.continue_token =
                        Some(value.text()?.to_owned()).filter(|token| !token.is_empty())
                }
                // It is only informative: the list is valid whatever the value is (G30). Negative
                // numbers are large ones here.
                4 => {
                    let count = value.varint().ok().filter(|count| i64::try_from(*count).is_ok());
                    self.remaining_item_count = count;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// This many bytes of `k8s\0` were read.
    Magic(usize),
    /// Within a tag: the number of a field and how it is encoded.
    Tag,
    /// Within the length of this field.
    Length(Field),
    /// Within a number to be skipped.
    SkipNumber,
    /// This many bytes are left of a field to be skipped.
    Skip(u64),
    /// The number of bytes left of this field. If it is too large, of its beginning; the second
    /// number is that of the bytes after it.
    Collect(Field, usize, u64),
}

#[derive(Debug, Clone, Copy)]
enum Level {
    Envelope,
    /// The message of a list, which ends at this offset.
    List {
        item: Kind,
        end: u64,
    },
}

impl Level {
    fn end(self) -> Option<u64> {
        match self {
            Self::Envelope => None,
            Self::List { end, .. } => Some(end),
        }
    }
}

/// The envelope's content.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// The kind is not known yet.
    Unknown,
    /// A list of this kind follows.
    ItemsOf(Kind),
    /// Something other than a list follows.
    Other,
    /// It has begun.
    Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Types,
    Content,
    Encoding,
    ContentType,
    Metadata,
    Item,
    Unknown,
}

/// A number in protobuf's encoding, byte by byte.
#[derive(Debug, Default)]
struct Varint {
    value: u64,
    bits: u32,
}

/// The number has more than 64 bits.
struct TooLong;

impl Varint {
    /// Adds the next byte. Returns the number with its last byte, and then starts with a new one.
    fn push(&mut self, byte: u8) -> Result<Option<u64>, TooLong> {
        if self.bits == 63 && byte > 1 {
            return Err(TooLong);
        }
        self.value |= u64::from(byte & 0x7f) << self.bits;
        self.bits += 7;
        Ok((byte < 0x80).then(|| std::mem::take(self).value))
    }

    fn is_empty(&self) -> bool {
        self.bits == 0
    }
}

/// One more than the highest number of a field.
const TOO_HIGH: u64 = 1 << 29;

const WITHIN: &str = "a field within its message";

#[cfg(test)]
mod tests;
