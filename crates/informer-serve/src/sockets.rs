//! Watches over WebSocket, as dashboards in browsers have them.

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::HeaderMap;
use k8s_serve::websocket::{self, Messages};

/// The largest message that is read of a client. It has nothing to say.
const MAX_MESSAGE_BYTES: usize = 4096;

/// Completes the handshake, and sends the watch. What the connection counts for is `kept` until
/// its end.
pub(crate) fn upgrade(
    socket: WebSocketUpgrade,
    request: &HeaderMap,
    watch: http::Response<k8s_serve::Body>,
    kept: impl Send + 'static,
) -> Response {
    let (agreed, messages) = match websocket::accept(request, watch) {
        Ok(accepted) => accepted,
        Err(refused) => return refused.map(axum::body::Body::new).into_response(),
    };
    let socket = socket.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    let mut response = socket.on_upgrade(async move |socket| {
        send(socket, messages).await;
        drop(kept);
    });
    for (name, value) in agreed.headers() {
        response.headers_mut().insert(name, value.clone());
    }
    response
}

/// Sends event by event until the watch or the client ends.
async fn send(mut socket: WebSocket, mut messages: Messages) {
    loop {
        tokio::select! {
            message = messages.next() => {
                let Some(Ok(message)) = message else { break };
                let message = match message {
                    websocket::Message::Text(text) => match Utf8Bytes::try_from(text) {
                        Ok(text) => Message::Text(text),
                        Err(_) => break,
                    },
                    websocket::Message::Binary(bytes) => Message::Binary(bytes),
                };
                if socket.send(message).await.is_err() {
                    return;
                }
            }
            received = socket.recv() => match received {
                None | Some(Err(_) | Ok(Message::Close(_))) => return,
                // Pings are answered by reading them.
                Some(Ok(_)) => {}
            },
        }
    }
    // A client that is gone needs no goodbye.
    drop(socket.send(Message::Close(None)).await);
}
