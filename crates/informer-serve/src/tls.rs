//! The certificate of an endpoint: its files, and reading them again.

#[cfg(test)]
pub(crate) mod secret;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

use crate::access::ClientCa;

/// How often the files are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// The ALPN names of what is spoken, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificate and private key of an endpoint, for
/// [`Endpoint::serve_tls`](crate::Endpoint::serve_tls); a cheap handle.
///
/// While the endpoint is served, the files are read again every 10 s, by their paths: a mounted
/// Secret may replace them. New connections get the new certificate. When the new files cannot be
/// used, the last good ones stay in use, and a warning says why.
///
/// # Examples
/// ```no_run
/// use informer_serve::{Endpoint, Options, Tls};
///
/// # async fn run(client: kube::Client) -> anyhow::Result<()> {
/// let tls = Tls::load("/tls/tls.crt", "/tls/tls.key")?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8443").await?;
/// let until_ctrl_c = async { _ = tokio::signal::ctrl_c().await };
/// Endpoint::new(client, Options::default()).serve_tls(listener, tls, until_ctrl_c).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    files: Arc<Files>,
    current: Arc<Current>,
    /// Of what was read at first.
    fingerprint: u64,
    clients: Option<Clients>,
}

/// Why a certificate and its private key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{file}: {problem}; name a PEM file that this process may read")]
    Unreadable {
        /// Which file.
        file: TlsFile,
        /// What the system says.
        problem: String,
    },
    /// A file has nothing in it.
    #[error("{0}: the file is empty; write the PEM into it")]
    Empty(TlsFile),
    /// A file holds something else.
    #[error("{file}: {problem}; it must be PEM that begins with -----BEGIN {expected}-----")]
    Malformed {
        /// Which file.
        file: TlsFile,
        /// What is wrong with it.
        problem: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// The private key is encrypted.
    #[error(
        "{0}: the key is encrypted, and there is nobody to ask for its passphrase; decrypt it with openssl pkey -in FILE -out NEW"
    )]
    Encrypted(TlsFile),
    /// The private key is none that can be used.
    #[error(
        "{file}: {problem}; use an RSA key of at least 2048 bits, ECDSA P-256 or P-384, or Ed25519"
    )]
    UnsupportedKey {
        /// Which file.
        file: TlsFile,
        /// What is wrong with it.
        problem: String,
    },
    /// The private key belongs to another certificate.
    #[error(
        "{key} does not fit {certificate}; name the key that the first certificate of the file was issued for"
    )]
    Mismatch {
        /// The file of the key.
        key: TlsFile,
        /// The file of the certificate.
        certificate: TlsFile,
    },
}

/// One of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFile {
    /// The certificate, followed by those of its issuers.
    Certificate(PathBuf),
    /// Its private key.
    PrivateKey(PathBuf),
    /// The authorities of clients' certificates.
    ClientCa(PathBuf),
}

impl Tls {
    /// Reads a certificate, followed by those of its issuers, and its private key, both in PEM.
    ///
    /// # Errors
    /// A file that cannot be read or used, and two that do not fit each other.
    pub fn load(
        cert_file: impl Into<PathBuf>,
        key_file: impl Into<PathBuf>,
    ) -> Result<Self, TlsError> {
        let files = Files {
            certificate: TlsFile::Certificate(cert_file.into()),
            key: TlsFile::PrivateKey(key_file.into()),
            provider: ring::default_provider(),
        };
        let read = files.read()?;
        let current = Arc::new(Current(ArcSwap::from_pointee(files.parse(&read)?)));
        let fingerprint = read.fingerprint();
        Ok(Self { fingerprint, files: Arc::new(files), current, clients: None })
    }

    /// Knows callers by certificates of these authorities, too, in PEM: the common name is the
    /// user, the organizations are the groups. The file is read again as the others are.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub fn with_client_ca(mut self, ca_file: impl Into<PathBuf>) -> Result<Self, TlsError> {
        let file = TlsFile::ClientCa(ca_file.into());
        let bytes = file.read()?;
        let ca = parse_client_ca(&file, &bytes, &self.files.provider)?;
        let current = Arc::new(ArcSwap::from_pointee(ca));
        self.clients = Some(Clients { file, current, fingerprint: hash(&bytes) });
        Ok(self)
    }

    /// The authorities of clients' certificates, if these say who a caller is.
    pub(crate) fn client_ca(&self) -> Option<Arc<ClientCa>> {
        self.clients.as_ref().map(|it| it.current.load_full())
    }

    /// Makes the server's side of connections.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let config = ServerConfig::builder_with_provider(Arc::new(self.files.provider.clone()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions");
        let config = match &self.clients {
            Some(_) => config.with_client_cert_verifier(ClientCa::asking(&self.files.provider)),
            None => config.with_no_client_auth(),
        };
        let mut config =
            config.with_cert_resolver(Arc::clone(&self.current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        // No state here for resumed sessions, only tickets, whose keys change every few hours. A
        // ticket also acknowledges the end of the handshake: without it a client that does not set
        // TCP_NODELAY sends its first request 40 ms late.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = ring::Ticketer::new().expect("the system has randomness");
        config.send_tls13_tickets = 1;
        TlsAcceptor::from(Arc::new(config))
    }

    /// Reads the files again and again, and tells what became of those that have changed.
    pub(crate) async fn reload(&self, changed: impl Fn(&Result<(), TlsError>)) {
        let certificate = async {
            let files = Arc::clone(&self.files);
            let store =
                |read: Read| self.files.parse(&read).map(|it| self.current.0.store(Arc::new(it)));
            let read = move || files.read();
            read_again(read, Read::fingerprint, self.fingerprint, store, &changed).await;
        };
        let client_ca = async {
            let Some(Clients { file, current, fingerprint }) = self.clients.clone() else { return };
            let store = |read: Vec<u8>| {
                let ca = parse_client_ca(&file, &read, &self.files.provider)?;
                current.store(Arc::new(ca));
                Ok(())
            };
            let read = {
                let file = file.clone();
                move || file.read()
            };
            read_again(read, hash, fingerprint, store, &changed).await;
        };
        tokio::join!(certificate, client_ca);
    }
}

