//! A TCP proxy between an informer and its server: connections break, the server lives on.
//!
//! It makes outages cheap, the same on both arms, private to one test of a shared server, and lets
//! the test change objects meanwhile, through a client that goes around it.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

/// A listening proxy. Dropping it breaks its connections and frees its port.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    orders: mpsc::UnboundedSender<(Order, oneshot::Sender<()>)>,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Proxy {
    /// Listens on a free port of the loopback interface and passes connections on to `target`.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = listen().await?;
        let address = listener.local_addr()?;
        let (orders, taken) = mpsc::unbounded_channel();
        let accepted = Arc::new(AtomicUsize::new(0));
        let open = Arc::new(AtomicUsize::new(0));
        tokio::spawn(run(
            listener,
            address,
            target,
            taken,
            Arc::clone(&accepted),
            Arc::clone(&open),
        ));
        Ok(Self { address, orders, accepted, open })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it has accepted so far.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Breaks every open connection. Returns once they are closed; new ones are welcome.
    ///
    /// # Panics
    ///
    /// When the runtime it was started on is gone; the same holds for the other orders.
    pub async fn cut(&self) {
        self.order(Order::Cut).await;
    }

    /// Breaks every open connection and refuses new ones until [`accept`](Self::accept).
    pub async fn refuse(&self) {
        self.order(Order::Refuse).await;
    }

    /// Ends [`refuse`](Self::refuse).
    pub async fn accept(&self) {
        self.order(Order::Accept).await;
    }

    async fn order(&self, order: Order) {
        let (done, wait) = oneshot::channel();
        let sent = self.orders.send((order, done)).is_ok();
        assert!(sent && wait.await.is_ok(), "the proxy's runtime is gone");
    }
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Cut,
    Refuse,
    Accept,
}

async fn run(
    listener: TcpListener,
    address: SocketAddr,
    target: SocketAddr,
    mut orders: mpsc::UnboundedReceiver<(Order, oneshot::Sender<()>)>,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
) {
    let mut listener = Some(listener);
    let (mut cut, _) = watch::channel(());
    let mut connections = JoinSet::new();
    loop {
        open.store(connections.len(), Ordering::Relaxed);
        tokio::select! {
            order = orders.recv() => {
                let Some((order, done)) = order else { return };
                match order {
                    Order::Accept if listener.is_none() => listener = Some(listen_again(address).await),
                    Order::Accept => {}
                    Order::Cut | Order::Refuse => {
                        if matches!(order, Order::Refuse) {
                            listener = None;
                        }
                        cut = watch::channel(()).0;
                        while connections.join_next().await.is_some() {}
                        open.store(0, Ordering::Relaxed);
                    }
                }
                // The one who gave the order may have stopped waiting.
                let _ = done.send(());
            }
            connection = next(listener.as_ref()) => {
                if let Ok(client) = connection {
                    accepted.fetch_add(1, Ordering::Relaxed);
                    connections.spawn(pass(client, target, cut.subscribe()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn next(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}

/// Ends with either side's connection, or when the sender of `cut` is dropped.
async fn pass(mut client: TcpStream, target: SocketAddr, mut cut: watch::Receiver<()>) {
    let copy = async {
        let mut server = TcpStream::connect(target).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await
    };
    tokio::select! {
        _ = cut.changed() => {}
        // Broken connections are this proxy's trade: the client sees its own break.
        _ = copy => {}
    }
}

/// Below the ephemeral range: while it refuses, no outgoing connection may take its port.
async fn listen() -> io::Result<TcpListener> {
    let mut attempt = 0_u64;
    loop {
        attempt += 1;
        let port = 20_000 + (RandomState::new().hash_one(attempt) % 12_000) as u16;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(_) if attempt < 100 => {}
            result => return result,
        }
    }
}

async fn listen_again(address: SocketAddr) -> TcpListener {
    match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => panic!("the proxy's port {address} was taken while it refused: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn it_passes_cuts_refuses_and_accepts_again() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::start(server.local_addr().unwrap()).await.unwrap();
        let echo = async {
            loop {
                let (mut connection, _) = server.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut read, mut write) = connection.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        };
        let test = async {
            let mut first = connect(&proxy).await;
            let mut second = connect(&proxy).await;
            assert_eq!(proxy.open(), 2);
            proxy.cut().await;
            assert_closed(&mut first).await;
            assert_closed(&mut second).await;
            assert_eq!(proxy.open(), 0);

            let mut third = connect(&proxy).await;
            proxy.refuse().await;
            assert_closed(&mut third).await;
            let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);

            proxy.accept().await;
            proxy.accept().await;
            connect(&proxy).await;
            assert_eq!(proxy.accepted(), 4);
        };
        tokio::select! {
            () = echo => {}
            () = test => {}
        }
    }

    async fn connect(proxy: &Proxy) -> TcpStream {
        let mut connection = TcpStream::connect(proxy.address()).await.unwrap();
        connection.write_all(b"hello").await.unwrap();
        let mut answer = [0; 5];
        connection.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"hello");
        connection
    }

    async fn assert_closed(connection: &mut TcpStream) {
        // A clean end or a reset, as the system likes.
        assert!(matches!(connection.read(&mut [0; 1]).await, Ok(0) | Err(_)));
    }
}
