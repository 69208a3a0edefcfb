//! The entries of maps: messages with key (1) and value (2).

use super::{Map, other_encoding};
use crate::de::Fault;
use crate::de::value::{Form, utf8};
use crate::wire::Reader;

impl<'de> Map<'de> {
    /// Advances to the next entry; false at the end.
    pub(super) fn entry(&mut self) -> Result<bool, Fault> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        let (key, value) = match self.short_entry() {
            Some(entry) => entry,
            None => self.long_entry()?,
        };
        self.key = utf8(key)?;
        self.left = self.left.saturating_sub(1);
        self.value.bytes = value;
        self.value.form = Form::One;
        Ok(true)
    }

    /// The usual entry: a key, then a value.
    fn short_entry(&mut self) -> Option<(&'de [u8], &'de [u8])> {
        let mut reader = Reader::new(self.rest);
        let field = self.value.field;
        let mut entry = Reader::new(reader.next_of(field.tag)?);
        let key = entry.next_of(1 << 3 | 2)?;
        let value = entry.next_of(2 << 3 | u16::from(field.kind.encoding()))?;
        if !entry.rest().is_empty() {
            return None;
        }
        self.rest = reader.rest();
        Some((key, value))
    }

    fn long_entry(&mut self) -> Result<(&'de [u8], &'de [u8]), Fault> {
        let mut reader = Reader::new(self.rest);
        let (_, encoding) = reader.tag()?;
        let mut entry = Reader::new(reader.payload(encoding)?);
        self.rest = reader.rest();
        let (mut key, mut value) = (&b""[..], &b""[..]);
        while !entry.rest().is_empty() {
            let (number, encoding) = entry.tag()?;
            let bytes = entry.payload(encoding)?;
            let expected = match number {
                1 => 2,
                2 => self.value.field.kind.encoding(),
                _ => continue,
            };
            if encoding != expected {
                return Err(other_encoding(self.value.field));
            }
            if number == 1 { key = bytes } else { value = bytes }
        }
        Ok((key, value))
    }
}
