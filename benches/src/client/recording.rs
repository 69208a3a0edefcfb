//! Answers as a server once gave them, out of memory: what is measured then is everything behind the socket.

use std::convert::Infallible;
use std::path::Path;

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

type Answer = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

/// A client that is given the recording at `path` whenever it asks for objects, and silence when it watches.
///
/// The file is a line with the content type, then the body.
pub(super) fn client(path: &Path) -> Result<kube::Client> {
    let mut body =
        Bytes::from(std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?);
    let line = body.iter().position(|&byte| byte == b'\n').context("the recording has no first line")?;
    let content_type = HeaderValue::from_maybe_shared(body.split_to(line))?;
    body.advance(1);
    let answer = move |request: Request<Body>| {
        let answer = answer(request.uri().query().unwrap_or_default(), &content_type, &body);
        async { Ok::<_, Infallible>(answer) }
    };
    Ok(kube::Client::new(tower::service_fn(answer), "default"))
}

fn answer(query: &str, content_type: &HeaderValue, body: &Bytes) -> Answer {
    let watches = query.contains("watch=true");
    let begins_with_objects = query.contains("sendInitialEvents=true");
    let objects = if watches && !begins_with_objects { Bytes::new() } else { body.clone() };
    let objects = stream::iter(chunks(objects));
    let frames = if watches { objects.chain(stream::pending()).boxed() } else { objects.boxed() };
    let mut answer = Response::new(StreamBody::new(frames));
    answer.headers_mut().insert(CONTENT_TYPE, content_type.clone());
    answer
}

/// Copies, as a socket's reader makes them: they are in the processor's cache, and nobody else's to keep.
fn chunks(mut body: Bytes) -> impl Iterator<Item = Result<Frame<Bytes>, Infallible>> {
    std::iter::from_fn(move || {
        let chunk = body.split_to(body.len().min(CHUNK));
        (!chunk.is_empty()).then(|| Ok(Frame::data(Bytes::copy_from_slice(&chunk))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lists_end_and_watches_do_not() {
        let body = Bytes::from(vec![7; CHUNK + 1]);
        let json = HeaderValue::from_static("application/json");
        let list = answer("resourceVersion=0", &json, &body).into_body();
        let lengths: Vec<usize> = list.map(|frame| frame.unwrap().into_data().unwrap().len()).collect().await;
        assert_eq!(lengths, [CHUNK, 1]);
        let mut streamed = answer("watch=true&sendInitialEvents=true", &json, &body).into_body();
        assert!(streamed.next().await.is_some() && streamed.next().await.is_some());
        assert!(futures_util::poll!(streamed.next()).is_pending());
        let mut resumed = answer("watch=true&resourceVersion=7", &json, &body).into_body();
        assert!(futures_util::poll!(resumed.next()).is_pending());
    }
}
