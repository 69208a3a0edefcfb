//! Watches over WebSocket: the handshake and the messages. The socket is the server's business.
//!
//! A server asks the read side as for any watch. If that answers with 200 and the client asked for
//! an [upgrade](is_requested), the server hands the response to [`accept`], completes the handshake
//! with the `Sec-WebSocket-Accept` that its WebSocket library computes, and sends the
//! [`Messages`].

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use informer_core::wire::MediaType;

use crate::answer::{Body, BodyError, stream_type};

/// One message of a watch: one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A line of JSON.
    Text(Bytes),
    /// An event in protobuf.
    Binary(Bytes),
}

/// The events of a watch.
pub struct Messages {
    chunks: Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>,
    media: MediaType,
    buffer: BytesMut,
}

/// What a client asks for in place of a token in a header, which browsers cannot send.
const BEARER: &str = "base64url.bearer.authorization.k8s.io.";

/// Whether a request asks for an upgrade to WebSocket.
#[must_use]
pub fn is_requested(request: &HeaderMap) -> bool {
    let is = |name, wanted: &str| {
        let values = request.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|it| it.trim().eq_ignore_ascii_case(wanted))
    };
    is(header::UPGRADE, "websocket") && is(header::CONNECTION, "upgrade")
}

/// The answer to the handshake for a watch that was answered with 200, and its messages.
///
/// It follows API servers: a request without `Origin` is refused, as is one that asks for several
/// protocols, of which a bearer token is none.
///
/// # Errors
/// The response that refuses the upgrade.
pub fn accept(
    request: &HeaderMap,
    watch: Response<Body>,
) -> Result<(Response<()>, Messages), Box<Response<Body>>> {
    let refuse = |status| {
        let mut response = Response::new(Body::full(Bytes::new()));
        *response.status_mut() = status;
        Err(Box::new(response))
    };
    if !request.contains_key(header::ORIGIN) {
        return refuse(StatusCode::FORBIDDEN);
    }
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    let values = request.get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let values = values.iter().filter_map(|value| value.to_str().ok());
    let protocols: Vec<&str> = values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|protocol| !protocol.is_empty() && !protocol.starts_with(BEARER))
        .collect();
    match protocols[..] {
        [] => {}
        [protocol] => match HeaderValue::from_str(protocol) {
            Ok(protocol) => drop(headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol)),
            Err(_) => return refuse(StatusCode::BAD_REQUEST),
        },
        _ => return refuse(StatusCode::BAD_REQUEST),
    }
    let content_type = watch.headers().get(header::CONTENT_TYPE);
    let media = MediaType::ALL.into_iter().find(|media| {
        content_type.is_some_and(|value| value.as_bytes() == stream_type(*media).as_bytes())
    });
    let messages = Messages {
        chunks: watch.into_body().into_chunks(),
        media: media.unwrap_or(MediaType::Json),
        buffer: BytesMut::new(),
    };
    Ok((response, messages))
}

impl Messages {
    /// Takes the next whole event out of the buffer.
    fn message(&mut self) -> Option<Message> {
        match self.media {
            MediaType::Json => {
                let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
                Some(Message::Text(self.buffer.split_to(end + 1).freeze()))
            }
            MediaType::Protobuf => {
                // The length is for streams without messages.
                let length = self.buffer.first_chunk().map(|length| u32::from_be_bytes(*length))?;
                let length = usize::try_from(length).ok()?;
                if self.buffer.len() - 4 < length {
                    return None;
                }
                self.buffer.advance(4);
                Some(Message::Binary(self.buffer.split_to(length).freeze()))
            }
        }
    }
}

impl Stream for Messages {
    type Item = Result<Message, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(message) = self.message() {
                return Poll::Ready(Some(Ok(message)));
            }
            match self.chunks.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(chunk))) => self.buffer.extend_from_slice(&chunk),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("media", &self.media).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};

    use super::*;
    use crate::answer::{error_event, stream_response};
    use crate::status::Status;

    fn request(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), value.parse().unwrap()));
        pairs.collect()
    }

    /// The protocol that is agreed on, or the code of the refusal.
    fn protocol(request: &HeaderMap) -> Result<Option<String>, u16> {
        let watch = stream_response("application/json", stream::empty());
        let (response, _) = accept(request, watch).map_err(|refused| refused.status().as_u16())?;
        assert_eq!(response.status(), 101);
        let protocol = response.headers().get("sec-websocket-protocol");
        Ok(protocol.map(|protocol| protocol.to_str().unwrap().to_owned()))
    }

    /// As kube-apiserver 1.36 answers.
    #[test]
    fn the_handshake_is_that_of_an_api_server() {
        let origin = ("origin", "http://x");
        let protocols = |text| ("sec-websocket-protocol", text);
        assert_eq!(protocol(&request(&[])), Err(403));
        assert_eq!(protocol(&request(&[origin])), Ok(None));
        let one = request(&[origin, protocols("base64.binary.k8s.io")]);
        assert_eq!(protocol(&one), Ok(Some("base64.binary.k8s.io".to_owned())));
        assert_eq!(protocol(&request(&[origin, protocols("a, b")])), Err(400));
        let token = "base64url.bearer.authorization.k8s.io.YQ, base64.binary.k8s.io";
        let with_token = request(&[origin, protocols(token)]);
        assert_eq!(protocol(&with_token), Ok(Some("base64.binary.k8s.io".to_owned())));
    }

    #[test]
    fn upgrades_are_told_by_two_headers() {
        let both = [("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade")];
        assert!(is_requested(&request(&both)));
        assert!(!is_requested(&request(&both[..1])));
        assert!(!is_requested(&request(&[("upgrade", "h2c"), both[1]])));
    }

    #[test]
    fn each_event_is_one_message_however_the_body_is_cut() {
        let status = Status::expired("too old");
        for media in MediaType::ALL {
            let event = error_event(&status, media);
            let body = [&event[..], &event[..]].concat();
            for cut in 0..body.len() {
                let chunks = [&body[..cut], &body[cut..]].map(|it| Ok(Bytes::copy_from_slice(it)));
                let watch = stream_response(stream_type(media), stream::iter(chunks));
                let request = request(&[("origin", "http://x")]);
                let (_, messages) = accept(&request, watch).unwrap();
                let messages: Vec<_> = messages.collect().now_or_never().unwrap();
                let expected = match media {
                    MediaType::Json => Message::Text(event.clone()),
                    MediaType::Protobuf => Message::Binary(event.slice(4..)),
                };
                assert_eq!(messages, [Ok(expected.clone()), Ok(expected)], "{media} {cut}");
            }
        }
    }
}
