//! What faults make of protobuf.

use k8s_protobuf::{Envelope, Metadata, encode};

use super::{Altered, half};
use crate::faults::fault::Alteration;
use crate::wire::{self, Field};

/// The field of any list that holds its items.
const ITEMS: u64 = 2;

/// A field that no kind has.
const PADDING: u64 = 1000;

/// A tag that is none.
const NO_TAG: u8 = 0x0f;

pub(super) fn list(
    this: &Alteration,
    body: Vec<u8>,
    mut strikes: impl FnMut(&str) -> bool,
) -> Altered {
    altered_list(this, &body, &mut strikes).unwrap_or_else(|| Altered::whole(body))
}

/// `None` if nothing is altered.
fn altered_list(
    this: &Alteration,
    body: &[u8],
    strikes: &mut impl FnMut(&str) -> bool,
) -> Option<Altered> {
    let envelope = Envelope::parse(body).ok()?;
    let item =
        |field: &Field<'_>| field.bytes.filter(|_| field.number == ITEMS).map(<[u8]>::to_vec);
    if let Alteration::Instead(text) = this {
        let mut items = wire::fields(envelope.raw).filter_map(|field| item(&field));
        let struck = items.any(|item| strikes(&name_of(&item))) || strikes("");
        return struck.then(|| Altered::whole(text.as_bytes().to_vec()));
    }
    let (mut raw, mut again) = (Vec::with_capacity(envelope.raw.len()), Vec::new());
    for field in wire::fields(envelope.raw) {
        let Some(item) = item(&field).filter(|item| strikes(&name_of(item))) else {
            raw.extend_from_slice(field.whole);
            continue;
        };
        match this {
            Alteration::Truncate => {
                // The lengths before it are those of the whole list, whatever comes of it.
                let middle = field.start + item.len() / 2;
                let start =
                    body.windows(envelope.raw.len()).position(|window| window == envelope.raw);
                let bytes = body[..start.unwrap_or(0) + middle].to_vec();
                return Some(Altered { bytes, ends: true });
            }
            Alteration::Duplicate => {
                raw.extend_from_slice(field.whole);
                again.push(item);
            }
            _ => wire::put_bytes(ITEMS, &altered(this, item, envelope.kind), &mut raw),
        }
    }
    for item in again {
        wire::put_bytes(ITEMS, &item, &mut raw);
    }
    let mut out = Vec::with_capacity(body.len());
    Envelope::write(envelope.api_version, envelope.kind, &raw, &mut out);
    Some(Altered::whole(out))
}

pub(super) fn events(
    this: &Alteration,
    mut frames: &[u8],
    mut strikes: impl FnMut(&str) -> bool,
) -> Altered {
    let mut out = Vec::new();
    while let Some((frame, rest)) = split(frames) {
        frames = rest;
        let event = Event::read(frame).filter(|event| match (event.kind, this) {
            ("ADDED" | "MODIFIED" | "DELETED", Alteration::WithoutEndBookmark) => false,
            ("ADDED" | "MODIFIED" | "DELETED", _) => strikes(&name_of(event.object.raw)),
            ("BOOKMARK", Alteration::WithoutEndBookmark) => {
                event.ends_initial_events() && strikes("")
            }
            _ => false,
        });
        let Some(event) = event else {
            out.extend_from_slice(frame);
            continue;
        };
        match this {
            Alteration::Truncate => {
                out.extend_from_slice(half(frame));
                return Altered { bytes: out, ends: true };
            }
            Alteration::Instead(text) => out.extend_from_slice(text.as_bytes()),
            Alteration::Duplicate => {
                out.extend_from_slice(frame);
                out.extend_from_slice(frame);
            }
            Alteration::WithoutEndBookmark => {}
            Alteration::Corrupt => {
                // The length is still right, so that what comes behind it can be read.
                out.extend_from_slice(&frame[..LENGTH]);
                out.push(NO_TAG);
                out.extend_from_slice(&frame[LENGTH + 1..]);
            }
            Alteration::Oversized(_) | Alteration::Undecodable => {
                let Envelope { api_version, kind, raw, .. } = event.object;
                let mut object = Vec::new();
                Envelope::write(api_version, kind, &altered(this, raw.to_vec(), kind), &mut object);
                // No test makes 4 GiB of it.
                let _ = encode::watch_event(event.kind, &object, &mut out);
            }
        }
    }
    out.extend_from_slice(frames);
    Altered::whole(out)
}

/// Alters one object; `kind` is its own, or that of a list of such.
fn altered(this: &Alteration, mut message: Vec<u8>, kind: &str) -> Vec<u8> {
    match this {
        Alteration::Corrupt => {
            if let Some(tag) = message.first_mut() {
                *tag = NO_TAG;
            }
        }
        Alteration::Oversized(bytes) => {
            let padding = vec![b'x'; bytes.saturating_sub(message.len())];
            wire::put_bytes(PADDING, &padding, &mut message);
        }
        Alteration::Undecodable if kind.starts_with("PartialObjectMetadata") => {
            return wire::undecodable_metadata(&message);
        }
        Alteration::Undecodable => return wire::undecodable(&message),
        _ => {}
    }
    message
}

/// The bytes of the length before each event.
const LENGTH: usize = 4;

/// The first frame, with the length before it, and what follows.
fn split(frames: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_be_bytes(*frames.first_chunk::<LENGTH>()?);
    frames
        .split_at_checked(LENGTH.checked_add(usize::try_from(length).ok()?)?)
        .filter(|_| length > 0)
}

/// What a frame says.
struct Event<'a> {
    kind: &'a str,
    object: Envelope<'a>,
}

impl<'a> Event<'a> {
    fn read(frame: &'a [u8]) -> Option<Self> {
        let part = |message: &'a [u8], number| {
            wire::fields(message).find(|field| field.number == number)?.bytes
        };
        let event = &frame[LENGTH..];
        let kind = std::str::from_utf8(part(event, 1)?).ok()?;
        let object = Envelope::parse(part(part(event, 2)?, 1)?).ok()?;
        Some(Self { kind, object })
    }

    fn ends_initial_events(&self) -> bool {
        Metadata::of(self.object.raw)
            .is_ok_and(|metadata| metadata.annotation("k8s.io/initial-events-end") == Some("true"))
    }
}

fn name_of(object: &[u8]) -> String {
    Metadata::of(object).map(|metadata| metadata.name.to_owned()).unwrap_or_default()
}
