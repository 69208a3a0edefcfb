//! Authentication by client certificates.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::digest;
use rustls_pki_types::{CertificateDer, UnixTime};
use tokio::time::Instant;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use x509_parser::asn1_rs::{FromDer, Oid, oid};
use x509_parser::certificate::X509Certificate;

use super::caller::{AUTHENTICATED, Identity};

/// How long the result of a verification is cached, whether it succeeded or not.
const LIFETIME: Duration = Duration::from_secs(10);

/// Maximum length of a chain. Each certificate costs the verification of a signature.
const MAX_CHAIN: usize = 10;

const COMMON_NAME: Oid<'static> = oid!(2.5.4.3);
const ORGANIZATION: Oid<'static> = oid!(2.5.4.10);
/// The attribute of the subject in which Kubernetes stores the UID.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);
/// The key of the extra that distinguishes the credentials of one user.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The authorities whose client certificates are accepted. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClientCa(Arc<dyn ClientCertVerifier>);

/// The certificate chain that the client has sent in the handshake. The client has proved that it
/// holds the private key. The issuer is verified when the certificate is used, because a connection
/// may outlive certificates and authorities.
#[derive(Clone)]
pub(crate) struct Peer(Arc<PeerState>);

struct PeerState {
    chain: Vec<CertificateDer<'static>>,
    /// The time of the last verification, and the identity; `None` if the certificate was not
    /// accepted.
    checked: Mutex<Option<(Instant, Option<Arc<Identity>>)>>,
}

impl ClientCa {
    /// Accepts the certificates of these authorities.
    ///
    /// # Errors
    /// If one of them is not a certificate, or if there are none.
    pub(crate) fn new(
        certificates: impl IntoIterator<Item = CertificateDer<'static>>,
        provider: &CryptoProvider,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider.clone()))
            .allow_unauthenticated()
            .build()
            .map(Self)
            .map_err(|error| match error {
                VerifierBuilderError::NoRootAnchors => "there is no certificate in it".to_owned(),
                error => error.to_string(),
            })
    }

    /// Requests client certificates in handshakes. They are verified [when they are
    /// used](Self::identity): the response to a certificate that is not accepted is 401, as from an
    /// API server, and the client may send a token instead.
    pub(crate) fn asking(provider: &CryptoProvider) -> Arc<dyn ClientCertVerifier> {
        Arc::new(Asking(provider.signature_verification_algorithms))
    }

    /// The identity in the certificate, unless it is not accepted or names no user.
    pub(super) fn identity(&self, peer: &Peer) -> Option<Arc<Identity>> {
        let mut checked = peer.0.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, identity)) = &*checked
            && at.elapsed() < LIFETIME
        {
            return identity.clone();
        }
        let identity = self.check(&peer.0.chain, UnixTime::now()).map(Arc::new);
        *checked = Some((Instant::now(), identity.clone()));
        identity
    }

    fn check(&self, chain: &[CertificateDer<'static>], now: UnixTime) -> Option<Identity> {
        let (own, issuers) = chain.split_first().filter(|_| chain.len() <= MAX_CHAIN)?;
        self.0.verify_client_cert(own, issuers, now).ok()?;
        identity_of(own)
    }
}

impl Peer {
    pub(crate) fn new(chain: &[CertificateDer<'static>]) -> Self {
        Self(Arc::new(PeerState { chain: chain.to_vec(), checked: Mutex::default() }))
    }
}

/// The identity in a certificate, as kube-apiserver derives it.
fn identity_of(certificate: &CertificateDer<'_>) -> Option<Identity> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let all = |of: &Oid<'static>| {
        let values = subject.iter_attributes().filter(|it| it.attr_type() == of);
        values.map(|it| it.as_str().map(str::to_owned)).collect::<Result<Vec<_>, _>>().ok()
    };
    // The last value is used, as in Go.
    let user = all(&COMMON_NAME)?.pop().filter(|it| !it.is_empty())?;
    let mut groups = all(&ORGANIZATION)?;
    let uid = match <[String; 1]>::try_from(all(&UID)?) {
        Ok([uid]) if !uid.is_empty() => uid,
        Err(none) if none.is_empty() => String::new(),
        // A UID that is empty, or more than one UID, is an error.
        Ok(_) | Err(_) => return None,
    };
    if !groups.iter().any(|it| it == AUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    let digest = digest::digest(&digest::SHA256, certificate);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hex}")])]);
    Some(Identity { user, groups, uid, extra })
}

/// Requests a certificate and verifies only that the client holds its private key.
#[derive(Debug)]
struct Asking(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for Asking {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// Names no authorities: they may change, and a client would not send a certificate whose
    /// issuer is not named.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

impl fmt::Debug for ClientCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCa").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
