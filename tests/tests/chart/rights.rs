//! The program with the chart's arguments and the token of its own account, on a real API server:
//! it does all that it should, and names each right that is taken away.

use anyhow::{Context, ensure};
use http::Request;
use informer_tests::helpers::eventually_ok;
use informer_tests::real::RealCluster;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::accepted::{apply, prepare};
use crate::helm::{Helm, NAME, object, objects};
use crate::pod::{Pod, Ready, SOON, free_port, get};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

const VALUES: &str = "
image: {repository: kubectl-informer}
tls: {existingSecret: informer-tls}
clientCA: {configMap: clients}
auditLog: true
shutdown: {spreadSeconds: 1}
cache:
  resources:
    - {group: '', resource: pods}
    - {group: apps, resource: deployments}
    - {group: example.com, resource: widgets}
  onDemand:
    - {group: '', resource: configmaps}
statusPage:
  readers:
    - {kind: ServiceAccount, name: prometheus, namespace: informer}
metrics:
  readers:
    - {kind: ServiceAccount, name: prometheus, namespace: informer}
";

/// A custom resource with a column of its own.
const WIDGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
      additionalPrinterColumns: [{name: Colour, type: string, jsonPath: .colour}]
";

/// Accounts and what they may do, beside the chart's.
const OTHERS: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: informer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: certified}
rules: [{apiGroups: ['', apps], resources: [pods, deployments], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: certified}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: certified}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: certified}]
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: one, namespace: default}
colour: green
";

/// A cluster with the chart's objects in it.
struct Scene {
    cluster: RealCluster,
    admin: Client,
    rendered: Vec<Value>,
    token: String,
}

