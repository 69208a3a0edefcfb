//! From the resource arguments of a command to resources of the server.

use std::time::Duration;

use anyhow::{Context, bail};
use informer::discovery::Discovery;
use informer::{Error, Resource};

use crate::connect::{Connection, ConnectionArgs};
use crate::io::Io;

/// How long the server may take to say what resources it has, if nothing else was said.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Connects and asks what resources the server has.
pub(crate) async fn connect(
    args: &ConnectionArgs,
    io: &Io,
) -> anyhow::Result<(Connection, Discovery)> {
    let connection = args.connect(&io.environment).await?;
    let limit = args.request_timeout.filter(|it| !it.is_zero()).unwrap_or(DISCOVERY_TIMEOUT);
    let url = &connection.url;
    let discovery = tokio::select! {
        fetched = tokio::time::timeout(limit, Discovery::fetch(&connection.client)) => fetched
            .with_context(|| format!("{url} did not say in {limit:?} what resources it has; see --request-timeout"))?
            .with_context(|| format!("cannot ask {url} what resources it has"))?,
        () = io.stop.cancelled() => bail!("interrupted"),
    };
    Ok((connection, discovery))
}

/// The resources that `args` name, each `RESOURCE[.VERSION][.GROUP]` or several joined by commas;
/// each once, in order.
pub(crate) fn resources<'a>(
    discovery: &Discovery,
    args: impl IntoIterator<Item = &'a str>,
) -> anyhow::Result<Vec<Resource>> {
    let mut found: Vec<Resource> = Vec::new();
    for arg in
        args.into_iter().flat_map(|it| it.split(',')).map(str::trim).filter(|it| !it.is_empty())
    {
        let info = discovery.find_by_arg(arg).map_err(Error::UnknownResource)?;
        if !info.can_be_watched() {
            let verbs = info.verbs.join(", ");
            bail!(
                "{} cannot be listed and watched (the server offers {verbs})",
                info.resource.group_resource()
            );
        }
        if !found.contains(&info.resource) {
            found.push(info.resource.clone());
        }
    }
    if found.is_empty() {
        bail!("name a resource, such as pods or deployments.apps");
    }
    Ok(found)
}

/// The namespace of an informer: none for all, or for resources that have no namespaces.
pub(crate) fn namespace<'a>(
    all: bool,
    resource: &Resource,
    connection: &'a Connection,
) -> Option<&'a str> {
    (!all && resource.namespaced).then_some(connection.namespace.as_str())
}
