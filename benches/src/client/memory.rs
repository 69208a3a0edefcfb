//! A [`kube::Client`] that is answered out of memory: what is measured then is everything behind
//! the socket.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::{Buf, Bytes};
use futures_util::stream::{self, BoxStream, StreamExt};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;

/// How much of a body arrives at a time.
const CHUNK: usize = 32 * 1024;

/// A client whose requests are answered by `answer`, which is given the query.
pub fn client(
    content_type: HeaderValue,
    answer: impl Fn(&str) -> BoxStream<'static, Bytes> + Send + Sync + 'static,
) -> kube::Client {
    let answer = Arc::new(answer);
    let serve = move |request: Request<Body>| {
        let chunks = answer(request.uri().query().unwrap_or_default());
        let frames = chunks.map(|chunk| Ok::<_, Infallible>(Frame::data(chunk)));
        let mut response = Response::new(StreamBody::new(frames));
        response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
        std::future::ready(Ok::<_, Infallible>(response))
    };
    kube::Client::new(tower::service_fn(serve), "default")
}

/// Whether a query asks for a watch.
#[must_use]
pub fn watches(query: &str) -> bool {
    query.contains("watch=true")
}

/// A client that is given the recording at `path` whenever it asks for objects, and silence when it
/// watches.
///
/// The file is a line with the content type, then the body.
pub(super) fn recording(path: &Path) -> Result<kube::Client> {
    let mut body = Bytes::from(
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?,
    );
    let line =
        body.iter().position(|&byte| byte == b'\n').context("the recording has no first line")?;
    let content_type = HeaderValue::from_maybe_shared(body.split_to(line))?;
    body.advance(1);
    Ok(client(content_type, move |query| recorded(query, &body)))
}

fn recorded(query: &str, body: &Bytes) -> BoxStream<'static, Bytes> {
    match (watches(query), query.contains("sendInitialEvents=true")) {
        (false, _) => pieces(body.clone()).boxed(),
        (true, true) => pieces(body.clone()).chain(stream::pending()).boxed(),
        (true, false) => stream::pending().boxed(),
    }
}

/// A body as it arrives, without copies, which would be no part of what is measured.
pub fn pieces(mut body: Bytes) -> impl stream::Stream<Item = Bytes> {
    stream::iter(std::iter::from_fn(move || {
        let piece = body.split_to(body.len().min(CHUNK));
        (!piece.is_empty()).then_some(piece)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn recorded_lists_end_and_watches_do_not() {
        let body = Bytes::from(vec![7; CHUNK + 1]);
        let list: Vec<usize> =
            recorded("resourceVersion=0", &body).map(|chunk| chunk.len()).collect().await;
        assert_eq!(list, [CHUNK, 1]);
        let mut streamed = recorded("watch=true&sendInitialEvents=true", &body);
        assert!(streamed.next().await.is_some() && streamed.next().await.is_some());
        assert!(futures_util::poll!(streamed.next()).is_pending());
        let mut resumed = recorded("watch=true&resourceVersion=7", &body);
        assert!(futures_util::poll!(resumed.next()).is_pending());
    }
}
