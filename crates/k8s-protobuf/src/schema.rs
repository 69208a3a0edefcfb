//! The table of kinds, messages and fields, and its lookups.

#[rustfmt::skip]
mod table;

use std::fmt;

use crate::Error;
use crate::wire::{Pair, Reader};

/// A built-in kind: group, version and kind with a message in the table. Two bytes large.
///
/// # Examples
/// ```
/// use k8s_protobuf::Kind;
///
/// let pods = Kind::of("v1", "PodList").expect("it is built in");
/// assert_eq!(pods.item(), Kind::of("v1", "Pod"));
/// assert_eq!(Kind::of("example.com/v1", "Widget"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(u16);

impl Kind {
    /// The kind of this group and version, such as `apps/v1`, and name.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let place = table::KINDS
            .binary_search_by(|entry| (entry.api_version, entry.kind).cmp(&(api_version, kind)));
        place.ok().and_then(|at| u16::try_from(at).ok()).map(Self)
    }

    /// The kind that an envelope or an object names, or an error with that name.
    pub(crate) fn find(api_version: &str, kind: &str) -> Result<Self, Error> {
        // Written by a server or a user: cut to a length that fits into an error.
        let shortened = |text: &str| text.chars().take(128).collect();
        // Servers send discovery documents, which are of v1, without a version.
        let version = if api_version.is_empty() { "v1" } else { api_version };
        Self::of(version, kind).ok_or_else(|| Error::UnknownKind {
            api_version: shortened(api_version),
            kind: shortened(kind),
        })
    }

    /// All kinds of the table, by group and version, then name.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..u16::try_from(table::KINDS.len()).unwrap_or(u16::MAX)).map(Self)
    }

    /// Group and version, such as `apps/v1` or `v1`.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        self.entry().api_version
    }

    /// The name, such as `Deployment`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().kind
    }

    /// The kind of a list's items; `None` if this is no list of one kind.
    #[must_use]
    pub fn item(self) -> Option<Self> {
        let items = self.message().fields.iter().find(|field| field.has(flags::LIST_ITEMS))?;
        let name = self.name().strip_suffix("List")?;
        Self::of(self.api_version(), name).filter(|item| item.entry().message == items.message)
    }

    pub(crate) fn message(self) -> &'static MessageDef {
        &table::MESSAGES[usize::from(self.entry().message)]
    }

    /// Its place in the table; see [`at`](Self::at).
    pub(crate) fn place(self) -> u16 {
        self.0
    }

    /// The kind at this place of the table, as returned by [`place`](Self::place).
    pub(crate) fn at(place: u16) -> Self {
        Self(place)
    }

    fn entry(self) -> &'static KindDef {
        &table::KINDS[usize::from(self.0)]
    }
}

/// `apps/v1 Deployment`
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.name())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({self})")
    }
}

pub(crate) struct KindDef {
    api_version: &'static str,
    kind: &'static str,
    /// Place in the table of messages.
    message: u16,
}

pub(crate) struct MessageDef {
    /// Go's package and type, such as `k8s.io/api/core/v1.Pod`.
    pub(crate) name: &'static str,
    /// Ascending by number.
    pub(crate) fields: &'static [FieldDef],
    /// A bit for each of the first 64 fields: whether JSON has the field even when it is absent.
    written: u64,
}

/// A field found in the bytes.
pub(crate) struct Step<'a> {
    pub(crate) place: usize,
    pub(crate) field: &'static FieldDef,
    /// Its tag, and its length or, for a number, its value.
    pub(crate) pair: Pair<'a>,
    /// The value's bytes, and the rest of the message.
    pub(crate) behind: Reader<'a>,
}

/// A field with one value, found in the bytes.
pub(crate) struct Taken<'a> {
    /// What follows.
    pub(crate) rest: &'a [u8],
    /// The place after it.
    pub(crate) next: usize,
    pub(crate) field: &'static FieldDef,
    /// Its [payload](Reader::payload).
    pub(crate) bytes: &'a [u8],
    /// Whether JSON leaves it out.
    pub(crate) is_left_out: bool,
}

/// Aligned to a cache line each: most are read wherever a message has them.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct FieldDef {
    pub(crate) number: u8,
    pub(crate) flags: u8,
    pub(crate) kind: FieldKind,
    pub(crate) left_out: LeftOut,
    pub(crate) written_as: WrittenAs,
    /// The tag before a value: the field's number, and the encoding of the value or of the map's
    /// entry.
    pub(crate) tag: u16,
    /// Place in the table of messages, if the kind has one.
    message: u16,
    /// The name in JSON; empty for an inlined message.
    pub(crate) name: &'static str,
    /// The name between a comma and a text; see [`key`](Self::key).
    key: [u8; KEY],
}

