//! Field selectors: the lister finds what the server finds, and refuses in its words what it
//! refuses (G12).

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use informer::discovery::Discovery;
use informer::selector::SelectableFields;
use informer::{
    FieldSelector, HasFields, HasLabels, InformerOptions, LabelSelector, Lazy, Lister, Resource,
    Scope, SharedInformer, SharedInformerFactory,
};
use informer_tests::harness::Arm;
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::on_both_arms;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{Api, Client};
use serde_json::{Value, json};

/// The label that all objects of this test have, on a cluster that others use too.
const MINE: &str = "mine";

on_both_arms!(g12_selected_by_each_field_the_lister_finds_what_the_server_finds, |arm| async {
    let namespace = arm.namespace("fields").await?;
    let gadgets = install_gadgets(arm.direct()).await?;
    let resources = create_objects(&arm, &namespace).await?;
    let factory = SharedInformerFactory::builder(arm.client().await?).build();
    factory.start();
    for resource in resources {
        let table = if resource.group == "fields.example.com" {
            gadgets.clone()
        } else {
            resource.selectable_fields()
        };
        let labels: LabelSelector = mine(&namespace).parse()?;
        let options = InformerOptions::new().labels(&labels)?;
        let lazy = factory.informer_as::<Lazy<DynamicObject>>(resource.clone(), options)?;
        let options = InformerOptions::new().labels(labels)?;
        let dynamic = factory.informer_as::<DynamicObject>(resource.clone(), options)?;
        let objects = caught_up(&lazy, arm.direct(), &namespace).await?;
        ensure!(objects >= 2, "{resource}: two objects or more differ in something");
        caught_up(&dynamic, arm.direct(), &namespace).await?;
        // A scan first, then through indexes: the same.
        for _ in 0..2 {
            agrees(arm.direct(), &lazy.synced().await?, &resource, &table, &namespace).await?;
            agrees(arm.direct(), &dynamic.synced().await?, &resource, &table, &namespace).await?;
            for label in table.labels() {
                lazy.add_field_index(label).await?;
                dynamic.add_field_index(label).await?;
            }
        }
    }
    factory.shutdown().await;
    Ok(())
});

on_both_arms!(g12_what_the_server_does_not_select_by_is_refused_in_its_words, |arm| async {
    let gadgets = install_gadgets(arm.direct()).await?;
    let discovery = Discovery::fetch(&arm.client().await?).await?;
    let watchable = discovery.resources().iter().filter(|info| info.can_be_watched());
    let resources: Vec<&Resource> = watchable.map(|info| &info.resource).collect();
    ensure!(resources.len() >= 60, "{resources:?}");
    let probes = [
        "spec.no.such",
        "metadata.name",
        "metadata.namespace",
        "status.replicas",
        "source",
        "name",
    ];
    let checks = resources.into_iter().flat_map(|resource| {
        let table = match &*resource.group {
            "fields.example.com" => gadgets.clone(),
            _ => resource.selectable_fields(),
        };
        let own: Vec<String> = table.labels().map(str::to_owned).collect();
        let labels = own.into_iter().chain(probes.map(str::to_owned)).collect::<BTreeSet<_>>();
        labels.into_iter().map(move |label| (resource, table.clone(), label))
    });
    let checked = stream::iter(checks).map(async |(resource, table, label)| {
        let selector = FieldSelector::default().with_equal(&label, "none")?;
        let expected = table.check(&selector).err().map(|error| error.to_string());
        let api = Api::<PartialObjectMeta<DynamicObject>>::all_with(
            arm.direct().clone(),
            &kind(resource),
        );
        let said = match api.list(&ListParams::default().fields(&selector.to_string())).await {
            Ok(_) => None,
            Err(kube::Error::Api(status)) if status.code == 400 => Some(status.message.clone()),
            Err(error) => return Err(error).with_context(|| format!("{resource}: {label}")),
        };
        ensure!(said == expected, "{label} of {resource}: {said:?} instead of {expected:?}");
        Ok(())
    });
    checked.buffer_unordered(8).try_collect::<()>().await
});

fn mine(namespace: &str) -> String {
    format!("{MINE}={namespace}")
}

fn kind(resource: &Resource) -> ApiResource {
    ApiResource {
        group: resource.group.clone(),
        version: resource.version.clone(),
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
    }
}

