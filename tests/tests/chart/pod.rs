//! The program as the chart's Deployment runs it: with its arguments, its files at their places, an
//! account's token where the kubelet puts it, and a file system that cannot be written.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use informer_tests::helpers::eventually_ok;
use informer_tests::real::{RealCluster, config_of};
use kube::Client;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::helm::{object, run};

pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Where the kubelet puts an account's token, after `/var/run`.
const ACCOUNT: &str = "secrets/kubernetes.io/serviceaccount";

/// Enters a mount namespace of its own, in which the folder's `etc` and `run` are those of the
/// system and nothing can be written; then becomes the program, as a user that is not root.
const ENTER: &str = r#"
set -eu
folder=$1 program=$2
shift 2
mount --bind "$program" "$folder/run/program"
mount --rbind "$folder/run" "$(readlink -f /var/run)"
mount --bind "$folder/etc" /etc
mount -o remount,bind,ro /etc
mount -o remount,bind,ro / 2>/dev/null || true
cd /
if [ "$AS" = root ]; then
    exec setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs -- /var/run/program "$@"
fi
exec /var/run/program "$@"
"#;

/// A Pod of the Deployment, without a container around it.
pub(crate) struct Pod {
    child: Child,
    said: watch::Receiver<String>,
    url: String,
    _folder: TempDir,
}

/// A port that is free now.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Pod {
    /// Starts the Deployment's container with the token of its account.
    pub(crate) fn start(
        cluster: &RealCluster,
        rendered: &[Value],
        token: &str,
    ) -> anyhow::Result<Self> {
        let spec = &object(rendered, "Deployment", "")?["spec"]["template"]["spec"];
        let container = &spec["containers"][0];
        let folder = tempfile::tempdir()?;
        let (etc, run) = (folder.path().join("etc"), folder.path().join("run"));
        fs::create_dir(&etc)?;
        fs::create_dir_all(run.join(ACCOUNT))?;
        fs::write(run.join("program"), "")?;
        for mount in container["volumeMounts"].as_array().context("no mounts")? {
            let path = mount["mountPath"].as_str().context("no path")?;
            let path = etc.join(path.strip_prefix("/etc/").context("not in /etc")?);
            fs::create_dir_all(&path)?;
            fill(&path, mount["name"].as_str().unwrap_or_default(), cluster, rendered)?;
        }
        let (authority, _) = cluster.server_certificate();
        fs::copy(authority, run.join(ACCOUNT).join("ca.crt"))?;
        fs::write(run.join(ACCOUNT).join("namespace"), "informer")?;
        fs::write(run.join(ACCOUNT).join("token"), token)?;

        let api = cluster.url().strip_prefix("https://").context("no https")?;
        let (host, port) = api.split_once(':').context("no port")?;
        let is_root = fs::metadata("/proc/self")?.uid() == 0;
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !is_root {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["sh", "-c", ENTER, "sh"]).arg(folder.path()).arg(program()?);
        for argument in container["args"].as_array().context("no args")? {
            command.arg(argument.as_str().context("no text")?);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("AS", if is_root { "root" } else { "user" });
        command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().context("unshare does not run")?;
        let (sender, said) = watch::channel(String::new());
        tokio::spawn(hear(child.stdout.take().context("piped")?, sender.clone()));
        tokio::spawn(hear(child.stderr.take().context("piped")?, sender));
        let port = &container["ports"][0]["containerPort"];
        Ok(Self { child, said, url: format!("https://127.0.0.1:{port}"), _folder: folder })
    }

    pub(crate) fn said(&self) -> String {
        self.said.borrow().clone()
    }

    /// Waits until it has said this.
    pub(crate) async fn says(&self, words: &str) -> anyhow::Result<()> {
        let mut said = self.said.clone();
        match timeout(SOON, said.wait_for(|it| it.contains(words))).await {
            Ok(Ok(_)) => Ok(()),
            _ => bail!("it does not say {words:?}, but:\n{}", self.said()),
        }
    }

    /// Waits until `/readyz` answers so.
    pub(crate) async fn is_ready(&self, client: &Client, wanted: Ready<'_>) -> anyhow::Result<()> {
        let asked = eventually_ok("readiness", SOON, async || {
            let (code, text) = get(client, "/readyz").await?;
            let is_wanted = match wanted {
                Ready::Yes => code == 200,
                // Over TLS the reason is in the log alone.
                Ready::Not(why) => {
                    let is_reason = |line: &str| line.contains("not ready:") && line.contains(why);
                    code == 503 && !text.contains(why) && self.said().lines().any(is_reason)
                }
            };
            ensure!(is_wanted, "{code} {text}");
            Ok(())
        });
        asked.await.with_context(|| self.said())
    }

    /// A client of a user of the cluster's kubeconfig, or with another token.
    pub(crate) async fn client(
        &self,
        cluster: &RealCluster,
        user: &str,
        token: Option<&str>,
    ) -> anyhow::Result<Client> {
        let mut config = config_of(&cluster.kubeconfig_path(), Some(user)).await?;
        config.cluster_url = self.url.parse()?;
        if let Some(token) = token {
            config.auth_info.token = Some(token.to_owned().into());
        }
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Ends it as the kubelet does, and says whether it ended well.
    pub(crate) async fn terminate(mut self) -> anyhow::Result<()> {
        let id = self.child.id().context("it has ended")?;
        run(std::process::Command::new("kill").args(["-TERM", &id.to_string()]), "")?;
        let status = timeout(SOON, self.child.wait()).await.context("it does not end")??;
        ensure!(status.success(), "{status}: {}", self.said());
        Ok(())
    }
}

/// What `/readyz` shall answer.
#[derive(Clone, Copy)]
pub(crate) enum Ready<'a> {
    Yes,
    Not(&'a str),
}

/// Code and body of an answer, as a table if it can be.
pub(crate) async fn get(client: &Client, path: &str) -> anyhow::Result<(u16, String)> {
    use http_body_util::BodyExt;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json,*/*";
    let request = http::Request::get(path).header("accept", table);
    let response = client.send(request.body(kube::client::Body::empty())?).await?;
    let code = response.status().as_u16();
    let body = timeout(SOON, response.into_body().collect()).await.context(path.to_owned())??;
    Ok((code, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}

/// What the kubelet would put there.
fn fill(
    path: &Path,
    volume: &str,
    cluster: &RealCluster,
    rendered: &[Value],
) -> anyhow::Result<()> {
    match volume {
        "config" => {
            let map = object(rendered, "ConfigMap", "-config")?;
            for (name, text) in map["data"].as_object().context("no data")? {
                fs::write(path.join(name), text.as_str().context("no text")?)?;
            }
        }
        "tls" => {
            let (certificate, key) = cluster.server_certificate();
            for (from, name) in [(certificate, "tls.crt"), (key, "tls.key")] {
                // Whose file it was does not matter.
                fs::write(path.join(name), fs::read(from)?)?;
            }
        }
        "client-ca" => fs::write(path.join("ca.crt"), fs::read(cluster.client_ca())?)?,
        other => bail!("an unknown volume {other:?}"),
    }
    Ok(())
}

/// The program, beside this test.
fn program() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().and_then(Path::parent).context("no folder")?;
    let program = folder.join("kubectl-informer");
    ensure!(program.exists(), "cargo build --workspace --bin kubectl-informer comes first");
    Ok(program)
}

async fn hear(mut output: impl AsyncRead + Unpin, said: watch::Sender<String>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        said.send_modify(|it| it.push_str(&String::from_utf8_lossy(&buffer[..count])));
    }
}
