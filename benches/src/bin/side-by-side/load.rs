//! Writing the Pods to a real API server, as its controllers and kubelets would.

use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use informer_testkit::generate::Generator;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, PostParams};

/// Creates Pods as `kube-controller-manager`, then writes their status as `kubelet`.
pub(crate) async fn load(
    client: &kube::Client,
    generator: &Generator,
    objects: usize,
) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for number in 0..generator.namespaces {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(generator.namespace(number));
        match namespaces.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            created => drop(created?),
        }
    }
    stream::iter(generator.pods(objects))
        .map(Ok)
        .try_for_each_concurrent(16, |json| write(client.clone(), json))
        .await
}

async fn write(client: kube::Client, json: String) -> Result<()> {
    let mut pod: Pod = serde_json::from_str(&json)?;
    let meta = &mut pod.metadata;
    (meta.uid, meta.resource_version, meta.managed_fields) = (None, None, None);
    let status = pod.status.take();
    let pods: Api<Pod> = Api::namespaced(client, meta.namespace.as_deref().unwrap_or("default"));
    let written_by =
        |manager: &str| PostParams { dry_run: false, field_manager: Some(manager.to_owned()) };
    let mut pod = match pods.create(&written_by("kube-controller-manager"), &pod).await {
        Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
        created => created?,
    };
    pod.status = status;
    let name = pod.metadata.name.clone().unwrap_or_default();
    pods.replace_status(&name, &written_by("kubelet"), &pod).await?;
    Ok(())
}
