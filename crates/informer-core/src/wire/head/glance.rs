//! The head of an object that is written as API servers write it, without parsing what is passed over.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use super::ObjectHead;
use crate::version::{ResourceVersion, Uid};
use crate::wire::is_scalar;
use crate::wire::scan::{Scanner, matching};

/// Reads up to the end of the metadata. `None` where anything that matters is unusual, such as white space outside of
/// what is passed over, an escape, a `null` or a missing name: then reading it in full tells what it is.
pub(super) fn glance(json: &[u8]) -> Option<ObjectHead<'_>> {
    let mut cursor = Cursor { json, at: 0 };
    let (mut api_version, mut kind) = ("", "");
    cursor.token(b'{')?;
    loop {
        match cursor.key()? {
            b"apiVersion" => api_version = cursor.text()?,
            b"kind" => kind = cursor.text()?,
            b"metadata" => break,
            _ => cursor.skip()?,
        }
        cursor.token(b',')?;
    }
    Some(ObjectHead {
        api_version: Cow::Borrowed(api_version),
        kind: Cow::Borrowed(kind),
        ..metadata(&mut cursor)?
    })
}

fn metadata<'a>(cursor: &mut Cursor<'a>) -> Option<ObjectHead<'a>> {
    let (mut name, mut namespace, mut uid, mut version) = ("", "", "", "");
    let mut managed_fields = None;
    cursor.token(b'{')?;
    loop {
        let start = cursor.at;
        match cursor.key()? {
            b"name" => name = cursor.text()?,
            b"namespace" => namespace = cursor.text()?,
            b"uid" => uid = cursor.text()?,
            b"resourceVersion" => version = cursor.text()?,
            b"managedFields" => {
                cursor.skip()?;
                if managed_fields.replace(cursor.member_since(start)).is_some() {
                    return None;
                }
            }
            // Full reading expects an object.
            b"annotations" if cursor.peek()? != b'{' => return None,
            _ => cursor.skip()?,
        }
        if cursor.token(b',').is_none() {
            cursor.token(b'}')?;
            break;
        }
    }
    (!name.is_empty() && !namespace.contains('/')).then(|| ObjectHead {
        api_version: Cow::Borrowed(""),
        kind: Cow::Borrowed(""),
        name: Cow::Borrowed(name),
        namespace: Cow::Borrowed(namespace),
        uid: Uid::new(uid),
        version: ResourceVersion::new(version),
        initial_events_end: false,
        managed_fields,
        message: None,
    })
}

struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn token(&mut self, token: u8) -> Option<()> {
        (self.peek()? == token).then(|| self.at += 1)
    }

    /// A key and its colon.
    fn key(&mut self) -> Option<&'a [u8]> {
        let key = self.string()?;
        self.token(b':')?;
        Some(key)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// What is between quotes, if it means itself.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.token(b'"')?;
        let rest = &self.json[self.at..];
        let content = &rest[..memchr2(b'"', b'\\', rest)?];
        self.at += content.len();
        self.token(b'"')?;
        content.iter().all(|byte| *byte >= b' ').then_some(content)
    }

    /// Goes past a value, whose braces and brackets must match, so that it ends where any reader has it end.
    fn skip(&mut self) -> Option<()> {
        let rest = &self.json[self.at..];
        let length = match rest.first()? {
            b'{' | b'[' => matching(rest)?,
            b'"' => Scanner::default().scan(rest).ok()??,
            _ => rest.iter().position(|byte| !is_scalar(*byte)).filter(|length| *length > 0)?,
        };
        self.at += length;
        Some(())
    }

    /// Where the member stands that began at `start` and ends here, with the comma that would be left over: the one
    /// before it if it is the last. (If it is also the first, then there is no name, and all this is for nothing.)
    fn member_since(&self, start: usize) -> Range<usize> {
        match self.peek() {
            Some(b',') => start..self.at + 1,
            _ => start - 1..self.at,
        }
    }
}