/// Maximum length of a [key](FieldDef::key).
pub(crate) const KEY: usize = 32;

/// Which value of a singular field that is present Go omits from JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOut {
    Never,
    /// An empty one.
    Empty,
    /// The number 0.
    Zero,
    /// It has to be read to tell.
    Told,
    /// The field is repeated, a map, or inlined.
    Many,
}

/// How JSON is written of a field that is present and not omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenAs {
    Text,
    Message,
    /// An integer or a bool.
    Number,
    /// Any other kind, or several values.
    Other,
}

/// The kind of a field's value: of one element of a repeated field, of one value of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Str,
    Bytes,
    Bool,
    I32,
    I64,
    F64,
    Message,
    /// A text in JSON; seconds and nanoseconds in protobuf.
    Time,
    MicroTime,
    Duration,
    /// A text within a message.
    Quantity,
    IntOrString,
    /// JSON within a message.
    RawJson,
    /// Texts within a message; an array in JSON.
    StrList,
    PropsOrArray,
    PropsOrBool,
    PropsOrStringArray,
}

pub(crate) mod flags {
    /// An array in JSON.
    pub(crate) const REPEATED: u8 = 1;
    /// An object in JSON with texts as keys; in protobuf one message with key (1) and value (2) per
    /// entry.
    pub(crate) const MAP: u8 = 2;
    /// An inlined message: its fields stand in the parent's JSON.
    pub(crate) const INLINE: u8 = 4;
    /// May be absent: a pointer, slice or map in Go.
    pub(crate) const POINTER: u8 = 8;
    pub(crate) const OMIT_EMPTY: u8 = 16;
    pub(crate) const OMIT_ZERO: u8 = 32;
    /// The items of a list of one kind.
    pub(crate) const LIST_ITEMS: u8 = 64;
}

impl MessageDef {
    pub(crate) const fn new(name: &'static str, fields: &'static [FieldDef]) -> Self {
        let (mut written, mut at) = (0, 0);
        while at < fields.len() && at < 64 {
            if !fields[at].is_left_out() {
                written |= 1 << at;
            }
            at += 1;
        }
        Self { name, fields, written }
    }

    pub(crate) fn field(&self, number: u32) -> Option<&'static FieldDef> {
        self.place(number).map(|at| &self.fields[at])
    }

    /// The place of the field with this number.
    #[inline]
    pub(crate) fn place(&self, number: u32) -> Option<usize> {
        // Numbers begin at 1 and have few gaps: usually the field is at the place that its number
        // suggests.
        let number = u8::try_from(number).ok()?;
        let place = usize::from(number).wrapping_sub(1);
        match self.fields.get(place) {
            Some(field) if field.number == number => Some(place),
            _ => self.fields.binary_search_by_key(&number, |field| field.number).ok(),
        }
    }

    /// The first field of the rest of a message, if it is of the usual form: at place `at` or after
    /// it, with a tag and a length or number of one or two bytes each. Does not check that the
    /// bytes are there.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn step<'a>(&self, rest: &'a [u8], at: usize) -> Option<Step<'a>> {
        let mut behind = Reader::new(rest);
        let pair = behind.pair()?;
        let place = usize::from(pair.tag >> 3).wrapping_sub(1);
        let field = self.fields.get(place)?;
        let is_it = field.tag == pair.tag && place >= at && matches!(pair.tag & 7, 0 | 2);
        is_it.then_some(Step { place, field, pair, behind })
    }

    /// A [step](Self::step) with one value, if all fields before it are omitted from JSON.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take<'a>(&self, rest: &'a [u8], at: usize) -> Option<Taken<'a>> {
        let Step { place, field, pair, mut behind } = self.step(rest, at)?;
        if !self.are_left_out(at, place) {
            return None;
        }
        let is_left_out = match field.left_out {
            LeftOut::Many | LeftOut::Told => return None,
            LeftOut::Empty | LeftOut::Zero => pair.number == 0,
            LeftOut::Never => false,
        };
        let bytes = behind.held(&pair)?;
        Some(Taken { rest: behind.rest(), next: place + 1, field, bytes, is_left_out })
    }

    /// Whether JSON omits all of these fields when they are absent. May be false where it does.
    #[inline]
    pub(crate) fn are_left_out(&self, from: usize, to: usize) -> bool {
        from == to || to <= 64 && (self.written >> from) << (64 - (to - from)) == 0
    }
}

