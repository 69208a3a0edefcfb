//! Certificates as a kubelet mounts them: files behind a symbolic link that is replaced.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::Tls;

/// A certificate for `localhost` that signed itself, and its key.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }

    pub(crate) fn tls(&self) -> Tls {
        let secret = Secret::new(self);
        Tls::load(secret.certificate(), secret.key()).unwrap()
    }

    /// Connects, trusting this certificate only.
    pub(crate) async fn connect(
        &self,
        address: &str,
        protocols: &[&str],
    ) -> io::Result<TlsStream<TcpStream>> {
        self.handshake(TcpStream::connect(address).await?, protocols).await
    }

    /// The client's side of a handshake, trusting this certificate only.
    pub(crate) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        protocols: &[&str],
    ) -> io::Result<TlsStream<S>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

/// A mounted Secret of type `kubernetes.io/tls`.
pub(crate) struct Secret {
    folder: TempDir,
    version: u32,
}

impl Secret {
    pub(crate) fn new(pair: &Pair) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["tls.crt", "tls.key"] {
            symlink(PathBuf::from("..data").join(name), folder.path().join(name)).unwrap();
        }
        let mut secret = Self { folder, version: 0 };
        secret.replace(pair);
        secret
    }

    /// Writes a new folder, and renames a link to it over the old link.
    pub(crate) fn replace(&mut self, pair: &Pair) {
        self.version += 1;
        let folder = self.folder.path();
        let version = format!("..{}", self.version);
        fs::create_dir(folder.join(&version)).unwrap();
        fs::write(folder.join(&version).join("tls.crt"), &pair.certificate).unwrap();
        fs::write(folder.join(&version).join("tls.key"), &pair.key).unwrap();
        symlink(version, folder.join("..new")).unwrap();
        fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.path().join("tls.crt")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("tls.key")
    }
}
