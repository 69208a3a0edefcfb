//! Splitting the JSON body of a list.

use bytes::Bytes;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::members::{self, Members};
use super::scan::Scanner;
use super::{is_scalar, is_white_space};
use crate::version::ResourceVersion;
use crate::wire::collect::Collector;
use crate::wire::format::SplitList;
use crate::wire::{FrameError, ListHead, ListPart, WireObject};

/// Cuts the JSON body of a list into its items, as its chunks arrive.
///
/// An item within one chunk is a slice of it. Other items are assembled in a buffer, which holds
/// one item at most. The list's own members may be at any position; unknown members are skipped
/// without being held. A body that is not a list, such as a `Status`, is recognized by its
/// [kind](ListHead::kind).
#[derive(Debug)]
pub(in crate::wire) struct JsonListSplitter {
    state: State,
    scanner: Scanner,
    collector: Collector,
    head: ListHead,
    has_items: bool,
    /// Length of the chunks before this one.
    consumed: u64,
    failed: Option<FrameError>,
}

impl JsonListSplitter {
    /// A splitter for a new body whose items may be `limit` bytes long.
    pub(in crate::wire) fn new(limit: usize) -> Self {
        Self {
            state: State::Expect(Expect::Body),
            scanner: Scanner::default(),
            collector: Collector::new(limit),
            head: ListHead::default(),
            has_items: false,
            consumed: 0,
            failed: None,
        }
    }

    fn advance(&mut self, chunk: &Bytes, out: &mut Vec<ListPart>) -> Result<(), FrameError> {
        let mut at = 0;
        while at < chunk.len() {
            match self.state {
                State::Expect(_) if is_white_space(chunk[at]) => at += 1,
                State::Expect(expect) => match self.begin(expect, chunk[at]) {
                    Some(Begun::Token(next)) => {
                        self.state = State::Expect(next);
                        at += 1;
                    }
                    // The scanner needs the value's first byte, too.
                    Some(Begun::Value(value)) => self.state = State::Within(value),
                    None => return Err(self.malformed(at, expect.description())),
                },
                State::Within(value) => at = self.read(value, chunk, at, out)?,
            }
        }
        Ok(())
    }

    /// What the token `byte` begins if `expect` is next; `None` if it is not allowed there.
    fn begin(&mut self, expect: Expect, byte: u8) -> Option<Begun> {
        let token = |next| Some(Begun::Token(next));
        match (expect, byte) {
            (Expect::Body, b'{') => token(Expect::FirstKey),
            (Expect::FirstKey, b'}') | (Expect::MemberEnd, b'}') => token(Expect::Nothing),
            (Expect::FirstKey | Expect::Key, b'"') => Some(Begun::Value(Value::Key)),
            (Expect::Colon(member), b':') => token(Expect::Value(member)),
            (Expect::Value(member), _) => self.begin_member(member, byte),
            (Expect::MemberEnd, b',') => token(Expect::Key),
            (Expect::FirstItem | Expect::ItemEnd, b']') => token(Expect::MemberEnd),
            (Expect::FirstItem | Expect::Item, b'{') => Some(Begun::Value(Value::Item)),
            (Expect::ItemEnd, b',') => token(Expect::Item),
            _ => None,
        }
    }

    fn begin_member(&mut self, member: Member, byte: u8) -> Option<Begun> {
        match (member, byte) {
            (Member::Items, b'[') => Some(Begun::Token(Expect::FirstItem)),
            (Member::ApiVersion | Member::Kind, b'"') | (Member::Metadata, b'{') => {
                Some(Begun::Value(Value::Member(member)))
            }
            (Member::Unknown, b'"' | b'{' | b'[') => Some(Begun::Value(Value::Skipped)),
            (_, b'n') | (Member::Unknown, b't' | b'f' | b'-' | b'0'..=b'9') => {
                self.head.forget(member);
                Some(Begun::Value(Value::Scalar))
            }
            _ => None,
        }
    }

    /// Continues reading `value` at `chunk[at]`; returns where it stopped.
    fn read(
        &mut self,
        value: Value,
        chunk: &Bytes,
        at: usize,
        out: &mut Vec<ListPart>,
    ) -> Result<usize, FrameError> {
        let rest = &chunk[at..];
        let length = if value == Value::Scalar {
            rest.iter().position(|byte| !is_scalar(*byte))
        } else {
            match self.scanner.scan(rest) {
                Ok(length) => length,
                Err(unbalanced) => {
                    return Err(
                        self.malformed(at + unbalanced.0, "balanced nesting of a sane depth")
                    );
                }
            }
        };
        let end = at + length.unwrap_or(rest.len());
        let mut complete = Bytes::new();
        if value == Value::Scalar && self.collector.len() + (end - at) > MAX_SCALAR {
            return Err(self.malformed(at, SCALAR));
        }
        if !matches!(value, Value::Skipped | Value::RestOfItem) {
            let collected = match length {
                None => self.collector.keep(rest),
                Some(_) => self.collector.complete(chunk, at, end).map(|bytes| complete = bytes),
            };
            if collected.is_err() {
                let offset = self.consumed + at as u64 - self.collector.len() as u64;
                let error = FrameError::TooLarge { offset, limit: self.collector.limit() };
                if value != Value::Item {
                    return Err(error);
                }
                let beginning = WireObject::from(self.collector.beginning(&chunk[at..end]));
                out.push(ListPart::TooLarge { beginning, error });
                self.state = State::Within(Value::RestOfItem);
                if length.is_some() {
                    self.state = State::Expect(Expect::ItemEnd);
                }
                return Ok(end);
            }
        }
        if length.is_none() {
            return Ok(end);
        }
        let next = match value {
            Value::Item => {
                out.push(ListPart::Item(complete.into()));
                Some(Expect::ItemEnd)
            }
            Value::Key => self.key(&complete).map(Expect::Colon),
            Value::Member(member) => self.head.read(member, &complete).map(|()| Expect::MemberEnd),
            Value::Scalar => {
                serde_json::from_slice::<IgnoredAny>(&complete).ok().map(|_| Expect::MemberEnd)
            }
            Value::Skipped => Some(Expect::MemberEnd),
            Value::RestOfItem => Some(Expect::ItemEnd),
        };
        let Some(next) = next else {
            return Err(self.malformed(end, value.description()));
        };
        self.state = State::Expect(next);
        Ok(end)
    }

