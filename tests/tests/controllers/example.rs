//! The examples `workqueue` and `controller`: what they create, delete, write and leave alone.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use informer_testkit::{Cut, Fault, Status, TestServer, Verb};
use informer_tests::examples::Example;
use informer_tests::fixtures::pod;
use informer_tests::harness::Arm;
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::json;

/// For what takes milliseconds: long enough for a machine with other things to do.
const SOON: Duration = Duration::from_secs(60);

// One after the other, since each reconciles every PodSet of the cluster.
on_both_arms!(workqueue_and_controller, |arm| async {
    has_what_it_asks_for(&arm, "workqueue").await?;
    has_what_it_asks_for(&arm, "controller").await
});

async fn has_what_it_asks_for(arm: &Arm, example: &str) -> anyhow::Result<()> {
    install(arm, example).await?;
    let world = World::new(arm, &arm.namespace(&format!("{example}-sets")).await?);
    world.create_set("web", 2).await?;
    // Before the controller looks: Pods of nobody, and of another set with the same name, that was
    // here before.
    let orphan = world.create_pod("web-orphan", None).await?;
    let mut other = world.reference("web").await?;
    other.uid = "00000000-0000-0000-0000-000000000000".to_owned();
    let foreign = world.create_pod("web-foreign", Some(other)).await?;
    // And one that the set owns among others, but does not control.
    let mut shared = world.reference("web").await?;
    shared.controller = None;
    let shared = world.create_pod("web-shared", Some(shared)).await?;

    let example = Example::run(example, &arm.kubeconfig(), &[]).await?;
    let first = world.has("web", 2, 0).await?;

    // One is deleted, and comes again under another name.
    let gone = first.first().context("a Pod")?;
    world.delete_pod(gone).await?;
    let second = world.has("web", 2, 0).await?;
    ensure!(
        !second.contains(gone) && second.intersection(&first).count() == 1,
        "{first:?}, then {second:?}"
    );

    // One becomes ready, while the status cannot be written at first.
    let conflicts = arm.test_server().map(|server| {
        let conflict = Status::new(409, "Conflict", "the object has been modified");
        let fault =
            Fault::answer(conflict).on(Verb::Update).resource("podsets.samples.example.com");
        server.faults().inject(fault.times(3))
    });
    let ready = second.last().context("a Pod")?;
    world.make_ready(ready).await?;
    world.has("web", 2, 1).await?;
    if let Some(conflicts) = conflicts {
        assert_eq!(conflicts.hits(), 3);
        // A controller is quiet about it.
        if example.name() == "workqueue" {
            let line = example
                .line(|line| line.contains("writing the status") && line.contains("modified"))
                .await?;
            ensure!(line.contains("Conflict (409)") && line.len() < 400, "{line}");
        }
    }

    // More, and then fewer: the one that is ready stays.
    world.scale("web", 4).await?;
    world.has("web", 4, 1).await?;
    world.scale("web", 1).await?;
    let last = world.has("web", 1, 1).await?;
    assert_eq!(last, BTreeSet::from([ready.clone()]));

    // The set goes, and its Pods as the garbage collector would see to it. None comes again: when a
    // set that was created later has its Pod, the controller has seen all that was before.
    world.sets.delete("web", &DeleteParams::default()).await?;
    if example.name() == "workqueue" {
        world.delete_pod(ready).await?;
    } else {
        world.gone("web").await?; // its finalizer has seen to them
    }
    world.create_set("late", 1).await?;
    let late = world.has("late", 1, 0).await?;
    let left =
        raw_list(arm.direct(), &format!("/api/v1/namespaces/{}/pods", world.namespace)).await?;
    let left: BTreeSet<_> =
        left.into_keys().filter_map(|key| Some(key.split_once('/')?.1.to_owned())).collect();
    let mut expected = late.clone();
    expected.extend([orphan, foreign, shared]);
    assert_eq!(left, expected);

    let ended = example.interrupt().await?;
    ensure!(ended.status.success(), "{ended:?}");
    let created = ended.lines.iter().filter(|line| line.ends_with("for PodSet web")).count();
    assert_eq!(created, 2 + 1 + 2, "never one too many: {ended:?}");
    Ok(())
}

// Only the test kit can keep the controller, and nobody else, from its watch.
on_both_arms!(
    g25_a_controller_that_cannot_see_its_writes_ends_and_does_nothing_twice,
    |arm| async {
        let Some(server) = arm.test_server() else { return Ok(()) };
        for (example, gave_up) in
            [("workqueue", "was not reached in time"), ("controller", "own writes are not shown")]
        {
            is_blind_and_does_nothing_twice(&arm, server, example, gave_up).await?;
        }
        Ok(())
    }
);

