//! What the server has, and what of it may be asked for.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use informer::discovery::{ApiResourceInfo, Discovery};
use informer::{Resource, UnknownResource};
use k8s_protobuf::Kind;
use k8s_serve::ResourcePath;
use kube::Client;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::options::Options;
use crate::refusal::Refusal;

/// How long an unknown name is answered from memory before the server is asked again: it may be
/// new.
const REFRESH_AFTER: Duration = Duration::from_secs(2);
/// How long discovery may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const EVERYTHING: &str = "*";

/// The server's resources, asked for when they are first needed and when a name is unknown.
pub(crate) struct Catalog {
    client: Client,
    allow: Vec<String>,
    strict: Vec<String>,
    loaded: Mutex<Option<Loaded>>,
}

/// What an API path names.
pub(crate) enum Found {
    Served(Box<Served>),
    /// Nothing, in a group that has built-in kinds.
    NothingBuiltIn,
    /// Nothing.
    Nothing,
}

/// A resource of the server, and what an endpoint may do with it.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) info: ApiResourceInfo,
    /// Whether it may be asked for.
    pub(crate) is_allowed: bool,
    /// Whether the server itself answers for it.
    pub(crate) is_strict: bool,
}

#[derive(Clone)]
struct Loaded {
    discovery: Arc<Discovery>,
    /// Group and plural name of what `allow` names.
    allowed: Arc<HashSet<(String, String)>>,
    /// Group and plural name of what `strict` names.
    strict: Arc<HashSet<(String, String)>>,
    at: Instant,
}

impl Catalog {
    pub(crate) fn new(client: Client, options: &Options) -> Self {
        Self {
            client,
            allow: options.allow.clone(),
            strict: options.strict.clone(),
            loaded: Mutex::new(None),
        }
    }

    /// The resource that `find` finds, if it may be asked for and can be held.
    pub(crate) async fn resource(
        &self,
        find: impl Fn(&Discovery) -> Result<&ApiResourceInfo, UnknownResource>,
    ) -> Result<Resource, Refusal> {
        let (found, loaded) = self.find(find).await?;
        let info = found.map_err(|unknown| self.without_forbidden(unknown, &loaded))?;
        if !self.is_allowed(&info.resource, &loaded.allowed) {
            return Err(Refusal::forbidden(not_allowed(&info.resource)));
        }
        if !info.can_be_watched() {
            let (name, verbs) = (info.resource.group_resource(), info.verbs.join(", "));
            return Err(Refusal::not_found(format!(
                "{name} cannot be listed and watched (the server offers {verbs}), so there is no cache of it"
            )));
        }
        Ok(info.resource)
    }

    /// The resource that an API path names.
    pub(crate) async fn served(&self, path: &ResourcePath) -> Result<Found, Refusal> {
        let ResourcePath { group, version, resource, .. } = path;
        let (found, loaded) =
            self.find(|discovery| discovery.require(group, version, resource)).await?;
        let Ok(info) = found else {
            let mut of_group =
                loaded.discovery.resources().iter().filter(|it| it.resource.group == *group);
            let has_built_in = of_group.any(|it| is_built_in(&it.resource));
            return Ok(if has_built_in { Found::NothingBuiltIn } else { Found::Nothing });
        };
        let is_allowed = self.is_allowed(&info.resource, &loaded.allowed);
        let is_strict = loaded.strict.contains(&identity(&info.resource));
        Ok(Found::Served(Box::new(Served { info, is_allowed, is_strict })))
    }

    /// The resource that a user means by a name, if it may be asked for and can be held.
    pub(crate) async fn find_by_arg(&self, name: &str) -> Result<Resource, Refusal> {
        self.resource(|discovery| discovery.find_by_arg(name)).await
    }

    /// What discovery says of a resource.
    pub(crate) async fn info(&self, resource: &Resource) -> Result<ApiResourceInfo, Refusal> {
        let Resource { group, version, plural, .. } = resource;
        let (found, _) = self.find(|discovery| discovery.require(group, version, plural)).await?;
        Ok(found?)
    }

    /// Whether the server tells what it has.
    pub(crate) async fn check(&self) -> Result<(), Refusal> {
        self.loaded(None).await.map(drop)
    }

    async fn find(
        &self,
        find: impl Fn(&Discovery) -> Result<&ApiResourceInfo, UnknownResource>,
    ) -> Result<(Result<ApiResourceInfo, UnknownResource>, Loaded), Refusal> {
        let mut loaded = self.loaded(None).await?;
        let mut found = find(&loaded.discovery).cloned();
        if found.is_err() {
            loaded = self.loaded(Some(loaded.at)).await?;
            found = find(&loaded.discovery).cloned();
        }
        Ok((found, loaded))
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
        let named = |names: &[String]| {
            let named = names.iter().filter(|it| *it != EVERYTHING);
            let found = named.filter_map(|it| discovery.find_by_arg(it).ok());
            Arc::new(found.map(|it| identity(&it.resource)).collect())
        };
        let loaded = Loaded {
            allowed: named(&self.allow),
            strict: named(&self.strict),
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

/// Says that a resource may not be asked for.
pub(crate) fn not_allowed(resource: &Resource) -> String {
    let name = resource.group_resource();
    format!(
        "the gateway was not allowed to answer for {name}; start it with --allow {name} to change that"
    )
}

fn is_built_in(resource: &Resource) -> bool {
    Kind::of(&resource.api_version(), &resource.kind).is_some()
}

fn identity(resource: &Resource) -> (String, String) {
    (resource.group.clone(), resource.plural.clone())
}
