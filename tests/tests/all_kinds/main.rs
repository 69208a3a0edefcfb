//! A typed informer of every kind of k8s-openapi: all compile, and those that a server has sync,
//! with the same objects whether these come as protobuf or as JSON.
//!
//! A test binary of its own, since it is the whole informer a hundred times over.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use http::Request;
use informer::discovery::Discovery;
use informer::source::WireFormat;
use informer::{
    Error, InformerOptions, InformerState, Lazy, Representation, Resource, SharedInformer,
    SharedInformerFactory, Status, StatusStream, TypedResource,
};
use informer_tests::fixtures::install_widgets;
use informer_tests::harness::{Arm, Sharing};
use informer_tests::helpers::{differences, eventually_equal, eventually_ok, raw_list};
use informer_tests::observe::{Identified, Identity};
use informer_tests::on_both_arms;
use informer_tests::wire::in_format;
use kube::Client;
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

/// For a hundred first lists, or refusals, at once.
const SOON: Duration = Duration::from_secs(60);

/// Makes a function that tells all kinds, from their modules in k8s-openapi.
macro_rules! kinds {
    ($name:ident: $($($module:ident)::+ { $($kind:ident)* })*) => {
        fn $name() -> Vec<Kind> {
            let mut kinds = Vec::new();
            $({
                use k8s_openapi::$($module)::+ as module;
                let path = concat!($(stringify!($module), "/"),+);
                kinds.extend([$(Kind::of::<module::$kind>(path, stringify!($kind))),*]);
            })*
            kinds
        }
    };
}

// Those that can be listed; `every_kind_is_here` tells what a new version of k8s-openapi adds.
kinds! { listable:
    api::admissionregistration::v1 {
        MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
        ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration
    }
    api::admissionregistration::v1alpha1 { MutatingAdmissionPolicy MutatingAdmissionPolicyBinding }
    api::admissionregistration::v1beta1 { MutatingAdmissionPolicy MutatingAdmissionPolicyBinding }
    api::apiserverinternal::v1alpha1 { StorageVersion }
    api::apps::v1 { ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet }
    api::autoscaling::v1 { HorizontalPodAutoscaler }
    api::autoscaling::v2 { HorizontalPodAutoscaler }
    api::batch::v1 { CronJob Job }
    api::certificates::v1 { CertificateSigningRequest }
    api::certificates::v1alpha1 { ClusterTrustBundle }
    api::certificates::v1beta1 { ClusterTrustBundle PodCertificateRequest }
    api::coordination::v1 { Lease }
    api::coordination::v1alpha2 { LeaseCandidate }
    api::coordination::v1beta1 { LeaseCandidate }
    api::core::v1 {
        ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
        PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service
        ServiceAccount
    }
    api::discovery::v1 { EndpointSlice }
    api::events::v1 { Event }
    api::flowcontrol::v1 { FlowSchema PriorityLevelConfiguration }
    api::networking::v1 { IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR }
    api::networking::v1beta1 { IPAddress ServiceCIDR }
    api::node::v1 { RuntimeClass }
    api::policy::v1 { PodDisruptionBudget }
    api::rbac::v1 { ClusterRole ClusterRoleBinding Role RoleBinding }
    api::resource::v1 { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice }
    api::resource::v1alpha3 { DeviceTaintRule ResourcePoolStatusRequest }
    api::resource::v1beta1 { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice }
    api::resource::v1beta2 { DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice }
    api::scheduling::v1 { PriorityClass }
    api::scheduling::v1alpha2 { PodGroup Workload }
    api::storage::v1 {
        CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass
    }
    api::storage::v1beta1 { VolumeAttributesClass }
    api::storagemigration::v1beta1 { StorageVersionMigration }
    apiextensions_apiserver::pkg::apis::apiextensions::v1 { CustomResourceDefinition }
    kube_aggregator::pkg::apis::apiregistration::v1 { APIService }
}

// Those that can only be created, or are a part of others. An informer of one compiles as well, and
// says that the server does not let it list.
kinds! { unlistable:
    api::authentication::v1 { SelfSubjectReview TokenRequest TokenReview }
    api::authorization::v1 {
        LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
    }
    api::autoscaling::v1 { Scale }
    api::core::v1 { Binding }
    api::policy::v1 { Eviction }
}

/// The one kind that has no metadata of objects, but those of lists: no informer can hold it.
const NO_OBJECT: &str = "apimachinery/pkg/apis/meta/v1/Status";

/// Can be listed, but not watched: computed for each request, its lists have no version.
const LISTED_ONLY: &str = "componentstatuses.v1";

/// Kinds of which a real server has no object here: such are only made by components that do not
/// run, or need them.
const UNCREATED: [&str; 0] = [];

