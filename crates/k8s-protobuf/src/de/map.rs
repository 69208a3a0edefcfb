//! Objects: messages, the entries of maps, and parts of JSON.

mod access;
mod entry;

use std::borrow::Cow;

pub(super) use access::{Fields, Variant};

use super::Fault;
use super::json::Parts;
use super::key::Key;
use super::seq::elements;
use super::value::{De, Form, NO_FIELD};
use crate::Kind;
use crate::error::malformed;
use crate::schema::flags::{INLINE, LIST_ITEMS, MAP, OMIT_EMPTY, POINTER};
use crate::schema::{FieldDef, LeftOut, MessageDef, Taken};
use crate::wire::Reader;

pub(super) struct Map<'de> {
    rest: &'de [u8],
    /// The message definition of `rest`, if that is a message.
    message: &'static MessageDef,
    /// The current value.
    value: De<'de>,
    /// The key of the current value.
    key: &'de str,
    beside: Beside<'de>,
    /// The number of remaining entries, if known.
    left: u32,
    /// Position of the next field in the message's table. Fields before it were read, or found
    /// absent.
    at: u8,
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Message,
    /// Before the message: `kind` and `apiVersion`.
    Version(Kind),
    Kind(Kind),
    Entries,
    Json,
}

/// State that few maps need.
enum Beside<'de> {
    Nothing,
    /// The outer message, which continues after an inlined one.
    Outer(Box<Outer<'de>>),
    Json(Box<Parts<'de>>),
}

struct Outer<'de> {
    rest: &'de [u8],
    message: &'static MessageDef,
    at: u8,
    beside: Beside<'de>,
}

const WATCH_EVENT: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.WatchEvent";

static NO_MESSAGE: MessageDef = MessageDef::new("", &[]);

impl<'de> Map<'de> {
    fn new(rest: &'de [u8], message: &'static MessageDef, mode: Mode, depth: u8) -> Self {
        let value = De { bytes: &[], field: &NO_FIELD, count: 0, form: Form::Null, depth };
        Map { rest, message, value, key: "", beside: Beside::Nothing, left: 0, at: 0, mode }
    }

    pub(super) fn message(bytes: &'de [u8], message: &'static MessageDef, depth: u8) -> Self {
        Self::new(bytes, message, Mode::Message, depth)
    }

    /// An object, which begins with `kind` and `apiVersion`.
    pub(super) fn object(bytes: &'de [u8], kind: Kind, is_versioned: bool, depth: u8) -> Self {
        let mode = match is_versioned {
            // The only kind that is not an object in JSON.
            _ if kind.message().name == WATCH_EVENT => Mode::Message,
            true => Mode::Version(kind),
            false => Mode::Kind(kind),
        };
        Self::new(bytes, kind.message(), mode, depth)
    }

    /// The entries of a map.
    pub(super) fn entries(run: De<'de>, depth: u8) -> Self {
        let mut map = Self::new(run.bytes, &NO_MESSAGE, Mode::Entries, depth);
        map.value.field = run.field;
        map.left = run.count;
        map
    }

    pub(super) fn json(parts: Parts<'de>, depth: u8) -> Self {
        let mut map = Self::new(&[], &NO_MESSAGE, Mode::Json, depth);
        map.value.form = Form::Json;
        map.left = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        map.beside = Beside::Json(Box::new(parts));
        map
    }

    /// Advances to the next key and its value; false at the end.
    fn advance(&mut self) -> Result<bool, Fault> {
        match self.advance_quickly() {
            Some(is_one) => Ok(is_one),
            None => self.advance_slowly(),
        }
    }

    /// The fast path of [`advance`](Self::advance), for fields that [`take`](MessageDef::take)
    /// accepts, and for the end. Stops before any other, and returns `None`.
    #[inline]
    fn advance_quickly(&mut self) -> Option<bool> {
        if self.mode != Mode::Message {
            return None;
        }
        let message = self.message;
        loop {
            let at = usize::from(self.at);
            if self.rest.is_empty() {
                let is_end = message.are_left_out(at, message.fields.len());
                return (is_end && matches!(self.beside, Beside::Nothing)).then_some(false);
            }
            let Taken { rest, next, field, bytes, is_left_out } = message.take(self.rest, at)?;
            self.rest = rest;
            self.at = next as u8;
            if !is_left_out {
                self.value.bytes = bytes;
                self.value.field = field;
                self.value.form = Form::One;
                self.key = field.name;
                return Some(true);
            }
        }
    }

