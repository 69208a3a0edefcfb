//! A certificate for our server, with a key as kube-apiserver makes one for itself.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use informer_benches::client::Target;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

/// Files that end with it.
pub(crate) struct Tls {
    folder: TempDir,
}

impl Tls {
    pub(crate) async fn new() -> Result<Self> {
        let tls = Self { folder: TempDir::new()? };
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]);
        openssl.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        openssl.arg("-keyout").arg(tls.key()).arg("-out").arg(tls.certificate());
        let made = openssl.stderr(Stdio::null()).status().await.context("openssl does not run")?;
        ensure!(made.success(), "openssl makes no certificate: {made}");
        Ok(tls)
    }

    /// Arguments of `serve`.
    pub(crate) fn flags(&self) -> Result<Vec<String>> {
        let text = |path: PathBuf| path.into_os_string().into_string();
        let [certificate, key] = [self.certificate(), self.key()].map(text);
        let (Ok(certificate), Ok(key)) = (certificate, key) else { bail!("a path is not UTF-8") };
        Ok(vec!["--tls-cert-file".into(), certificate, "--tls-private-key-file".into(), key])
    }

    /// The server at this URL: trusts this certificate, sends this token.
    pub(crate) fn trusted(&self, server: &Target, token: Option<&str>) -> Result<Target> {
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "serve",
            "clusters": [{"name": "serve", "cluster": {
                "server": server.argument()?,
                "certificate-authority": self.certificate(),
            }}],
            "users": [{"name": "serve", "user": { "token": token }}],
            "contexts": [{"name": "serve", "context": {"cluster": "serve", "user": "serve"}}],
        });
        let path = self.folder.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig.to_string())?;
        Ok(Target::Kubeconfig(path))
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("tls.crt")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("tls.key")
    }
}
