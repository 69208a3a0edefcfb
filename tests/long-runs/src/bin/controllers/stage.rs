//! What all controllers meet: one API server, and one relay before it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::{TryStreamExt, stream};
use informer_peer_controllers::{Set, SetSpec};
use informer_tests::fixtures::create_namespace;
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::proxy::Proxy;
use informer_tests::real::{RealCluster, config_of};
use informer_tests::relay::Relay;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, CustomResourceExt};
use serde_json::json;
use tokio::process::Command;

use crate::Arguments;
use crate::peer::{Library, Peer};

/// The API server, and how to start controllers.
pub(crate) struct Stage {
    pub(crate) cluster: RealCluster,
    /// Goes around the relay.
    pub(crate) direct: Client,
    pub(crate) relay: Relay,
    /// Before the relay; breaks connections.
    pub(crate) proxy: Proxy,
    pub(crate) server: String,
    pub(crate) go: String,
    programs: Programs,
}

struct Programs {
    informer: PathBuf,
    kube_runtime: PathBuf,
    controller_runtime: PathBuf,
}

impl Stage {
    /// Builds the controllers, and starts the API server and the relay.
    pub(crate) async fn start(arguments: &Arguments) -> Result<Self> {
        let mut programs = Programs::build().await?;
        if let Some(other) = &arguments.informer {
            programs.informer.clone_from(other);
        }
        let go = Command::new("go").args(["env", "GOVERSION"]).output().await?;
        let go = String::from_utf8(go.stdout)?.trim().to_owned();
        let cluster = RealCluster::start_always().await?;
        let direct = cluster.client().await?;
        let config = config_of(&cluster.kubeconfig_path(), None).await?;
        let relay = Relay::start(config, arguments.seed).await?;
        let proxy = Proxy::start(relay.address()).await?;
        let server = direct.apiserver_version().await?.git_version;
        Ok(Self { cluster, direct, relay, proxy, server, go, programs })
    }

    /// Installs the definition of Sets, and returns once they can be listed.
    pub(crate) async fn install(&self) -> Result<()> {
        let mut definition = Set::crd();
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        definition.spec.versions[0].schema =
            serde_json::from_value(json!({ "openAPIV3Schema": any }))?;
        let definitions = Api::<CustomResourceDefinition>::all(self.direct.clone());
        match definitions.create(&PostParams::default(), &definition).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            other => drop(other?),
        }
        let path = "/apis/compare.example.com/v1/sets";
        let list = async || raw_list(&self.direct, path).await.map(drop);
        eventually_ok("Sets are served", Duration::from_secs(30), list).await
    }

    /// Starts a controller of the Sets in a namespace, which is created.
    pub(crate) async fn controller(
        &self,
        library: Library,
        namespace: &str,
        more: &[String],
    ) -> Result<Peer> {
        create_namespace(&self.direct, namespace).await?;
        let mut command = Command::new(match library {
            Library::Informer => &self.programs.informer,
            Library::KubeRuntime => &self.programs.kube_runtime,
            Library::ControllerRuntime | Library::ControllerRuntimeConsistent => {
                &self.programs.controller_runtime
            }
        });
        let url = format!("http://{}", self.proxy.address());
        command.args(["--server", &url, "--namespace", namespace]);
        command.args(["--agent", library.agent()]).args(more);
        if library == Library::ControllerRuntimeConsistent {
            command.arg("--consistent");
        }
        Peer::start(command).await.with_context(|| library.title())
    }

    /// Creates Sets `set-0`, `set-1`, ….
    pub(crate) async fn sets(&self, namespace: &str, count: usize, replicas: usize) -> Result<()> {
        create_namespace(&self.direct, namespace).await?;
        let sets = self.api(namespace);
        stream::iter((0..count).map(Ok))
            .try_for_each_concurrent(8, |number| {
                let set = Set::new(&format!("set-{number}"), SetSpec { replicas });
                let sets = &sets;
                async move {
                    sets.create(&PostParams::default(), &set).await?;
                    Ok(())
                }
            })
            .await
    }

    /// The Sets of a namespace, around the relay.
    pub(crate) fn api(&self, namespace: &str) -> Api<Set> {
        Api::namespaced(self.direct.clone(), namespace)
    }

    /// The Sets that do not have as many children as they want.
    pub(crate) async fn wrong(&self, namespace: &str) -> Result<Vec<String>> {
        let children = Api::<ConfigMap>::namespaced(self.direct.clone(), namespace);
        let mut live = BTreeMap::<String, usize>::new();
        for child in children.list(&ListParams::default()).await?.items {
            for owner in child.metadata.owner_references.unwrap_or_default() {
                *live.entry(owner.uid).or_default() += 1;
            }
        }
        let sets = self.api(namespace).list(&ListParams::default()).await?.items;
        let is_wrong = |set: &Set| {
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            live.get(uid).copied().unwrap_or_default() != set.spec.replicas
        };
        let wrong = sets.into_iter().filter(is_wrong);
        Ok(wrong.filter_map(|set| set.metadata.name).collect())
    }

    /// Waits until every Set has as many children as it wants; how long that took, or how many have
    /// not after `most`.
    pub(crate) async fn settled(
        &self,
        namespace: &str,
        most: Duration,
    ) -> Result<std::result::Result<Duration, usize>> {
        let began = tokio::time::Instant::now();
        loop {
            let wrong = self.wrong(namespace).await?.len();
            if wrong == 0 {
                return Ok(Ok(began.elapsed()));
            }
            if began.elapsed() > most {
                return Ok(Err(wrong));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Programs {
    /// Builds them optimized, whatever this program is.
    async fn build() -> Result<Self> {
        let ours = std::env::current_exe()?;
        let release = ours.with_file_name("../release");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args(["build", "--release", "-p", "informer-peer-controllers"]);
        // What `cargo run` sets would have build scripts run again that look at it.
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|of| name_text.starts_with(of)) {
                cargo.env_remove(name);
            }
        }
        succeed(cargo).await?;
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers");
        let folder = peers.join("controller-runtime");
        let controller_runtime = folder.join("bin/controller-runtime");
        let mut go = Command::new("go");
        go.args(["build", "-buildvcs=false", "-o"]).arg(&controller_runtime).arg(".");
        go.current_dir(&folder);
        succeed(go).await?;
        Ok(Self {
            informer: release.join("with-informer"),
            kube_runtime: release.join("with-kube-runtime"),
            controller_runtime,
        })
    }
}

async fn succeed(mut command: Command) -> Result<()> {
    let status = command.status().await.with_context(|| format!("{command:?} does not run"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