on_both_arms!(an_informer_of_every_kind_syncs_where_the_server_has_it, |arm| async {
    let client = arm.client().await?;
    let (watched, others) = kinds_of(&arm).await?;
    let factory = SharedInformerFactory::builder(client).build();
    let watched = informers(&watched, &factory)?;
    let others = informers(&others, &factory)?;
    factory.start();
    for synced in join_all(watched.iter().map(|informer| informer.synced_within(SOON))).await {
        synced?;
    }
    for informer in &watched {
        let status = informer.status();
        ensure!(status.recent_errors.is_empty() && status.stale.is_empty(), "{status:?}");
        let path = informer.resource().path(None);
        let what = format!("{} is complete", informer.resource());
        eventually_equal(
            &what,
            SOON,
            || informer.content(),
            async || raw_list(arm.direct(), &path).await,
        )
        .await;
    }
    for informer in &others {
        says_why_it_cannot(informer.as_ref()).await?;
    }
    factory.shutdown().await;
    Ok(())
});

// The real arm only: the test kit keeps JSON as it was written, without what a server completes.
// That its protobuf is a server's: `protobuf_parity.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_decodes_from_protobuf_as_from_json() -> anyhow::Result<()> {
    let Some(arm) = Arm::real(Sharing::Shared).await? else { return Ok(()) };
    let (watched, _) = kinds_of(&arm).await?;
    let (client, recorder) = arm.recorded_client().await?;
    let factories = [WireFormat::Protobuf, WireFormat::Json]
        .map(|format| in_format(SharedInformerFactory::builder(client.clone()), format).build());
    let [protobuf, json] = &factories;
    let pairs: Vec<_> =
        informers(&watched, protobuf)?.into_iter().zip(informers(&watched, json)?).collect();
    let bytes = untyped::<Lazy<Value>>(&watched, &factories)?;
    let dynamic = untyped::<DynamicObject>(&watched, &factories)?;
    for factory in &factories {
        factory.start();
        factory.wait_for_sync_within(SOON).await?;
    }
    let mut empty = BTreeSet::new();
    for (protobuf, json) in &pairs {
        let what = format!("{} is the same in both", protobuf.resource());
        // Some objects, such as the server's own Leases, never rest for long.
        let same = async || protobuf.equals(json.as_ref());
        if eventually_ok(&what, SOON, same).await? == 0 {
            empty.insert(protobuf.resource().to_string());
        }
    }
    for [protobuf, json] in &bytes {
        let what = format!("{} is written as the JSON that the server sends", protobuf.resource());
        eventually_ok(&what, SOON, async || same_json(protobuf, json)).await?;
    }
    for [protobuf, json] in &dynamic {
        let what = format!("{} is the same dynamic object from both", protobuf.resource());
        eventually_ok(&what, SOON, async || same_json(protobuf, json)).await?;
    }
    assert_eq!(empty, BTreeSet::from(UNCREATED.map(str::to_owned)), "kinds without an object");
    // Each came in its own format.
    let of_protobuf =
        recorder.all().into_iter().filter(|sent| sent.status == Some(200) && sent.is_watch());
    let (of_protobuf, of_json): (Vec<_>, Vec<_>) = of_protobuf
        .map(|sent| sent.content_type.unwrap_or_default())
        .partition(|content_type| content_type.starts_with("application/vnd.kubernetes.protobuf"));
    ensure!(
        of_protobuf.len() >= pairs.len() && of_json.len() >= pairs.len(),
        "{of_protobuf:?} {of_json:?}"
    );
    for factory in &factories {
        factory.shutdown().await;
    }
    Ok(())
}

/// Informers of all these kinds in one and the same form, from each factory.
fn untyped<T: Send + Sync + 'static>(
    kinds: &[Kind],
    factories: &[SharedInformerFactory; 2],
) -> Result<Vec<[SharedInformer<T>; 2]>, Error>
where
    Representation<T>: Default,
{
    let informer = |factory: &SharedInformerFactory, resource: &Resource| {
        factory.informer_as::<T>(resource.clone(), InformerOptions::new().keep_managed_fields())
    };
    let [left, right] = factories;
    kinds
        .iter()
        .map(|kind| Ok([informer(left, &kind.resource)?, informer(right, &kind.resource)?]))
        .collect()
}

