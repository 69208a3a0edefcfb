//! Listening on an address.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Context;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// As many as tokio takes by default.
const BACKLOG: i32 = 1024;

/// Listens on an address. `[::]` is every address of both families; it is `0.0.0.0` where the
/// system has no IPv6.
///
/// # Errors
/// If it cannot.
pub(crate) fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = bind_with(address, open).with_context(|| {
        format!("cannot listen on {address}; choose another address with --addr")
    })?;
    Ok(TcpListener::from_std(listener.into())?)
}

/// Opens the socket of the address or, for `[::]` without IPv6, that of `0.0.0.0`.
fn bind_with<T>(
    address: SocketAddr,
    open: impl Fn(SocketAddr) -> Result<T, Failure>,
) -> io::Result<T> {
    match open(address) {
        Ok(listener) => Ok(listener),
        Err(Failure::NoFamily(error)) if address.ip() == Ipv6Addr::UNSPECIFIED => {
            let other = (Ipv4Addr::UNSPECIFIED, address.port()).into();
            // A system without either says what was asked of it.
            open(other).map_err(|failure| match failure {
                Failure::NoFamily(_) => error,
                Failure::Other(other) => other,
            })
        }
        Err(Failure::NoFamily(error) | Failure::Other(error)) => Err(error),
    }
}

/// Why there is no socket.
#[derive(Debug)]
enum Failure {
    /// The system has no address of this family.
    NoFamily(io::Error),
    Other(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrNotAvailable => Self::NoFamily(error),
            _ => Self::Other(error),
        }
    }
}

fn open(address: SocketAddr) -> Result<Socket, Failure> {
    let domain = Domain::for_address(address);
    // The kernel was built or started without the family.
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).map_err(|error| {
        if domain == Domain::IPV6 { Failure::NoFamily(error) } else { Failure::Other(error) }
    })?;
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        // The default is a setting of the system.
        socket.set_only_v6(false)?;
    }
    // On Windows it would let two programs listen.
    #[cfg(not(windows))]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::net::TcpStream;

    use super::*;

    const BOTH: &str = "[::]:8443";

    #[tokio::test]
    async fn all_addresses_are_those_of_both_families() {
        let listener = bind("[::]:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let has_v6 = address.is_ipv6() && std::net::TcpListener::bind("[::1]:0").is_ok();
        let hosts = ["127.0.0.1", "::1"];
        for host in &hosts[..if has_v6 { 2 } else { 1 }] {
            let (connected, accepted) =
                tokio::join!(TcpStream::connect((*host, address.port())), listener.accept());
            connected.unwrap();
            let (_, peer) = accepted.unwrap();
            assert_eq!(peer.ip().to_canonical().to_string(), *host);
        }
    }

    #[test]
    fn without_ipv6_all_addresses_are_those_of_ipv4() {
        let (opened, tried) = tries(BOTH, |it| match it {
            SocketAddr::V4(_) => Ok(it),
            SocketAddr::V6(_) => Err(no_family()),
        });
        assert_eq!(opened.unwrap().to_string(), "0.0.0.0:8443");
        assert_eq!(tried, [BOTH, "0.0.0.0:8443"]);
    }

    #[test]
    fn nothing_else_falls_back() {
        let (opened, tried) = tries(BOTH, |_| Err(Failure::Other(io::ErrorKind::AddrInUse.into())));
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(tried, [BOTH]);
        for address in ["[::1]:8443", "0.0.0.0:8443"] {
            let (opened, tried) = tries(address, |_| Err(no_family()));
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
            assert_eq!(tried, [address]);
        }
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named() {
        let first = bind("[::]:0".parse().unwrap()).unwrap();
        let error = bind(first.local_addr().unwrap()).unwrap_err();
        assert!(error.to_string().contains("choose another address with --addr"), "{error}");
    }

    /// What came of it, and what was tried.
    fn tries(
        address: &str,
        open: impl Fn(SocketAddr) -> Result<SocketAddr, Failure>,
    ) -> (io::Result<SocketAddr>, Vec<String>) {
        let tried = RefCell::new(Vec::new());
        let opened = bind_with(address.parse().unwrap(), |it| {
            tried.borrow_mut().push(it.to_string());
            open(it)
        });
        (opened, tried.into_inner())
    }

    fn no_family() -> Failure {
        io::Error::from(io::ErrorKind::AddrNotAvailable).into()
    }
}
