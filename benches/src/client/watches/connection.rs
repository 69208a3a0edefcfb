//! One connection, with one watch on it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use h2::RecvStream;
use http::Request;
use http::header::CONTENT_TYPE;
use secrecy::ExposeSecret;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::frames::{Chunks, Events, Kind};
use super::tally::Tally;
use crate::client::Target;
use crate::figures::Wire;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much is read at a time.
const PIECE: usize = 64 << 10;

/// The receive buffer of a connection that is read slowly, so that the kernel does not hide it.
const SLOW_RECEIVE_BUFFER: u32 = 64 << 10;

/// As Go's client has them.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

thread_local! {
    /// Where all connections read to: a buffer for each would be cold each time.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE]);
}

/// How fast watches are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    Full,
    Slow { piece: usize, pause: Duration },
    Never,
}

/// Where connections go, and what is asked for.
pub(super) struct Server {
    address: SocketAddr,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    authority: String,
    headers: Vec<(&'static str, String)>,
    is_http2: bool,
    wire: Wire,
    pace: Pace,
    hurried: AtomicBool,
    hurry: Notify,
}

/// A watch that was answered.
pub(super) enum Watch {
    Http1 {
        stream: Stream,
        /// Of the body, what came with the head.
        begun: Vec<u8>,
    },
    Http2 {
        body: RecvStream,
        /// The task that reads the connection; it ends with this.
        _connection: JoinSet<()>,
    },
}

pub(super) type Stream = Pin<Box<dyn Connection>>;

pub(super) trait Connection: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Connection for T {}

impl Server {
    pub(super) async fn new(
        target: &Target,
        wire: Wire,
        pace: Pace,
        is_http2: bool,
    ) -> Result<Self> {
        let config = target.config().await?;
        let url = &config.cluster_url;
        let host = url.host().context("the URL has no host")?;
        let is_tls = url.scheme_str() == Some("https");
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tls = match is_tls {
            true => Some((connector(&config, is_http2)?, ServerName::try_from(host.to_owned())?)),
            false => None,
        };
        let accept = match wire {
            Wire::Json => "application/json",
            Wire::Protobuf => "application/vnd.kubernetes.protobuf,application/json",
        };
        let mut headers =
            vec![("accept", accept.to_owned()), ("user-agent", "informer-benches".to_owned())];
        if let Some(token) = &config.auth_info.token {
            headers.push(("authorization", format!("Bearer {}", token.expose_secret())));
        }
        let authority = format!("{host}:{port}");
        let address = tokio::net::lookup_host((host, port)).await?.next().context("no address")?;
        let (hurried, hurry) = (AtomicBool::new(false), Notify::new());
        Ok(Self { address, tls, authority, headers, is_http2, wire, pace, hurried, hurry })
    }

    /// From now on, all watches are read at full pace.
    pub(super) fn hurry(&self) {
        self.hurried.store(true, Ordering::Relaxed);
        self.hurry.notify_waiters();
    }

    /// Connects, and asks for a watch.
    pub(super) async fn open(&self, path: &str) -> Result<Watch> {
        tokio::time::timeout(PATIENCE, self.ask(path)).await.context("there is no answer")?
    }

    async fn ask(&self, path: &str) -> Result<Watch> {
        let stream = self.connect().await?;
        match self.is_http2 {
            false => self.ask_http1(stream, path).await,
            true => self.ask_http2(stream, path).await,
        }
    }

    async fn ask_http1(&self, mut stream: Stream, path: &str) -> Result<Watch> {
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.authority);
        for (name, value) in &self.headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        loop {
            let read = stream.read_buf(&mut answer).await?;
            ensure!(read > 0, "the connection was closed before an answer");
            if let Some(end) = memchr::memmem::find(&answer, b"\r\n\r\n") {
                let begun = answer.split_off(end + 4);
                self.check(&answer, &begun)?;
                return Ok(Watch::Http1 { stream, begun });
            }
        }
    }

    async fn ask_http2(&self, stream: Stream, path: &str) -> Result<Watch> {
        let mut http2 = h2::client::Builder::new();
        http2.initial_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        let (requests, connection) = http2.handshake::<_, Bytes>(stream).await?;
        let mut task = JoinSet::new();
        // Its error is that of the body.
        task.spawn(async { drop(connection.await) });
        let mut request = Request::get(format!("https://{}{path}", self.authority));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let (response, _) = requests.ready().await?.send_request(request.body(())?, true)?;
        let (head, body) = response.await?.into_parts();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let is_wanted = content_type.is_some_and(|it| it.contains(self.encoding()));
        ensure!(head.status.is_success() && is_wanted, "the answer is {head:?}");
        Ok(Watch::Http2 { body, _connection: task })
    }

