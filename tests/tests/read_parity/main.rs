//! `k8s-serve` answers reads as a real API server does, byte for byte.
//!
//! The real server's objects, in the bytes in which it sent them, are given to a read side, and both
//! are asked the same.

mod copy;

use anyhow::{Context, ensure};
use copy::{Answer, Copy, ask};
use futures_util::future::try_join_all;
use informer_tests::assortment::create_assortment;
use informer_tests::real::RealCluster;
use k8s_serve::Resource;
use kube::Client;
use serde_json::Value;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The transformations that a client can ask for, of lists and of objects.
const FORMS: [(&str, &str); 5] = [
    ("", ""),
    (
        ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    ),
    (
        ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1",
        ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
    ),
    (";as=Table;g=meta.k8s.io;v=v1", ";as=Table;g=meta.k8s.io;v=v1"),
    (";as=Table;g=meta.k8s.io;v=v1beta1", ";as=Table;g=meta.k8s.io;v=v1beta1"),
];

/// The resources whose collections are compared.
fn resources() -> Vec<Resource> {
    let of = |group: &str, version: &str, plural: &str, kind: &str, namespaced: bool| Resource {
        namespaced,
        custom: group == "example.com",
        ..Resource::new(group, version, plural, kind)
    };
    vec![
        of("", "v1", "pods", "Pod", true),
        of("", "v1", "configmaps", "ConfigMap", true),
        of("", "v1", "secrets", "Secret", true),
        of("", "v1", "services", "Service", true),
        of("", "v1", "namespaces", "Namespace", false),
        of("apps", "v1", "deployments", "Deployment", true),
        of("batch", "v1", "cronjobs", "CronJob", true),
        of("coordination.k8s.io", "v1", "leases", "Lease", true),
        of("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", false),
        of("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false),
        of("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false),
        of("example.com", "v1", "widgets", "Widget", true),
    ]
}

#[tokio::test]
async fn reads_are_answered_as_a_real_server_does() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let client = cluster.client().await?;
    create_assortment(&client).await?;
    let compared = resources().into_iter().map(|resource| {
        let client = &client;
        async move {
            let name = resource.to_string();
            compare(client, resource).await.context(name)
        }
    });
    let differences = try_join_all(compared).await?.concat();
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

/// The differences between the answers to all that can be asked of a collection.
async fn compare(client: &Client, resource: Resource) -> anyhow::Result<Vec<String>> {
    let root = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let all = format!("{root}/{}", resource.plural);
    let path = match resource.namespaced {
        true => format!("{root}/namespaces/default/{}", resource.plural),
        false => all.clone(),
    };
    let copy = Copy::of(client, resource, &all).await?;
    let name = copy.name_in("default").context("there is an object")?;
    let exact = format!("resourceVersion={}&resourceVersionMatch=Exact", copy.version);
    let mut asked = Vec::new();
    for media in [JSON, PROTOBUF] {
        for (list, object) in FORMS {
            let (list, object) = (format!("{media}{list}"), format!("{media}{object}"));
            for query in ["", "&limit=1", "&labelSelector=nobody", "&includeObject=Object"] {
                asked.push((format!("{path}?{exact}{query}"), list.clone()));
            }
            asked.push((format!("{all}?{exact}&limit=1"), list.clone()));
            asked.push((format!("{path}/{name}"), object.clone()));
            asked.push((format!("{path}/{name}?includeObject=None"), object.clone()));
            // Of the wrong form, and of an object that is not there.
            asked.push((format!("{path}/{name}"), list.clone()));
            asked.push((format!("{path}?{exact}"), object.clone()));
            asked.push((format!("{path}/nobody"), object.clone()));
            asked.push((format!("{path}/nobody"), format!("{object},{media}")));
            asked.push((format!("{path}?includeObject=Foo"), list));
        }
    }
    for query in FAULTS {
        asked.push((format!("{path}?{query}"), JSON.to_owned()));
    }
    for accept in ACCEPTED {
        asked.push((format!("{path}?{exact}&limit=1"), (*accept).to_owned()));
        asked.push((format!("{path}/{name}"), (*accept).to_owned()));
    }
    asked.push((format!("{path}?{exact}&limit=1&pretty=true"), JSON.to_owned()));
    asked.push((format!("{path}/{name}?resourceVersion=x"), JSON.to_owned()));
    asked.push((format!("{path}/{name}/nothing"), JSON.to_owned()));
    let mut differences = Vec::new();
    for (uri, accept) in asked {
        differences.extend(difference(client, &copy, &uri, &accept).await?);
    }
    differences.extend(pages(client, &copy, &format!("{all}?{exact}&limit=1"), &all).await?);
    differences.extend(events(client, &copy, &path).await?);
    Ok(differences)
}

/// What cannot be understood, or contradicts itself.
const FAULTS: &[&str] = &[
    "limit=abc",
    "limit=",
    "timeoutSeconds=x",
    "resourceVersion=abc",
    "resourceVersion=-1",
    "resourceVersion=99999999999999999999999",
    "resourceVersion=1&resourceVersionMatch=Newer",
    "resourceVersionMatch=Exact",
    "resourceVersion=0&resourceVersionMatch=Exact",
    "sendInitialEvents=true",
    "continue=a*b",
    "continue=abcde",
    "continue=7a&resourceVersionMatch=Exact",
    "resourceVersionMatch=foo&sendInitialEvents=true",
    "fieldSelector=a",
    "fieldSelector=metadata.name",
    "fieldSelector=spec.nothing=1",
    "watch=1&resourceVersion=abc",
    "watch=1&sendInitialEvents=true",
    "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
    "watch=1&resourceVersionMatch=NotOlderThan",
    "watch=1&continue=x",
];

/// But for YAML and CBOR, which are not served.
const ACCEPTED: &[&str] = &[
    "*/*",
    "application/*",
    "application/json;stream=watch",
    "application/json;stream=foo",
    "application/json;sv=v1",
    "application/json;pretty=1",
    "application/json;as=Table;v=v2;g=meta.k8s.io,application/json",
    "application/json;g=meta.k8s.io,application/json",
    "application/vnd.kubernetes.protobuf;q=0.5,application/json",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
];

/// Asks both, again if a second passed in between: ages are in seconds.
async fn difference(
    client: &Client,
    copy: &Copy,
    uri: &str,
    accept: &str,
) -> anyhow::Result<Option<String>> {
    let mut tries = 0;
    loop {
        let (real, now) = ask(client, uri, accept).await?;
        let own = copy.ask(uri, accept, now).await?;
        let shown = format!("{accept} {uri}\nreal: {real:?}\nown:  {own:?}");
        if agree(&told(real), &told(own)) {
            return Ok(None);
        }
        tries += 1;
        if tries == 3 {
            return Ok(Some(shown));
        }
    }
}

/// Whether two answers are the same, but for the order of fields in JSON: in some Go types it is
/// another than that of the fields' numbers.
fn agree(real: &Answer, own: &Answer) -> bool {
    let parsed = |answer: &Answer| serde_json::from_slice::<Value>(&answer.body).ok();
    (real.code, &real.headers) == (own.code, &own.headers)
        && (real.body == own.body
            || real.body.len() == own.body.len()
                && parsed(real).is_some_and(|real| Some(real) == parsed(own)))
}

/// What is told, but for formats that are not served.
fn told(answer: Answer) -> Answer {
    if answer.code != 406 {
        return answer;
    }
    let protobuf = answer.body.starts_with(b"k8s\0");
    let text = String::from_utf8_lossy(&answer.body).replace("application/yaml, ", "");
    // There are lengths before the text.
    let text = if protobuf { String::new() } else { text };
    Answer { body: text.into_bytes().into(), ..answer }
}

/// All pages, each from the server that did not give its token.
async fn pages(
    client: &Client,
    copy: &Copy,
    first: &str,
    path: &str,
) -> anyhow::Result<Option<String>> {
    let token = |answer: &Answer| {
        let list: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        // Lists of custom resources have a token that is empty.
        let token = list["metadata"]["continue"].as_str().filter(|token| !token.is_empty());
        token.map(str::to_owned)
    };
    let (mut real, now) = ask(client, first, JSON).await?;
    let mut own = copy.ask(first, JSON, now).await?;
    for page in 0.. {
        if !agree(&real, &own) {
            return Ok(Some(format!("page {page} of {path}\nreal: {real:?}\nown:  {own:?}")));
        }
        let (Some(real_token), Some(own_token)) = (token(&real), token(&own)) else { break };
        let uri = |token: &str| format!("{path}?limit=1&continue={token}");
        real = ask(client, &uri(&own_token), JSON).await?.0;
        own = copy.ask(&uri(&real_token), JSON, now).await?;
    }
    Ok(None)
}

/// The initial events, whose order is each server's own, and the bookmark, whose version is.
async fn events(client: &Client, copy: &Copy, path: &str) -> anyhow::Result<Option<String>> {
    let stream = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    let uri = format!("{path}?{stream}&resourceVersion={}", copy.version);
    for accept in [JSON, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"] {
        let (real, now) = ask(client, &uri, accept).await?;
        let own = copy.ask(&uri, accept, now).await?;
        let lines = |answer: &Answer| {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let bookmark = lines.pop().unwrap_or_default();
            let mut events: Vec<Value> =
                lines.iter().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
            events.sort_by_key(|event| event["object"]["metadata"]["uid"].to_string());
            (events, bookmark.replace(|c: char| c.is_ascii_digit(), "0"))
        };
        let same = (real.code, &real.headers) == (own.code, &own.headers);
        if !same || lines(&real) != lines(&own) {
            return Ok(Some(format!("{accept} {uri}\nreal: {real:?}\nown:  {own:?}")));
        }
    }
    Ok(None)
}
