//! The JSON written so far, and fast short copies into it.
//!
//! Nearly everything written is a name or a text of a few bytes. A copy whose length is known only
//! at run time costs a call and a mispredicted jump. So a fixed number of bytes is copied, and the
//! surplus is truncated.

use super::text::{self, WINDOW};
use crate::schema::FieldDef;

pub(super) struct Out<'a> {
    pub(super) json: Vec<u8>,
    /// The input, which holds the texts.
    source: &'a [u8],
}

impl<'a> Out<'a> {
    /// Appends to `json`, copying from `source`.
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

    /// The name of a field, and its text.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn field(&mut self, field: &FieldDef, text: &[u8]) {
        self.begin(field, 0);
        self.rest_of_text(text);
    }

    /// A comma, the field's name and the quote that opens its text, without the last `less` bytes.
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

    /// A text and its closing quote.
    #[inline]
    fn rest_of_text(&mut self, text: &[u8]) {
        if !self.plain(text) {
            self.other(text);
        }
    }

    /// Writes a text and its closing quote if the text is short, ASCII, without escapes and
    /// followed by enough input; whether it is.
    #[inline]
    pub(super) fn plain(&mut self, text: &[u8]) -> bool {
        let Some(window) = self.window(text).filter(|window| text::is_plain(window, text.len()))
        else {
            return false;
        };
        let end = self.json.len() + text.len();
        self.json.extend_from_slice(window);
        // The quote overwrites the first surplus byte.
        match self.json.get_mut(end) {
            Some(quote) => *quote = b'"',
            None => self.json.push(b'"'),
        }
        self.json.truncate(end + 1);
        true
    }

    /// A text that is long, at the end of the input, or has escapes; and its closing quote.
    #[inline(never)]
    pub(super) fn other(&mut self, text: &[u8]) {
        text::content(text, &mut self.json);
        self.json.push(b'"');
    }

    /// The text and the input that follows it, if there is enough of both.
    #[inline]
    fn window(&self, text: &[u8]) -> Option<&'a [u8; WINDOW]> {
        // A text outside of the input has an address outside of it, or is empty.
        let at = text.as_ptr().addr().wrapping_sub(self.source.as_ptr().addr());
        if text.len() <= WINDOW { self.source.get(at..)?.first_chunk() } else { None }
    }

    /// Appends the first `count` of these bytes.
    #[inline]
    fn copy<const N: usize>(&mut self, bytes: &[u8; N], count: usize) {
        let before = self.json.len();
        self.json.extend_from_slice(bytes);
        self.json.truncate(before + count);
    }
}

#[cfg(test)]
mod tests;
