//! Objects nested deeper than usual JSON limits. Anyone who may write in one namespace can create
//! them, so they must not break lists for others.

use std::time::Duration;

use anyhow::{Context, ensure};
use http::Request;
use http_body_util::BodyExt;
use informer_tests::helpers::eventually_ok;
use informer_tests::real::RealCluster;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::text::{replace_text, without_managed_fields_json};

const SOON: Duration = Duration::from_secs(30);
const LEVELS: [usize; 2] = [200, 5_000];
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const WIDGETS: &str = "/apis/nested.example.com/v1/namespaces/default/widgets";

const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[tokio::test(flavor = "multi_thread")]
async fn deep_objects_are_answered_as_the_api_server_does() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let direct = cluster.client().await?;
    create_objects(&direct).await?;
    let endpoint = Endpoint::start(&cluster.kubeconfig_path(), &[]).await?;
    let ours = endpoint.client()?;
    for (path, forms) in
        [(REVISIONS, &[JSON, TABLE, PROTOBUF, METADATA][..]), (WIDGETS, &[JSON, TABLE, METADATA])]
    {
        for form in forms {
            let answer = get(&ours, path, form).await?;
            if form.starts_with(PROTOBUF) {
                for levels in LEVELS {
                    let name = format!("deep-{levels}");
                    let text = if *form == PROTOBUF { nested(levels) } else { name };
                    let mut parts = answer.windows(text.len());
                    ensure!(parts.any(|part| part == text.as_bytes()), "{path} {form}");
                }
                continue;
            }
            let expected = get(&direct, path, form).await?;
            ensure!(shallow(&answer)? == shallow(&expected)?, "{path} {form}");
        }
        for levels in LEVELS {
            let path = format!("{path}/deep-{levels}");
            for form in [JSON, TABLE] {
                let answer = shallow(&get(&ours, &path, form).await?)?;
                ensure!(answer == shallow(&get(&direct, &path, form).await?)?, "{path} {form}");
            }
        }
        // The changes that a watch begins with.
        let watch = format!("{path}?watch=true&resourceVersion=0&timeoutSeconds=1");
        for form in [JSON, TABLE] {
            let events = String::from_utf8(get(&ours, &watch, form).await?)?;
            let added = events.matches("{\"type\":\"ADDED\"").count();
            ensure!(
                added == LEVELS.len() && !events.contains("\"ERROR\""),
                "{path} {form} {added}"
            );
        }
    }
    endpoint.stop().await
}

/// Objects within one another.
fn nested(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

async fn create_objects(client: &Client) -> anyhow::Result<()> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.nested.example.com" },
        "spec": {
            "group": "nested.example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
                "additionalPrinterColumns": [
                    { "name": "A", "type": "string", "jsonPath": ".spec.a" },
                    { "name": "B", "type": "string", "jsonPath": ".spec.b" },
                ],
            }],
        },
    });
    post(
        client,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        definition.to_string().into_bytes(),
    )
    .await?;
    for levels in LEVELS {
        let (name, text) = (format!("deep-{levels}"), nested(levels));
        let revision = format!(
            r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{{"name":"{name}"}},"revision":1,"data":{text}}}"#
        );
        post(client, REVISIONS, revision.into_bytes()).await?;
        let widget = format!(
            r#"{{"apiVersion":"nested.example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{{"a":{text},"b":"x"}}}}"#
        );
        eventually_ok("the custom resource is served", SOON, async || {
            post(client, WIDGETS, widget.clone().into_bytes()).await
        })
        .await?;
    }
    Ok(())
}

async fn post(client: &Client, path: &str, body: Vec<u8>) -> anyhow::Result<()> {
    let request = Request::post(path).header("content-type", JSON);
    let response = client.send(request.body(Body::from(body))?).await?;
    ensure!(response.status() == 201, "{path}: {}", response.status());
    Ok(())
}

/// The body of an answer of 200.
async fn get(client: &Client, path: &str, accept: &str) -> anyhow::Result<Vec<u8>> {
    let request = Request::get(path).header("accept", accept).body(Body::empty())?;
    let response = client.send(request).await?;
    ensure!(response.status() == 200, "{path} {accept}: {}", response.status());
    let body = response.into_body().collect().await;
    Ok(body.with_context(|| format!("{path} {accept}"))?.to_bytes().to_vec())
}

/// The answer with a word in the place of each nested part, without managed fields, and without
/// what changes with time.
fn shallow(answer: &[u8]) -> anyhow::Result<Value> {
    let mut text = without_managed_fields_json(std::str::from_utf8(answer)?);
    for levels in LEVELS.iter().rev() {
        for inner in [*levels, levels - 1] {
            let (word, nested) = (format!("\"{inner} levels\""), nested(inner));
            text = text.replace(&nested.replace('"', "\\\""), &word.replace('"', ""));
            text = text.replace(&nested, &word);
        }
    }
    let mut value: Value =
        serde_json::from_str(&replace_text(&text, "resourceVersion", |_| String::new()))?;
    for row in value["rows"].as_array_mut().into_iter().flatten() {
        // The age.
        let cells = row["cells"].as_array_mut().context("a row without cells")?;
        cells.retain(|cell| cell.as_str().is_none_or(|it| !it.ends_with('s') || it.contains(' ')));
    }
    Ok(value)
}