/// Waits until the informer holds what the server has, and returns how many objects that are.
async fn caught_up<T: Send + Sync + 'static>(
    informer: &SharedInformer<T>,
    direct: &Client,
    namespace: &str,
) -> anyhow::Result<usize> {
    let lister = informer.synced().await?;
    let path = format!("{}?labelSelector={MINE}%3D{namespace}", informer.resource().path(None));
    let same = async || -> anyhow::Result<usize> {
        let listed = raw_list(direct, &path).await?;
        let snapshot = lister.snapshot();
        for entry in snapshot.iter() {
            let listed = listed.get(&entry.key.to_string()).context("deleted")?;
            ensure!(listed.1 == entry.record.version.to_string(), "{} changed", entry.key);
        }
        ensure!(listed.len() == snapshot.len(), "{} instead of {}", snapshot.len(), listed.len());
        Ok(listed.len())
    };
    eventually_ok("the informer has what the server has", Duration::from_secs(30), same).await
}

/// Compares the lister's answers with the server's, for each field and each value that it has, and
/// one that it has not.
async fn agrees<T: HasLabels + HasFields>(
    direct: &Client,
    lister: &Lister<T>,
    resource: &Resource,
    table: &SelectableFields,
    namespace: &str,
) -> anyhow::Result<()> {
    let api = Api::<PartialObjectMeta<DynamicObject>>::all_with(direct.clone(), &kind(resource));
    for label in table.labels() {
        let mut values: BTreeSet<String> =
            ["", "none", "false", "true", "0"].map(str::to_owned).into();
        for entry in lister.snapshot().iter() {
            let path = |path: &str| path.parse().ok().and_then(|path| entry.object().field(&path));
            values.insert(table.value(label, path).into_owned());
        }
        for value in values {
            for operator in ["=", "!="] {
                let selector: FieldSelector = format!("{label}{operator}{value}").parse()?;
                let parameters =
                    ListParams::default().labels(&mine(namespace)).fields(&selector.to_string());
                let listed = api.list(&parameters).await?;
                let expected: Vec<String> = listed
                    .items
                    .iter()
                    .map(|it| {
                        let name = it.metadata.name.as_deref().unwrap_or_default();
                        match &it.metadata.namespace {
                            Some(namespace) => format!("{namespace}/{name}"),
                            None => name.to_owned(),
                        }
                    })
                    .collect();
                let selection = lister.select_with(Scope::from(selector.clone()));
                let found: Vec<String> =
                    selection.entries().map(|entry| entry.key.to_string()).collect();
                ensure!(
                    found == expected,
                    "{resource} by {selector}: {found:?} instead of {expected:?}"
                );
            }
        }
    }
    Ok(())
}

/// Installs a custom resource that declares selectable fields, and returns these.
async fn install_gadgets(client: &Client) -> anyhow::Result<SelectableFields> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.fields.example.com" },
        "spec": {
            "group": "fields.example.com", "scope": "Namespaced",
            "names": { "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "selectableFields": [{ "jsonPath": ".spec.colour" }, { "jsonPath": ".spec.size" },
                    { "jsonPath": ".spec.on" }],
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                    "type": "object",
                    "properties": { "colour": { "type": "string" }, "size": { "type": "integer", "format": "int64" },
                        "on": { "type": "boolean" } },
                } } } },
            }],
        },
    });
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    match definitions
        .create(&PostParams::default(), &serde_json::from_value(definition.clone())?)
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        created => _ = created?,
    }
    let list = async || raw_list(client, "/apis/fields.example.com/v1/gadgets").await.map(drop);
    eventually_ok("gadgets are served", Duration::from_secs(30), list).await?;
    Ok(SelectableFields::of_definition(&definition, "v1"))
}

