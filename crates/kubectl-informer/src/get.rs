//! `get`: objects from an informer's cache, as kubectl prints them.

use std::fmt::Write;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use http::Request;
use informer::{Resource, SharedInformer, SharedInformerFactory};
use jiff::Timestamp;
use k8s_serve::table::Columns;
use kube::Client;
use serde::Serialize;
use serde::ser::SerializeSeq;

use crate::args::{GetArgs, GetOutput};
use crate::connect::{Connection, ConnectionArgs};
use crate::io::Io;
use crate::object::{Document, Object, full_name, value};
use crate::progress::Progress;
use crate::refused::refused;
use crate::resolve;
use crate::table::{TableOptions, kind_name, table};
use crate::watch::Selection;

/// What was got of one resource.
struct Got {
    resource: Resource,
    objects: Vec<Arc<Object>>,
    version: String,
    /// Names that were asked for and are not there.
    missing: Vec<String>,
}

pub(crate) async fn get(
    args: &GetArgs,
    connection: &ConnectionArgs,
    io: &Io,
) -> anyhow::Result<()> {
    let selection = Selection::parse(&args.selection)?;
    let wanted = wanted(args)?;
    let (connection, discovery) = resolve::connect(connection, io).await?;
    let mut asked: Vec<(Resource, Vec<String>)> = Vec::new();
    for (names_of, names) in &wanted {
        let resources = resolve::resources(&discovery, [names_of.as_str()])?;
        for resource in resources {
            match asked.iter_mut().find(|(it, _)| *it == resource) {
                Some((_, known)) => known.extend_from_slice(names),
                None => asked.push((resource, names.clone())),
            }
        }
    }
    let factory = SharedInformerFactory::builder(connection.client.clone()).build();
    factory.start();
    let fetching = fetch(args, &selection, &asked, &connection, &factory, io);
    let fetched = tokio::select! {
        fetched = fetching => fetched,
        () = io.stop.cancelled() => Err(anyhow!("interrupted")),
    };
    factory.shutdown_within(crate::EXIT_DEADLINE).await;
    let fetched = fetched?;
    let unreadable = print(args, &fetched, &connection, io).await?;

    let missing = |it: &Got| {
        let name = it.resource.group_resource().into_owned();
        it.missing
            .iter()
            .map(move |missing| format!("{name} {missing:?} not found"))
            .collect::<Vec<_>>()
    };
    let failures: Vec<String> = fetched.iter().flat_map(missing).chain(unreadable).collect();
    if failures.is_empty() { Ok(()) } else { bail!(failures.join("; ")) }
}

/// The arguments as kinds and names: `pods,svc`, `pods a b` or `pods/a svc/b`.
fn wanted(args: &GetArgs) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    if !args.resources.contains('/') {
        return Ok(vec![(args.resources.clone(), args.names.clone())]);
    }
    let pair = |it: &String| match it.split_once('/') {
        Some((resource, name)) if !resource.is_empty() && !name.is_empty() => {
            Ok((resource.to_owned(), vec![name.to_owned()]))
        }
        _ => Err(anyhow!("{it:?}: expected RESOURCE/NAME, as in the other arguments")),
    };
    std::iter::once(&args.resources).chain(&args.names).map(pair).collect()
}

async fn fetch(
    args: &GetArgs,
    selection: &Selection,
    asked: &[(Resource, Vec<String>)],
    connection: &Connection,
    factory: &SharedInformerFactory,
    io: &Io,
) -> anyhow::Result<Vec<Got>> {
    let progress = Progress::new(io);
    let mut informers = Vec::new();
    for (resource, names) in asked {
        let namespace = resolve::namespace(args.selection.all_namespaces, resource, connection);
        if !names.is_empty() && resource.namespaced && namespace.is_none() {
            bail!("a name means one object of one namespace: leave out -A, or the name");
        }
        let mut options = selection.options(namespace)?;
        if let [name] = names.as_slice() {
            // The server sends only that one.
            options =
                options.fields(selection.fields.clone().with_equal("metadata.name", name)?)?;
        }
        let informer = factory.informer_as::<Object>(resource.clone(), options)?;
        let name = resource.group_resource().into_owned();
        let changes = informer.status_changes();
        informers.push((informer, names, tokio::spawn(progress.clone().follow(name, changes))));
    }
    let mut fetched = Vec::new();
    for (informer, names, tale) in informers {
        let got = one(args, &informer, names).await;
        tale.abort();
        // The bar goes with its task.
        let _ = tale.await;
        fetched.push(got?);
    }
    Ok(fetched)
}

async fn one(
    args: &GetArgs,
    informer: &SharedInformer<Object>,
    names: &[String],
) -> anyhow::Result<Got> {
    let lister = tokio::select! {
        synced = informer.synced_within(args.sync_timeout) => synced?,
        refused = refused(informer) => bail!(refused),
    };
    let snapshot = lister.snapshot();
    let objects = snapshot.iter().map(|it| Arc::clone(it.object()));
    let is_named = |it: &Arc<Object>, name: &String| it.name() == *name;
    let objects: Vec<Arc<Object>> = objects
        .filter(|it| names.is_empty() || names.iter().any(|name| is_named(it, name)))
        .collect();
    let missing =
        names.iter().filter(|name| !objects.iter().any(|it| is_named(it, name))).cloned().collect();
    let version = snapshot.version().to_string();
    Ok(Got { resource: informer.resource().clone(), objects, version, missing })
}

