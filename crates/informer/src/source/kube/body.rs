//! The bodies of answers, split while they stream in.

use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use informer_core::wire::MediaType;
use kube::client::Body;

use super::KubeSource;
use crate::source::{Failure, ListChunk, WatchChunk};

pub(super) fn list_stream(
    source: KubeSource,
    media_type: MediaType,
    body: Body,
) -> BoxStream<'static, Result<ListChunk, Failure>> {
    let splitter = media_type.list_splitter(source.target.max_object_bytes);
    let state = Some((source, body.into_data_stream(), splitter));
    let chunks = stream::try_unfold(state, |state| async move {
        let Some((source, mut body, mut splitter)) = state else { return Ok(None) };
        match body.next().await {
            Some(Ok(chunk)) => {
                let mut parts = Vec::new();
                splitter
                    .push(chunk, &mut parts)
                    .map_err(|error| source.malformed("list", &error))?;
                Ok(Some((ListChunk::Parts(parts), Some((source, body, splitter)))))
            }
            Some(Err(error)) => Err(source.transport("list", &error)),
            None => {
                let head = splitter.finish().map_err(|error| source.malformed("list", &error))?;
                Ok(Some((ListChunk::End(head), None)))
            }
        }
    });
    chunks.into_stream().boxed()
}

pub(super) fn watch_stream(
    source: KubeSource,
    media_type: MediaType,
    body: Body,
) -> BoxStream<'static, Result<WatchChunk, Failure>> {
    let splitter = media_type.watch_splitter(source.target.max_object_bytes);
    let state = (source, body.into_data_stream(), splitter, None);
    let chunks =
        stream::try_unfold(state, |(source, mut body, mut splitter, mut broken)| async move {
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
