//! JSON, as servers write it: members that the table knows, each once.

use std::borrow::Cow;
use std::cell::Cell;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::{ByteString, Resource};
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::{Entries, Items, Message, Source, Value};
use crate::Kind;
use crate::schema::flags::INLINE;
use crate::schema::{FieldDef, FieldKind, MessageDef};

/// The object, if it does not say that it is another kind.
pub(super) fn object<T: Message + Default + Resource>(text: &str) -> Option<T> {
    let kind = Kind::of(T::API_VERSION, T::KIND)?;
    let text = Text { all: text, at: Cell::new(0) };
    let mut object = T::default();
    members(&text, kind.message(), Some(kind), &mut object)?;
    text.space();
    (text.at.get() == text.all.len()).then_some(object)
}

/// A JSON text, and how far it was read.
pub(super) struct Text<'a> {
    all: &'a str,
    at: Cell<usize>,
}

/// The value that comes next.
#[derive(Clone, Copy)]
pub(super) struct Json<'a> {
    text: &'a Text<'a>,
    /// What the value is one of.
    field: &'static FieldDef,
}

impl<'a> Text<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.all.as_bytes().get(self.at.get()..).unwrap_or_default()
    }

    #[inline]
    fn advance(&self, by: usize) {
        self.at.set(self.at.get() + by);
    }

    #[inline]
    fn space(&self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes().first() {
            self.advance(1);
        }
    }

    /// The next byte that is no white space.
    #[inline]
    fn peek(&self) -> Option<u8> {
        match self.bytes().first() {
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => {
                self.space();
                self.bytes().first().copied()
            }
        }
    }

    #[inline]
    fn expect(&self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.advance(1);
        Some(())
    }

    fn word(&self, word: &str) -> Option<()> {
        if !self.bytes().starts_with(word.as_bytes()) {
            return None;
        }
        self.advance(word.len());
        Some(())
    }

    /// Begins an array or object; whether there is something in it.
    #[inline]
    fn open(&self, begin: u8, end: u8) -> Option<bool> {
        self.expect(begin)?;
        if self.peek()? != end {
            return Some(true);
        }
        self.advance(1);
        Some(false)
    }

    /// Whether another follows in an array or object.
    #[inline]
    fn more(&self, end: u8) -> Option<bool> {
        let next = self.peek()?;
        if next != b',' && next != end {
            return None;
        }
        self.advance(1);
        Some(next == b',')
    }

    /// A string without escapes.
    #[inline]
    fn plain(&self) -> Option<&'a str> {
        self.expect(b'"')?;
        let start = self.at.get();
        let length = plain_length(self.bytes());
        let plain = self.all.get(start..start + length)?;
        if self.all.as_bytes().get(start + length) != Some(&b'"') {
            return None;
        }
        self.advance(length + 1);
        Some(plain)
    }

    #[inline]
    fn string(&self) -> Option<Cow<'a, str>> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at.get();
        match self.plain() {
            Some(plain) => Some(Cow::Borrowed(plain)),
            None => {
                self.at.set(start);
                self.escaped().map(Cow::Owned)
            }
        }
    }

    /// A string with escapes, which begins here.
    #[inline(never)]
    fn escaped(&self) -> Option<String> {
        let bytes = self.bytes();
        let mut end = 1;
        loop {
            end += plain_length(bytes.get(end..)?);
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => return None,
            }
        }
        let start = self.at.get();
        let string = serde_json::from_str(self.all.get(start..=start + end)?).ok()?;
        self.advance(end + 1);
        Some(string)
    }

    /// An integer that fits, without a fraction.
    fn integer(&self) -> Option<i64> {
        let is_negative = self.peek()? == b'-';
        if is_negative {
            self.advance(1);
        }
        let bytes = self.bytes();
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (first, next) = (bytes.first()?, bytes.get(digits));
        // 18 digits fit. -0 is a float.
        let is_plain = (1..=18).contains(&digits) && (*first != b'0' || digits == 1 && !is_negative);
        if !is_plain || matches!(next, Some(b'.' | b'e' | b'E')) {
            return None;
        }
        let value = bytes[..digits].iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        self.advance(digits);
        Some(if is_negative { -value } else { value })
    }

    /// The next value through serde.
    fn by_serde<T: DeserializeOwned>(&self) -> Option<T> {
        let rest = self.all.get(self.at.get()..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<T>();
        let value = values.next()?.ok()?;
        self.advance(values.byte_offset());
        Some(value)
    }
}

