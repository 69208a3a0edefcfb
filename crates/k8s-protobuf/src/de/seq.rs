//! Arrays: repeated fields, and parts of JSON.

use serde::de::{DeserializeSeed, SeqAccess};

use super::Fault;
use super::json::Parts;
use super::value::{De, Form};
use crate::Error;
use crate::error::malformed;
use crate::schema::FieldDef;
use crate::wire::Reader;

pub(super) struct Seq<'de> {
    rest: &'de [u8],
    /// The rest of a packed field.
    packed: &'de [u8],
    json: Option<Box<Parts<'de>>>,
    /// The current element.
    value: De<'de>,
    /// The number of the elements' field; other fields are skipped.
    number: u32,
    /// The number of elements.
    count: u32,
    /// The number of elements taken.
    taken: u32,
}

impl<'de> Seq<'de> {
    /// The elements of a repeated field.
    pub(super) fn run(run: De<'de>, depth: u8) -> Self {
        Self::fields(run.bytes, run.field.number.into(), Form::One, run.field, run.count, depth)
    }

    /// The fields with this number in a message.
    pub(super) fn fields(
        message: &'de [u8],
        number: u32,
        form: Form,
        field: &'static FieldDef,
        count: u32,
        depth: u8,
    ) -> Self {
        let value = De { bytes: &[], field, count: 0, form, depth };
        Seq { rest: message, packed: &[], json: None, value, number, count, taken: 0 }
    }

    pub(super) fn json(parts: Parts<'de>, field: &'static FieldDef, depth: u8) -> Self {
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let value = De { bytes: &[], field, count: 0, form: Form::Json, depth };
        Seq {
            rest: &[],
            packed: &[],
            json: Some(Box::new(parts)),
            value,
            number: 0,
            count,
            taken: 0,
        }
    }

    /// Advances to the next element; false at the end.
    fn advance(&mut self) -> Result<bool, Fault> {
        // Usually elements are not packed, and short.
        let mut reader = Reader::new(self.rest);
        if self.value.form == Form::One
            && let Some(bytes) = reader.next_of(self.value.field.tag)
            && self.packed.is_empty()
        {
            self.rest = reader.rest();
            self.value.bytes = bytes;
            return Ok(true);
        }
        self.advance_slowly()
    }

    #[inline(never)]
    fn advance_slowly(&mut self) -> Result<bool, Fault> {
        if let Some(parts) = &mut self.json {
            let part = parts.next();
            self.value.bytes = part.unwrap_or_default();
            return Ok(part.is_some());
        }
        // Elements of a packed field, messages or texts.
        let own = if self.value.form == Form::One { self.value.field.kind.encoding() } else { 2 };
        loop {
            if !self.packed.is_empty() {
                let mut reader = Reader::new(self.packed);
                self.value.bytes = reader.payload(own)?;
                self.packed = reader.rest();
                return Ok(true);
            }
            if self.rest.is_empty() {
                return Ok(false);
            }
            let mut reader = Reader::new(self.rest);
            let (number, encoding) = reader.tag()?;
            let bytes = reader.payload(encoding)?;
            self.rest = reader.rest();
            if number != self.number {
                continue;
            }
            if encoding == own {
                self.value.bytes = bytes;
                return Ok(true);
            }
            // Numbers may be packed into one field.
            if encoding != 2 {
                return Err(malformed("another encoding than that of the field").into());
            }
            self.packed = bytes;
        }
    }

    /// An error if elements are left where the type takes this many.
    pub(super) fn end(&mut self, length: usize) -> Result<(), Fault> {
        if !self.advance()? {
            return Ok(());
        }
        let expected = format!("an array of {length} elements");
        Err(serde::de::Error::invalid_length(self.count as usize, &expected.as_str()))
    }
}

/// The number of elements in one occurrence of a repeated field.
pub(super) fn elements(field: &FieldDef, encoding: u8, bytes: &[u8]) -> Result<u32, Error> {
    let count = match field.kind.encoding() {
        own if own == encoding => 1,
        0 if encoding == 2 => bytes.iter().filter(|byte| **byte < 0x80).count(),
        1 if encoding == 2 => bytes.len() / 8,
        _ => return Err(malformed("another encoding than that of the field")),
    };
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Borrowed, so that calling a visitor moves only a pointer.
pub(super) struct Items<'a, 'de>(pub(super) &'a mut Seq<'de>);

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        if !self.0.advance()? {
            return Ok(None);
        }
        let index = self.0.taken;
        self.0.taken = index.saturating_add(1);
        match seed.deserialize(self.0.value) {
            Ok(value) => Ok(Some(value)),
            Err(fault) => Err(fault.at(index)),
        }
    }

    /// Exact. Each element has at least one byte.
    fn size_hint(&self) -> Option<usize> {
        Some(self.0.count.saturating_sub(self.0.taken) as usize)
    }
}
