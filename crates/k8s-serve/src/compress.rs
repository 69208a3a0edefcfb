//! Compression of large answers, as API servers do it.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Response, header};

use crate::answer::{Body, BodyError};

/// Answers up to this size are not compressed.
const THRESHOLD: usize = 128 * 1024;

/// Which level API servers use: that which costs least.
const LEVEL: u32 = 1;

/// Compresses a response if the client accepts it and the answer is large. Bodies of watches are
/// not for this: it waits for their first 128 KiB.
///
/// # Cancel safety
/// Dropping the future drops the response.
pub async fn compress(response: Response<Body>, request: &HeaderMap) -> Response<Body> {
    if !accepts_gzip(request) || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let (mut start, mut length) = (Vec::new(), 0);
    let mut rest = body.into_chunks();
    while length <= THRESHOLD {
        match rest.next().await {
            Some(Ok(chunk)) => {
                length += chunk.len();
                start.push(Ok(chunk));
            }
            Some(Err(error)) => {
                start.push(Err(error));
                break;
            }
            None if start.len() <= 1 => {
                let whole = start.pop().and_then(Result::ok).unwrap_or_default();
                return Response::from_parts(parts, Body::full(whole));
            }
            None => break,
        }
    }
    let chunks = stream::iter(start).chain(rest);
    if length <= THRESHOLD {
        return Response::from_parts(parts, Body::stream(chunks));
    }
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let encoder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    let state = Some((encoder, chunks));
    let compressed = stream::unfold(state, |state| async move {
        let (mut encoder, mut chunks) = state?;
        loop {
            match chunks.next().await {
                Some(Ok(chunk)) => {
                    if encoder.write_all(&chunk).is_err() {
                        return Some((Err(BodyError), None));
                    }
                    let out = std::mem::take(encoder.get_mut());
                    if !out.is_empty() {
                        return Some((Ok(Bytes::from(out)), Some((encoder, chunks))));
                    }
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let end = encoder.finish().map(Bytes::from).map_err(|_| BodyError);
                    return Some((end, None));
                }
            }
        }
    });
    Response::from_parts(parts, Body::stream(compressed))
}

/// Whether `gzip` is among the accepted, by its name alone: an API server reads no weights here.
fn accepts_gzip(request: &HeaderMap) -> bool {
    let value = request.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.split(',').any(|coding| coding.trim() == "gzip"))
}
