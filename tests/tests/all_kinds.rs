//! A typed informer of every kind of k8s-openapi: all compile, and those that a server has sync.
//!
//! A test binary of its own, since it is the whole informer a hundred times over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use informer::discovery::Discovery;
use informer::{Decode, Error, InformerState, Resource, SharedInformer, SharedInformerFactory, Status};
use informer::{StatusStream, TypedResource};
use informer_tests::fixtures::install_widgets;
use informer_tests::helpers::{eventually_equal, raw_list};
use informer_tests::on_both_arms;
use serde::Deserialize;
use serde_json::json;
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

// Those that can only be created, or are a part of others. An informer of one compiles as well, and says
// that the server does not let it list.
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

on_both_arms!(an_informer_of_every_kind_syncs_where_the_server_has_it, |arm| async {
    let client = arm.client().await?;
    let discovery = Discovery::fetch(&client).await?;
    let served = |resource: &Resource| discovery.find(&resource.group, &resource.version, &resource.plural);
    let is_watched = |kind: &Kind| served(&kind.resource).is_some_and(|info| info.can_be_watched());
    let (watched, others): (Vec<_>, Vec<_>) =
        listable().into_iter().chain(unlistable()).partition(is_watched);

    for Kind { resource, .. } in &watched {
        let told = served(resource).map(|info| &info.resource);
        assert_eq!(told, Some(resource), "what the server says of it, and the type");
        // The real server has objects of its own. A definition needs more than a name, see below.
        if let Some(server) = arm.test_server()
            && resource.kind != "CustomResourceDefinition"
        {
            create(server.cluster(), resource)?;
        }
    }
    install_widgets(arm.direct()).await?;
    let told = discovery.resources().iter().filter(|info| info.can_be_watched());
    let told: BTreeSet<_> = told.map(|info| info.resource.to_string()).collect();
    let known: BTreeSet<_> = watched.iter().map(|kind| kind.resource.to_string()).collect();
    assert_eq!(told, known, "the server's resources, and those that k8s-openapi has");

    let factory = SharedInformerFactory::builder(client).build();
    let watched: Vec<_> = watched.iter().map(|kind| (kind.informer)(&factory)).collect::<Result<_, _>>()?;
    let others: Vec<_> = others.iter().map(|kind| (kind.informer)(&factory)).collect::<Result<_, _>>()?;
    factory.start();
    for synced in join_all(watched.iter().map(|informer| informer.synced_within(SOON))).await {
        synced?;
    }
    for informer in &watched {
        let status = informer.status();
        ensure!(status.recent_errors.is_empty() && status.stale.is_empty(), "{status:?}");
        let path = informer.resource().path(None);
        let what = format!("{} is complete", informer.resource());
        eventually_equal(&what, SOON, || informer.content(), async || raw_list(arm.direct(), &path).await)
            .await;
    }
    for informer in &others {
        says_why_it_cannot(informer.as_ref()).await?;
    }
    factory.shutdown().await;
    Ok(())
});

#[test]
fn every_kind_is_here() -> anyhow::Result<()> {
    let here: BTreeSet<_> = listable().into_iter().chain(unlistable()).map(|kind| kind.path).collect();
    let mut there = BTreeSet::new();
    kinds_under(&k8s_openapi_source()?, Path::new(""), &mut there)?;
    assert!(there.remove(NO_OBJECT), "no {NO_OBJECT} in {there:?}");
    let (missing, gone): (Vec<_>, Vec<_>) =
        (there.difference(&here).collect(), here.difference(&there).collect());
    ensure!(missing.is_empty() && gone.is_empty(), "to be added: {missing:?}; to be removed: {gone:?}");
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
    fn of<K: TypedResource + Decode>(module: &str, name: &str) -> Self {
        Self {
            path: format!("{module}{name}"),
            resource: Resource::of::<K>(),
            informer: |factory| Ok(Box::new(factory.informer::<K>()?)),
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
}

impl<T: Send + Sync + 'static> AnyInformer for SharedInformer<T> {
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
}

/// A kind that the server does not have, or does not let one watch: the status says which and why.
async fn says_why_it_cannot(informer: &dyn AnyInformer) -> anyhow::Result<()> {
    let waits = informer.status_changes().any(|status| async move {
        matches!(status.state, InformerState::Unavailable { .. } | InformerState::BackingOff { .. })
    });
    ensure!(timeout(SOON, waits).await.with_context(|| informer.status().to_string())?, "it stopped");
    let Some(Error::NotSynced(error)) = informer.synced_within(Duration::ZERO).await.err() else {
        panic!("{} synced", informer.status());
    };
    let (error, name) = (error.to_string(), informer.resource().to_string());
    let causes = [": 404 ", ": 405 ", "the list has no resourceVersion, so no watch can follow it"];
    let causes = &causes[..if name == LISTED_ONLY { 3 } else { 2 }];
    ensure!(error.contains(&name) && causes.iter().any(|cause| error.contains(cause)), "{error}");
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
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline"])
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
        let defined = source.lines().filter_map(|line| line.strip_prefix("impl crate::Metadata for "));
        kinds.extend(defined.filter_map(|rest| {
            let name = rest.split([' ', '<']).next()?;
            Some(module.join(name).to_string_lossy().into_owned())
        }));
    }
    Ok(())
}
