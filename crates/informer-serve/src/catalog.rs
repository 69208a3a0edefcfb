//! What the server has, and what of it may be asked for.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use informer::discovery::{ApiResourceInfo, Discovery};
use informer::{Resource, UnknownResource};
use k8s_protobuf::Kind;
use k8s_serve::ResourcePath;
use kube::Client;
use tokio::time::Instant;

use crate::extensions;
use crate::options::Options;
use crate::refusal::Refusal;

/// How long an unknown name is answered from memory before the server is asked again: it may be
/// new. Doubles with each discovery that does not know the name either, or that fails.
const REFRESH_AFTER: Duration = Duration::from_secs(2);
/// The limit of the doubling.
const REFRESH_AFTER_MAX: Duration = Duration::from_secs(60);
/// How many unknown names have a wait of their own.
const MAX_UNKNOWN: usize = 256;
/// The longest name that is looked for by asking the server again.
const MAX_NAME: usize = 253;
/// How long discovery may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const EVERYTHING: &str = "*";

/// The server's resources, asked for when they are first needed and when a name is unknown.
pub(crate) struct Catalog {
    client: Client,
    allow: Vec<String>,
    strict: Vec<String>,
    cache: Vec<String>,
    /// Never locked while the server is asked.
    loaded: RwLock<Option<Arc<Loaded>>>,
    /// Locked by the one discovery at a time. Requests for known names do not wait for it.
    refresh: tokio::sync::Mutex<Option<FailedRefresh>>,
    /// Names that a discovery did not know.
    unknown: Mutex<HashMap<String, Backoff>>,
}

/// The discoveries that failed since the last one that succeeded.
struct FailedRefresh {
    backoff: Backoff,
    ended: Instant,
    refusal: Refusal,
}

