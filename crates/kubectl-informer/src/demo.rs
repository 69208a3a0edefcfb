//! `demo`: everything at work, without a cluster.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use informer::InformerOptions;
use informer::discovery::Discovery;
use informer_serve::{Endpoint, Options};
use informer_testkit::{Life, TestServer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::args::DemoArgs;
use crate::bind::bind;
use crate::io::Io;
use crate::line::LineFormat;
use crate::resolve;
use crate::watch::Followed;

const PORT: u16 = 8888;
/// How fast things happen: often enough to see something, seldom enough to read it.
const PACE: Duration = Duration::from_millis(400);
const SEED: u64 = 7;

pub(crate) async fn demo(args: &DemoArgs, io: &Io) -> anyhow::Result<()> {
    let server = TestServer::start().await.context("cannot start the API server of the demo")?;
    let client = server.client()?;
    let listener = listen(args.addr).await?;
    let address = listener.local_addr()?;
    io.print(introduction(&server.url(), address, args)).await?;

    let life = tokio::spawn(Life::new(server.cluster(), SEED).pace(PACE).run());
    // So that there is something on the page from the start.
    let cache = ["pods", "deployments.apps"].map(str::to_owned).to_vec();
    let gateway = Endpoint::new(client.clone(), Options { cache, ..Options::default() });
    let stopping = CancellationToken::new();
    let stopped = stopping.clone().cancelled_owned();
    let serving = tokio::spawn(async move { gateway.serve(listener, stopped).await });

    let discovery = Discovery::fetch(&client).await?;
    let resources = resolve::resources(&discovery, ["pods", "deployments.apps"])?;
    let everywhere = resources.into_iter().map(|it| (InformerOptions::new(), it));
    let followed =
        Followed::start(&client, everywhere, Some(args.resync).filter(|it| !it.is_zero()))?;
    let format = LineFormat { with_resource: true, ..LineFormat::default() };
    let printed = followed.print(format, args.lasting, io).await;

    life.abort();
    stopping.cancel();
    serving.await.map_err(|_| anyhow::Error::msg("the gateway panicked"))?;
    server.shutdown().await;
    printed
}

/// The port that the documentation names, or any other if it is taken.
async fn listen(asked: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    if let Some(address) = asked {
        return bind(address);
    }
    match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await {
        Ok(listener) => Ok(listener),
        Err(_) => Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?),
    }
}

fn introduction(server: &str, gateway: SocketAddr, args: &DemoArgs) -> String {
    let end = match args.lasting {
        Some(lasting) => format!("It ends by itself after {lasting:?}."),
        None => "Ctrl-C ends it.".to_owned(),
    };
    let resync = match args.resync {
        Duration::ZERO => String::new(),
        period => {
            format!(" Every {period:?} the printer is shown everything again, marked (resync).")
        }
    };
    format!(
        "\
Open http://{gateway}/ in a browser, and see it at work.

An API server runs at {server}, with a small life of Deployments and Pods on it.
An informer prints what happens.{resync} {end}
The gateway answers from informers' caches; try in another terminal:

    curl -g 'http://{gateway}/deploy?labels[k8s-app]=kube-dns'
    curl -g 'http://{gateway}/pods?limit=3'
    curl -g 'http://{gateway}/apps/v1/deployments/kube-system/coredns'
    curl -g 'http://{gateway}/metrics'

and with this program or kubectl:

    kubectl informer get pods -A --server {server}
    kubectl get pods -A --watch --server http://{gateway}

"
    )
}
