//! `watch`: a line for each add, update and delete.

use std::time::Duration;

use anyhow::anyhow;
use futures_util::{StreamExt, stream};
use informer::{
    Event, EventStream, FieldSelector, HandlerOptions, InformerOptions, LabelSelector, Resource,
    SharedInformer, SharedInformerFactory,
};
use jiff::Timestamp;
use kube::Client;
use tokio::task::JoinSet;

use crate::args::{SelectionArgs, WatchArgs};
use crate::connect::ConnectionArgs;
use crate::io::Io;
use crate::line::LineFormat;
use crate::object::Object;
use crate::progress::Progress;
use crate::refused::refused;
use crate::resolve;

/// Events that are written at a time.
const BATCH: usize = 256;

pub(crate) async fn watch(
    args: &WatchArgs,
    connection: &ConnectionArgs,
    io: &Io,
) -> anyhow::Result<()> {
    let selection = Selection::parse(&args.selection)?;
    let (connection, discovery) = resolve::connect(connection, io).await?;
    let resources = resolve::resources(&discovery, args.resources.iter().map(String::as_str))?;
    let format =
        LineFormat { output: args.output, with_resource: resources.len() > 1, color: args.color };
    let mut scoped = Vec::new();
    for resource in resources {
        let namespace = resolve::namespace(args.selection.all_namespaces, &resource, &connection);
        scoped.push((selection.options(namespace)?, resource));
    }
    let resync = args.resync.filter(|it| !it.is_zero());
    let followed = Followed::start(&connection.client, scoped, resync)?;
    followed.print(format, args.lasting, io).await
}

/// The selectors of a command.
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    pub(crate) fn parse(args: &SelectionArgs) -> anyhow::Result<Self> {
        Ok(Self { labels: args.selector.parse()?, fields: args.field_selector.parse()? })
    }

    /// Options of an informer with these selectors; the server selects.
    pub(crate) fn options(
        &self,
        namespace: Option<&str>,
    ) -> anyhow::Result<InformerOptions<Object>> {
        let options = InformerOptions::new().labels(&self.labels)?.fields(&self.fields)?;
        Ok(match namespace {
            Some(namespace) => options.namespace(namespace),
            None => options,
        })
    }
}

/// Informers and the streams of their events.
pub(crate) struct Followed {
    factory: SharedInformerFactory,
    informers: Vec<SharedInformer<Object>>,
    streams: Vec<EventStream<Object>>,
}

impl Followed {
    /// Starts an informer for each resource.
    pub(crate) fn start(
        client: &Client,
        resources: impl IntoIterator<Item = (InformerOptions<Object>, Resource)>,
        resync: Option<Duration>,
    ) -> anyhow::Result<Self> {
        let factory = SharedInformerFactory::builder(client.clone()).build();
        let mut followed = Self { factory, informers: Vec::new(), streams: Vec::new() };
        let mut options = HandlerOptions::new().name("printer");
        if let Some(period) = resync {
            options = options.resync(period);
        }
        for (informer_options, resource) in resources {
            let informer = followed.factory.informer_as::<Object>(resource, informer_options)?;
            followed.streams.push(informer.events_with(&options)?);
            followed.informers.push(informer);
        }
        followed.factory.start();
        Ok(followed)
    }

    /// Prints a line for each event until the program shall end or `lasting` is over.
    pub(crate) async fn print(
        self,
        format: LineFormat,
        lasting: Option<Duration>,
        io: &Io,
    ) -> anyhow::Result<()> {
        let progress = Progress::new(io);
        let mut tales = JoinSet::new();
        for informer in &self.informers {
            let name = informer.resource().group_resource().into_owned();
            tales.spawn(progress.clone().follow(name, informer.status_changes()));
        }
        let tagged =
            self.streams.into_iter().enumerate().map(|(at, events)| events.map(move |it| (at, it)));
        let mut events = stream::select_all(tagged).ready_chunks(BATCH);
        let refusals = self.informers.iter().map(|it| Box::pin(refused(it)));
        let mut refused = futures_util::future::select_all(refusals);
        let mut end = std::pin::pin!(io.end(lasting));
        let result = loop {
            let batch = tokio::select! {
                batch = events.next() => batch,
                (refused, _, _) = &mut refused => break Err(anyhow!(refused)),
                () = &mut end => break Ok(()),
            };
            let Some(batch) = batch else { break Ok(()) };
            let text = lines(format, io, &self.informers, &batch);
            if let Err(error) = progress.print(text).await {
                break Err(error.into());
            }
        };
        self.factory.shutdown_within(crate::EXIT_DEADLINE).await;
        // They wait for the terminal if it is full.
        let _ = tokio::time::timeout(crate::EXIT_DEADLINE, tales.shutdown()).await;
        result
    }
}

fn lines(
    format: LineFormat,
    io: &Io,
    informers: &[SharedInformer<Object>],
    batch: &[(usize, Event<Object>)],
) -> String {
    let now = Timestamp::now();
    // Anew for each batch: a terminal changes its size.
    let style = io.out.style(format.color);
    let mut text = String::new();
    for (at, event) in batch {
        format.append(&mut text, informers[*at].resource(), event, now, &style);
    }
    text
}
