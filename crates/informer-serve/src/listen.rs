//! Connections: how many at a time, and how long one may take to say what it wants (G34).

mod connection;
mod stall;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use connection::Server;

/// How long to wait after a connection could not be accepted, for want of file descriptors most
/// likely.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What clients may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at a time; others wait to be accepted.
    pub(crate) connections: usize,
    /// How long a TLS handshake may take.
    pub(crate) handshake: Duration,
    /// How long a connection may take to send the head of a request, or stay idle before the next.
    pub(crate) request_head: Duration,
    /// How long a write may take without any progress.
    pub(crate) write_stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            handshake: Duration::from_secs(10),
            request_head: Duration::from_secs(30),
            write_stall: Duration::from_secs(30),
        }
    }
}

/// The place of a connection among those that are served at a time. Who takes a connection over, as
/// a WebSocket does, keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    _permit: Arc<OwnedSemaphorePermit>,
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
    let slots = Arc::new(Semaphore::new(limits.connections));
    let accept = async {
        loop {
            let Ok(permit) = Arc::clone(&slots).acquire_owned().await else { return };
            let slot = Slot { _permit: Arc::new(permit) };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            };
            let connection = Arc::clone(&server).connection(stream, slot, stopping.clone());
            let (open, dropped) = (open.clone(), dropped.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = connection => {}
                    () = dropped.cancelled() => {}
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

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

    /// A server that answers `ok`; it ends when the sender is dropped.
    async fn server(limits: Limits) -> (String, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let router = Router::new().route("/", get(async || "ok"));
        let stopped = async { _ = stopped.await };
        let serving = tokio::spawn(serve(listener, router, None, stopped, limits));
        (address, stop, serving)
    }

    #[tokio::test(start_paused = true)]
    async fn g34_a_connection_that_does_not_say_what_it_wants_is_closed() {
        let limits = Limits { request_head: Duration::from_secs(30), ..Limits::default() };
        let (address, stop, serving) = server(limits).await;
        let mut slow = TcpStream::connect(&address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
        let mut answer = Vec::new();
        let closed =
            tokio::time::timeout(Duration::from_secs(60), slow.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "still open after twice the time that it may take");
        assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
        drop(stop);
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn g34_no_more_connections_are_served_at_a_time_than_allowed() {
        let limits = Limits { connections: 1, ..Limits::default() };
        let (address, stop, serving) = server(limits).await;
        let first = TcpStream::connect(&address).await.unwrap();
        let mut second = TcpStream::connect(&address).await.unwrap();
        second.write_all(REQUEST).await.unwrap();
        let mut answer = Vec::new();
        let early =
            tokio::time::timeout(Duration::from_millis(50), second.read_to_end(&mut answer)).await;
        assert!(
            early.is_err() && answer.is_empty(),
            "the second connection was served beside the first"
        );
        drop(first);
        second.read_to_end(&mut answer).await.unwrap();
        assert!(String::from_utf8_lossy(&answer).contains("200 OK"));
        drop(stop);
        serving.await.unwrap();
    }
}
