//! `serve`: the endpoint.

use std::net::SocketAddr;

use anyhow::Context;
use informer_serve::{Endpoint, Options, Tls, Upstream, is_exposed};

use crate::args::{ManagedFields, ServeArgs};
use crate::bind::bind;
use crate::connect::ConnectionArgs;
use crate::io::Io;
use crate::resolve;

pub(crate) async fn serve(
    args: &ServeArgs,
    connection: &ConnectionArgs,
    io: &Io,
) -> anyhow::Result<()> {
    if let Some(file) = args.config.as_ref().filter(|_| args.check) {
        return Ok(io.print(format!("{} is valid\n", file.display())).await?);
    }
    let only_namespace = connection.namespace.clone();
    let (connection, discovery) = resolve::connect(connection, io).await?;
    for (flag, names) in [("allow", &args.allow), ("cache", &args.cache), ("strict", &args.strict)]
    {
        for name in names.iter().filter(|it| *it != "*") {
            // It may be installed later.
            if let Err(unknown) = discovery.find_by_arg(name) {
                io.say(format_args!("warning: --{flag}: {unknown}"));
            }
        }
    }
    let tls = match (&args.tls_cert_file, &args.tls_private_key_file) {
        (Some(cert_file), Some(key_file)) => {
            let tls = Tls::load(cert_file, key_file)?;
            Some(match &args.client_ca_file {
                Some(ca_file) => tls.with_client_ca(ca_file)?,
                None => tls,
            })
        }
        _ => None,
    };
    let listener = bind(args.addr)?;
    let address = listener.local_addr()?;
    match (is_exposed(address.ip()), &tls) {
        (true, _) if args.unprotected_api => io.say(format_args!(
            "warning: {address} can be reached from other machines: whoever does reads what you may read. Name the hosts that may be used with --allowed-hosts"
        )),
        (true, None) => io.say(format_args!(
            "warning: {address} can be reached from other machines, and without TLS nobody can say who asks: everything is refused. Serve with --tls-cert-file and --tls-private-key-file"
        )),
        (true, Some(_)) | (false, _) => {}
    }
    let options = Options {
        namespace: only_namespace,
        allow: args.allow.clone(),
        allowed_hosts: args.allowed_hosts.clone(),
        unprotected_api: args.unprotected_api,
        cache: args.cache.clone(),
        strict: args.strict.clone(),
        sync_timeout: args.sync_timeout,
        max_collections: args.max_collections,
        max_bytes: args.max_memory,
        log_bytes: args.max_changes,
        idle_timeout: args.idle_timeout,
        max_staleness: args.max_staleness,
        serve_stale: args.serve_stale,
        keep_managed_fields: args.managed_fields == ManagedFields::Keep,
        shutdown_spread: args.shutdown_spread,
        max_connections: args.max_connections,
        max_forwarded: args.max_forwarded,
        max_watches_per_user: args.max_watches_per_user,
        ..Options::default()
    };
    let endpoint = Endpoint::new(connection.client.clone(), options);
    let endpoint = match &tls {
        Some(_) => endpoint.with_upstream(Upstream::of(&connection.config)?),
        None => endpoint,
    };
    let endpoint = match &args.audit_log {
        None => endpoint,
        Some(file) if file.as_os_str() == "-" => endpoint.with_audit_log(tokio::io::stdout()),
        Some(file) => {
            let log = tokio::fs::OpenOptions::new().append(true).create(true).open(file).await;
            let log = log.with_context(|| format!("--audit-log: {}", file.display()))?;
            endpoint.with_audit_log(log)
        }
    };
    let said = introduction(&connection.url, address, tls.is_some());
    // Standard output is for what was asked for: the audit log, if it goes there.
    match args.audit_log.as_ref().is_some_and(|it| it.as_os_str() == "-") {
        true => io.say(said),
        false => io.print(said + "\n").await?,
    }
    let (end, lasting) = (io.clone(), args.lasting);
    let stop = async move { end.end(lasting).await };
    match tls {
        Some(tls) => endpoint.serve_tls(listener, tls, stop).await,
        None => endpoint.serve(listener, stop).await,
    }
    Ok(())
}

fn introduction(url: &str, address: SocketAddr, has_tls: bool) -> String {
    let (scheme, trust, page) = match has_tls {
        true => ("https", " --certificate-authority FILE", "/pods"),
        false => ("http", "", "/ in a browser"),
    };
    // No certificate is for every address, and no client connects to them.
    let (host, names) = match address.ip().is_unspecified() {
        true if has_tls => {
            (format!("HOST:{}", address.port()), ", where HOST is a name in the certificate")
        }
        true => (format!("HOST:{}", address.port()), ", where HOST is a name of this machine"),
        false => (address.to_string(), ""),
    };
    format!(
        "serving {url} on {scheme}://{address}; try kubectl --server {scheme}://{host}{trust} get pods, or {scheme}://{host}{page}{names}"
    )
}