    #[inline(never)]
    fn advance_slowly(&mut self) -> Result<bool, Fault> {
        if self.mode != Mode::Message {
            return self.advance_otherwise();
        }
        loop {
            let met = match self.step()? {
                None => self.advance_quickly(),
                met => met,
            };
            if let Some(is_one) = met {
                return Ok(is_one);
            }
        }
    }

    /// Advances over one field or the end, in any form; `None` if there is more to do.
    fn step(&mut self) -> Result<Option<bool>, Fault> {
        let mut reader = Reader::new(self.rest);
        let (fields, at) = (self.message.fields, usize::from(self.at));
        // After the last field in the bytes come the absent ones.
        let (place, encoding) = if self.rest.is_empty() {
            (fields.len(), 0)
        } else {
            let (number, encoding) = reader.tag()?;
            match self.message.place(number) {
                Some(place) if place >= at => (place, encoding),
                _ => {
                    self.pass(reader, number, encoding)?;
                    return Ok(None);
                }
            }
        };
        // Usually all absent fields are left out.
        if !self.message.are_left_out(at, place) {
            for (at, field) in fields.iter().enumerate().take(place).skip(at) {
                self.at = at as u8 + 1;
                match self.absent(field) {
                    Absent::LeftOut => {}
                    Absent::Written => return Ok(Some(true)),
                    Absent::Entered => return Ok(None),
                }
            }
        }
        self.at = place as u8;
        let Some(field) = fields.get(place) else {
            return Ok(if self.leave() { None } else { Some(false) });
        };
        self.at += 1;
        if field.left_out == LeftOut::Many {
            return Ok(self.enter(field, reader, encoding)?.then_some(true));
        }
        if encoding != field.kind.encoding() {
            return Err(other_encoding(field));
        }
        let bytes = reader.payload(encoding)?;
        self.rest = reader.rest();
        self.value.bytes = bytes;
        self.value.field = field;
        self.value.form = Form::One;
        self.key = field.name;
        Ok(if self.value.is_left_out()? { None } else { Some(true) })
    }

    /// Sets the current value to what JSON has for an absent field.
    fn absent(&mut self, field: &'static FieldDef) -> Absent {
        if field.is_left_out() {
            return Absent::LeftOut;
        }
        self.value.form = if field.has(INLINE) {
            self.enter_inline(field, &[], self.rest);
            return Absent::Entered;
        } else if field.has(OMIT_EMPTY) {
            Form::One
        } else if field.has(LIST_ITEMS) {
            Form::Run
        } else if field.has(POINTER) {
            Form::Null
        } else {
            Form::One
        };
        self.value.bytes = &[];
        self.value.field = field;
        self.value.count = 0;
        self.key = field.name;
        Absent::Written
    }

