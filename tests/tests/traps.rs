//! The traps that users of informers fall into: each ends in the right behaviour, or in an error
//! that names resource, scope, verb and cause, and says what to do.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use informer::{
    Error, Event, InformerOptions, InformerState, SharedInformer, SharedInformerFactory, Status,
};
use informer_tests::examples::Example;
use informer_tests::fixtures::{create_namespace, pod};
use informer_tests::harness::Arm;
use informer_tests::helpers::eventually_ok;
use informer_tests::on_both_arms;
use informer_tests::real::client_of;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::config::Kubeconfig;
use kube::{Api, Client, CustomResource};
use kubectl_informer::connect::{ConnectionArgs, Environment};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

/// For what takes milliseconds: long enough for a machine with other things to do.
const SOON: Duration = Duration::from_secs(30);

const RBAC: &str = "rbac.authorization.k8s.io";

on_both_arms!(registering_after_the_start_misses_nothing, |arm| async {
    let namespace = arm.namespace("late").await?;
    create_pod(&arm, &namespace, "before").await?;
    let factory = factory(arm.client().await?, &namespace);
    factory.start();

    // An informer asked for after the start runs without another call.
    let pods = factory.informer::<Pod>()?;
    let lister = pods.synced_within(SOON).await?;
    // A handler registered after the first list is given what is there, then what follows.
    let mut events = pods.events()?;
    let by_node = pods.add_index("node", |pod: &Pod, out| out.extend(node_name(pod))).await?;
    assert_eq!(next(&mut events).await?, ("before".to_owned(), true));
    create_pod(&arm, &namespace, "after").await?;
    assert_eq!(next(&mut events).await?, ("after".to_owned(), false));
    assert_eq!(lister.by_index(&by_node, "node-1")?.len(), 2, "so with an index");
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(starting_twice_is_starting_once, |arm| async {
    let namespace = arm.namespace("twice").await?;
    create_pod(&arm, &namespace, "one").await?;
    let factory = factory(arm.client().await?, &namespace);
    let pods = factory.informer::<Pod>()?;
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let handler = pods.add_handler(|h| h.on_add(move |pod, _| _ = sender.send(name_of(pod))))?;
    factory.start();
    factory.start();
    pods.start();
    factory.informer::<Pod>()?.start();
    timeout(SOON, handler.synced()).await??;
    factory.start();
    create_pod(&arm, &namespace, "two").await?;
    for expected in ["one", "two"] {
        assert_eq!(timeout(SOON, seen.recv()).await?.as_deref(), Some(expected));
    }
    let counters = pods.status().counters;
    ensure!(counters.watches <= 1 && counters.lists <= 1, "more than one watch: {counters:?}");
    factory.shutdown().await;
    // The handler is gone with its informer; whatever else it was given would still be in the
    // channel.
    assert_eq!(seen.recv().await, None);
    Ok(())
});

on_both_arms!(starting_from_another_task_or_thread_works, |arm| async {
    let namespace = arm.namespace("spawned").await?;
    create_pod(&arm, &namespace, "one").await?;
    let by_task = factory(arm.client().await?, &namespace);
    let by_thread = factory(arm.client().await?, &namespace);
    let (first, second) = (by_task.informer::<Pod>()?, by_thread.informer::<Pod>()?);
    let starter = by_task.clone();
    tokio::spawn(async move { starter.start() });
    // A plain thread has no runtime of its own.
    let starter = by_thread.clone();
    std::thread::spawn(move || starter.start());
    for informer in [first, second] {
        assert_eq!(informer.synced_within(SOON).await?.len(), 1);
    }
    Ok(())
});

on_both_arms!(waiting_before_the_start_waits_and_says_so, |arm| async {
    let namespace = arm.namespace("unstarted").await?;
    create_pod(&arm, &namespace, "one").await?;
    let factory = factory(arm.client().await?, &namespace);
    let pods = factory.informer::<Pod>()?;
    let expected = format!(
        "not synced in time: pods.v1 in namespace {namespace} (not started: call `start()`)"
    );
    assert_eq!(error_text(pods.synced_within(Duration::ZERO).await), expected);
    assert_eq!(error_text(factory.wait_for_sync_within(Duration::ZERO).await), expected);
    assert_eq!(error_text(factory.wait_for_handlers_within(Duration::ZERO).await), expected);
    assert_eq!(pods.status().state, InformerState::NotStarted);

    let waiting = {
        let (factory, pods) = (factory.clone(), pods.clone());
        tokio::spawn(async move {
            factory.wait_for_sync().await?;
            pods.synced().await.map(|lister| lister.len())
        })
    };
    // On a runtime with several threads this may be before or after the wait begins: no matter.
    factory.start();
    assert_eq!(timeout(SOON, waiting).await???, 1);
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(there_is_no_lister_before_the_first_list, |arm| async {
    let namespace = arm.namespace("early").await?;
    create_pod(&arm, &namespace, "one").await?;
    let client = arm.client().await?;
    arm.begin_outage().await;
    let factory = factory(client, &namespace);
    let pods = factory.informer::<Pod>()?;
    factory.start();

    let error = failure(&pods).await?;
    ensure!(error.contains("not synced in time"), "{error}");
    ensure!(!pods.has_synced() && !factory.statuses()[0].has_synced, "synced with nothing");
    let unsynced = pods.unsynced_store();
    ensure!(unsynced.is_empty() && pods.last_sync_resource_version().is_unset());
    ensure!(matches!(unsynced.state(), InformerState::BackingOff { .. }), "{:?}", unsynced.state());

    arm.end_outage().await;
    assert_eq!(pods.synced_within(SOON).await?.len(), 1);
    assert_eq!(unsynced.len(), 1, "one store");
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(an_unknown_resource_is_an_error_with_suggestions, |arm| async {
    let factory = SharedInformerFactory::builder(arm.client().await?).build();
    factory.start();
    for (asked, expected) in [
        (
            ("apps", "v1", "deploymnets"),
            "the server has no resource \"deploymnets.v1.apps\"; did you mean deployments.v1.apps?",
        ),
        (
            ("extensions", "v1beta1", "deployments"),
            "the server has no resource \"deployments.v1beta1.extensions\"; did you mean deployments.v1.apps?",
        ),
        (
            ("apps", "v1", "Deployment"),
            "the server has no resource \"Deployment.v1.apps\"; did you mean deployments.v1.apps? Its plural is needed here, \"deployments\"",
        ),
        (
            ("core", "v1", "pod"),
            "the server has no resource \"pod.v1\"; did you mean pods.v1? Its plural is needed here, \"pods\"",
        ),
        (
            ("example.net", "v1", "unicorns"),
            "the server has no resource \"unicorns.v1.example.net\"; `kubectl api-resources` lists what it has",
        ),
    ] {
        let (group, version, plural) = asked;
        let error =
            factory.for_resource(group, version, plural).await.err().context("it exists")?;
        ensure!(matches!(error, Error::UnknownResource(_)), "{error:?}");
        assert_eq!(error.to_string(), expected);
    }
    ensure!(factory.statuses().is_empty(), "an informer was made nevertheless");
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(a_typed_resource_that_is_not_installed_is_waited_for, |arm| async {
    let factory = SharedInformerFactory::builder(arm.client().await?).build();
    let gadgets = factory.informer::<Gadget>()?;
    factory.start();
    let error = failure(&gadgets).await?;
    says(
        &error,
        &[
            "gadgets.v1.trap.example.com in the whole cluster",
            "waiting for the resource",
            "watch gadgets.v1.trap.example.com in the whole cluster: 404 Not Found; ",
            "install its CRD, or check group, version and the plural \"gadgets\"",
        ],
    )?;
    ensure!(
        matches!(gadgets.status().state, InformerState::Unavailable { .. }),
        "{}",
        gadgets.status()
    );
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(a_forbidden_resource_names_the_rule_that_is_missing, |arm| async {
    let namespace = arm.namespace("forbidden").await?;
    create_pod(&arm, &namespace, "one").await?;
    let factory = factory(arm.client_as("nobody").await?, &namespace);
    let pods = factory.informer::<Pod>()?;
    let everywhere = factory.informer_with(InformerOptions::<ConfigMap>::new().all_namespaces())?;
    factory.start();

    let error = failure(&pods).await?;
    says(
        &error,
        &[
            &format!("pods.v1 in namespace {namespace}"),
            &format!("watch pods.v1 in namespace {namespace}: 403"),
            "User \"nobody\" cannot watch resource \"pods\" in API group \"\"",
            "grant the verbs list and watch on resource \"pods\" in API group \"\"",
            &format!("Role and RoleBinding in namespace {namespace}"),
        ],
    )?;
    ensure!(!pods.has_synced(), "synced with nothing");
    let error = failure(&everywhere).await?;
    says(
        &error,
        &["configmaps.v1 in the whole cluster", "403", "ClusterRole and ClusterRoleBinding"],
    )?;

    // Once the right is granted the informer recovers by itself.
    grant(&arm, &namespace).await?;
    assert_eq!(pods.synced_within(Duration::from_secs(90)).await?.len(), 1);
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(a_namespace_that_does_not_exist_is_empty_until_it_does, |arm| async {
    let namespace = format!("{}-not", arm.namespace("is").await?);
    let factory = factory(arm.client().await?, &namespace);
    let pods = factory.informer::<Pod>()?;
    let mut events = pods.events()?;
    factory.start();
    let lister = pods.synced_within(SOON).await?;
    ensure!(lister.is_empty() && lister.namespace(&namespace).list().is_empty());

    create_namespace(arm.direct(), &namespace).await?;
    create_pod(&arm, &namespace, "first").await?;
    assert_eq!(next(&mut events).await?, ("first".to_owned(), false));
    ensure!(lister.namespace(&namespace).get("first").is_some());
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(an_unreachable_server_is_told_and_waited_for, |arm| async {
    let namespace = arm.namespace("unreachable").await?;
    create_pod(&arm, &namespace, "one").await?;
    let client = arm.client().await?;
    arm.begin_outage().await;
    let factory = factory(client, &namespace);
    let pods = factory.informer::<Pod>()?;
    factory.start();
    let hint = "is the API server running, and is its address right (`kubectl config view --minify` shows it)?";
    let error = failure(&pods).await?;
    let what = format!("watch pods.v1 in namespace {namespace}: ");
    says(&error, &[&what, "Connection refused", hint])?;
    let error =
        factory.for_resource("apps", "v1", "deployments").await.err().context("it was found")?;
    ensure!(matches!(error, Error::Discovery { .. }), "{error:?}");
    says(
        &error.to_string(),
        &["cannot discover the server's resources", "Connection refused", hint],
    )?;

    arm.end_outage().await;
    assert_eq!(pods.synced_within(SOON).await?.len(), 1);
    ensure!(factory.for_resource("apps", "v1", "deployments").await.is_ok());
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(a_server_name_that_does_not_resolve_says_so, |arm| async {
    let kubeconfig = changed_kubeconfig(&arm, |config| {
        let server = config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut());
        server.for_each(|cluster| {
            cluster.server = Some("https://no-such-host.invalid:6443".to_owned())
        });
    })?;
    let factory = factory(client_of(&kubeconfig, None).await?, "default");
    let pods = factory.informer::<Pod>()?;
    factory.start();
    let error = failure(&pods).await?;
    let hint = "is its address right (`kubectl config view --minify` shows it)?";
    says(&error, &["watch pods.v1 in namespace default: ", "dns error", hint])?;
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(an_expired_token_says_to_renew_it, |arm| async {
    let kubeconfig = changed_kubeconfig(&arm, |config| {
        use_token(config, "expired-token-of-somebody");
    })?;
    let factory = factory(client_of(&kubeconfig, None).await?, "default");
    let pods = factory.informer::<Pod>()?;
    factory.start();
    let hint = "log in again or renew the token";
    let error = failure(&pods).await?;
    says(&error, &["watch pods.v1 in namespace default: 401 Unauthorized", hint])?;
    ensure!(!error.contains("expired-token"), "a token in an error: {error}");
    let error =
        factory.for_resource("apps", "v1", "deployments").await.err().context("it was found")?;
    says(&error.to_string(), &["cannot discover the server's resources", "401", hint])?;
    ensure!(!error.to_string().contains("expired-token"), "a token in an error: {error}");
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(a_token_that_expires_later_is_told_and_the_store_stays, |arm| async {
    let namespace = arm.namespace("expires").await?;
    create_pod(&arm, &namespace, "one").await?;
    let token = log_in_robot(&arm, &namespace).await?;
    let kubeconfig = changed_kubeconfig(&arm, |config| use_token(config, &token))?;
    let client = client_of(&kubeconfig, None).await?;
    let factory = factory(client.clone(), &namespace);
    let pods = factory.informer::<Pod>()?;
    factory.start();
    let lister = pods.synced_within(SOON).await?;

    log_out_robot(&arm, &namespace).await?;
    // A server may remember for some seconds that it knew the token.
    let refused = async || match Api::<Pod>::namespaced(client.clone(), &namespace).get("one").await
    {
        Err(kube::Error::Api(status)) if status.code == 401 => Ok(()),
        other => anyhow::bail!("{other:?}"),
    };
    eventually_ok("the token is refused", SOON, refused).await?;
    arm.cut_watches().await;
    // First the watch broke, then it is not opened again.
    let refused = |status: Status| async move {
        let told = status.recent_errors.last().map(|error| error.message.clone());
        told.filter(|told| told.contains(": 401 ")).map(|told| (status.state, told))
    };
    let mut refusals = std::pin::pin!(pods.status_changes().filter_map(refused));
    let (state, cause) = timeout(SOON, refusals.next()).await?.context("it stopped")?;
    ensure!(matches!(state, InformerState::BackingOff { .. }), "{state}");
    let what = format!("watch pods.v1 in namespace {namespace}: 401 Unauthorized; ");
    says(&cause, &[&what, "log in again or renew the token"])?;
    ensure!(!cause.contains(&token), "a token in an error: {cause}");
    ensure!(
        lister.namespace(&namespace).get("one").is_some() && pods.has_synced(),
        "the store was emptied"
    );
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(a_malformed_kubeconfig_is_named_and_not_quoted, |arm| async {
    let good = std::fs::read_to_string(arm.kubeconfig())?;
    let tokens = tokens_of(&good)?;
    ensure!(
        tokens.len() == 3 && tokens.iter().all(|token| good.contains(token)),
        "tokens to look for"
    );
    let path = arm.folder().join("malformed-kubeconfig");
    let connection = ConnectionArgs { kubeconfig: Some(path.clone()), ..ConnectionArgs::default() };
    // Cut anywhere, in the middle of a token too.
    let cuts = (1..10).map(|tenth| good.len() * tenth / 10);
    let in_token = good.find(&tokens[1]).context("it is there")? + tokens[1].len() / 2;
    for cut in cuts.chain([in_token]) {
        std::fs::write(&path, &good[..cut])?;
        let error = connection.config(&Environment::default()).await.err().context("it is cut")?;
        let shown = format!("{error} {error:?}");
        let what_to_do = "compare it with `kubectl config view`";
        says(&shown, &[&path.display().to_string(), "is malformed: ", " at line ", what_to_do])?;
        ensure!(tokens.iter().all(|token| !shown.contains(&token[..token.len() / 2])), "{shown}");
    }
    std::fs::write(&path, good)?;
    connection.config(&Environment::default()).await?;
    Ok(())
});

// Without that: what the client library says by itself.
on_both_arms!(a_malformed_kubeconfig_ends_an_example_with_its_cause, |arm| async {
    let good = std::fs::read_to_string(arm.kubeconfig())?;
    let path = arm.folder().join("malformed-kubeconfig");
    let unknown_context = "apiVersion: v1\nkind: Config\ncurrent-context: nobody-has-this\n";
    for (text, cause) in [
        (&good[..good.len() / 2], "failed to parse kubeconfig YAML: error: line "),
        ("current-context: [", "failed to parse kubeconfig YAML: error: line 1 column 18"),
        (unknown_context, "failed to load current context: nobody-has-this"),
        ("", "failed to determine current context"),
    ] {
        std::fs::write(&path, text)?;
        let ended = Example::run("pod_printer", &path, &["0"]).await?.end().await?;
        ensure!(!ended.status.success(), "{ended:?}");
        says(&ended.lines.join("\n"), &["Error: ", "kubeconfig: ", cause])?;
    }
    let missing = arm.folder().join("missing-kubeconfig");
    let ended = Example::run("pod_printer", &missing, &["0"]).await?.end().await?;
    ensure!(!ended.status.success(), "{ended:?}");
    says(
        &ended.lines.join("\n"),
        &["failed to read kubeconfig from", "missing-kubeconfig", "No such file"],
    )
});

on_both_arms!(the_same_collection_with_other_options_is_an_error, |arm| async {
    let factory = factory(arm.client().await?, "default");
    let pods = factory.informer::<Pod>()?;
    let again = factory.informer_with(InformerOptions::<Pod>::new().resync(SOON));
    let expected = "the informer of pods.v1 in namespace default exists already, with another resync: ask with equal options, choose another scope, or use a factory of its own";
    assert_eq!(error_text(again), expected);
    factory.shutdown().await;
    let error = error_text(pods.synced().await);
    says(&error, &["pods.v1 in namespace default has stopped", "ask the factory for it again"])?;
    assert_eq!(error_text(factory.informer::<Pod>()), "the factory was shut down; build a new one");
    Ok(())
});

/// A kind whose definition nobody installs.
#[derive(CustomResource, Serialize, Deserialize, Debug, Clone)]
#[kube(
    group = "trap.example.com",
    version = "v1",
    kind = "Gadget",
    namespaced,
    schema = "disabled"
)]
struct GadgetSpec {}

fn factory(client: Client, namespace: &str) -> SharedInformerFactory {
    SharedInformerFactory::builder(client).namespace(namespace).build()
}

async fn create_pod(arm: &Arm, namespace: &str, name: &str) -> anyhow::Result<()> {
    let pods = Api::<Pod>::namespaced(arm.direct().clone(), namespace);
    pods.create(&PostParams::default(), &pod(namespace, name, &[])).await?;
    Ok(())
}

fn name_of(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// The next event, which adds a Pod: its name, and whether it was there already.
async fn next(events: &mut informer::EventStream<Pod>) -> anyhow::Result<(String, bool)> {
    match timeout(SOON, events.next()).await?.context("the stream ended")? {
        Event::Added { object, initial, .. } => Ok((name_of(&object), initial)),
        other => anyhow::bail!("no add: {other:?}"),
    }
}

/// Waits until the informer has failed for the first time, and says what someone is told whose
/// deadline passes then.
async fn failure<T: Send + Sync + 'static>(informer: &SharedInformer<T>) -> anyhow::Result<String> {
    let failed = informer.status_changes().any(|status| async move {
        let waits = matches!(
            status.state,
            InformerState::BackingOff { .. } | InformerState::Unavailable { .. }
        );
        waits && !status.recent_errors.is_empty()
    });
    ensure!(
        timeout(SOON, failed).await.with_context(|| informer.status().to_string())?,
        "it stopped"
    );
    Ok(error_text(informer.synced_within(Duration::ZERO).await))
}

fn error_text<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn says(text: &str, parts: &[&str]) -> anyhow::Result<()> {
    for part in parts {
        ensure!(text.contains(part), "{part:?} is missing in: {text}");
    }
    Ok(())
}

/// Lets `nobody` read Pods in this namespace.
async fn grant(arm: &Arm, namespace: &str) -> anyhow::Result<()> {
    if let Some(server) = arm.test_server() {
        // The test server does not read roles.
        server.auth().allow("nobody");
        return Ok(());
    }
    allow(arm, namespace, json!({ "apiGroup": RBAC, "kind": "User", "name": "nobody" })).await
}

/// Lets a subject list and watch Pods in this namespace.
async fn allow(arm: &Arm, namespace: &str, subject: Value) -> anyhow::Result<()> {
    let role = json!({
        "metadata": { "name": "reader" },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"] }],
    });
    let binding = json!({
        "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": "reader" },
        "subjects": [subject],
    });
    create::<Role>(arm, namespace, role).await?;
    create::<RoleBinding>(arm, namespace, binding).await
}

async fn create<K>(arm: &Arm, namespace: &str, object: Value) -> anyhow::Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object)?;
    Api::<K>::namespaced(arm.direct().clone(), namespace)
        .create(&PostParams::default(), &object)
        .await?;
    Ok(())
}

/// Makes a user `robot` that may read Pods in this namespace, and returns its token.
async fn log_in_robot(arm: &Arm, namespace: &str) -> anyhow::Result<String> {
    if let Some(server) = arm.test_server() {
        server.auth().add_token("token-of-robot", "robot");
        return Ok("token-of-robot".to_owned());
    }
    create::<ServiceAccount>(arm, namespace, json!({ "metadata": { "name": "robot" } })).await?;
    allow(
        arm,
        namespace,
        json!({ "kind": "ServiceAccount", "name": "robot", "namespace": namespace }),
    )
    .await?;
    let accounts = Api::<ServiceAccount>::namespaced(arm.direct().clone(), namespace);
    let (params, request) = (PostParams::default(), TokenRequest::default());
    let granted = accounts.create_token_request("robot", &params, &request).await?;
    granted.status.and_then(|status| status.token).context("an answer without a token")
}

/// From now on the token of `robot` is worth nothing.
async fn log_out_robot(arm: &Arm, namespace: &str) -> anyhow::Result<()> {
    match arm.test_server() {
        Some(server) => server.auth().revoke_token("token-of-robot"),
        None => {
            let accounts = Api::<ServiceAccount>::namespaced(arm.direct().clone(), namespace);
            accounts.delete("robot", &DeleteParams::default()).await?;
        }
    }
    Ok(())
}

fn tokens_of(kubeconfig: &str) -> anyhow::Result<Vec<String>> {
    let kubeconfig = serde_json::to_value(Kubeconfig::from_yaml(kubeconfig)?)?;
    let users = kubeconfig["users"].as_array().context("users")?;
    // One has a certificate.
    let tokens = users.iter().filter_map(|user| user["user"]["token"].as_str());
    Ok(tokens.map(str::to_owned).collect())
}

fn use_token(config: &mut Kubeconfig, token: &str) {
    for user in config.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        user.token = Some(token.to_owned().into());
    }
}

/// The arm's kubeconfig with a change, in the arm's folder.
fn changed_kubeconfig(arm: &Arm, change: impl FnOnce(&mut Kubeconfig)) -> anyhow::Result<PathBuf> {
    let mut kubeconfig = Kubeconfig::read_from(arm.kubeconfig())?;
    change(&mut kubeconfig);
    let path = arm.folder().join("changed-kubeconfig");
    std::fs::write(&path, serde_json::to_string(&kubeconfig)?)?;
    Ok(path)
}
