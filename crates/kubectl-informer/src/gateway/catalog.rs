//! What the server has, and what of it may be asked for.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use informer::Resource;
use informer::UnknownResource;
use informer::discovery::{ApiResourceInfo, Discovery};
use kube::Client;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::GatewayOptions;
use super::refusal::Refusal;

/// How long an unknown name is answered from memory before the server is asked again: it may be
/// new.
const REFRESH_AFTER: Duration = Duration::from_secs(2);
/// How long discovery may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const EVERYTHING: &str = "*";

/// The server's resources, asked for when they are first needed and when a name is unknown.
pub(super) struct Catalog {
    client: Client,
    allow: Vec<String>,
    loaded: Mutex<Option<Loaded>>,
}

#[derive(Clone)]
struct Loaded {
    discovery: Arc<Discovery>,
    /// Group and plural name of what `allow` names.
    allowed: Arc<HashSet<(String, String)>>,
    at: Instant,
}

impl Catalog {
    pub(super) fn new(client: Client, options: &GatewayOptions) -> Self {
        Self { client, allow: options.allow.clone(), loaded: Mutex::new(None) }
    }

    /// The resource that `find` finds, if it may be asked for and can be held.
    pub(super) async fn resource(
        &self,
        find: impl Fn(&Discovery) -> Result<&ApiResourceInfo, UnknownResource>,
    ) -> Result<Resource, Refusal> {
        let mut loaded = self.loaded(None).await?;
        let mut found = find(&loaded.discovery).cloned();
        if found.is_err() {
            loaded = self.loaded(Some(loaded.at)).await?;
            found = find(&loaded.discovery).cloned();
        }
        let info = found.map_err(|unknown| self.without_forbidden(unknown, &loaded))?;
        if !self.is_allowed(&info.resource, &loaded.allowed) {
            let name = info.resource.group_resource();
            return Err(Refusal::forbidden(format!(
                "the gateway was not allowed to answer for {name}; start it with --allow {name} to change that"
            )));
        }
        if !info.can_be_watched() {
            let (name, verbs) = (info.resource.group_resource(), info.verbs.join(", "));
            return Err(Refusal::not_found(format!(
                "{name} cannot be listed and watched (the server offers {verbs}), so there is no cache of it"
            )));
        }
        Ok(info.resource)
    }

    /// Whether the server tells what it has.
    pub(super) async fn check(&self) -> Result<(), Refusal> {
        self.loaded(None).await.map(drop)
    }

    /// What the server has; if `older_than` is given, not what was known then, unless that is
    /// fresh.
    async fn loaded(&self, older_than: Option<Instant>) -> Result<Loaded, Refusal> {
        let mut slot = self.loaded.lock().await;
        if let Some(loaded) = &*slot {
            let is_new = older_than.is_none_or(|it| loaded.at > it);
            if is_new || loaded.at.elapsed() < REFRESH_AFTER {
                return Ok(loaded.clone());
            }
        }
        let fetched = tokio::time::timeout(TIMEOUT, Discovery::fetch(&self.client)).await;
        let discovery =
            fetched.map_err(|_| Refusal::unavailable("the API server does not answer"))??;
        let named = self.allow.iter().filter(|it| *it != EVERYTHING);
        let allowed =
            named.filter_map(|it| discovery.find_by_arg(it).ok()).map(|it| identity(&it.resource));
        let loaded = Loaded {
            allowed: Arc::new(allowed.collect()),
            discovery: Arc::new(discovery),
            at: Instant::now(),
        };
        Ok(slot.insert(loaded).clone())
    }

    fn is_allowed(&self, resource: &Resource, named: &HashSet<(String, String)>) -> bool {
        let is_secrets = resource.group.is_empty() && resource.plural == "secrets";
        let everything = self.allow.iter().any(|it| it == EVERYTHING);
        named.contains(&identity(resource)) || (everything && !is_secrets)
    }

    /// Suggesting what may not be asked for would not help.
    fn without_forbidden(&self, mut unknown: UnknownResource, loaded: &Loaded) -> UnknownResource {
        let is_open = |it: &String| {
            loaded
                .discovery
                .find_by_arg(it)
                .is_ok_and(|it| self.is_allowed(&it.resource, &loaded.allowed))
        };
        unknown.suggestions.retain(is_open);
        unknown
    }
}

fn identity(resource: &Resource) -> (String, String) {
    (resource.group.clone(), resource.plural.clone())
}