    /// Enters a field that is repeated, a map or inlined; whether it becomes the next key.
    fn enter(
        &mut self,
        field: &'static FieldDef,
        mut reader: Reader<'de>,
        encoding: u8,
    ) -> Result<bool, Fault> {
        if field.has(INLINE) {
            if encoding != 2 {
                return Err(other_encoding(field));
            }
            let bytes = reader.payload(encoding)?;
            self.enter_inline(field, bytes, reader.rest());
            return Ok(false);
        }
        if field.has(MAP) && encoding != 2 {
            return Err(other_encoding(field));
        }
        let run = self.rest;
        let bytes = reader.payload(encoding)?;
        let mut count = if field.has(MAP) { 1 } else { elements(field, encoding, bytes)? };
        let mut end = reader.rest();
        while !end.is_empty() {
            // Usually each occurrence has one value.
            let mut ahead = Reader::new(end);
            if ahead.next_of(field.tag).is_some() {
                reader = ahead;
                count = count.saturating_add(1);
                end = reader.rest();
                continue;
            }
            let (number, encoding) = reader.tag()?;
            if number != u32::from(field.number) {
                break;
            }
            let bytes = reader.payload(encoding)?;
            let more =
                if field.has(MAP) && encoding == 2 { 1 } else { elements(field, encoding, bytes)? };
            count = count.saturating_add(more);
            end = reader.rest();
        }
        self.rest = end;
        if count == 0 {
            // A packed field without numbers.
            return Ok(matches!(self.absent(field), Absent::Written));
        }
        let form = if field.has(MAP) { Form::Entries } else { Form::Run };
        let depth = self.value.depth;
        self.value = De { bytes: &run[..run.len() - end.len()], field, count, form, depth };
        self.key = field.name;
        Ok(true)
    }

    /// Continues with an inlined message, and then after it.
    fn enter_inline(&mut self, field: &'static FieldDef, bytes: &'de [u8], behind: &'de [u8]) {
        let beside = std::mem::replace(&mut self.beside, Beside::Nothing);
        let outer = Outer { rest: behind, message: self.message, at: self.at, beside };
        self.beside = Beside::Outer(Box::new(outer));
        (self.rest, self.message, self.at) = (bytes, field.message(), 0);
    }

    /// Continues after the inlined message; whether there was one.
    fn leave(&mut self) -> bool {
        match std::mem::replace(&mut self.beside, Beside::Nothing) {
            Beside::Outer(outer) => {
                let Outer { rest, message, at, beside } = *outer;
                (self.rest, self.message, self.at, self.beside) = (rest, message, at, beside);
                true
            }
            other => {
                self.beside = other;
                false
            }
        }
    }

    /// Skips a field that is not in the table.
    #[cold]
    fn pass(&mut self, mut reader: Reader<'de>, number: u32, encoding: u8) -> Result<(), Fault> {
        // A field of the table gets here only if its place was passed.
        if self.message.field(number).is_some() {
            return Err(Fault::unordered());
        }
        reader.payload(encoding)?;
        self.rest = reader.rest();
        Ok(())
    }

    fn advance_otherwise(&mut self) -> Result<bool, Fault> {
        match self.mode {
            Mode::Version(kind) => {
                self.mode = Mode::Kind(kind);
                self.key = "apiVersion";
                self.value = De::text_of(kind.api_version(), self.value.depth);
                Ok(true)
            }
            Mode::Kind(kind) => {
                self.mode = Mode::Message;
                self.key = "kind";
                self.value = De::text_of(kind.name(), self.value.depth);
                Ok(true)
            }
            Mode::Entries => self.entry(),
            Mode::Json | Mode::Message => {
                let Beside::Json(parts) = &mut self.beside else { return Ok(false) };
                let Some(text) = parts.next() else { return Ok(false) };
                self.left = self.left.saturating_sub(1);
                self.value.bytes = text;
                Ok(true)
            }
        }
    }

    /// An error if another key follows.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.advance()? { Err(not_one_key()) } else { Ok(()) }
    }

    #[inline]
    fn key(&self) -> Key<'_, 'de> {
        match &self.beside {
            Beside::Json(parts) => match &parts.key {
                Cow::Borrowed(key) => Key::input(key),
                Cow::Owned(key) => Key { text: key, input: None },
            },
            _ => Key::input(self.key),
        }
    }

    #[cold]
    fn failed(&self, fault: Fault) -> Fault {
        fault.within(self.key().text)
    }
}

enum Absent {
    LeftOut,
    /// The field is the next key.
    Written,
    /// The field is an inlined message, whose fields come next.
    Entered,
}

#[cold]
fn other_encoding(field: &FieldDef) -> Fault {
    let fault = Fault::from(malformed("another encoding than that of the field"));
    if field.name.is_empty() { fault } else { fault.within(field.name) }
}

#[cold]
fn not_one_key() -> Fault {
    Fault::new("invalid value: map, expected map with a single key")
}