/// Creates objects that differ in the fields that servers select by, and returns their resources.
async fn create_objects(arm: &Arm, namespace: &str) -> anyhow::Result<Vec<Resource>> {
    let pod = |spec: Value| {
        let mut spec = spec;
        spec["containers"] = json!([{ "name": "c", "image": "i" }]);
        json!({ "spec": spec })
    };
    let job = |completions| {
        json!({ "spec": { "completions": completions, "suspend": true, "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } } } })
    };
    let template = json!({ "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let controller =
        json!({ "spec": { "replicas": 0, "selector": { "app": "web" }, "template": template } });
    let event = |reason: &str, source: Value| {
        json!({ "involvedObject": { "kind": "Pod", "namespace": namespace, "name": reason, "uid": "1",
            "apiVersion": "v1", "fieldPath": "spec" }, "reason": reason, "type": "Normal", "source": source })
    };
    let new_event = |reason: &str| {
        json!({ "eventTime": "2026-01-02T03:04:05.678901Z", "reportingController": "example.com/tests",
            "reportingInstance": "one", "action": "Testing", "reason": reason, "type": "Warning",
            "regarding": { "kind": "Pod", "namespace": namespace, "name": "a" } })
    };
    let slice = |driver: &str, node: Value| {
        let mut spec = json!({ "driver": driver, "devices": [],
            "pool": { "name": driver, "generation": 1, "resourceSliceCount": 1 } });
        spec.as_object_mut()
            .expect("an object")
            .extend(node.as_object().cloned().unwrap_or_default());
        json!({ "spec": spec })
    };
    let none = Value::Null;
    let table = [
        (
            "",
            "v1",
            "pods",
            "Pod",
            true,
            vec![
                (
                    pod(json!({ "nodeName": "n1" })),
                    json!({ "phase": "Running", "podIP": "10.1.0.1",
                "podIPs": [{ "ip": "10.1.0.1" }] }),
                ),
                (pod(json!({ "hostNetwork": true, "restartPolicy": "Never" })), none.clone()),
                (
                    pod(json!({ "hostNetwork": false, "schedulerName": "own" })),
                    json!({ "phase": "Failed", "nominatedNodeName": "n2" }),
                ),
            ],
        ),
        (
            "",
            "v1",
            "nodes",
            "Node",
            false,
            vec![
                (json!({ "spec": { "unschedulable": true } }), none.clone()),
                (json!({ "spec": {} }), none.clone()),
            ],
        ),
        (
            "",
            "v1",
            "events",
            "Event",
            true,
            vec![
                (event("Started", json!({ "component": "kubelet" })), none.clone()),
                (event("Other", json!({})), none.clone()),
            ],
        ),
        (
            "events.k8s.io",
            "v1",
            "events",
            "Event",
            true,
            vec![(new_event("Tested"), none.clone()), (new_event("Else"), none.clone())],
        ),
        (
            "",
            "v1",
            "secrets",
            "Secret",
            true,
            vec![(json!({ "type": "example.com/own" }), none.clone()), (json!({}), none.clone())],
        ),
        (
            "",
            "v1",
            "services",
            "Service",
            true,
            vec![
                (json!({ "spec": { "ports": [{ "port": 80 }] } }), none.clone()),
                (json!({ "spec": { "type": "ClusterIP", "clusterIP": "None" } }), none.clone()),
            ],
        ),
        (
            "",
            "v1",
            "namespaces",
            "Namespace",
            false,
            vec![(json!({}), none.clone()), (json!({}), none.clone())],
        ),
        (
            "",
            "v1",
            "configmaps",
            "ConfigMap",
            true,
            vec![(json!({}), none.clone()), (json!({}), none.clone())],
        ),
        (
            "",
            "v1",
            "replicationcontrollers",
            "ReplicationController",
            true,
            vec![(controller.clone(), json!({ "replicas": 2 })), (controller, none.clone())],
        ),
        (
            "batch",
            "v1",
            "jobs",
            "Job",
            true,
            vec![(job(3), json!({ "succeeded": 1 })), (job(1), none.clone())],
        ),
        (
            "resource.k8s.io",
            "v1",
            "resourceslices",
            "ResourceSlice",
            false,
            vec![
                (slice("a.example.com", json!({ "nodeName": "n1" })), none.clone()),
                (slice("b.example.com", json!({ "allNodes": true })), none.clone()),
            ],
        ),
        (
            "fields.example.com",
            "v1",
            "gadgets",
            "Gadget",
            true,
            vec![
                (
                    json!({ "spec": { "colour": "red", "size": 12345678, "on": true } }),
                    none.clone(),
                ),
                (json!({ "spec": { "on": false } }), none),
            ],
        ),
    ];
    let mut resources = Vec::new();
    for (group, version, plural, kind_name, namespaced, objects) in table {
        let resource = Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind_name.to_owned(),
            namespaced,
        };
        let kind = kind(&resource);
        let api = match namespaced {
            true => Api::<DynamicObject>::namespaced_with(arm.direct().clone(), namespace, &kind),
            false => Api::<DynamicObject>::all_with(arm.direct().clone(), &kind),
        };
        for (at, (mut object, status)) in objects.into_iter().enumerate() {
            // Events of both groups are the same objects on a real server.
            let name =
                format!("{namespace}-{}-{at}", if group.is_empty() { "core" } else { "group" });
            object["apiVersion"] = resource.api_version().into();
            object["kind"] = kind_name.into();
            object["metadata"] = json!({ "name": name, "labels": { MINE: namespace } });
            let created =
                api.create(&PostParams::default(), &serde_json::from_value(object)?).await;
            created.with_context(|| format!("{resource} {name}"))?;
            if !status.is_null() {
                let patch = Patch::Merge(json!({ "status": status }));
                let patched = api.patch_status(&name, &PatchParams::default(), &patch).await;
                patched.with_context(|| format!("the status of {resource} {name}"))?;
            }
        }
        resources.push(resource);
    }
    Ok(resources)
}