/// A wait that doubles.
#[derive(Clone, Copy)]
struct Backoff {
    until: Instant,
    wait: Duration,
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

struct Loaded {
    discovery: Discovery,
    /// Group and plural name of what `allow` names.
    allowed: HashSet<(String, String)>,
    /// Group and plural name of what `strict` names.
    strict: HashSet<(String, String)>,
    /// Group and plural name of what `cache` names.
    cache: HashSet<(String, String)>,
    at: Instant,
}

impl Catalog {
    pub(crate) fn new(client: Client, options: &Options) -> Self {
        Self {
            client,
            allow: options.allow.clone(),
            strict: options.strict.clone(),
            cache: options.cache.clone(),
            loaded: RwLock::default(),
            refresh: tokio::sync::Mutex::default(),
            unknown: Mutex::default(),
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

    /// Whether the server itself answers for a resource that was found here.
    pub(crate) fn is_strict(&self, resource: &Resource) -> bool {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        loaded.as_ref().is_some_and(|it| it.strict.contains(&identity(resource)))
    }

    /// Whether the configuration names a resource that was found here, by more than `*`.
    pub(crate) fn is_named(&self, resource: &Resource) -> bool {
        let (identity, loaded) = (identity(resource), self.known());
        loaded.is_some_and(|it| it.allowed.contains(&identity) || it.cache.contains(&identity))
    }

    /// Whether the server has APIServices, as far as is known.
    pub(crate) fn has_api_services(&self) -> bool {
        self.known().is_none_or(|it| {
            let failed = it.discovery.failed().iter();
            it.discovery.resources().iter().any(|it| it.resource.group == extensions::GROUP)
                || failed.into_iter().any(|it| it.group_version.starts_with(extensions::GROUP))
        })
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
        self.loaded().await.map(drop)
    }

    async fn find(
        &self,
        find: impl Fn(&Discovery) -> Result<&ApiResourceInfo, UnknownResource>,
    ) -> Result<(Result<ApiResourceInfo, UnknownResource>, Arc<Loaded>), Refusal> {
        let loaded = self.loaded().await?;
        let found = find(&loaded.discovery).cloned();
        let Err(unknown) = &found else { return Ok((found, loaded)) };
        // Nothing is remembered under a longer name, and no resource has one.
        if unknown.asked.len() > MAX_NAME {
            return Ok((found, loaded));
        }
        let is_fresh = loaded.at.elapsed() < REFRESH_AFTER;
        if is_fresh || self.unknown().get(&unknown.asked).is_some_and(Backoff::is_on) {
            return Ok((found, loaded));
        }
        let loaded = self.refreshed(Some(loaded.at)).await?;
        let found = find(&loaded.discovery).cloned();
        match &found {
            Ok(_) => drop(self.unknown().remove(&unknown.asked)),
            Err(unknown) => self.remember_unknown(&unknown.asked),
        }
        Ok((found, loaded))
    }

    /// What the server had at the last discovery, or has, if there was none.
    async fn loaded(&self) -> Result<Arc<Loaded>, Refusal> {
        match self.known() {
            Some(known) => Ok(known),
            None => self.refreshed(None).await,
        }
    }

    /// What the server has, by a discovery that is newer than `older_than`.
    async fn refreshed(&self, older_than: Option<Instant>) -> Result<Arc<Loaded>, Refusal> {
        let asked = Instant::now();
        let mut failed = self.refresh.lock().await;
        // Another request may have done it meanwhile.
        if let Some(known) = self.known().filter(|it| older_than.is_none_or(|at| it.at > at)) {
            return Ok(known);
        }
        if let Some(failed) = &*failed
            && (failed.ended >= asked || (older_than.is_some() && failed.backoff.is_on()))
        {
            return Err(failed.refusal.clone());
        }
        // Counts as failed until it succeeds: the client may hang up before the server answers.
        let refusal = Refusal::unavailable("the API server does not answer");
        let backoff = Backoff::after(failed.as_ref().map(|it| it.backoff));
        *failed = Some(FailedRefresh { backoff, ended: asked, refusal });
        match self.fetch().await {
            Ok(loaded) => {
                *failed = None;
                let loaded = Arc::new(loaded);
                *self.loaded.write().unwrap_or_else(PoisonError::into_inner) =
                    Some(Arc::clone(&loaded));
                Ok(loaded)
            }
            Err(refusal) => {
                let (backoff, ended) = (backoff.restarted(), Instant::now());
                *failed = Some(FailedRefresh { backoff, ended, refusal: refusal.clone() });
                Err(refusal)
            }
        }
    }

    async fn fetch(&self) -> Result<Loaded, Refusal> {
        let fetched = tokio::time::timeout(TIMEOUT, Discovery::fetch(&self.client)).await;
        let discovery =
            fetched.map_err(|_| Refusal::unavailable("the API server does not answer"))??;
        let named = |names: &[String]| {
            let named = names.iter().filter(|it| *it != EVERYTHING);
            let found = named.filter_map(|it| discovery.find_by_arg(it).ok());
            found.map(|it| identity(&it.resource)).collect()
        };
        let (allowed, strict) = (named(&self.allow), named(&self.strict));
        let cache = named(&self.cache);
        Ok(Loaded { allowed, strict, cache, discovery, at: Instant::now() })
    }

    fn known(&self) -> Option<Arc<Loaded>> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember_unknown(&self, name: &str) {
        let mut unknown = self.unknown();
        if unknown.len() >= MAX_UNKNOWN {
            unknown.retain(|_, backoff| backoff.is_on());
        }
        let backoff = Backoff::after(unknown.get(name).copied());
        if unknown.len() < MAX_UNKNOWN {
            unknown.insert(name.to_owned(), backoff);
        }
    }

    fn unknown(&self) -> MutexGuard<'_, HashMap<String, Backoff>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Backoff {
    /// The one after `earlier`, beginning now.
    fn after(earlier: Option<Self>) -> Self {
        let wait = earlier.map_or(REFRESH_AFTER, |it| (it.wait * 2).min(REFRESH_AFTER_MAX));
        Self { until: Instant::now() + wait, wait }
    }

    /// The same wait, beginning now.
    fn restarted(self) -> Self {
        Self { until: Instant::now() + self.wait, ..self }
    }

    fn is_on(&self) -> bool {
        Instant::now() < self.until
    }
}

/// Says that a resource may not be asked for.
pub(crate) fn not_allowed(resource: &Resource) -> String {
    let name = resource.group_resource();
    format!(
        "the gateway was not allowed to answer for {name}; start it with --allow {name} to change that"
    )
}

/// Whether kube-apiserver serves a resource without any CustomResourceDefinition.
pub(crate) fn is_built_in(resource: &Resource) -> bool {
    // Kinds of Kubernetes, but of an extension server.
    let is_metrics = resource.group == "metrics.k8s.io";
    !is_metrics && Kind::of(&resource.api_version(), &resource.kind).is_some()
}

fn identity(resource: &Resource) -> (String, String) {
    (resource.group.clone(), resource.plural.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_not_served_by_kube_apiserver() {
        let of = |group: &str, version: &str, plural: &str, kind: &str| Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespaced: true,
        };
        assert!(is_built_in(&of("apps", "v1", "deployments", "Deployment")));
        assert!(!is_built_in(&of("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")));
    }
}
