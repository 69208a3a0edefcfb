//! An endpoint on a socket.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::tls::Tls;

/// An endpoint that is served until [`stop`](Self::stop), or until it is dropped.
pub(super) struct Listening {
    pub(super) endpoint: Endpoint,
    pub(super) address: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Listening {
    pub(super) async fn start(endpoint: Endpoint, host: &str, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let serving = {
            let endpoint = endpoint.clone();
            tokio::spawn(async move {
                match tls {
                    Some(tls) => endpoint.serve_tls(listener, tls, stopped).await,
                    None => endpoint.serve(listener, stopped).await,
                }
            })
        };
        Self { endpoint, address, stop, serving }
    }

    /// What the endpoint sends on a new connection until it closes it.
    pub(super) async fn send(&self, bytes: &[u8]) -> String {
        exchange(TcpStream::connect(&self.address).await.unwrap(), bytes).await
    }

    /// The response, as text.
    pub(super) async fn get(&self, path: &str) -> String {
        self.send(last(path).as_bytes()).await
    }

    pub(super) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

/// The last request of a connection.
pub(super) fn last(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

/// Sends bytes, and reads until the connection is closed.
pub(super) async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    bytes: &[u8],
) -> String {
    // The endpoint may close the connection before it has read all of it.
    drop(stream.write_all(bytes).await);
    let mut text = Vec::new();
    drop(stream.read_to_end(&mut text).await);
    String::from_utf8_lossy(&text).into_owned()
}

/// Reads until all of `expected` has come.
pub(super) async fn read_until(stream: &mut (impl AsyncRead + Unpin), expected: &[&str]) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if expected.iter().all(|it| text.contains(it)) {
            return text.into_owned();
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the connection was closed");
    }
}
