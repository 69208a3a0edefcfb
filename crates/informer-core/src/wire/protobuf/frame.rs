//! Parses the message of a watch frame.

use bytes::Bytes;
use k8s_protobuf::{Envelope, Reader};

use crate::wire::frame::WATCH_EVENT;
use crate::wire::{Encoding, FrameError, WatchEventType, WatchFrame, WireObject};

/// Parses the message of one frame. The object is not copied, and its envelope is removed.
pub(super) fn parse(frame: &Bytes) -> Result<WatchFrame, FrameError> {
    let malformed = |at: &[u8], expected| FrameError::Malformed {
        offset: (at.as_ptr().addr() - frame.as_ptr().addr()) as u64,
        expected,
    };
    let (mut kind, mut object) = (None, None);
    let mut fields = Reader::new(frame);
    loop {
        let at = fields.rest();
        let read = (|| {
            match fields.next()? {
                None => return Ok(false),
                Some((1, value)) => kind = Some(value.text()?),
                Some((2, value)) => object = raw_extension(value.bytes()?)?,
                Some(_) => {}
            }
            Ok::<_, k8s_protobuf::Error>(true)
        })();
        match read {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => return Err(malformed(at, WATCH_EVENT)),
        }
    }
    let (Some(kind), Some(object)) = (kind, object) else {
        return Err(malformed(fields.rest(), WATCH_EVENT));
    };
    let kind = WatchEventType::of(kind)?;
    match Envelope::parse(object).and_then(|envelope| envelope.message()) {
        Ok((known, message)) => {
            let object =
                WireObject { encoding: Encoding::Protobuf(known), bytes: frame.slice_ref(message) };
            Ok(WatchFrame { kind, object })
        }
        Err(k8s_protobuf::Error::UnknownKind { api_version, kind }) => {
            Err(FrameError::unknown_kind(&api_version, &kind))
        }
        Err(_) => Err(malformed(object, "an object in its envelope")),
    }
}

/// The content of a `runtime.RawExtension`.
fn raw_extension(message: &[u8]) -> Result<Option<&[u8]>, k8s_protobuf::Error> {
    let (mut raw, mut fields) = (None, Reader::new(message));
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            raw = Some(value.bytes()?);
        }
    }
    Ok(raw)
}

#[cfg(test)]
mod tests;
