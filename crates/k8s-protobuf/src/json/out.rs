//! The JSON as far as it is written, and short copies into it.
//!
//! Nearly all that is written are names and texts of few bytes. How many is known only then, and copying as many as that is a
//! call and a jump that is guessed wrong; so as many are copied as are always there, and those too many are cut off again.

use super::text::{self, WINDOW};
use crate::schema::FieldDef;

pub(super) struct Out<'a> {
    pub(super) json: Vec<u8>,
    /// The bytes in which the texts stand.
    source: &'a [u8],
}

impl<'a> Out<'a> {
    /// Goes on behind `json` with what is in `source`.
    pub(super) fn new(json: Vec<u8>, source: &'a [u8]) -> Self {
        Self { json, source }
    }

    #[inline]
    pub(super) fn put(&mut self, json: &[u8]) {
        self.json.extend_from_slice(json);
    }

    /// A comma, unless this is the first item of an array or the first entry of a map.
    #[inline]
    pub(super) fn comma(&mut self) {
        if !matches!(self.json.last(), Some(b'[' | b'{')) {
            self.json.push(b',');
        }
    }

    /// The name of a field, after a comma: that of the first becomes the object's opening brace.
    #[inline]
    pub(super) fn key(&mut self, field: &FieldDef) {
        self.begin(field, 1);
    }

    /// The name of a field, and the text that it holds.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn field(&mut self, field: &FieldDef, text: &[u8]) {
        self.begin(field, 0);
        self.rest_of_text(text);
    }

    /// A field's name as it stands before a text, without so many of its last bytes.
    #[inline]
    fn begin(&mut self, field: &FieldDef, less: usize) {
        match field.key() {
            Some((key, length)) => self.copy(key, length - less),
            None => {
                self.put(b",\"");
                self.put(field.name.as_bytes());
                self.put(&b"\":\""[..3 - less]);
            }
        }
    }

    /// A text in quotes.
    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) {
        self.json.push(b'"');
        self.rest_of_text(text);
    }

    /// A text and the quote behind it.
    #[inline]
    fn rest_of_text(&mut self, text: &[u8]) {
        if !self.plain(text) {
            self.other(text);
        }
    }

    /// A short text that is ASCII, written as it is and has enough behind it, and the quote; whether this is one.
    #[inline]
    pub(super) fn plain(&mut self, text: &[u8]) -> bool {
        let Some(window) = self.window(text).filter(|window| text::is_plain(window, text.len())) else {
            return false;
        };
        let end = self.json.len() + text.len();
        self.json.extend_from_slice(window);
        // The quote takes the place of what is too much.
        match self.json.get_mut(end) {
            Some(quote) => *quote = b'"',
            None => self.json.push(b'"'),
        }
        self.json.truncate(end + 1);
        true
    }

    /// A text that is long, at the end of all, or not written as it is; and the quote behind it.
    #[inline(never)]
    pub(super) fn other(&mut self, text: &[u8]) {
        text::content(text, &mut self.json);
        self.json.push(b'"');
    }

    /// The text and what stands behind it, if that is enough of both.
    #[inline]
    fn window(&self, text: &[u8]) -> Option<&'a [u8; WINDOW]> {
        // A text that is not in there has an address that is not in there either, or no bytes.
        let at = text.as_ptr().addr().wrapping_sub(self.source.as_ptr().addr());
        if text.len() <= WINDOW { self.source.get(at..)?.first_chunk() } else { None }
    }

    /// The first of these bytes, so many.
    #[inline]
    fn copy<const N: usize>(&mut self, bytes: &[u8; N], count: usize) {
        let before = self.json.len();
        self.json.extend_from_slice(bytes);
        self.json.truncate(before + count);
    }
}

#[cfg(test)]
mod tests;
