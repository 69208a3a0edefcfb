use axum::body::Body;
use http::{Request, Response, StatusCode};
use informer_testkit::TestServer;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, date_time_ymd,
};
use serde_json::json;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tower::{BoxError, ServiceExt, service_fn};

use super::*;
use crate::access::credentials::Presented;
use crate::access::reviews::Purpose;
use crate::access::{Access, Control, Refused, Reviews};
use crate::forward::Kind;
use crate::tls::Tls;
use crate::{Endpoint, Options};

const CN: DnType = DnType::CommonName;
const O: DnType = DnType::OrganizationName;

/// An authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    own: CertificateDer<'static>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(CN, "clients");
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        Self { pem: own.pem(), own: own.der().clone(), issuer: Issuer::new(params, key) }
    }

    fn ca(&self) -> ClientCa {
        ClientCa::new([self.own.clone()], &default_provider()).unwrap()
    }

    /// A certificate of a client with this subject.
    fn peer(&self, subject: &[(DnType, &str)], with: impl FnOnce(&mut CertificateParams)) -> Peer {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (of, value) in subject {
            params.distinguished_name.push(of.clone(), DnValue::from(*value));
        }
        with(&mut params);
        let key = KeyPair::generate().unwrap();
        Peer::new(&[params.signed_by(&key, &self.issuer).unwrap().der().clone()])
    }

    fn identity(&self, subject: &[(DnType, &str)]) -> Option<Arc<Identity>> {
        self.ca().identity(&self.peer(subject, |_| {}))
    }
}

fn uid() -> DnType {
    DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2])
}

#[test]
fn the_common_name_is_the_user_and_organizations_are_groups() {
    let authority = Authority::new();
    let alice = authority.identity(&[(O, "team"), (CN, "alice"), (uid(), "u-1")]).unwrap();
    assert_eq!((&*alice.user, &*alice.uid), ("alice", "u-1"));
    assert_eq!(alice.groups, ["team", "system:authenticated"]);
    let (key, values) = alice.extra.first_key_value().unwrap();
    assert_eq!(key, "authentication.kubernetes.io/credential-id");
    assert!(values[0].starts_with("X509SHA256=") && values[0].len() == 11 + 64, "{values:?}");

    let bob = authority.identity(&[(CN, "bob")]).unwrap();
    assert_eq!((&*bob.uid, &*bob.groups), ("", &["system:authenticated".to_owned()][..]));
    assert_eq!(authority.identity(&[(O, "system:masters")]), None, "it names nobody");
    assert_eq!(authority.identity(&[(CN, "")]), None);
    assert_eq!(authority.identity(&[(CN, "alice"), (uid(), "")]), None);
}

#[test]
fn only_valid_certificates_of_the_authorities_for_clients_are_believed() {
    let (authority, other) = (Authority::new(), Authority::new());
    let subject = [(CN, "alice")];
    let ca = authority.ca();
    let believed =
        |with: fn(&mut CertificateParams)| ca.identity(&authority.peer(&subject, with)).is_some();
    assert!(believed(|_| {}));
    assert!(!believed(|it| it.not_after = date_time_ymd(2025, 1, 1)), "it is over");
    assert!(!believed(|it| it.not_before = date_time_ymd(2999, 1, 1)), "it has not begun");
    assert!(!believed(|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]));
    assert!(!believed(|it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)));
    assert_eq!(ca.identity(&other.peer(&subject, |_| {})), None, "a stranger has issued it");
    assert_eq!(ca.identity(&Peer::new(&[])), None);
    let signed_by_itself = {
        let params = CertificateParams::new(["alice".to_owned()]).unwrap();
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    };
    assert_eq!(ca.identity(&Peer::new(&[signed_by_itself])), None);
}

