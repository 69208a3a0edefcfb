//! Connections: how many at a time, and how long one may take to say what it wants (G34).

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

/// How long to wait after a connection could not be accepted, for want of file descriptors most
/// likely.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What clients may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at a time; others wait, or get the places of idle strangers.
    pub(crate) connections: usize,
    /// How long a TLS handshake may take.
    pub(crate) handshake: Duration,
    /// How long a connection may take to send the head of a request. Over HTTP/1.1 it may stay idle
    /// as long between two.
    pub(crate) request_head: Duration,
    /// How long an HTTP/2 connection may stay without a stream. As in kube-apiserver, and as long
    /// as Go's clients keep one.
    pub(crate) idle: Duration,
    /// How long a client may take nothing of what is ready for it: of a connection's bytes, and of
    /// the body of an HTTP/2 stream.
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

/// Serves until `stop` resolves, then lets running requests end; dropping the future ends them at
/// once.
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
    // Nothing is sent: it is closed when no connection is left.
    let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
    let places = Places::new(limits.connections);
    let accept = async {
        loop {
            // First, since nobody leaves for a connection that does not come.
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
