//! Reading the body of a watch: chunks of HTTP/1.1, in them events, of which only the kind is
//! looked at.

use std::time::{Duration, SystemTime};

use anyhow::{Result, bail, ensure};
use memchr::memmem;

use crate::events::SENT;
use crate::figures::Wire;

/// The most that an event may have: far more than any.
const LONGEST: usize = 16 << 20;

/// How many digits the time has in an object.
const DIGITS: usize = 20;

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has an object.
    Change,
    Bookmark,
    Error,
}

/// Takes chunks apart.
#[derive(Debug, Default)]
pub(super) enum Chunks {
    /// Within the line with the length of the next one.
    #[default]
    Begin,
    Length(usize),
    /// Behind the digits of the length.
    LineEnd(usize),
    Data(usize),
    /// Behind the data, where a line ends.
    Behind,
    Ended,
}

impl Chunks {
    /// Gives the data of the chunks in `bytes` to `data`.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut data: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        while let Some((&first, rest)) = bytes.split_first() {
            if let Self::Data(left) = *self {
                let (now, later) = bytes.split_at(left.min(bytes.len()));
                data(now)?;
                *self = if now.len() == left { Self::Behind } else { Self::Data(left - now.len()) };
                bytes = later;
                continue;
            }
            bytes = rest;
            *self = match (&*self, first) {
                (Self::Begin, _) => Self::Length(digit(first)?),
                (Self::Length(length), b'\r' | b';') => Self::LineEnd(*length),
                (Self::Length(length), _) => {
                    ensure!(*length <= LONGEST, "a chunk is too long");
                    Self::Length(length << 4 | digit(first)?)
                }
                (Self::LineEnd(0), b'\n') => Self::Ended,
                (Self::LineEnd(length), b'\n') => Self::Data(*length),
                (Self::LineEnd(length), _) => Self::LineEnd(*length),
                (Self::Behind, b'\n') => Self::Begin,
                (Self::Behind, _) => Self::Behind,
                (Self::Ended | Self::Data(_), _) => Self::Ended,
            };
        }
        Ok(())
    }

    /// Whether the last chunk has come.
    pub(super) fn ended(&self) -> bool {
        matches!(self, Self::Ended)
    }
}

/// Takes events apart. It keeps their first bytes, or the whole if their time is wanted.
#[derive(Debug)]
pub(super) struct Events {
    wire: Wire,
    whole: bool,
    kept: Vec<u8>,
    /// Bytes of the current protobuf event still to come; `None` until its length has been read.
    left: Option<usize>,
}

/// As many bytes as the kind is told by.
const HEAD: usize = 16;

impl Events {
    pub(super) fn new(wire: Wire, whole: bool) -> Self {
        Self { wire, whole, kept: Vec::new(), left: None }
    }

    /// Gives the events in `bytes` to `event`: their kind, and how late they are in microseconds
    /// if that is wanted and said.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut event: impl FnMut(Kind, Option<u64>),
    ) -> Result<()> {
        match self.wire {
            Wire::Protobuf => self.protobuf(bytes, &mut event),
            Wire::Json => self.json(bytes, &mut event),
        }
    }

    fn protobuf(
        &mut self,
        mut bytes: &[u8],
        event: &mut impl FnMut(Kind, Option<u64>),
    ) -> Result<()> {
        while !bytes.is_empty() {
            let Some(left) = self.left else {
                let (now, later) = bytes.split_at(bytes.len().min(4 - self.kept.len()));
                self.kept.extend_from_slice(now);
                bytes = later;
                if let Ok(length) = <[u8; 4]>::try_from(self.kept.as_slice()) {
                    let length = u32::from_be_bytes(length) as usize;
                    ensure!((3..=LONGEST).contains(&length), "a frame of {length} bytes");
                    self.kept.clear();
                    self.left = Some(length);
                }
                continue;
            };
            let (now, later) = bytes.split_at(bytes.len().min(left));
            self.keep(now);
            bytes = later;
            self.left = match left - now.len() {
                0 => {
                    // Field 1 of the event is its type.
                    self.end(2, event)?;
                    None
                }
                left => Some(left),
            };
        }
        Ok(())
    }

    fn json(&mut self, mut bytes: &[u8], event: &mut impl FnMut(Kind, Option<u64>)) -> Result<()> {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            self.keep(&bytes[..at]);
            self.end(r#"{"type":""#.len(), event)?;
            bytes = &bytes[at + 1..];
        }
        self.keep(bytes);
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let most = if self.whole { LONGEST } else { HEAD };
        let room = most.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The event is over; its type is named at this place.
    fn end(&mut self, at: usize, event: &mut impl FnMut(Kind, Option<u64>)) -> Result<()> {
        let kind = match self.kept.get(at) {
            Some(b'A' | b'M' | b'D') => Kind::Change,
            Some(b'B') => Kind::Bookmark,
            Some(b'E') => Kind::Error,
            _ => bail!("an event begins with {:?}", String::from_utf8_lossy(&self.kept)),
        };
        let late = (self.whole && kind == Kind::Change).then(|| late(&self.kept)).flatten();
        self.kept.clear();
        event(kind, late);
        Ok(())
    }
}