/// Reads again and again, and stores what has changed.
async fn read_again<R: Send + 'static>(
    read: impl Fn() -> Result<R, TlsError> + Clone + Send + 'static,
    fingerprint: impl Fn(&R) -> u64,
    seen: u64,
    store: impl Fn(R) -> Result<(), TlsError>,
    changed: impl Fn(&Result<(), TlsError>),
) {
    let mut seen = Ok(seen);
    loop {
        tokio::time::sleep(RELOAD_INTERVAL).await;
        let Ok(read) = tokio::task::spawn_blocking(read.clone()).await else { return };
        let now = read.as_ref().map(&fingerprint).map_err(Clone::clone);
        if now == seen {
            continue;
        }
        seen = now;
        changed(&read.and_then(&store));
    }
}

/// The authorities of clients' certificates.
#[derive(Clone)]
struct Clients {
    file: TlsFile,
    current: Arc<ArcSwap<ClientCa>>,
    /// Of what was read at first.
    fingerprint: u64,
}

struct Files {
    certificate: TlsFile,
    key: TlsFile,
    provider: CryptoProvider,
}

/// What is in the files.
struct Read {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate that new connections get.
struct Current(ArcSwap<CertifiedKey>);

impl Files {
    fn read(&self) -> Result<Read, TlsError> {
        Ok(Read { certificate: self.certificate.read()?, key: self.key.read()? })
    }

    fn parse(&self, read: &Read) -> Result<CertifiedKey, TlsError> {
        let chain = self.certificate.certificates(&read.certificate)?;
        let key = String::from_utf8_lossy(&read.key);
        if key.contains("BEGIN ENCRYPTED PRIVATE KEY") || key.contains("Proc-Type: 4,ENCRYPTED") {
            return Err(TlsError::Encrypted(self.key.clone()));
        }
        let key = PrivateKeyDer::from_pem_slice(&read.key).map_err(|error| match error {
            rustls_pki_types::pem::Error::NoItemsFound => {
                self.key.malformed("there is no private key in it".to_owned())
            }
            error => self.key.malformed(error.to_string()),
        })?;
        let key = self.provider.key_provider.load_private_key(key).map_err(|error| {
            TlsError::UnsupportedKey { file: self.key.clone(), problem: error.to_string() }
        })?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
                Ok(certified)
            }
            Err(rustls::Error::InconsistentKeys(_)) => Err(TlsError::Mismatch {
                key: self.key.clone(),
                certificate: self.certificate.clone(),
            }),
            Err(error) => Err(self.certificate.malformed(error.to_string())),
        }
    }
}

impl Read {
    /// Tells whether the files have changed, without keeping the key in memory.
    fn fingerprint(&self) -> u64 {
        hash(&(&self.certificate, &self.key))
    }
}

fn hash(read: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    read.hash(&mut hasher);
    hasher.finish()
}

fn parse_client_ca(
    file: &TlsFile,
    bytes: &[u8],
    provider: &CryptoProvider,
) -> Result<ClientCa, TlsError> {
    let certificates = file.certificates(bytes)?;
    ClientCa::new(certificates, provider).map_err(|problem| file.malformed(problem))
}

impl TlsFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Certificate(path) | Self::PrivateKey(path) | Self::ClientCa(path) => path,
        }
    }

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        match std::fs::read(self.path()) {
            Ok(bytes) if bytes.trim_ascii().is_empty() => Err(TlsError::Empty(self.clone())),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    fn certificates(&self, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let all = CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>();
        let all = all.map_err(|error| self.malformed(error.to_string()))?;
        match all.is_empty() {
            true => Err(self.malformed("there is no certificate in it".to_owned())),
            false => Ok(all),
        }
    }

    fn unreadable(&self, error: &io::Error) -> TlsError {
        TlsError::Unreadable { file: self.clone(), problem: error.to_string() }
    }

    fn malformed(&self, problem: String) -> TlsError {
        let expected = match self {
            Self::Certificate(_) | Self::ClientCa(_) => "CERTIFICATE",
            Self::PrivateKey(_) => "PRIVATE KEY",
        };
        TlsError::Malformed { file: self.clone(), problem, expected }
    }
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(path) => write!(f, "certificate {}", path.display()),
            Self::PrivateKey(path) => write!(f, "private key {}", path.display()),
            Self::ClientCa(path) => write!(f, "clients' authorities {}", path.display()),
        }
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("certificate", &self.files.certificate)
            .field("key", &self.files.key)
            .field("clients", &self.clients.as_ref().map(|it| &it.file))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").finish_non_exhaustive()
    }
}