/// Returns why objects are not in the tables, if there are any.
async fn print(
    args: &GetArgs,
    fetched: &[Got],
    connection: &Connection,
    io: &Io,
) -> anyhow::Result<Vec<String>> {
    let found: Vec<&Got> = fetched.iter().filter(|it| !it.objects.is_empty()).collect();
    match args.output {
        Some(GetOutput::Json | GetOutput::Yaml) => {
            let is_one = !args.names.is_empty() || args.resources.contains('/');
            let single =
                found.first().filter(|it| is_one && found.len() == 1 && it.objects.len() == 1);
            if is_one && found.is_empty() {
                return Ok(Vec::new());
            }
            let yaml = args.output == Some(GetOutput::Yaml);
            let text = match single {
                Some(got) => document(&Document(&got.objects[0]), yaml)?,
                None => document(&list(fetched), yaml)?,
            };
            io.print(text).await?;
            return Ok(Vec::new());
        }
        Some(GetOutput::Name) => {
            let mut text = String::new();
            for got in &found {
                let kind = kind_name(&got.resource);
                for object in &got.objects {
                    writeln!(text, "{kind}/{}", object.name())?;
                }
            }
            io.print(text).await?;
            return Ok(Vec::new());
        }
        Some(GetOutput::Wide) | None => {}
    }
    let options = TableOptions {
        wide: args.output.is_some(),
        with_namespace: args.selection.all_namespaces,
        with_kind: fetched.len() > 1,
        no_headers: args.no_headers,
    };
    let (mut tables, mut unreadable) = (Vec::new(), Vec::new());
    for got in &found {
        let columns = columns(&connection.client, &got.resource).await;
        // One at a time: decoded they take ten times the memory.
        let rows = got.objects.iter().filter_map(|it| {
            let told = |error| {
                unreadable.push(format!(
                    "{} {:?}: {error}",
                    got.resource.group_resource(),
                    full_name(it)
                ));
            };
            value(it).map_err(told).ok()
        });
        tables.push(table(&got.resource, rows, &columns, options, Timestamp::now()));
    }
    if tables.is_empty() && fetched.iter().all(|it| it.missing.is_empty()) {
        let everywhere =
            args.selection.all_namespaces || fetched.iter().all(|it| !it.resource.namespaced);
        io.say(match everywhere {
            true => "No resources found".to_owned(),
            false => format!("No resources found in {} namespace.", connection.namespace),
        });
    }
    io.print(tables.join("\n")).await?;
    Ok(unreadable)
}

/// All objects in a `List`; its version is that of the collection, if it is one.
fn list(fetched: &[Got]) -> impl Serialize + '_ {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct List<'a> {
        api_version: &'static str,
        kind: &'static str,
        metadata: Metadata<'a>,
        items: Items<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        resource_version: &'a str,
    }
    struct Items<'a>(&'a [Got]);
    impl Serialize for Items<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut items =
                serializer.serialize_seq(Some(self.0.iter().map(|it| it.objects.len()).sum()))?;
            for got in self.0 {
                got.objects.iter().try_for_each(|it| items.serialize_element(&Document(it)))?;
            }
            items.end()
        }
    }
    let resource_version = match fetched {
        [only] => &only.version,
        _ => "",
    };
    List {
        api_version: "v1",
        kind: "List",
        metadata: Metadata { resource_version },
        items: Items(fetched),
    }
}

/// JSON indented as kubectl indents it, or YAML.
fn document(value: &impl Serialize, yaml: bool) -> anyhow::Result<String> {
    if yaml {
        let mut text = serde_saphyr::to_string(value)?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        return Ok(text);
    }
    let mut text = Vec::new();
    let indented = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, indented))?;
    text.push(b'\n');
    Ok(String::from_utf8(text)?)
}

/// The columns of a resource. Those of a custom resource whose definition cannot be read are name
/// and age.
async fn columns(client: &Client, resource: &Resource) -> Columns {
    if let Some(columns) = Columns::built_in(&resource.group, &resource.kind) {
        return columns;
    }
    let is_ours = resource.group.is_empty() || resource.group.ends_with(".k8s.io");
    let name = resource.group_resource();
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    let definition = match Request::get(path).body(Vec::new()) {
        Ok(request) => client.request::<serde_json::Value>(request).await.ok(),
        Err(_) => None,
    };
    match definition.and_then(|it| Columns::of_definition(&it, &resource.version)) {
        Some(columns) => columns,
        None if is_ours => Columns::of_kind(&resource.group, &resource.kind),
        None => Columns::name_and_age(),
    }
}