/// Whether both hold the same objects, as JSON.
fn same_json<T: Identified + Serialize>(
    left: &SharedInformer<T>,
    right: &SharedInformer<T>,
) -> anyhow::Result<()> {
    let read = |object: &Arc<T>| {
        let mut value = serde_json::to_value(&**object)?;
        // Protobuf does not say of what kind an object within an object is.
        let claims = value.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
        for claim in claims.into_iter().flatten().filter_map(Value::as_object_mut) {
            claim.retain(|key, _| key != "kind" && key != "apiVersion");
        }
        let Identity { namespace, name, .. } = object.identity();
        anyhow::Ok((format!("{namespace}/{name}"), value))
    };
    let [left, right] = [left, right].map(|informer| {
        informer
            .unsynced_store()
            .list()
            .iter()
            .map(read)
            .collect::<anyhow::Result<BTreeMap<_, _>>>()
    });
    let (left, right) = (left?, right?);
    ensure!(left == right, "{}", differences(&left, &right));
    Ok(())
}

/// The kinds that the server lets one watch, and those that it does not, with objects of the
/// former.
async fn kinds_of(arm: &Arm) -> anyhow::Result<(Vec<Kind>, Vec<Kind>)> {
    let client = arm.client().await?;
    let discovery = Discovery::fetch(&client).await?;
    let served =
        |resource: &Resource| discovery.find(&resource.group, &resource.version, &resource.plural);
    let is_watched = |kind: &Kind| served(&kind.resource).is_some_and(|info| info.can_be_watched());
    let (watched, others): (Vec<_>, Vec<_>) =
        listable().into_iter().chain(unlistable()).partition(is_watched);

    for Kind { resource, .. } in &watched {
        let told = served(resource).map(|info| &info.resource);
        assert_eq!(told, Some(resource), "what the server says of it, and the type");
        // The real server has objects of its own. A definition needs more than a name.
        if let Some(server) = arm.test_server()
            && resource.kind != "CustomResourceDefinition"
        {
            create(server.cluster(), resource)?;
        }
    }
    create_objects(arm.direct(), &watched).await?;
    install_widgets(arm.direct()).await?;
    let told = discovery.resources().iter().filter(|info| info.can_be_watched());
    let told = told
        .filter(|info| info.resource.group != "example.com")
        .map(|info| info.resource.to_string());
    let known: BTreeSet<_> = watched.iter().map(|kind| kind.resource.to_string()).collect();
    assert_eq!(
        told.collect::<BTreeSet<_>>(),
        known,
        "the server's resources, and those that k8s-openapi has"
    );
    Ok((watched, others))
}

fn informers(
    kinds: &[Kind],
    factory: &SharedInformerFactory,
) -> Result<Vec<Box<dyn AnyInformer>>, Error> {
    kinds.iter().map(|kind| (kind.informer)(factory)).collect()
}

#[test]
fn every_kind_is_here() -> anyhow::Result<()> {
    let here: BTreeSet<_> =
        listable().into_iter().chain(unlistable()).map(|kind| kind.path).collect();
    let mut there = BTreeSet::new();
    kinds_under(&k8s_openapi_source()?, Path::new(""), &mut there)?;
    assert!(there.remove(NO_OBJECT), "no {NO_OBJECT} in {there:?}");
    let (missing, gone): (Vec<_>, Vec<_>) =
        (there.difference(&here).collect(), here.difference(&there).collect());
    ensure!(
        missing.is_empty() && gone.is_empty(),
        "to be added: {missing:?}; to be removed: {gone:?}"
    );
    Ok(())
}

/// One kind of k8s-openapi.
struct Kind {
    /// Where it is in k8s-openapi, such as `api/core/v1/Pod`.
    path: String,
    resource: Resource,
    informer: fn(&SharedInformerFactory) -> Result<Box<dyn AnyInformer>, Error>,
}

impl Kind {
    fn of<K: TypedResource + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static>(
        module: &str,
        name: &str,
    ) -> Self {
        Self {
            path: format!("{module}{name}"),
            resource: Resource::of::<K>(),
            informer: |factory| {
                let options = InformerOptions::<K>::new().keep_managed_fields();
                Ok(Box::new(factory.informer_with(options)?))
            },
        }
    }
}

/// An informer of whatever kind.
trait AnyInformer: Send + Sync {
    fn resource(&self) -> &Resource;
    fn synced_within(&self, deadline: Duration) -> BoxFuture<'_, Result<(), Error>>;
    fn content(&self) -> BTreeMap<String, (String, String)>;
    fn status(&self) -> Status;
    fn status_changes(&self) -> StatusStream;
    /// How many objects both have, which are all equal.
    fn equals(&self, other: &dyn AnyInformer) -> anyhow::Result<usize>;
    fn as_any(&self) -> &dyn Any;
}