    async fn connect(&self) -> Result<Stream> {
        let socket = self.socket().await?;
        socket.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Box::pin(socket)),
            Some((tls, name)) => Ok(Box::pin(tls.connect(name.clone(), socket).await?)),
        }
    }

    async fn socket(&self) -> Result<TcpStream> {
        let socket = match self.address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        match self.pace {
            Pace::Full => {}
            Pace::Slow { .. } | Pace::Never => {
                socket.set_recv_buffer_size(SLOW_RECEIVE_BUFFER)?;
            }
        }
        Ok(socket.connect(self.address).await?)
    }

    fn encoding(&self) -> &'static str {
        match self.wire {
            Wire::Json => "json",
            Wire::Protobuf => "protobuf",
        }
    }

    fn check(&self, head: &[u8], body: &[u8]) -> Result<()> {
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        let encoding = self.encoding();
        let is_stream = head.contains("transfer-encoding: chunked");
        let is_wanted = head.contains(&format!("content-type: application/{encoding}"))
            || head.contains(&format!("content-type: application/vnd.kubernetes.{encoding}"));
        if head.starts_with("http/1.1 200") && is_stream && is_wanted {
            return Ok(());
        }
        bail!("the answer is {head}{}", String::from_utf8_lossy(body))
    }
}

impl Watch {
    /// Counts what comes, until the end.
    pub(super) async fn follow(self, server: &Server, tally: &Tally) {
        let mut open = Open { tally, end: None };
        let mut body = Body {
            chunks: Chunks::default(),
            events: Events::new(server.wire, tally.wants_latencies()),
            refused: false,
        };
        match self {
            Self::Http1 { stream, begun } => {
                follow_http1(stream, &begun, &mut body, server, tally).await;
            }
            Self::Http2 { body: data, _connection } => follow_http2(data, &mut body, tally).await,
        }
        open.end = Some(body.refused);
    }
}

async fn follow_http1(
    mut stream: Stream,
    begun: &[u8],
    body: &mut Body,
    server: &Server,
    tally: &Tally,
) {
    let mut going = body.feed(begun, tally).is_ok() && !body.chunks.ended();
    while going {
        let piece = match server.pace {
            Pace::Full => PIECE,
            _ if server.hurried.load(Ordering::Relaxed) => PIECE,
            Pace::Slow { piece, .. } => piece.min(PIECE),
            Pace::Never => {
                server.hurry.notified().await;
                continue;
            }
        };
        going = body.read(&mut stream, piece, tally).await.unwrap_or(false);
        if let Pace::Slow { pause, .. } = server.pace
            && piece != PIECE
        {
            tokio::select! {
                () = sleep(pause) => {}
                () = server.hurry.notified() => {}
            }
        }
    }
}

async fn follow_http2(mut data: RecvStream, body: &mut Body, tally: &Tally) {
    while let Some(Ok(bytes)) = data.data().await {
        let is_read = data.flow_control().release_capacity(bytes.len()).is_ok();
        tally.received(bytes.len());
        if !is_read || body.events(&bytes, tally).is_err() {
            break;
        }
    }
}

/// Counts as open while it exists.
struct Open<'a> {
    tally: &'a Tally,
    /// That the server ended it, and whether by an error; `None` while it has not.
    end: Option<bool>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        match self.end {
            Some(refused) => self.tally.ended(refused),
            None => self.tally.closed(),
        }
    }
}

struct Body {
    chunks: Chunks,
    events: Events,
    refused: bool,
}

impl Body {
    /// Whether there may be more.
    async fn read(&mut self, stream: &mut Stream, most: usize, tally: &Tally) -> Result<bool> {
        poll_fn(|context| {
            SCRATCH.with_borrow_mut(|scratch| {
                let mut buffer = ReadBuf::new(&mut scratch[..most]);
                ready!(stream.as_mut().poll_read(context, &mut buffer))?;
                let read = buffer.filled();
                if read.is_empty() {
                    return Poll::Ready(Ok(false));
                }
                Poll::Ready(self.feed(read, tally).map(|()| !self.chunks.ended()))
            })
        })
        .await
    }

    /// Takes bytes of HTTP/1.1.
    fn feed(&mut self, bytes: &[u8], tally: &Tally) -> Result<()> {
        tally.received(bytes.len());
        let Self { chunks, events, refused } = self;
        chunks.feed(bytes, |data| count(events, refused, data, tally))
    }

    /// Takes bytes of events.
    fn events(&mut self, data: &[u8], tally: &Tally) -> Result<()> {
        count(&mut self.events, &mut self.refused, data, tally)
    }
}

fn count(events: &mut Events, refused: &mut bool, data: &[u8], tally: &Tally) -> Result<()> {
    events.feed(data, |kind, late| {
        *refused |= kind == Kind::Error;
        tally.event(kind, late);
    })
}

/// As client-go has it, but that no session is resumed: each watch stands for a client of its own.
fn connector(config: &kube::Config, is_http2: bool) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    for certificate in config.root_cert.iter().flatten() {
        roots.add(certificate.clone().into())?;
    }
    let preferred = ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let provider = CryptoProvider { cipher_suites: vec![preferred], ..ring::default_provider() };
    let mut tls = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.resumption = Resumption::disabled();
    let protocol: &[u8] = if is_http2 { b"h2" } else { b"http/1.1" };
    tls.alpn_protocols = vec![protocol.to_vec()];
    Ok(TlsConnector::from(Arc::new(tls)))
}
