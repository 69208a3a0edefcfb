use tokio::sync::mpsc;

use super::secret::{Pair, Secret};
use super::*;

/// The message of the error, with names for the paths.
fn refusal(secret: &Secret) -> String {
    let error = Tls::load(secret.certificate(), secret.key()).unwrap_err().to_string();
    let folder = secret.certificate().parent().unwrap().display().to_string();
    error.replace(&folder, "/tls")
}

#[test]
fn each_error_names_the_file_and_says_what_to_do() {
    let good = Pair::new();
    let with = |certificate: &str, key: &str| {
        let pair = Pair { certificate: certificate.to_owned(), key: key.to_owned() };
        refusal(&Secret::new(&pair))
    };
    assert_eq!(
        with("", &good.key),
        "certificate /tls/tls.crt: the file is empty; write the PEM into it"
    );
    assert_eq!(
        with(&good.certificate, " \n"),
        "private key /tls/tls.key: the file is empty; write the PEM into it"
    );
    assert_eq!(
        with(&good.key, &good.key),
        "certificate /tls/tls.crt: there is no certificate in it; it must be PEM that begins with -----BEGIN CERTIFICATE-----"
    );
    assert_eq!(
        with(&good.certificate, &good.certificate),
        "private key /tls/tls.key: there is no private key in it; it must be PEM that begins with -----BEGIN PRIVATE KEY-----"
    );
    assert_eq!(
        with(&good.certificate, &Pair::new().key),
        "private key /tls/tls.key does not fit certificate /tls/tls.crt; name the key that the first certificate of the file was issued for"
    );
    let encrypted = "private key /tls/tls.key: the key is encrypted, and there is nobody to ask for its passphrase; decrypt it with openssl pkey -in FILE -out NEW";
    for head in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
    ] {
        assert_eq!(with(&good.certificate, head), encrypted);
    }
    let nonsense =
        with(&good.certificate, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    assert!(nonsense.starts_with("private key /tls/tls.key: "), "{nonsense}");
    assert!(
        nonsense
            .ends_with("; use an RSA key of at least 2048 bits, ECDSA P-256 or P-384, or Ed25519"),
        "{nonsense}"
    );
    let nonsense =
        with("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &good.key);
    assert!(nonsense.starts_with("certificate /tls/tls.crt: "), "{nonsense}");
    let cut = with(&good.certificate[..100], &good.key);
    assert!(cut.starts_with("certificate /tls/tls.crt: "), "{cut}");
}

#[test]
fn a_missing_file_is_named() {
    let secret = Secret::new(&Pair::new());
    std::fs::remove_file(secret.key()).unwrap();
    assert_eq!(
        refusal(&secret),
        "private key /tls/tls.key: No such file or directory (os error 2); name a PEM file that this process may read"
    );
    std::fs::remove_file(secret.certificate()).unwrap();
    assert_eq!(
        refusal(&secret),
        "certificate /tls/tls.crt: No such file or directory (os error 2); name a PEM file that this process may read"
    );
}

/// The certificate that new connections get.
fn current(tls: &Tls) -> CertificateDer<'static> {
    tls.current.0.load().cert[0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_replaced_secret_is_used_and_a_broken_one_is_not() {
    let (first, second, third) = (Pair::new(), Pair::new(), Pair::new());
    let mut secret = Secret::new(&first);
    let tls = Tls::load(secret.certificate(), secret.key()).unwrap();
    let (sender, mut changes) = mpsc::unbounded_channel();
    let reloading = {
        let tls = tls.clone();
        tokio::spawn(async move { tls.reload(|it| sender.send(it.clone()).unwrap()).await })
    };

    secret.replace(&second);
    assert_eq!(changes.recv().await.unwrap(), Ok(()));
    assert_eq!(current(&tls), second.der());

    secret.replace(&Pair { certificate: third.certificate.clone(), key: first.key.clone() });
    assert!(matches!(changes.recv().await.unwrap(), Err(TlsError::Mismatch { .. })));
    assert_eq!(current(&tls), second.der());
    tokio::time::sleep(RELOAD_INTERVAL * 5).await;
    assert!(changes.try_recv().is_err(), "what is broken is told once");

    std::fs::remove_file(secret.key()).unwrap();
    assert!(matches!(changes.recv().await.unwrap(), Err(TlsError::Unreadable { .. })));
    assert_eq!(current(&tls), second.der());

    std::fs::write(secret.key(), &third.key).unwrap();
    assert_eq!(changes.recv().await.unwrap(), Ok(()));
    assert_eq!(current(&tls), third.der());
    reloading.abort();
}
