//! Watches over WebSocket.

use futures_util::{SinkExt, StreamExt};
use http::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::{HeaderMap, HeaderValue, Response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use k8s_serve::Body;
use k8s_serve::websocket::{self, Message, Messages};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where connections live that are no longer HTTP.
#[derive(Debug, Clone)]
pub(super) struct Upgrades {
    pub(super) tracker: TaskTracker,
    pub(super) cancel: CancellationToken,
}

impl Upgrades {
    /// Completes the handshake for a watch, and sends its events once the connection is upgraded.
    pub(super) fn accept(
        &self,
        request: &HeaderMap,
        upgrade: OnUpgrade,
        watch: Response<Body>,
    ) -> Response<Body> {
        let (mut response, messages) = match websocket::accept(request, watch) {
            Ok(accepted) => accepted,
            Err(refused) => return *refused,
        };
        let key = request.get(SEC_WEBSOCKET_KEY).map_or(&[][..], HeaderValue::as_bytes);
        if let Ok(key) = HeaderValue::from_str(&derive_accept_key(key)) {
            response.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, key);
        }
        let cancel = self.cancel.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = send(upgrade, messages) => {}
            }
        });
        response.map(|()| Body::full(bytes::Bytes::new()))
    }
}

/// Sends all messages, until the client goes away.
async fn send(upgrade: OnUpgrade, mut messages: Messages) {
    let Ok(connection) = upgrade.await else { return };
    let connection = TokioIo::new(connection);
    let mut socket = WebSocketStream::from_raw_socket(connection, Role::Server, None).await;
    loop {
        tokio::select! {
            message = messages.next() => {
                let message = match message {
                    Some(Ok(Message::Text(text))) => match text.try_into() {
                        Ok(text) => tungstenite::Message::Text(text),
                        Err(_) => return,
                    },
                    Some(Ok(Message::Binary(bytes))) => tungstenite::Message::Binary(bytes),
                    // The body was cut on purpose.
                    Some(Err(_)) => return,
                    None => break,
                };
                if socket.send(message).await.is_err() {
                    return;
                }
            }
            // Nothing is expected but that the client closes; pings are answered here.
            received = socket.next() => match received {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
        }
    }
    let _ = socket.close(None).await;
}
