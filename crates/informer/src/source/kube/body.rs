//! The bodies of answers, split while they stream in.

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use informer_core::wire::{
    FrameError, JsonListSplitter, JsonWatchSplitter, ListHead, ListPart, ProtobufListSplitter,
    ProtobufWatchSplitter,
};
use kube::client::Body;

use super::KubeSource;
use super::format::Encoding;
use crate::source::{Failure, FailureKind, ListChunk, WatchChunk, WatchFrame};

pub(super) fn list_stream(
    source: KubeSource,
    encoding: Encoding,
    body: Body,
) -> BoxStream<'static, Result<ListChunk, Failure>> {
    let splitter = ListSplitter::new(encoding, source.target.max_object_bytes);
    let state = Some((source, body.into_data_stream(), splitter));
    let chunks = stream::try_unfold(state, |state| async move {
        let Some((source, mut body, mut splitter)) = state else { return Ok(None) };
        match body.next().await {
            Some(Ok(chunk)) => {
                let parts = splitter.push(chunk).map_err(|error| source.malformed("list", &error))?;
                Ok(Some((chunks_of(parts, &source), Some((source, body, splitter)))))
            }
            Some(Err(error)) => Err(source.transport("list", &error)),
            None => {
                let head = splitter.finish().map_err(|error| source.malformed("list", &error))?;
                if !head.kind.ends_with("List") {
                    let kind: String = head.kind.chars().take(128).collect();
                    let why = format!("the answer is a {kind:?}, not a list");
                    return Err(source.target.refused("list", FailureKind::Malformed, &why));
                }
                Ok(Some((vec![ListChunk::End(head)], None)))
            }
        }
    });
    chunks.map_ok(|chunks| stream::iter(chunks.into_iter().map(Ok))).try_flatten().boxed()
}

/// Items that follow each other are one chunk; none are a sign of life.
fn chunks_of(parts: Vec<ListPart>, source: &KubeSource) -> Vec<ListChunk> {
    let mut chunks = vec![ListChunk::Items(Vec::with_capacity(parts.len()))];
    for part in parts {
        match (part, chunks.last_mut()) {
            (ListPart::Item(item), Some(ListChunk::Items(items))) => items.push(item),
            (ListPart::Item(item), _) => chunks.push(ListChunk::Items(vec![item])),
            (ListPart::TooLarge { beginning, error }, _) => {
                chunks.push(ListChunk::Unreadable { beginning, failure: source.malformed("list", &error) });
            }
        }
    }
    chunks
}

pub(super) fn watch_stream(
    source: KubeSource,
    encoding: Encoding,
    body: Body,
) -> BoxStream<'static, Result<WatchChunk, Failure>> {
    let splitter = WatchSplitter::new(encoding, source.target.max_object_bytes);
    let state = (source, body.into_data_stream(), splitter, None);
    let chunks = stream::try_unfold(state, |(source, mut body, mut splitter, mut broken)| async move {
        if let Some(error) = broken {
            return Err(source.malformed("watch", &error));
        }
        match body.next().await {
            Some(Ok(chunk)) => {
                // The frames before a broken one are whole, and count (G30).
                let mut frames = Vec::new();
                broken = splitter.push(chunk, &mut frames).err();
                Ok(Some((WatchChunk(frames), (source, body, splitter, broken))))
            }
            Some(Err(error)) => Err(source.transport("watch", &error)),
            None => {
                splitter.finish().map_err(|error| source.malformed("watch", &error))?;
                Ok(None)
            }
        }
    });
    chunks.into_stream().boxed()
}

enum ListSplitter {
    Json(JsonListSplitter),
    Protobuf(ProtobufListSplitter),
}

impl ListSplitter {
    fn new(encoding: Encoding, limit: usize) -> Self {
        match encoding {
            Encoding::Json => Self::Json(JsonListSplitter::with_max_object_bytes(limit)),
            Encoding::Protobuf => Self::Protobuf(ProtobufListSplitter::with_max_object_bytes(limit)),
        }
    }

    fn push(&mut self, chunk: Bytes) -> Result<Vec<ListPart>, FrameError> {
        let mut parts = Vec::new();
        match self {
            Self::Json(splitter) => splitter.push(chunk, &mut parts)?,
            Self::Protobuf(splitter) => splitter.push(chunk, &mut parts)?,
        }
        Ok(parts)
    }

    fn finish(self) -> Result<ListHead, FrameError> {
        match self {
            Self::Json(splitter) => splitter.finish(),
            Self::Protobuf(splitter) => splitter.finish(),
        }
    }
}

enum WatchSplitter {
    Json(JsonWatchSplitter),
    Protobuf(ProtobufWatchSplitter),
}

impl WatchSplitter {
    fn new(encoding: Encoding, limit: usize) -> Self {
        match encoding {
            Encoding::Json => Self::Json(JsonWatchSplitter::with_max_object_bytes(limit)),
            Encoding::Protobuf => Self::Protobuf(ProtobufWatchSplitter::with_max_object_bytes(limit)),
        }
    }

    /// Appends the frames that the chunk completes to `out`, also those before a broken one.
    fn push(&mut self, chunk: Bytes, out: &mut Vec<WatchFrame>) -> Result<(), FrameError> {
        match self {
            Self::Json(splitter) => splitter.push_parsed(chunk, out),
            Self::Protobuf(splitter) => {
                let mut frames = Vec::new();
                let split = splitter.push(chunk, &mut frames);
                for frame in &frames {
                    out.push(WatchFrame::parse_protobuf(frame)?);
                }
                split
            }
        }
    }

    fn finish(self) -> Result<(), FrameError> {
        match self {
            Self::Json(splitter) => splitter.finish(),
            Self::Protobuf(splitter) => splitter.finish(),
        }
    }
}