impl<T: PartialEq + Send + Sync + 'static> AnyInformer for SharedInformer<T> {
    fn resource(&self) -> &Resource {
        Self::resource(self)
    }

    fn synced_within(&self, deadline: Duration) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { Self::synced_within(self, deadline).await.map(drop) })
    }

    fn content(&self) -> BTreeMap<String, (String, String)> {
        let snapshot = self.unsynced_store().snapshot();
        let entry = |entry: informer::store::Entry<'_, T>| {
            let record = entry.record;
            (entry.key.to_string(), (record.uid.to_string(), record.version.to_string()))
        };
        snapshot.iter().map(entry).collect()
    }

    fn status(&self) -> Status {
        Self::status(self)
    }

    fn status_changes(&self) -> StatusStream {
        Self::status_changes(self)
    }

    fn equals(&self, other: &dyn AnyInformer) -> anyhow::Result<usize> {
        let other: &Self = other.as_any().downcast_ref().context("informers of the same kind")?;
        let (ours, theirs) = (self.unsynced_store().snapshot(), other.unsynced_store().snapshot());
        let (content, others) = (self.content(), other.content());
        ensure!(content == others, "{}", differences(&content, &others));
        for (ours, theirs) in ours.iter().zip(theirs.iter()) {
            let same = (ours.key, &ours.record.version) == (theirs.key, &theirs.record.version);
            ensure!(same && ours.object() == theirs.object(), "{} differs", ours.key);
        }
        Ok(ours.len())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A kind that the server does not have, or does not let one watch: the status says which and why.
async fn says_why_it_cannot(informer: &dyn AnyInformer) -> anyhow::Result<()> {
    let waits = informer.status_changes().any(|status| async move {
        matches!(status.state, InformerState::Unavailable { .. } | InformerState::BackingOff { .. })
    });
    ensure!(
        timeout(SOON, waits).await.with_context(|| informer.status().to_string())?,
        "it stopped"
    );
    let Some(Error::NotSynced(error)) = informer.synced_within(Duration::ZERO).await.err() else {
        panic!("{} synced", informer.status());
    };
    let (error, name) = (error.to_string(), informer.resource().to_string());
    let causes = [": 404 ", ": 405 ", "the list has no resourceVersion, so no watch can follow it"];
    let causes = &causes[..if name == LISTED_ONLY { 3 } else { 2 }];
    ensure!(error.contains(&name) && causes.iter().any(|cause| error.contains(cause)), "{error}");
    Ok(())
}

/// Creates the objects of `objects.json`, unless they are there.
async fn create_objects(client: &Client, kinds: &[Kind]) -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all_kinds/objects.json");
    let objects: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let mut refused = Vec::new();
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let is_of =
            |resource: &Resource| resource.api_version() == api_version && resource.kind == kind;
        let resource = kinds.iter().map(|kind| &kind.resource).find(|resource| is_of(resource));
        // The real server serves no alphas, and not all betas.
        let Some(resource) = resource else { continue };
        let path = resource.path(object["metadata"]["namespace"].as_str());
        let request = Request::post(&path).body(serde_json::to_vec(&object)?)?;
        match client.request::<Value>(request).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => refused.push(format!("{kind}: {error}")),
        }
    }
    ensure!(refused.is_empty(), "{refused:#?}");
    Ok(())
}

/// Creates an object with nothing but a name: a list of none would decode nothing.
fn create(cluster: &informer_testkit::Cluster, resource: &Resource) -> anyhow::Result<()> {
    let namespace = resource.namespaced.then_some("default");
    let metadata = json!({ "name": "one.example.com", "namespace": namespace });
    let object = json!({ "apiVersion": resource.api_version(), "kind": resource.kind, "metadata": metadata });
    cluster.apply(&object).map_err(|status| anyhow::anyhow!("{resource}: {status:?}"))?;
    Ok(())
}

/// The sources of the version of Kubernetes that these tests are built with.
fn k8s_openapi_source() -> anyhow::Result<PathBuf> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        manifest_path: PathBuf,
    }
    // Not `--offline`: where only some packages were built, cargo still has to fetch the crates of
    // the others.
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", env!("TARGET")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let package = metadata.packages.into_iter().find(|package| package.name == "k8s-openapi");
    let manifest = package.context("k8s-openapi is a dependency")?.manifest_path;
    Ok(manifest.with_file_name("src").join("v1_36"))
}

/// Adds the kinds defined in the files under `folder`, whose path in the crate is `module`.
fn kinds_under(folder: &Path, module: &Path, kinds: &mut BTreeSet<String>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            kinds_under(&path, &module.join(path.file_name().context("a name")?), kinds)?;
            continue;
        }
        let source = std::fs::read_to_string(&path)?;
        let defined =
            source.lines().filter_map(|line| line.strip_prefix("impl crate::Metadata for "));
        kinds.extend(defined.filter_map(|rest| {
            let name = rest.split([' ', '<']).next()?;
            Some(module.join(name).to_string_lossy().into_owned())
        }));
    }
    Ok(())
}
