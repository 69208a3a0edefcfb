//! Accepts connections, limits how many are open, and limits how long each may be idle or slow
//! (G34).

mod connection;
mod places;
mod stall;
mod streams;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use connection::Server;
#[cfg(test)]
pub(crate) use places::Places;
#[cfg(not(test))]
use places::Places;
pub(crate) use places::Slot;

/// Delay after a failed accept. Most likely the process has no free file descriptors, so that an
/// immediate retry would fail too.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Limits of clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of open connections. A new connection beyond it waits, or replaces an idle
    /// one without accepted credentials.
    pub(crate) connections: usize,
    /// Time limit for a TLS handshake.
    pub(crate) handshake: Duration,
    /// Time limit for the head of a request. Over HTTP/1.1 it includes the idle time before the
    /// request.
    pub(crate) request_head: Duration,
    /// Time limit for an HTTP/2 connection without a stream. It is the one of kube-apiserver, and
    /// the time for which Go's clients keep an idle connection.
    pub(crate) idle: Duration,
    /// How long a client may read nothing while data is ready for it. It applies to the bytes of
    /// the connection, and to the body of each HTTP/2 stream.
    pub(crate) stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            handshake: Duration::from_secs(10),
            request_head: Duration::from_secs(30),
            idle: Duration::from_secs(90),
            stall: Duration::from_secs(30),
        }
    }
}

/// Serves until `stop` resolves, then waits for the requests in progress. Dropping the future
/// aborts them.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    stop: impl Future<Output = ()>,
    limits: Limits,
) {
    let server = Arc::new(Server::new(router, tls, limits));
    let (stopping, dropped) = (CancellationToken::new(), CancellationToken::new());
    let _guard = dropped.clone().drop_guard();
    // Nothing is sent on this channel. It closes when the last connection drops its sender.
    let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
    let places = Places::new(limits.connections);
    let accept = async {
        loop {
            // Accepting comes before the wait for a slot, because that wait may close another
            // connection.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            };
            let close = dropped.child_token();
            let slot = places.take(close.clone()).await;
            let connection = Arc::clone(&server).connection(stream, slot, stopping.clone());
            let open = open.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = connection => {}
                    () = close.cancelled() => {}
                }
                drop(open);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    drop((listener, open));
    stopping.cancel();
    all_closed.recv().await;
}
