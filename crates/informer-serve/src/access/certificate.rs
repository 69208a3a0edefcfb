//! Client certificates: whose they are.

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

/// How long the result of a check holds, whether the certificate is believed or not.
const LIFETIME: Duration = Duration::from_secs(10);

/// How many certificates a chain may have: each is one more signature to verify.
const MAX_CHAIN: usize = 10;

const COMMON_NAME: Oid<'static> = oid!(2.5.4.3);
const ORGANIZATION: Oid<'static> = oid!(2.5.4.10);
/// Where Kubernetes has the UID.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);
/// The extra that tells credentials of one user apart.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The authorities whose client certificates are believed; a cheap handle.
#[derive(Clone)]
pub(crate) struct ClientCa(Arc<dyn ClientCertVerifier>);

/// The certificate that the client of a connection has shown, with those of its issuers, and has
/// proved to be its own. Who issued it is not checked before it is used: a connection outlives
/// certificates and authorities.
#[derive(Clone)]
pub(crate) struct Peer(Arc<PeerState>);

struct PeerState {
    chain: Vec<CertificateDer<'static>>,
    /// The last check: when it was, and whose the certificate is, unless it was not believed.
    checked: Mutex<Option<(Instant, Option<Arc<Identity>>)>>,
}

impl ClientCa {
    /// Believes these authorities.
    ///
    /// # Errors
    /// If one of them is no certificate, or there is none.
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

    /// What asks for certificates in handshakes. They are checked [when they are
    /// used](Self::identity): what is refused there is answered with 401, as by an API server, and
    /// a token may be given instead.
    pub(crate) fn asking(provider: &CryptoProvider) -> Arc<dyn ClientCertVerifier> {
        Arc::new(Asking(provider.signature_verification_algorithms))
    }

    /// Whose certificate it is, unless it is not believed or says nothing.
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

/// Whose certificate it is, as kube-apiserver reads it.
fn identity_of(certificate: &CertificateDer<'_>) -> Option<Identity> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let all = |of: &Oid<'static>| {
        let values = subject.iter_attributes().filter(|it| it.attr_type() == of);
        values.map(|it| it.as_str().map(str::to_owned)).collect::<Result<Vec<_>, _>>().ok()
    };
    // The last one counts, as in Go.
    let user = all(&COMMON_NAME)?.pop().filter(|it| !it.is_empty())?;
    let mut groups = all(&ORGANIZATION)?;
    let uid = match <[String; 1]>::try_from(all(&UID)?) {
        Ok([uid]) if !uid.is_empty() => uid,
        Err(none) if none.is_empty() => String::new(),
        // A UID that says nothing, or several things.
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

/// Asks for a certificate and has the client prove that it is its own.
#[derive(Debug)]
struct Asking(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for Asking {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None: the authorities may change, and a client must not keep back what a new one has issued.
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