/// A right of the account.
#[derive(Debug)]
struct Right {
    group: String,
    resource: String,
    verb: String,
    name: Option<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_the_chart_is_enough_for_all_that_it_should_do() -> anyhow::Result<()> {
    let Some(scene) = Scene::new().await? else { return Ok(()) };
    let Scene { cluster, admin, .. } = &scene;
    let pod = scene.start()?;
    let client = pod.client(cluster, "admin", None).await?;
    pod.is_ready(&client, Ready::Yes).await?;
    let answered = async |client: &Client, path: &str, code: u16, words: &str| {
        let (got, text) = get(client, path).await?;
        ensure!(got == code && text.contains(words), "{path}: {got} {text}\n{}", pod.said());
        anyhow::Ok(())
    };

    // Callers get what they may, from the cache.
    let viewer = pod.client(cluster, "viewer", None).await?;
    let certified = pod.client(cluster, "certified", None).await?;
    answered(&viewer, "/api/v1/namespaces/default/pods", 200, "\"kind\":\"Table\"").await?;
    answered(&viewer, "/api/v1/pods", 403, "cannot list resource").await?;
    answered(&certified, "/apis/apps/v1/deployments", 200, "\"kind\":\"Table\"").await?;
    answered(&client, "/apis/example.com/v1/widgets", 200, "\"green\"").await?;
    answered(&client, "/api/v1/configmaps", 200, "\"kind\":\"Table\"").await?;
    // The notes take the endpoint's own token for a first try.
    let own = pod.client(cluster, "nobody", Some(&scene.token)).await?;
    answered(&own, "/api/v1/pods", 200, "\"kind\":\"Table\"").await?;
    // What the account may not read is the API server's to answer.
    answered(&client, "/api/v1/secrets", 200, "\"kind\":\"Table\"").await?;
    answered(&viewer, "/api/v1/secrets", 403, "cannot list resource").await?;

    // A watch shows a write that was passed on.
    let path = "/api/v1/namespaces/default/configmaps";
    let request = Request::get(format!("{path}?watch=1&fieldSelector=metadata.name=new"));
    let watch = client.send(request.body(Body::empty())?).await?;
    ensure!(watch.status() == 200, "{}", watch.status());
    create(&client, path, &json!({ "metadata": { "name": "new" } })).await?;
    let mut watch = watch.into_body();
    let event = timeout(SOON, http_body_util::BodyExt::frame(&mut watch)).await?;
    let event = event.context("the watch ended")??.into_data().unwrap_or_default();
    ensure!(String::from_utf8_lossy(&event).contains("ADDED"), "{event:?}");

    // The metrics and the status page are for those who were named.
    answered(&viewer, "/metrics", 403, "cannot get path").await?;
    let token = token_of(admin, "prometheus").await?;
    let prometheus = pod.client(cluster, "nobody", Some(&token)).await?;
    answered(&prometheus, "/metrics", 200, "serve_api_requests_total").await?;
    answered(&viewer, "/ui/page/main.js", 403, "cannot get path").await?;
    answered(&prometheus, "/ui/page/main.js", 200, "").await?;
    eventually_ok("every right was reviewed", SOON, async || {
        let (_, metrics) = get(&prometheus, "/metrics").await?;
        let cached = r#"verb="list",resource="pods.v1",code="200",from="cache""#;
        ensure!(metrics.contains(cached), "{metrics}");
        let rights = metrics.lines().filter(|it| it.starts_with("serve_missing_rights{"));
        let rights: Vec<_> = rights.collect();
        // Two for each of four resources, and one definition.
        ensure!(rights.len() == 9, "{rights:#?}");
        ensure!(rights.iter().all(|it| it.ends_with(" 0")), "{rights:#?}");
        Ok(())
    })
    .await?;
    ensure!(!pod.said().contains("may not"), "{}", pod.said());
    pod.says("audit.k8s.io/v1").await?;

    // The kubelet ends it: open watches end before it does.
    pod.terminate().await?;
    while let Some(frame) = timeout(SOON, http_body_util::BodyExt::frame(&mut watch)).await? {
        frame.context("the watch was cut off")?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_right_that_is_taken_away_is_named() -> anyhow::Result<()> {
    let Some(scene) = Scene::new().await? else { return Ok(()) };
    let role = object(&scene.rendered, "ClusterRole", "-cache")?;
    let rights = rights_of(role)?;
    ensure!(rights.len() == 9, "{rights:?}");
    for (at, taken) in rights.iter().enumerate() {
        let rest = rights.iter().enumerate().filter(|it| it.0 != at).map(|it| it.1.rule());
        let less = json!({ "rules": rest.collect::<Vec<_>>() });
        scene.with(role, &less).await?;
        scene.may(taken, false).await?;
        scene.named(taken).await.with_context(|| format!("without {taken:?}"))?;
        scene.with(role, role).await?;
        scene.may(taken, true).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_whole_rule_the_log_says_what_is_missing() -> anyhow::Result<()> {
    let Some(scene) = Scene::new().await? else { return Ok(()) };
    let role = object(&scene.rendered, "ClusterRole", "-cache")?;
    let rights = rights_of(role)?;
    let is_pods = |it: &&Right| it.resource == "pods";
    let rest = rights.iter().filter(|it| !is_pods(it)).map(Right::rule).collect::<Vec<_>>();
    scene.with(role, &json!({ "rules": rest })).await?;
    for right in rights.iter().filter(is_pods) {
        scene.may(right, false).await?;
    }
    let pod = scene.start()?;
    let certified = pod.client(&scene.cluster, "certified", None).await?;
    let client = pod.client(&scene.cluster, "admin", None).await?;
    pod.is_ready(&client, Ready::Not("may not list pods in API group \"\"")).await?;
    // With a token the API server answers, without one there is only the cache.
    let (code, text) = get(&client, "/api/v1/pods").await?;
    ensure!(code == 200, "{code} {text}");
    let (code, text) = get(&certified, "/api/v1/pods").await?;
    let words = ["it is not held", "pods", "resource \\\"pods\\\" in API group"];
    ensure!(code == 403 && words.iter().all(|it| text.contains(it)), "{code} {text}");
    pod.terminate().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_right_to_review_that_is_taken_away_is_named() -> anyhow::Result<()> {
    let Some(scene) = Scene::new().await? else { return Ok(()) };
    let Scene { cluster, admin, .. } = &scene;
    let path = format!("{RBAC}/clusterroles/system:auth-delegator");
    let delegator: Value = admin.request(Request::get(path).body(Vec::new())?).await?;
    let rights = rights_of(&delegator)?;
    ensure!(rights.len() == 2, "{rights:?}");
    let mut binding = object(&scene.rendered, "ClusterRoleBinding", "-auth-delegator")?.clone();
    let name = binding["metadata"]["name"].as_str().context("no name")?.to_owned();
    for (at, taken) in rights.iter().enumerate() {
        // The role of a binding cannot be changed.
        let path = format!("{RBAC}/clusterrolebindings/{name}");
        admin.request::<Value>(Request::delete(path).body(Vec::new())?).await?;
        let lesser = format!("lesser-{at}");
        let rest = rights[1 - at].rule();
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": lesser }, "rules": [rest],
        });
        binding["roleRef"]["name"] = lesser.into();
        for object in [&role, &binding] {
            apply(cluster, &object.to_string(), &[])?.clean("the lesser role")?;
        }
        scene.may(taken, false).await?;
        scene.may(&rights[1 - at], true).await?;
        let pod = scene.start()?;
        let client = pod.client(cluster, "viewer", None).await?;
        let words = format!(
            "{}.{}: bind the ClusterRole system:auth-delegator",
            taken.resource, taken.group
        );
        pod.is_ready(&client, Ready::Not(&words)).await?;
        pod.says(&words).await?;
        let (code, text) = get(&client, "/api/v1/namespaces/default/pods").await?;
        // Callers are not shown what the account may do.
        let is_said = code == 503 && text.contains("cannot be looked up now");
        ensure!(is_said && !text.contains(&words), "{code} {text}");
    }
    Ok(())
}

impl Scene {
    async fn new() -> anyhow::Result<Option<Self>> {
        let Some(helm) = Helm::find() else { return Ok(None) };
        let Some(cluster) = RealCluster::start().await? else { return Ok(None) };
        prepare(&cluster)?;
        let values = format!("{VALUES}port: {}\n", free_port()?);
        let text = helm.template_of(&values)?.clean("the chart")?;
        apply(&cluster, &text, &[])?.clean("the chart")?;
        apply(&cluster, WIDGETS, &[])?.clean("widgets")?;
        cluster.kubectl(["wait", "crd/widgets.example.com", "--for=condition=Established"]).await?;
        // A definition is served a moment after it is established.
        let others = async || apply(&cluster, OTHERS, &[])?.clean("others");
        eventually_ok("the others are accepted", SOON, others).await?;
        let admin = cluster.client().await?;
        let token = token_of(&admin, NAME).await?;
        Ok(Some(Self { admin, rendered: objects(&text)?, token, cluster }))
    }

    fn start(&self) -> anyhow::Result<Pod> {
        Pod::start(&self.cluster, &self.rendered, &self.token)
    }

    /// Gives the role the rules of another.
    async fn with(&self, role: &Value, rules: &Value) -> anyhow::Result<()> {
        let mut role = role.clone();
        role["rules"] = rules["rules"].clone();
        apply(&self.cluster, &role.to_string(), &[])?.clean("the role")?;
        Ok(())
    }

    /// Waits until the API server lets the account do this, or does not.
    async fn may(&self, right: &Right, wanted: bool) -> anyhow::Result<()> {
        let Right { group, resource, verb, name } = right;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": format!("system:serviceaccount:{NAME}:{NAME}"),
                "resourceAttributes":
                    { "group": group, "resource": resource, "verb": verb, "name": name },
            },
        });
        eventually_ok("the role is in force", SOON, async || {
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let answer = create(&self.admin, path, &review).await?;
            ensure!(
                answer["status"]["allowed"].as_bool().unwrap_or_default() == wanted,
                "{answer}"
            );
            Ok(())
        })
        .await
    }

    /// Starts the program, which must name the right, and notice when it comes back.
    async fn named(&self, taken: &Right) -> anyhow::Result<()> {
        let pod = self.start()?;
        let client = pod.client(&self.cluster, "admin", None).await?;
        let words = format!("this endpoint's account may not {}", taken.words());
        let is_from_start = taken.resource != "configmaps" && taken.verb != "get";
        let ready = if is_from_start { Ready::Not(&words) } else { Ready::Yes };
        pod.is_ready(&client, ready).await?;
        // Everything is answered all the same, by the API server if need be.
        for path in ["/api/v1/configmaps", "/api/v1/pods", "/apis/example.com/v1/widgets"] {
            let (code, text) = get(&client, path).await?;
            ensure!(code == 200, "{path}: {code} {text}");
        }
        pod.says(&words).await?;
        pod.says(&format!("add the rule {{apiGroups: [{:?}]", taken.group)).await?;
        let (_, metrics) = get(&client, "/metrics").await?;
        let missing = metrics.lines().filter(|it| it.starts_with("serve_missing_rights{"));
        let missing: Vec<_> = missing.filter(|it| it.ends_with(" 1")).collect();
        let of = format!(
            "verb=\"{}\",group=\"{}\",resource=\"{}\"",
            taken.verb, taken.group, taken.resource
        );
        ensure!(missing.len() == 1 && missing[0].contains(&of), "{missing:?}");
        if is_from_start {
            let role = object(&self.rendered, "ClusterRole", "-cache")?;
            self.with(role, role).await?;
            pod.is_ready(&client, Ready::Yes).await?;
        }
        Ok(())
    }
}

impl Right {
    fn rule(&self) -> Value {
        let Self { group, resource, verb, name } = self;
        let mut rule = json!({ "apiGroups": [group], "resources": [resource], "verbs": [verb] });
        if let Some(name) = name {
            rule["resourceNames"] = json!([name]);
        }
        rule
    }

    fn words(&self) -> String {
        let Self { group, resource, verb, name } = self;
        let name = name.as_ref().map(|it| format!(" {it:?}")).unwrap_or_default();
        format!("{verb} {resource}{name} in API group {group:?}")
    }
}

/// The rights of a role, one by one.
fn rights_of(role: &Value) -> anyhow::Result<Vec<Right>> {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(|it| it.as_str().map(ToOwned::to_owned)).collect()
    };
    let mut rights = Vec::new();
    for rule in role["rules"].as_array().context("no rules")? {
        let names = texts(&rule["resourceNames"]);
        let names: Vec<_> =
            if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    rights.extend(names.iter().map(|name| Right {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        name: name.clone(),
                    }));
                }
            }
        }
    }
    Ok(rights)
}

/// A token of an account of the namespace.
async fn token_of(admin: &Client, account: &str) -> anyhow::Result<String> {
    let path = format!("/api/v1/namespaces/{NAME}/serviceaccounts/{account}/token");
    let request =
        json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let answer = create(admin, &path, &request).await?;
    Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
}

async fn create(client: &Client, path: &str, object: &Value) -> anyhow::Result<Value> {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(object)?)?;
    client.request(request).await.with_context(|| path.to_owned())
}
