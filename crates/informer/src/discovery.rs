//! What resources the server has, and which one a user means by a name.
//!
//! [`Discovery::fetch`] reads the aggregated documents (two requests), and the older ones where the
//! server has no others. A group that does not answer does not spoil the rest: its failure is kept,
//! and mentioned when a name is not found. [`Discovery::find_by_arg`] understands what kubectl
//! understands: `pods`, `pod`, `po`, `Pod`, `deployments.apps`, `deploy.v1.apps`.

use std::collections::HashSet;
use std::time::Duration;

use kube::Client;

use crate::error::UnknownResource;
use crate::{Error, Resource};

mod documents;
mod fetch;
mod names;

/// The resources of one server, as they were when it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Discovery {
    /// In the server's order: the core group first, in each group the preferred version first.
    resources: Vec<ApiResourceInfo>,
    failed: Vec<FailedGroup>,
}

/// A resource of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiResourceInfo {
    /// Group, version, plural name, kind and whether it is namespaced.
    pub resource: Resource,
    /// The singular name, such as `pod`.
    pub singular: String,
    /// Short names, such as `po`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// What can be done with it, such as `list` and `watch`.
    pub verbs: Vec<String>,
    /// Whether this is the version that is meant if none is named.
    pub preferred: bool,
}

/// A group, or a version of one, whose resources could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedGroup {
    /// `group/version`, or the group alone; `v1` for the core group.
    pub group_version: String,
    /// Why.
    pub cause: String,
}

/// Why the server's resources could not be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The server did not answer.
    #[error("the server does not answer: {message}")]
    Unreachable {
        /// What happened.
        message: String,
    },
    /// The server does not know who asks.
    #[error("the server refuses the credentials (401): {message}; log in again or renew the token")]
    Unauthorized {
        /// What the server said.
        message: String,
    },
    /// Asking what resources there are is not allowed.
    #[error(
        "discovery is forbidden (403): {message}; bind the cluster role system:discovery to the user"
    )]
    Forbidden {
        /// What the server said.
        message: String,
    },
    /// The server has no such group and version.
    #[error("the server has no {path}")]
    NotFound {
        /// The document that was asked for.
        path: String,
    },
    /// The server answered with another status.
    #[error("{path}: the server answered {code}: {message}")]
    Refused {
        /// The document that was asked for.
        path: String,
        /// The HTTP status code.
        code: u16,
        /// What the server said.
        message: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The answer is no discovery document.
    #[error("{path}: not a discovery document: {message}; is this a Kubernetes API server?")]
    Malformed {
        /// The document that was asked for.
        path: String,
        /// What is wrong with it.
        message: String,
    },
}

impl From<DiscoveryError> for Error {
    fn from(error: DiscoveryError) -> Self {
        Self::Discovery { message: error.to_string() }
    }
}

impl Discovery {
    /// Asks the server for all of its resources.
    ///
    /// # Errors
    /// [`DiscoveryError`] if the server tells nothing at all; failures of single groups are in
    /// [`failed`](Self::failed).
    ///
    /// # Cancel safety
    /// Only reads; dropping it ends the requests.
    pub async fn fetch(client: &Client) -> Result<Self, DiscoveryError> {
        fetch::all(client).await
    }

    /// Asks the server for the resources of one group (empty for the core group) and version: one
    /// small request, for when the group is known.
    ///
    /// # Errors
    /// [`DiscoveryError::NotFound`] if the server does not have the group and version.
    ///
    /// # Cancel safety
    /// Only reads; dropping it ends the request.
    pub async fn fetch_group_version(
        client: &Client,
        group: &str,
        version: &str,
    ) -> Result<Self, DiscoveryError> {
        fetch::group_version(client, group, version).await
    }

    /// [`fetch_group_version`](Self::fetch_group_version), in one request: the client does not
    /// repeat it.
    pub(crate) async fn fetch_group_version_once(
        client: &Client,
        group: &str,
        version: &str,
    ) -> Result<Self, DiscoveryError> {
        fetch::group_version_once(client, group, version).await
    }

    /// All resources: the core group first, then the others in the server's order, in each group
    /// the preferred version first. Subresources are left out.
    #[must_use]
    pub fn resources(&self) -> &[ApiResourceInfo] {
        &self.resources
    }