async fn is_blind_and_does_nothing_twice(
    arm: &Arm,
    server: &TestServer,
    example: &str,
    gave_up: &str,
) -> anyhow::Result<()> {
    install(arm, example).await?;
    let world = World::new(arm, &arm.namespace(&format!("{example}-blind")).await?);
    world.create_set("web", 1).await?;
    let example = Example::run(example, &arm.kubeconfig(), &[]).await?;
    world.has("web", 1, 0).await?;

    let blind = server.faults().inject(Fault::unavailable().on(Verb::Watch).resource("pods"));
    server.faults().cut_watches(Cut::Close, Some("pods"));
    let refused = async || {
        ensure!(blind.hits() > 0);
        Ok(())
    };
    eventually_ok("the watch is refused", SOON, refused).await?;
    world.scale("web", 3).await?;
    // It gives up waiting, and waits again before it looks at a store that is as old.
    let has_given_up = async || {
        let lines = example.lines();
        let count = lines.iter().filter(|line| line.contains(gave_up)).count();
        ensure!(count >= 2, "{lines:?}");
        Ok(())
    };
    eventually_ok("it gives up waiting twice", SOON, has_given_up).await?;
    let ended = example.interrupt().await?;
    ensure!(ended.status.success(), "{ended:?}");
    let created = ended.lines.iter().filter(|line| line.ends_with("for PodSet web")).count();
    assert_eq!(created, 3, "{ended:?}");
    let why = ended.lines.iter().find(|line| line.contains(gave_up)).context("it says so")?;
    ensure!(why.contains("pods.v1") && why.contains("503"), "{why}");
    blind.lift();
    Ok(())
}

/// Installs what the example prints, and waits until it is served.
async fn install(arm: &Arm, example: &str) -> anyhow::Result<()> {
    let ended = Example::run(example, &arm.kubeconfig(), &["crd"]).await?.end().await?;
    let definition: CustomResourceDefinition = serde_json::from_str(&ended.lines.join("\n"))?;
    match Api::all(arm.direct().clone()).create(&PostParams::default(), &definition).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        created => drop(created?),
    }
    let list =
        async || raw_list(arm.direct(), "/apis/samples.example.com/v1/podsets").await.map(drop);
    eventually_ok("PodSets are served", SOON, list).await
}

/// What the test sees, around the controller.
struct World {
    namespace: String,
    sets: Api<DynamicObject>,
    pods: Api<Pod>,
    kind: ApiResource,
}

impl World {
    fn new(arm: &Arm, namespace: &str) -> Self {
        let kind = GroupVersionKind::gvk("samples.example.com", "v1", "PodSet");
        let kind = ApiResource::from_gvk(&kind);
        let client = arm.direct().clone();
        let sets = Api::namespaced_with(client.clone(), namespace, &kind);
        Self {
            namespace: namespace.to_owned(),
            sets,
            pods: Api::namespaced(client, namespace),
            kind,
        }
    }

    async fn create_set(&self, name: &str, replicas: usize) -> anyhow::Result<()> {
        let spec = json!({ "spec": { "replicas": replicas, "image": "example.com/main:1" } });
        let set = DynamicObject::new(name, &self.kind).data(spec);
        self.sets.create(&PostParams::default(), &set).await?;
        Ok(())
    }

    async fn scale(&self, name: &str, replicas: usize) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.sets.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// A reference to a set as its Pods' controller.
    async fn reference(&self, set: &str) -> anyhow::Result<OwnerReference> {
        Ok(OwnerReference {
            api_version: "samples.example.com/v1".to_owned(),
            kind: "PodSet".to_owned(),
            name: set.to_owned(),
            uid: self.sets.get(set).await?.uid().context("a UID")?,
            controller: Some(true),
            block_owner_deletion: None,
        })
    }

    async fn create_pod(
        &self,
        name: &str,
        owner: Option<OwnerReference>,
    ) -> anyhow::Result<String> {
        let mut pod = pod(&self.namespace, name, &[("podset", "web")]);
        pod.metadata.owner_references = owner.map(|owner| vec![owner]);
        Ok(self.pods.create(&PostParams::default(), &pod).await?.name_any())
    }

    async fn delete_pod(&self, name: &str) -> anyhow::Result<()> {
        self.pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }

    async fn gone(&self, set: &str) -> anyhow::Result<()> {
        let look = async || {
            ensure!(self.sets.get_opt(set).await?.is_none());
            Ok(())
        };
        eventually_ok(&format!("PodSet {set} is gone"), SOON, look).await
    }

    async fn make_ready(&self, pod: &str) -> anyhow::Result<()> {
        let conditions = json!([{ "type": "Ready", "status": "True" }]);
        let patch =
            Patch::Merge(json!({ "status": { "phase": "Running", "conditions": conditions } }));
        self.pods.patch_status(pod, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until a set has so many Pods and says so in its status, and returns the Pods' names.
    async fn has(
        &self,
        set: &str,
        replicas: usize,
        ready: usize,
    ) -> anyhow::Result<BTreeSet<String>> {
        let look = async || {
            let object = self.sets.get(set).await?;
            let uid = object.uid().context("a UID")?;
            let owns = |pod: &Pod| {
                pod.owner_references()
                    .iter()
                    .any(|owner| owner.uid == uid && owner.controller == Some(true))
            };
            let pods = self.pods.list(&ListParams::default()).await?;
            let names: BTreeSet<_> =
                pods.iter().filter(|pod| owns(pod)).map(ResourceExt::name_any).collect();
            let status = &object.data["status"];
            let expected = json!({
                "replicas": replicas, "readyReplicas": ready, "observedGeneration": object.metadata.generation,
            });
            ensure!(names.len() == replicas, "it has {names:?}");
            ensure!(*status == expected, "{status}, not {expected}");
            Ok(names)
        };
        eventually_ok(
            &format!("PodSet {set} has {replicas} Pods, {ready} of them ready"),
            SOON,
            look,
        )
        .await
    }
}
