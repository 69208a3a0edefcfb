//! The server: a real etcd and kube-apiserver.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use informer_benches::client::Target;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The user whose informers are made to list again.
const USER: &str = "viewer";

/// A server, and the process that starts and stops it.
pub(crate) struct Cluster {
    folder: PathBuf,
    kubeconfig: PathBuf,
    etcd: String,
    supervisor: Supervisor,
}

/// `cluster run`, which ends everything with its stdin.
struct Supervisor {
    _process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Cluster {
    /// Starts one that ends with this value.
    pub(crate) async fn start() -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/real-cluster/cluster");
        let run =
            async |verb: &str| Command::new(&script).arg(verb).stdin(Stdio::null()).status().await;
        let built = run("build").await.context("tests/real-cluster/cluster does not run")?;
        anyhow::ensure!(built.success(), "tests/real-cluster/cluster build: {built}");
        let mut process = Command::new(&script)
            .arg("run")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C here reaches it as the end of its stdin.
            .process_group(0)
            .spawn()?;
        let (orders, answers) = (process.stdin.take(), process.stdout.take());
        let (orders, answers) = orders.zip(answers).context("no pipes")?;
        let mut answers = BufReader::new(answers).lines();
        let ready = answers.next_line().await?.context("the cluster does not start")?;
        let folder =
            PathBuf::from(ready.strip_prefix("ready ").context("the cluster does not start")?);
        let supervisor = Supervisor { _process: process, orders, answers };
        let etcd = std::fs::read_to_string(folder.join("etcd-url"))?.trim().to_owned();
        let kubeconfig = folder.join("kubeconfig");
        let cluster = Self { folder, kubeconfig, etcd, supervisor };
        cluster.let_viewer_see_all_pods().await?;
        Ok(cluster)
    }

    /// As an administrator.
    pub(crate) fn target(&self) -> Target {
        Target::Kubeconfig(self.kubeconfig.clone())
    }

    /// The process of kube-apiserver.
    pub(crate) fn apiserver_pid(&self) -> Result<u32> {
        let record = std::fs::read_to_string(self.folder.join("apiserver.pid"))?;
        // Behind it is when the process began.
        Ok(record.lines().next().unwrap_or_default().parse()?)
    }

    /// The URL of etcd.
    pub(crate) fn etcd(&self) -> &str {
        &self.etcd
    }

    /// As the user whom [`force_relist`](Self::force_relist) shuts out.
    pub(crate) fn excludable(&self) -> Result<Target> {
        let path = self.kubeconfig.with_extension(USER);
        let text = std::fs::read_to_string(&self.kubeconfig)?;
        std::fs::write(
            &path,
            text.replace("current-context: admin", &format!("current-context: {USER}")),
        )?;
        Ok(Target::Kubeconfig(path))
    }

    /// Changes so many Pods while the excludable user is shut out, and lets it in to a server that
    /// has no history of that time.
    pub(crate) async fn force_relist(&mut self, changed: usize) -> Result<()> {
        self.order(&format!("revoke {USER}")).await?;
        let client = self.target().client().await?;
        let page = Api::<Pod>::all(client.clone()).list_metadata(&ListParams::default()).await?;
        let step = (page.items.len() / changed.max(1)).max(1);
        let as_manager = PatchParams {
            field_manager: Some("kube-controller-manager".into()),
            ..Default::default()
        };
        for pod in page.items.iter().step_by(step).take(changed) {
            let meta = &pod.metadata;
            let pods = Api::<Pod>::namespaced(
                client.clone(),
                meta.namespace.as_deref().unwrap_or_default(),
            );
            // Anything that differs from what is there.
            let change = json!({"metadata": {"annotations": {"seen": meta.resource_version}}});
            let name = meta.name.as_deref().unwrap_or_default();
            pods.patch_metadata(name, &as_manager, &Patch::Merge(change)).await?;
        }
        self.order(&format!("grant {USER}")).await
    }

    async fn order(&mut self, order: &str) -> Result<()> {
        self.supervisor.orders.write_all(format!("{order}\n").as_bytes()).await?;
        match self.supervisor.answers.next_line().await? {
            Some(answer) if answer.starts_with("ok") => Ok(()),
            answer => bail!("the cluster fails to {order}: {answer:?}"),
        }
    }

    async fn let_viewer_see_all_pods(&self) -> Result<()> {
        let client = self.target().client().await?;
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let mut role = ClusterRole {
            rules: Some(vec![PolicyRule {
                api_groups: Some(texts(&[""])),
                resources: Some(texts(&["pods"])),
                verbs: texts(&["get", "list", "watch"]),
                ..Default::default()
            }]),
            ..Default::default()
        };
        role.metadata.name = Some("pods-viewer".into());
        let mut binding = ClusterRoleBinding {
            role_ref: RoleRef {
                api_group: Some("rbac.authorization.k8s.io".into()),
                kind: "ClusterRole".into(),
                name: "pods-viewer".into(),
            },
            subjects: Some(vec![Subject {
                api_group: Some("rbac.authorization.k8s.io".into()),
                kind: "User".into(),
                name: USER.into(),
                namespace: None,
            }]),
            ..Default::default()
        };
        binding.metadata.name = Some("pods-viewer".into());
        Api::all(client.clone()).create(&PostParams::default(), &role).await?;
        Api::all(client).create(&PostParams::default(), &binding).await?;
        Ok(())
    }
}
