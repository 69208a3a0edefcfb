//! Serves one connection: TLS handshake, HTTP/1.1 or HTTP/2, shutdown.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::future::RouteFuture;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::stall::StallGuard;
use super::streams::{OfStreams, Streams};
use super::{Limits, Slot};
use crate::access::Peer;
use crate::audit::RemoteAddress;

/// Maximum size of the head of a request. HTTP/1.1 buffers as much in each direction.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of headers of an HTTP/1.1 request. It is high because proxies send one header for
/// each group of a user.
const MAX_HEADERS: usize = 1000;
/// Maximum number of concurrent HTTP/2 streams, as in kube-apiserver.
const MAX_STREAMS: u32 = 250;
/// Bytes buffered for each HTTP/2 stream while the client does not open its window.
const MAX_STREAM_BYTES: usize = 64 * 1024;
/// Bytes encrypted in advance while the client does not read.
const TLS_BUFFER: usize = 32 * 1024;
/// Maximum number of streams that the client opened and reset before they were accepted. It
/// protects against rapid reset attacks.
const MAX_PENDING_RESETS: usize = 20;
/// Maximum number of streams that the server resets because of errors of the client.
const MAX_ERROR_RESETS: usize = 256;
/// Interval of HTTP/2 pings and TCP keepalive probes, which detect clients that have vanished.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Unsent bytes that the kernel buffers for each connection. A larger buffer only delays the
/// detection of a slow client.
#[cfg(any(target_os = "linux", target_os = "android"))]
const MAX_UNSENT_BYTES: u32 = 128 * 1024;
/// Maximum number of bytes that are read from a refused client before its connection is closed.
const MAX_DISCARDED_BYTES: u64 = 64 * 1024;
const PLAIN_REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 50\r\nConnection: close\r\n\r\nthis address speaks TLS: ask with https:// instead";

/// The configuration that all connections share.
pub(super) struct Server {
    router: Router,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    http1: http1::Builder,
}

impl Server {
    pub(super) fn new(router: Router, tls: Option<TlsAcceptor>, limits: Limits) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.request_head)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS);
        Self { router, tls, limits, http1 }
    }

    /// Serves a connection to its end. After `stop` it only finishes the requests in progress.
    pub(super) async fn connection(
        self: Arc<Self>,
        mut stream: TcpStream,
        slot: Slot,
        stop: CancellationToken,
    ) {
        tune(&stream);
        let address = stream.peer_addr().ok().map(RemoteAddress);
        if self.tls.is_some() {
            let limit = self.limits.handshake;
            let is_plain = tokio::select! {
                is_plain = tokio::time::timeout(limit, refuse_plain(&mut stream)) => is_plain,
                () = stop.cancelled() => return,
            };
            let Ok(Ok(false)) = is_plain else { return };
        }
        self.over(stream, (slot, address), stop).await;
    }

    /// Serves a connection over any stream of bytes, so that tests need no sockets.
    pub(super) async fn over<S>(
        &self,
        stream: S,
        (slot, address): (Slot, Option<RemoteAddress>),
        stop: CancellationToken,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = StallGuard::new(stream, self.limits.stall);
        let Some(acceptor) = &self.tls else {
            return self.http1(stream, (slot, None, address), &stop).await;
        };
        // The handshake is boxed, because its state is large and short-lived.
        let handshake = acceptor.accept_with(stream, |tls| tls.set_buffer_limit(Some(TLS_BUFFER)));
        let handshake = Box::pin(handshake);
        let stream = tokio::select! {
            stream = tokio::time::timeout(self.limits.handshake, handshake) => stream,
            () = stop.cancelled() => return,
        };
        let Ok(Ok(stream)) = stream else { return };
        let session = stream.get_ref().1;
        let peer = session.peer_certificates().map(Peer::new);
        match session.alpn_protocol() {
            Some(b"h2") => self.http2(stream, (slot, peer, address), &stop).await,
            _ => self.http1(stream, (slot, peer, address), &stop).await,
        }
    }

    async fn http1<S>(&self, stream: S, of: Of, stop: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = self.http1.serve_connection(TokioIo::new(stream), self.service(of));
        let mut connection = Box::pin(connection.with_upgrades());
        tokio::select! {
            _ = &mut connection => return,
            () = stop.cancelled() => {}
        }
        connection.as_mut().graceful_shutdown();
        drop(connection.await);
    }

    /// Serves HTTP/2 until the client closes the connection or opens no stream for too long. In the
    /// latter case the client gets a GOAWAY, and [`Limits::stall`] to close the connection.
    async fn http2<S>(&self, stream: S, of: Of, stop: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let streams = Streams::new(self.limits);
        let service = OfStreams(self.service(of));
        let connection = http2(streams.clone()).serve_connection(TokioIo::new(stream), service);
        let mut connection = Box::pin(connection);
        tokio::select! {
            _ = &mut connection => return,
            () = streams.unused() => {}
            () = stop.cancelled() => {}
        }
        if !streams.had_any() {
            return;
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            _ = connection => {}
            () = streams.unused_for(self.limits.stall) => {}
        }
    }

    fn service(&self, (slot, peer, address): Of) -> Service {
        Service { router: self.router.clone(), slot, peer, address }
    }
}

fn http2(streams: Streams) -> http2::Builder<Streams> {
    let mut http2 = http2::Builder::new(streams);
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .max_send_buf_size(MAX_STREAM_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    http2
}

/// The slot, client certificate and remote address of a connection.
type Of = (Slot, Option<Peer>, Option<RemoteAddress>);

/// The router for the requests of one connection. It adds what is known of the connection to their
/// extensions.
pub(super) struct Service {
    router: Router,
    slot: Slot,
    /// The certificate that the client presented.
    peer: Option<Peer>,
    address: Option<RemoteAddress>,
}

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = axum::response::Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.slot.clone());
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        if let Some(address) = self.address {
            request.extensions_mut().insert(address);
        }
        self.router.clone().call(request.map(Body::new))
    }
}

/// Returns whether the client sent plain HTTP instead of TLS, after responding with an error.
async fn refuse_plain(stream: &mut TcpStream) -> io::Result<bool> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    // A plain request begins with its method in upper case, and a TLS handshake with byte 22.
    if !first[0].is_ascii_uppercase() {
        return Ok(false);
    }
    stream.write_all(PLAIN_REFUSED).await?;
    stream.shutdown().await?;
    // Closing a socket with unread bytes resets the connection, and the response would be lost.
    tokio::io::copy(&mut stream.take(MAX_DISCARDED_BYTES), &mut tokio::io::sink()).await?;
    Ok(true)
}

/// Sets socket options for low latency, and to detect clients that have vanished. Errors are
/// ignored, because none of the options is required.
fn tune(stream: &TcpStream) {
    drop(stream.set_nodelay(true));
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(PING_INTERVAL).with_interval(PING_INTERVAL / 3);
    drop(socket.set_tcp_keepalive(&keepalive));
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        drop(socket.set_tcp_notsent_lowat(MAX_UNSENT_BYTES));
        drop(socket.set_tcp_user_timeout(Some(PING_INTERVAL * 2)));
    }
}
