//! `serve`: the gateway.

use anyhow::Context;
use tokio::net::TcpListener;

use crate::args::ServeArgs;
use crate::connect::ConnectionArgs;
use crate::gateway::{Gateway, GatewayOptions, is_exposed};
use crate::io::Io;
use crate::resolve;

pub(crate) async fn serve(
    args: &ServeArgs,
    connection: &ConnectionArgs,
    io: &Io,
) -> anyhow::Result<()> {
    let only_namespace = connection.namespace.clone();
    let (connection, discovery) = resolve::connect(connection, io).await?;
    for name in args.allow.iter().filter(|it| *it != "*") {
        // It may be installed later.
        if let Err(unknown) = discovery.find_by_arg(name) {
            io.say(format_args!("warning: --allow: {unknown}"));
        }
    }
    let listener = TcpListener::bind(args.addr).await.with_context(|| {
        format!("cannot listen on {}; choose another address with --addr", args.addr)
    })?;
    let address = listener.local_addr()?;
    if is_exposed(address.ip()) {
        io.say(format_args!(
            "warning: {address} can be reached from other machines: whoever does reads what you may read. Name the hosts that may be used with --allowed-hosts"
        ));
    }
    let options = GatewayOptions {
        namespace: only_namespace,
        allow: args.allow.clone(),
        allowed_hosts: args.allowed_hosts.clone(),
        sync_timeout: args.sync_timeout,
        max_collections: args.max_collections,
        idle_timeout: args.idle_timeout,
        ..GatewayOptions::default()
    };
    let gateway = Gateway::new(connection.client.clone(), options);
    let url = &connection.url;
    io.print(format!("serving {url} on http://{address}; try http://{address}/pods\n")).await?;
    let (end, lasting) = (io.clone(), args.lasting);
    gateway.serve(listener, async move { end.end(lasting).await }).await;
    Ok(())
}