/// How long ago an object was sent, in microseconds, if it says so.
fn late(object: &[u8]) -> Option<u64> {
    let rest = &object[memmem::find(object, SENT.as_bytes())? + SENT.len()..];
    let digits = &rest[rest.iter().position(u8::is_ascii_digit)?..];
    let sent: u64 = std::str::from_utf8(digits.get(..DIGITS)?).ok()?.parse().ok()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(now.saturating_sub(Duration::from_nanos(sent)).as_micros()).ok()
}

fn digit(byte: u8) -> Result<usize> {
    match char::from(byte).to_digit(16) {
        Some(digit) => Ok(digit as usize),
        None => bail!("the length of a chunk has the byte {byte}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: &str, rest: &[u8]) -> Vec<u8> {
        let mut event = vec![0x0a, kind.len() as u8];
        event.extend_from_slice(kind.as_bytes());
        event.extend_from_slice(rest);
        [&(event.len() as u32).to_be_bytes()[..], &event].concat()
    }

    /// The kinds of the events in the body, which comes in pieces of this size.
    fn read(wire: Wire, body: &[u8], piece: usize) -> (Vec<Kind>, bool) {
        let (mut chunks, mut events) = (Chunks::default(), Events::new(wire, false));
        let mut kinds = Vec::new();
        for piece in body.chunks(piece) {
            chunks.feed(piece, |data| events.feed(data, |kind, _| kinds.push(kind))).unwrap();
        }
        (kinds, chunks.ended())
    }

    #[test]
    fn events_come_out_whatever_pieces_they_come_in() {
        let protobuf =
            [frame("ADDED", &[7; 300]), frame("BOOKMARK", b"\n"), frame("ERROR", b"")].concat();
        let json = "{\"type\":\"MODIFIED\",\"object\":{}}\n{\"type\":\"BOOKMARK\"}\n{\"type\":\"ERROR\",\"object\":{}}\n";
        for (wire, data) in [(Wire::Protobuf, protobuf.as_slice()), (Wire::Json, json.as_bytes())] {
            // Chunks need not end where events do.
            let (first, second) = data.split_at(data.len() / 2 + 3);
            let body = [
                format!("{:x};name=value\r\n", first.len()).as_bytes(),
                first,
                format!("\r\n{:X}\r\n", second.len()).as_bytes(),
                second,
                b"\r\n0\r\n\r\n",
            ]
            .concat();
            for piece in 1..body.len() {
                let all = vec![Kind::Change, Kind::Bookmark, Kind::Error];
                assert_eq!(read(wire, &body, piece), (all, true), "{wire:?} in pieces of {piece}");
            }
            let whole = body.len() - "\r\n0\r\n\r\n".len();
            assert!(!read(wire, &body[..whole], 100).1);
        }
    }

    #[test]
    fn what_is_no_body_of_a_watch_is_refused() {
        let feed = |body: &[u8]| Chunks::default().feed(body, |_| Ok(()));
        assert!(feed(b"<html>").is_err());
        assert!(feed(b"fffffffffffffffff").is_err());
        let mut events = Events::new(Wire::Protobuf, false);
        assert!(events.feed(&u32::MAX.to_be_bytes(), |_, _| {}).is_err());
        let mut events = Events::new(Wire::Json, false);
        assert!(events.feed(b"{}\n", |_, _| {}).is_err());
    }

    #[test]
    fn an_object_that_says_when_it_was_sent_is_so_late() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let sent = format!("{:020}", (now - Duration::from_secs(5)).as_nanos());
        let protobuf = [b"\x0a\x15", SENT.as_bytes(), b"\x12\x14", sent.as_bytes(), b"!"].concat();
        let mut events = Events::new(Wire::Protobuf, true);
        let mut seen = Vec::new();
        events.feed(&frame("MODIFIED", &protobuf), |_, late| seen.push(late.unwrap())).unwrap();
        let json = format!("{{\"type\":\"MODIFIED\",\"object\":{{\"{SENT}\":\"{sent}\"}}}}\n");
        let mut events = Events::new(Wire::Json, true);
        events.feed(json.as_bytes(), |_, late| seen.push(late.unwrap())).unwrap();
        assert!(seen.len() == 2 && seen.iter().all(|late| (5_000_000..6_000_000).contains(late)));
        assert_eq!(late(b"nothing"), None);
    }
}
