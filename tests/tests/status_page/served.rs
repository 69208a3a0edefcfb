//! An endpoint in this process.

use std::time::Duration;

use anyhow::Context;
use informer_serve::{Endpoint, Options, Tls, Upstream};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(30);

/// An endpoint that runs until it is dropped.
pub(crate) struct Served {
    scheme: &'static str,
    port: u16,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Served {
    /// On loopback, at a port; 0 for any. It holds Pods from the start.
    pub(crate) async fn start(client: Client, port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        let endpoint = Endpoint::new(client, options());
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let serving = tokio::spawn(async move { endpoint.serve(listener, stopped).await });
        Ok(Self { scheme: "http", port, stop, serving })
    }

    /// Over TLS, with access control. It holds nothing but what it holds from the start.
    pub(crate) async fn start_tls(config: &Config, tls: Tls) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let client = Client::try_from(config.clone())?;
        let options = options();
        let options = Options { allow: options.cache.clone(), ..options };
        let endpoint = Endpoint::new(client, options).with_upstream(Upstream::of(config)?);
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let serving = tokio::spawn(async move { endpoint.serve_tls(listener, tls, stopped).await });
        Ok(Self { scheme: "https", port, stop, serving })
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}/", self.scheme, self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as SIGTERM would.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        timeout(SOON, &mut self.serving).await.context("it does not end")??;
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn options() -> Options {
    let cache = ["pods", "deployments.apps", "configmaps"].map(str::to_owned).to_vec();
    Options { cache, shutdown_spread: Duration::ZERO, ..Options::default() }
}