#[test]
fn chains_that_take_long_to_verify_are_not_believed() {
    let authority = Authority::new();
    let peer = authority.peer(&[(CN, "alice")], |_| {});
    let chain = |certificates: usize| {
        let issuers = std::iter::repeat_n(&authority.own, certificates - 1);
        Peer::new(&Vec::from_iter(peer.0.chain.iter().chain(issuers).cloned()))
    };
    assert!(authority.ca().identity(&chain(MAX_CHAIN)).is_some());
    assert_eq!(authority.ca().identity(&chain(MAX_CHAIN + 1)), None);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_was_not_believed_is_not_verified_again_for_ten_seconds() {
    let (authority, other) = (Authority::new(), Authority::new());
    let peer = authority.peer(&[(CN, "alice")], |_| {});
    assert_eq!(other.ca().identity(&peer), None);
    assert_eq!(authority.ca().identity(&peer), None, "as it was checked");
    tokio::time::advance(LIFETIME).await;
    assert!(authority.ca().identity(&peer).is_some());
}

#[tokio::test(start_paused = true)]
async fn authorities_that_are_replaced_are_believed_for_ten_seconds_at_most() {
    let (old, new) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(path("tls.crt"), own.pem()).unwrap();
    std::fs::write(path("tls.key"), key.serialize_pem()).unwrap();
    std::fs::write(path("ca.crt"), &old.pem).unwrap();
    let tls = Tls::load(path("tls.crt"), path("tls.key")).unwrap();
    assert!(tls.client_ca().is_none());
    let tls = tls.with_client_ca(path("ca.crt")).unwrap();
    let peers = [&old, &new].map(|it| it.peer(&[(CN, "alice")], |_| {}));
    let known = || {
        let ca = tls.client_ca().unwrap();
        peers.each_ref().map(|it| ca.identity(it).is_some())
    };
    assert_eq!(known(), [true, false]);

    let (told, mut changes) = tokio::sync::mpsc::unbounded_channel();
    let reloading = {
        let tls = tls.clone();
        tokio::spawn(async move { tls.reload(|result| told.send(result.clone()).unwrap()).await })
    };
    std::fs::write(path("ca.crt"), "nothing").unwrap();
    assert!(changes.recv().await.unwrap().is_err());
    assert_eq!(known(), [true, false], "the last good one stays in use");
    std::fs::write(path("ca.crt"), &new.pem).unwrap();
    assert_eq!(changes.recv().await.unwrap(), Ok(()));
    tokio::time::sleep(LIFETIME).await;
    assert_eq!(known(), [false, true]);
    reloading.abort();
}

/// TLS that believes certificates of this authority, and its files.
fn tls_of(authority: &Authority) -> (Tls, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(path("tls.crt"), own.pem()).unwrap();
    std::fs::write(path("tls.key"), key.serialize_pem()).unwrap();
    std::fs::write(path("ca.crt"), &authority.pem).unwrap();
    let tls = Tls::load(path("tls.crt"), path("tls.key")).unwrap();
    (tls.with_client_ca(path("ca.crt")).unwrap(), folder)
}

#[tokio::test]
async fn lists_after_a_write_without_a_version_are_refused_until_a_version_is_found() {
    let authority = Authority::new();
    let (tls, _files) = tls_of(&authority);
    let server = TestServer::start().await.unwrap();
    let endpoint = Endpoint::new(server.client().unwrap(), Options::default());
    let control = Control::new(Arc::clone(&endpoint.inner.reviews), Some(tls));
    let router = endpoint.routes(Access::Controlled(control));
    let root = authority.peer(&[(CN, "root"), (O, "system:masters")], |_| {});
    let list = async || {
        let mut asked = Request::get("/api/v1/nodes").body(Body::empty()).unwrap();
        asked.extensions_mut().insert(root.clone());
        router.clone().oneshot(asked).await.unwrap()
    };
    assert_eq!(list().await.status(), StatusCode::OK);
    let nodes = endpoint.inner.collections.now().pop().unwrap().own.clone();
    // The answer of a deletion names no version.
    drop(endpoint.inner.writes.telling(&nodes, Kind::Write));
    let refused = list().await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
    while list().await.status() != StatusCode::OK {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_certificate_counts_before_a_token_and_a_strangers_hinders_nobody() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (tls_with_ca, folder) = tls_of(&authority);
    let path = |name: &str| folder.path().join(name);
    let tls = Tls::load(path("tls.crt"), path("tls.key")).unwrap();
    let review = service_fn(async |_: Request<kube::client::Body>| {
        let review = json!({"status": {"authenticated": true, "user": {"username": "by-token"}}});
        Ok::<_, BoxError>(Response::new(k8s_serve::Body::full(review.to_string().into())))
    });
    let reviews = Arc::new(Reviews::new(kube::Client::new(review, "default")));
    let user = async |tls: &Tls, peer: Option<Peer>, token: Option<&str>| {
        let control = Control::new(Arc::clone(&reviews), Some(tls.clone()));
        let token = token.map(|it| Arc::new(it.into()));
        let presented = Presented { certificate: peer, token, address: None };
        let caller = control.authenticate(&presented, &Purpose::Request(None)).await;
        caller.map(|it| (it.user.clone(), format!("{:?}", it.credential)))
    };
    let alice = authority.peer(&[(CN, "alice")], |_| {});
    let stranger = other.peer(&[(CN, "admin"), (O, "system:masters")], |_| {});
    let (by_token, by_certificate) = (
        ("by-token".to_owned(), "Token".to_owned()),
        ("alice".to_owned(), "Certificate".to_owned()),
    );
    let (nobody, tls, alice, stranger) =
        (Err(Refused::Unauthenticated), (&tls, &tls_with_ca), Some(alice), Some(stranger));
    assert_eq!(user(tls.1, alice.clone(), None).await, Ok(by_certificate.clone()));
    assert_eq!(user(tls.1, alice.clone(), Some("t")).await, Ok(by_certificate));
    assert_eq!(user(tls.1, stranger.clone(), None).await, nobody);
    assert_eq!(user(tls.1, stranger, Some("t")).await, Ok(by_token.clone()));
    assert_eq!(user(tls.1, None, None).await, nobody);
    assert_eq!(user(tls.0, alice.clone(), None).await, nobody, "certificates say nothing here");
    assert_eq!(user(tls.0, alice, Some("t")).await, Ok(by_token));
}

#[test]
fn a_file_that_holds_no_authority_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(path("tls.crt"), own.pem()).unwrap();
    std::fs::write(path("tls.key"), key.serialize_pem()).unwrap();
    for (text, expected) in [
        ("", "the file is empty"),
        ("nothing", "there is no certificate in it"),
        (&key.serialize_pem(), "there is no certificate in it"),
        (
            "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE",
        ),
    ] {
        std::fs::write(path("ca.crt"), text).unwrap();
        let tls = Tls::load(path("tls.crt"), path("tls.key")).unwrap();
        let error = tls.with_client_ca(path("ca.crt")).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("ca.crt"), "{error}");
    }
}