impl FieldKind {
    /// Whether JSON can have `null` for a value that is present.
    pub(crate) const fn may_be_null(self) -> bool {
        use FieldKind::*;
        matches!(self, Time | MicroTime | RawJson | PropsOrArray | PropsOrStringArray)
    }

    /// Whether it is a plain value in Go, which `omitempty` omits when it is zero. Structs are not.
    pub(crate) const fn is_plain(self) -> bool {
        use FieldKind::*;
        matches!(self, Str | Bool | I32 | I64 | F64)
    }

    /// How protobuf encodes one value.
    pub(crate) const fn encoding(self) -> u8 {
        use FieldKind::*;
        match self {
            Bool | I32 | I64 => 0,
            F64 => 1,
            _ => 2,
        }
    }
}

impl LeftOut {
    const fn of(kind: FieldKind, flags: u8) -> Self {
        use flags::{INLINE, MAP, OMIT_EMPTY, OMIT_ZERO, POINTER, REPEATED};
        let is_pointer = flags & POINTER != 0;
        match kind {
            _ if flags & (REPEATED | MAP | INLINE) != 0 => Self::Many,
            _ if flags & (OMIT_EMPTY | OMIT_ZERO) == 0 => Self::Never,
            FieldKind::Bytes => Self::Empty,
            FieldKind::Str if !is_pointer => Self::Empty,
            FieldKind::Bool | FieldKind::I32 | FieldKind::I64 if !is_pointer => Self::Zero,
            FieldKind::F64 if !is_pointer => Self::Told,
            _ if flags & OMIT_ZERO != 0 && kind.may_be_null() => Self::Told,
            _ => Self::Never,
        }
    }
}

impl WrittenAs {
    const fn of(kind: FieldKind, left_out: LeftOut) -> Self {
        match kind {
            _ if matches!(left_out, LeftOut::Many) => Self::Other,
            FieldKind::Str => Self::Text,
            FieldKind::Message => Self::Message,
            FieldKind::Bool | FieldKind::I32 | FieldKind::I64 => Self::Number,
            _ => Self::Other,
        }
    }
}

impl FieldDef {
    /// A text field without a name.
    pub(crate) const fn text() -> Self {
        f(0, "", FieldKind::Str, 0, 0)
    }

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether JSON omits the field when it is absent.
    pub(crate) const fn is_left_out(&self) -> bool {
        use flags::{INLINE, OMIT_EMPTY, OMIT_ZERO, POINTER};
        // `omitempty` has no effect on structs.
        let can_be_empty =
            self.has(POINTER) || self.kind.is_plain() || matches!(self.kind, FieldKind::Bytes);
        match self.has(INLINE) {
            true => self.has(POINTER),
            false => self.has(OMIT_ZERO) || self.has(OMIT_EMPTY) && can_be_empty,
        }
    }

    /// The name between a comma and a text, `,"name":"`, padded, and its length; `None` if it is
    /// too long.
    #[inline]
    pub(crate) fn key(&self) -> Option<(&[u8; KEY], usize)> {
        let length = self.name.len() + 5;
        (length <= KEY).then_some((&self.key, length))
    }

    /// The message of a field, for kinds that have one.
    pub(crate) fn message(&self) -> &'static MessageDef {
        &table::MESSAGES[usize::from(self.message)]
    }
}

#[cfg(test)]
pub(crate) fn all_messages() -> &'static [MessageDef] {
    &table::MESSAGES
}

const _: () = assert!(size_of::<FieldDef>() == 64, "see there");

const fn f(number: u8, name: &'static str, kind: FieldKind, flags: u8, message: u16) -> FieldDef {
    // Entries of a map are messages.
    let encoding = if flags & flags::MAP == 0 { kind.encoding() } else { 2 };
    let tag = (number as u16) << 3 | encoding as u16;
    let left_out = LeftOut::of(kind, flags);
    let written_as = WrittenAs::of(kind, left_out);
    FieldDef { number, flags, kind, left_out, written_as, tag, message, name, key: key(name) }
}

const fn key(name: &str) -> [u8; KEY] {
    let mut key = [0; KEY];
    if name.len() + 5 <= KEY {
        let (before, rest) = key.split_at_mut(2);
        let (within, rest) = rest.split_at_mut(name.len());
        before.copy_from_slice(b",\"");
        within.copy_from_slice(name.as_bytes());
        rest.split_at_mut(3).0.copy_from_slice(b"\":\"");
    }
    key
}

const fn m(name: &'static str, fields: &'static [FieldDef]) -> MessageDef {
    MessageDef::new(name, fields)
}

#[cfg(test)]
mod tests;
