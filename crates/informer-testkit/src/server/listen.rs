//! The socket: accepting, refusing and resetting connections.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::websocket::Upgrades;
use super::{ApiService, Core};

/// A port that stays ours while nobody listens on it.
pub(super) struct Listener {
    address: SocketAddr,
    /// Bound, but not listening: whoever connects while there is no listener is refused, and the
    /// system gives the port to nobody else.
    _holder: Option<TcpSocket>,
    listener: Option<TcpListener>,
}

impl Listener {
    pub(super) fn bind(wanted: SocketAddr) -> io::Result<Self> {
        if wanted.port() != 0 {
            // Ports are shared below; one that somebody else has must be an error nevertheless.
            let probe = TcpSocket::new_v4()?;
            probe.set_reuseaddr(true)?;
            probe.bind(wanted)?;
        }
        let holder = cfg!(unix).then(|| socket(wanted)).transpose()?;
        let address = holder.as_ref().map_or(Ok(wanted), TcpSocket::local_addr)?;
        let listener = socket(address)?.listen(1024)?;
        Ok(Self { address: listener.local_addr()?, _holder: holder, listener: Some(listener) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens, or does not.
    fn set_refusing(&mut self, refusing: bool) {
        if refusing {
            self.listener = None;
        } else if self.listener.is_none() {
            self.listener = socket(self.address).and_then(|socket| socket.listen(1024)).ok();
        }
    }

    /// The next connection; never, while refusing.
    async fn accept(&self) -> io::Result<TcpStream> {
        match &self.listener {
            Some(listener) => listener.accept().await.map(|(stream, _)| stream),
            None => std::future::pending().await,
        }
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Accepts connections until it is cancelled.
pub(super) async fn run(
    mut listener: Listener,
    core: Arc<Core>,
    tracker: TaskTracker,
    cancel: CancellationToken,
) {
    let mut refusing = core.faults.refusing();
    loop {
        let refuse = *refusing.borrow_and_update();
        listener.set_refusing(refuse);
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            _ = refusing.changed() => {}
            accepted = listener.accept() => match accepted {
                Ok(stream) => {
                    let resets = core.faults.resets();
                    let upgrades = Upgrades { tracker: tracker.clone(), cancel: cancel.clone() };
                    tracker.spawn(serve(stream, Arc::clone(&core), resets, upgrades));
                }
                // Out of file descriptors, most likely: others have to be closed first.
                Err(_) => tokio::task::yield_now().await,
            },
        }
    }
}

/// Serves one connection until it ends, is reset or the server ends.
async fn serve(
    stream: TcpStream,
    core: Arc<Core>,
    mut resets: watch::Receiver<u64>,
    upgrades: Upgrades,
) {
    // Accepted just before the socket was closed.
    let refused = *core.faults.refusing().borrow();
    let reset = CancellationToken::new();
    let _ = stream.set_nodelay(true);
    let connection = Connection { stream, reset: reset.clone() };
    if refused {
        reset.cancel();
        return;
    }
    let service = ApiService::new(core).on_connection(reset.clone(), upgrades.clone());
    let service = hyper_util::service::TowerToHyperService::new(service);
    // Outlives the selection: how it ends has to be decided before it is dropped.
    let mut serving = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(true)
            .serve_connection(TokioIo::new(connection), service)
            .with_upgrades()
    );
    tokio::select! {
        // Errors are the client's going away, or ours on purpose.
        _ = &mut serving => {}
        _ = resets.changed() => reset.cancel(),
        () = upgrades.cancel.cancelled() => {}
    }
}

/// A connection that can end with a reset instead of a close.
struct Connection {
    stream: TcpStream,
    reset: CancellationToken,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.reset.is_cancelled() {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reset.is_cancelled() {
            // A shutdown would say goodbye first.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