    /// The member with this key. `None` if the text is not a key, or for a second `items`, since
    /// items of the first one were already output.
    fn key(&mut self, key: &[u8]) -> Option<Member> {
        let key: String = serde_json::from_slice(key).ok()?;
        Some(match key.as_str() {
            "apiVersion" => Member::ApiVersion,
            "kind" => Member::Kind,
            "metadata" => Member::Metadata,
            "items" if self.has_items => return None,
            "items" => {
                self.has_items = true;
                Member::Items
            }
            _ => Member::Unknown,
        })
    }

    fn malformed(&self, at: usize, expected: &'static str) -> FrameError {
        FrameError::Malformed { offset: self.consumed + at as u64, expected }
    }
}

impl SplitList for JsonListSplitter {
    fn push(&mut self, chunk: Bytes, out: &mut Vec<ListPart>) -> Result<(), FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.advance(&chunk, out);
        self.failed = result.clone().err();
        self.consumed += chunk.len() as u64;
        result
    }

    fn finish(self: Box<Self>) -> Result<ListHead, FrameError> {
        match (self.failed, self.state) {
            (Some(error), _) => Err(error),
            (None, State::Expect(Expect::Nothing)) => Ok(self.head),
            (None, _) => Err(FrameError::Truncated { offset: self.consumed }),
        }
    }
}

impl ListHead {
    fn read(&mut self, member: Member, json: &[u8]) -> Option<()> {
        match member {
            Member::ApiVersion => self.api_version = serde_json::from_slice(json).ok()?,
            Member::Kind => self.kind = serde_json::from_slice(json).ok()?,
            Member::Metadata => {
                self.forget(member);
                members::read(json, self).ok()?;
            }
            Member::Items | Member::Unknown => {}
        }
        Some(())
    }

    /// Resets the fields of an earlier member, which a later one replaces.
    fn forget(&mut self, member: Member) {
        match member {
            Member::ApiVersion => self.api_version.clear(),
            Member::Kind => self.kind.clear(),
            Member::Metadata => {
                self.resource_version = ResourceVersion::unset();
                self.continue_token = None;
                self.remaining_item_count = None;
            }
            Member::Items | Member::Unknown => {}
        }
    }
}

/// The members of the list's `metadata`.
impl<'de> Members<'de> for ListHead {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "resourceVersion" => {
                self.resource_version = ResourceVersion::new(&members::next_text(map)?)
            }
            "continue" => {
                let token = members::next_text(map)?;
                self.continue_token = (!token.is_empty()).then(|| token.into_owned());
            }
            // It is only informative: the list is valid whatever the value is (G30).
            "remainingItemCount" => {
                let count: &RawValue = map.next_value()?;
                self.remaining_item_count = serde_json::from_str(count.get()).ok();
            }
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Between values: white space and the expected token.
    Expect(Expect),
    /// Within a value.
    Within(Value),
}

#[derive(Debug, Clone, Copy)]
enum Expect {
    Body,
    FirstKey,
    Key,
    Colon(Member),
    Value(Member),
    MemberEnd,
    FirstItem,
    Item,
    ItemEnd,
    Nothing,
}

impl Expect {
    fn description(self) -> &'static str {
        match self {
            Self::Body => "'{' of a list",
            Self::FirstKey => "a member or '}'",
            Self::Key => "a member",
            Self::Colon(_) => "':'",
            Self::Value(Member::ApiVersion | Member::Kind) => "a string",
            Self::Value(Member::Metadata) => "an object",
            Self::Value(Member::Items) => "an array or null",
            Self::Value(Member::Unknown) => "a value",
            Self::MemberEnd => "',' or '}'",
            Self::FirstItem => "an object or ']'",
            Self::Item => "an object",
            Self::ItemEnd => "',' or ']'",
            Self::Nothing => "the end of the body",
        }
    }
}

/// The members of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    ApiVersion,
    Kind,
    Metadata,
    Items,
    Unknown,
}

/// What is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Key,
    Member(Member),
    Item,
    /// The rest of an item that is too large.
    RestOfItem,
    /// A number, `true`, `false` or `null`.
    Scalar,
    /// A string, object or array to be skipped.
    Skipped,
}

impl Value {
    /// What should have ended where it turned out not to be one.
    fn description(self) -> &'static str {
        match self {
            Self::Key => "a key, and \"items\" once",
            Self::Member(Member::Metadata) => "the metadata of a list",
            Self::Member(_) => "a string",
            Self::Item | Self::RestOfItem => "an object",
            Self::Scalar => SCALAR,
            Self::Skipped => "a value",
        }
    }
}

enum Begun {
    /// The byte is done with; this comes next.
    Token(Expect),
    /// The byte is the first of this.
    Value(Value),
}

/// The longest number that is skipped; longer ones are an error.
const MAX_SCALAR: usize = 64;

const SCALAR: &str = "a number, true, false or null";

#[cfg(test)]
mod tests;