/// How many bytes stand before a quote, a backslash or a control character.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let mut length = 0;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        // The lowest bit that is set is right; those above may be by a borrow.
        let found = (zero(word ^ (ONES * 0x22))
            | zero(word ^ (ONES * 0x5c))
            | word.wrapping_sub(ONES * 0x20) & !word)
            & HIGH;
        if found != 0 {
            return length + (found.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let is_plain = |byte: &&u8| !matches!(**byte, b'"' | b'\\' | 0..0x20);
    length + words.remainder().iter().take_while(is_plain).count()
}

/// Reads an object's members. `kind` is what it may say that it is.
fn members<'a>(
    text: &'a Text<'a>,
    def: &'static MessageDef,
    kind: Option<Kind>,
    object: &mut dyn Message,
) -> Option<()> {
    let mut names = Names { def, at: 0, seen: [0; 2] };
    let mut is_more = text.open(b'{', b'}')?;
    while is_more {
        let name = text.plain()?;
        text.expect(b':')?;
        match (names.find(name), kind) {
            (Some((key, field)), _) => {
                text.peek()?;
                object.set(key, Value::Json(Json { text, field }))?;
            }
            // Twice does no harm.
            (None, Some(kind)) if name == "kind" => (text.plain()? == kind.name()).then_some(())?,
            (None, Some(kind)) if name == "apiVersion" => {
                (text.plain()? == kind.api_version()).then_some(())?
            }
            (None, _) => return None,
        }
        is_more = text.more(b'}')?;
    }
    Some(())
}

/// Finds fields by their names in JSON, which come in the order of the fields mostly.
struct Names {
    def: &'static MessageDef,
    /// Behind the one found last.
    at: usize,
    /// A bit for each field that was found: those of the message, and those that JSON has inline.
    seen: [u64; 2],
}

impl Names {
    /// The field, and its key in the struct. `None` for another name, and for one that was found already.
    fn find(&mut self, name: &str) -> Option<(u16, &'static FieldDef)> {
        let fields = self.def.fields;
        let (before, from) = fields.split_at_checked(self.at)?;
        let places = (self.at..).zip(from).chain((0..).zip(before));
        for (place, field) in places {
            if field.has(INLINE) {
                let inner = field.message().fields;
                if let Some(within) = inner.iter().position(|field| field.name == name) {
                    self.see(1, within)?;
                    self.at = place;
                    let inner = &inner[within];
                    return Some((u16::from(field.number) << 8 | u16::from(inner.number), inner));
                }
            } else if field.name == name {
                self.see(0, place)?;
                self.at = place + 1;
                return Some((field.number.into(), field));
            }
        }
        None
    }

    fn see(&mut self, which: usize, place: usize) -> Option<()> {
        let bit = 1u64.checked_shl(place.try_into().ok()?)?;
        if self.seen[which] & bit != 0 {
            return None;
        }
        self.seen[which] |= bit;
        Some(())
    }
}

impl Source for Json<'_> {
    #[inline]
    fn is_null(self) -> Option<bool> {
        if self.text.peek()? != b'n' {
            return Some(false);
        }
        self.text.word("null")?;
        Some(true)
    }

    fn text(self) -> Option<String> {
        self.text.string().map(Cow::into_owned)
    }

    fn bool(self) -> Option<bool> {
        let value = self.text.peek()? == b't';
        self.text.word(if value { "true" } else { "false" })?;
        Some(value)
    }

    fn i32(self) -> Option<i32> {
        self.text.integer()?.try_into().ok()
    }

    fn i64(self) -> Option<i64> {
        self.text.integer()
    }

    fn bytes(self) -> Option<Vec<u8>> {
        let text = self.text.string()?;
        let text: StrDeserializer<'_, Error> = text.as_ref().into_deserializer();
        ByteString::deserialize(text).ok().map(|bytes| bytes.0)
    }

    fn quantity(self) -> Option<String> {
        self.text()
    }

    fn int_or_string(self) -> Option<IntOrString> {
        match self.text.peek()? {
            b'"' => self.text().map(IntOrString::String),
            _ => self.i32().map(IntOrString::Int),
        }
    }

    fn time(self, _: FieldKind) -> Option<Timestamp> {
        self.text.plain()?.parse().ok()
    }

    fn by_serde<T: DeserializeOwned>(self) -> Option<T> {
        self.text.by_serde()
    }

    fn items(self, items: &mut dyn Items) -> Option<()> {
        let mut is_more = self.text.open(b'[', b']')?;
        while is_more {
            if self.is_null()? {
                return None;
            }
            let length = items.len();
            if length == items.capacity() {
                items.reserve_exact(length.max(1));
            }
            items.push(Value::Json(self))?;
            is_more = self.text.more(b']')?;
        }
        Some(())
    }

    fn entries(self, entries: &mut dyn Entries) -> Option<()> {
        let mut is_more = self.text.open(b'{', b'}')?;
        while is_more {
            let key = self.text.string()?.into_owned();
            self.text.expect(b':')?;
            if self.is_null()? {
                return None;
            }
            entries.put(key, Value::Json(self))?;
            is_more = self.text.more(b'}')?;
        }
        Some(())
    }

    fn message(self, object: &mut dyn Message, name: &'static str) -> Option<()> {
        if self.field.kind != FieldKind::Message {
            return None;
        }
        let def = self.field.message();
        debug_assert_eq!(def.name, name);
        // The one object within others, in StatefulSets, which says what it is.
        let kind = (name == "k8s.io/api/core/v1.PersistentVolumeClaim")
            .then(|| Kind::of("v1", "PersistentVolumeClaim"));
        members(self.text, def, kind.flatten(), object)
    }
}
