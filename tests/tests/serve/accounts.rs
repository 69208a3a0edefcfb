//! Service accounts with rights of their own, before an endpoint that has none to write.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use http::Request;
use informer_tests::helpers::eventually_ok;
use informer_tests::real::{RealCluster, config_of};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::access::{SOON, serve};
use crate::endpoint::Endpoint;

pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// A service account, and kubeconfigs with its token.
pub(crate) struct Account {
    token: String,
    ca: PathBuf,
    folder: TempDir,
}

impl Account {
    /// Creates one in a namespace, whose rules hold in these namespaces.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub(crate) async fn create(
        cluster: &RealCluster,
        name: &str,
        namespaces: &[&str],
        rules: &Value,
    ) -> anyhow::Result<Self> {
        let admin = cluster.client().await?;
        let home = "/api/v1/namespaces/default/serviceaccounts";
        create(&admin, home, &json!({ "metadata": { "name": name } })).await?;
        let subject = json!({ "kind": "ServiceAccount", "name": name, "namespace": "default" });
        for namespace in namespaces {
            let within = format!("{RBAC}/namespaces/{namespace}");
            let role = json!({ "metadata": { "name": name }, "rules": rules });
            create(&admin, &format!("{within}/roles"), &role).await?;
            let binding = binding(name, "Role", name, &subject);
            create(&admin, &format!("{within}/rolebindings"), &binding).await?;
        }
        let token = token(&admin, name).await?;
        let (ca, _) = cluster.server_certificate();
        let account = Self { token, ca, folder: tempfile::tempdir()? };
        account.is_known(cluster, namespaces).await?;
        Ok(account)
    }

    /// One whose token nobody knows.
    ///
    /// # Errors
    ///
    /// When there is no place for kubeconfigs.
    pub(crate) fn stranger(cluster: &RealCluster, token: &str) -> anyhow::Result<Self> {
        let (ca, _) = cluster.server_certificate();
        Ok(Self { token: token.to_owned(), ca, folder: tempfile::tempdir()? })
    }

    /// A kubeconfig of this account at a server.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(crate) fn kubeconfig(&self, url: &str) -> anyhow::Result<PathBuf> {
        let file = format!("kubeconfig-{}", url.rsplit(':').next().unwrap_or_default());
        let path = self.folder.path().join(file);
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "account",
            "clusters": [{ "name": "server",
                "cluster": { "server": url, "certificate-authority": self.ca } }],
            "users": [{ "name": "account", "user": { "token": self.token } }],
            "contexts": [{ "name": "account",
                "context": { "cluster": "server", "user": "account", "namespace": "default" } }],
        });
        std::fs::write(&path, text.to_string())?;
        Ok(path)
    }

    /// A client of this account at a server, which gives every answer as it comes.
    ///
    /// # Errors
    ///
    /// When the address is none.
    pub(crate) async fn client(&self, url: &str) -> anyhow::Result<Client> {
        let mut config: Config = config_of(&self.kubeconfig(url)?, None).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Waits until the API server's caches have the account and its rights.
    async fn is_known(&self, cluster: &RealCluster, namespaces: &[&str]) -> anyhow::Result<()> {
        let client = self.client(cluster.url()).await?;
        let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        for namespace in namespaces {
            let review = json!({ "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectRulesReview", "spec": { "namespace": namespace } });
            eventually_ok("the account has its rights", SOON, async || {
                let answer = create(&client, path, &review).await?;
                let rules = answer["status"]["resourceRules"].as_array().context("no rules")?;
                // Everybody may review themselves.
                let reviews = ["authentication.k8s.io", "authorization.k8s.io"];
                let is_own = |rule: &Value| {
                    rule["apiGroups"][0].as_str().is_some_and(|it| !reviews.contains(&it))
                };
                ensure!(rules.iter().any(is_own), "{answer}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// An endpoint over TLS whose own account may read and review, and not write: what is written
/// through it is written with its callers' rights.
///
/// # Errors
///
/// When it does not start.
pub(crate) async fn serve_as_reader(
    cluster: &RealCluster,
    arguments: &[&str],
) -> anyhow::Result<Endpoint> {
    let admin = cluster.client().await?;
    let rules = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"] },
        { "nonResourceURLs": ["*"], "verbs": ["get"] }]);
    let role = json!({ "metadata": { "name": "reads-all" }, "rules": rules });
    create_once(&admin, &format!("{RBAC}/clusterroles"), &role).await?;
    let viewer = json!({ "apiGroup": RBAC_GROUP, "kind": "User", "name": "viewer" });
    for role in ["reads-all", "system:auth-delegator"] {
        let binding = binding(&format!("endpoint-{role}"), "ClusterRole", role, &viewer);
        create_once(&admin, &format!("{RBAC}/clusterrolebindings"), &binding).await?;
    }
    let arguments = [&["--context", "viewer"], arguments].concat();
    serve(cluster, &arguments).await
}

/// A token of a service account in namespace `default`.
///
/// # Errors
///
/// When the API server refuses.
pub(crate) async fn token(admin: &Client, account: &str) -> anyhow::Result<String> {
    let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
    let body =
        json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let answer = create(admin, &path, &body).await?;
    Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
}

/// Creates an object, and returns the answer.
///
/// # Errors
///
/// When the server refuses.
pub(crate) async fn create(client: &Client, path: &str, body: &Value) -> anyhow::Result<Value> {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(body)?)?;
    client.request(request).await.with_context(|| path.to_owned())
}

/// What a client of these rules may do with a Lease: all that client-go's leader election needs.
pub(crate) fn lease_rule() -> Value {
    json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "verbs": ["get", "create", "update"] })
}

async fn create_once(client: &Client, path: &str, body: &Value) -> anyhow::Result<()> {
    match create(client, path, body).await {
        Err(error) if format!("{error:#}").contains("already exists") => Ok(()),
        created => created.map(drop),
    }
}

/// A RoleBinding, or a ClusterRoleBinding, of a subject to a role.
pub(crate) fn binding(name: &str, kind: &str, role: &str, subject: &Value) -> Value {
    let role = json!({ "apiGroup": RBAC_GROUP, "kind": kind, "name": role });
    json!({ "metadata": { "name": name }, "roleRef": role, "subjects": [subject] })
}