    /// The groups and versions that could not be read.
    #[must_use]
    pub fn failed(&self) -> &[FailedGroup] {
        &self.failed
    }

    /// The resource with exactly this group (empty for the core group), version and plural name.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&ApiResourceInfo> {
        self.resources.iter().find(|it| {
            let resource = &it.resource;
            resource.group == group && resource.version == version && resource.plural == plural
        })
    }

    /// [`find`](Self::find), with an error that says what may have been meant.
    ///
    /// # Errors
    /// [`UnknownResource`] with suggestions.
    pub fn require(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<&ApiResourceInfo, UnknownResource> {
        self.find(group, version, plural).ok_or_else(|| self.unknown_exact(group, version, plural))
    }

    /// What a user means by `RESOURCE[.VERSION][.GROUP]`, where the resource is a plural, singular
    /// or short name or a kind, in any case. As kubectl does it: full names go before short ones,
    /// the core group before others, the preferred version before others; a group may be
    /// abbreviated to its beginning.
    ///
    /// # Errors
    /// [`UnknownResource`] with suggestions.
    ///
    /// # Examples
    /// ```
    /// # use informer::discovery::Discovery;
    /// # fn demo(discovery: &Discovery) -> Result<(), informer::UnknownResource> {
    /// let deployments = discovery.find_by_arg("deploy")?;
    /// assert_eq!(deployments.resource.to_string(), "deployments.v1.apps");
    /// # Ok(())
    /// # }
    /// ```
    pub fn find_by_arg(&self, arg: &str) -> Result<&ApiResourceInfo, UnknownResource> {
        names::find(&self.resources, arg).ok_or_else(|| self.unknown(arg))
    }

    /// Puts `resources` (in the server's order) together and finds out which versions are
    /// preferred.
    fn new(mut resources: Vec<ApiResourceInfo>, failed: Vec<FailedGroup>) -> Self {
        let mut seen = HashSet::new();
        for info in &mut resources {
            info.preferred =
                seen.insert((info.resource.group.clone(), info.resource.plural.clone()));
        }
        Self { resources, failed }
    }

    /// The resource of this group and version whose short name, singular or kind is `name`.
    pub(crate) fn find_other_name(
        &self,
        group: &str,
        version: &str,
        name: &str,
    ) -> Option<&ApiResourceInfo> {
        names::by_any_name(&self.resources, &name.to_lowercase(), |it| {
            it.group == group && it.version == version
        })
    }

    fn unknown(&self, asked: &str) -> UnknownResource {
        let similar = names::similar(&self.resources, asked).into_iter();
        // As arguments that find them.
        let suggestions = similar.map(|it| it.resource.group_resource().into_owned()).collect();
        let unavailable =
            self.failed.iter().map(|it| format!("{} ({})", it.group_version, it.cause)).collect();
        UnknownResource { asked: asked.to_owned(), suggestions, unavailable, other_name_of: None }
    }

    fn unknown_exact(&self, group: &str, version: &str, plural: &str) -> UnknownResource {
        let asked = Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: String::new(),
            namespaced: false,
        };
        // The name may be right, and only its group or version wrong.
        let same_name = self.resources.iter().filter(|it| it.resource.plural == plural);
        let other_name = self.find_other_name(group, version, plural);
        let elsewhere = names::by_any_name(&self.resources, &plural.to_lowercase(), |_| true);
        let similar = names::similar(&self.resources, plural);
        let candidates = same_name.chain(other_name).chain(elsewhere).chain(similar);
        let mut suggestions: Vec<String> = Vec::new();
        for suggestion in candidates.map(|it| it.resource.to_string()) {
            if suggestions.len() < names::MAX_SUGGESTIONS && !suggestions.contains(&suggestion) {
                suggestions.push(suggestion);
            }
        }
        let other_name_of = other_name.map(|it| Box::new(it.resource.clone()));
        UnknownResource {
            asked: asked.to_string(),
            suggestions,
            other_name_of,
            ..self.unknown(plural)
        }
    }
}

impl ApiResourceInfo {
    /// Whether an informer can hold it: whether it can be listed and watched.
    #[must_use]
    pub fn can_be_watched(&self) -> bool {
        self.has_verb("list") && self.has_verb("watch")
    }

    /// Whether the server offers this verb for it.
    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == verb)
    }
}

#[cfg(test)]
mod tests;
