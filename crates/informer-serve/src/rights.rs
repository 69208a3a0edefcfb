//! Finds the rights that the endpoint's own account lacks. It uses self-subject reviews, because a
//! missing right may stay unnoticed: an informer needs some rights only as a fallback.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use http::Request;
use informer::Resource;
use k8s_protobuf::Kind;
use kube::Client;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

/// How long the result of a review is cached if the right is granted.
const FRESH: Duration = Duration::from_secs(60);
/// Minimum interval between two reviews of a missing right.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// Time limit for a review.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of concurrent reviews.
const MAX_CONCURRENT: usize = 8;
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The rights that were reviewed, and their results. Cheap to clone; clones share the state.
#[derive(Clone)]
pub(crate) struct Rights {
    client: Client,
    known: Arc<Mutex<BTreeMap<Right, Known>>>,
}

/// A right that the endpoint needs to hold a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    verb: &'static str,
    group: String,
    resource: String,
    /// The object, if the right is for a single one.
    name: Option<String>,
    namespace: Option<String>,
}

/// The result of the last review of a right.
#[derive(Debug, Clone, Copy)]
struct Known {
    is_missing: bool,
    /// Whether any review so far granted the right.
    was_granted: bool,
    at: Instant,
}

impl Rights {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, known: Arc::default() }
    }

    /// Reviews the rights whose cached result has expired, and logs changes. A failed review
    /// changes nothing, and a right that was never reviewed counts as granted: the requests that
    /// need it will fail if it is missing.
    ///
    /// # Cancel safety
    /// The results of completed reviews are kept.
    pub(crate) async fn check(&self, rights: impl IntoIterator<Item = Right>) {
        let now = Instant::now();
        let is_old = |right: &Right| {
            self.lock().get(right).is_none_or(|it| {
                now.duration_since(it.at) >= if it.is_missing { ASK_AGAIN } else { FRESH }
            })
        };
        let asked: Vec<Right> = rights.into_iter().filter(is_old).collect();
        let answers = stream::iter(asked.into_iter().map(async |right| {
            let is_allowed = self.ask(&right).await;
            (right, is_allowed)
        }));
        let mut answers = answers.buffer_unordered(MAX_CONCURRENT);
        while let Some((right, is_allowed)) = answers.next().await {
            self.learn(right, is_allowed);
        }
    }

    /// Describes the first of the needed rights that is missing and never was granted.
    pub(crate) fn never_granted(&self, needed: &[Right]) -> Option<String> {
        let known = self.lock();
        let is_missing =
            |right: &&Right| known.get(right).is_some_and(|it| it.is_missing && !it.was_granted);
        needed.iter().find(is_missing).map(Right::to_string)
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// Whether the account has a right; `None` if the review fails.
    async fn ask(&self, right: &Right) -> Option<bool> {
        let mut attributes =
            json!({ "verb": right.verb, "group": right.group, "resource": right.resource });
        for (field, value) in [("name", &right.name), ("namespace", &right.namespace)] {
            if let Some(value) = value {
                attributes[field] = value.as_str().into();
            }
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes },
        });
        let request = Request::post(REVIEWS).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(&review).ok()?).ok()?;
        match timeout(TIMEOUT, self.client.request::<Value>(request)).await {
            Ok(Ok(review)) => review["status"]["allowed"].as_bool(),
            Ok(Err(error)) => {
                tracing::debug!("the API server does not review this account's rights: {error}");
                None
            }
            Err(_) => None,
        }
    }

    fn learn(&self, right: Right, is_allowed: Option<bool>) {
        let mut known = self.lock();
        let before = known.get(&right).copied();
        let was_missing = before.is_some_and(|it| it.is_missing);
        // A failed review leaves the state as it was.
        let is_missing = is_allowed.map_or(was_missing, |it| !it);
        match (was_missing, is_missing) {
            (false, true) => tracing::warn!("{right}"),
            (true, false) => tracing::warn!("this endpoint's account may now {}", right.act()),
            (true, true) | (false, false) => {}
        }
        let was_granted = before.is_some_and(|it| it.was_granted) || is_allowed == Some(true);
        known.insert(right, Known { is_missing, was_granted, at: Instant::now() });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Right, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Right {
    /// The rights to hold a resource: list and watch.
    pub(crate) fn to_hold(resource: &Resource, namespace: Option<&str>) -> [Self; 2] {
        let namespace = namespace.filter(|_| resource.namespaced);
        ["list", "watch"].map(|verb| Self {
            verb,
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            name: None,
            namespace: namespace.map(ToOwned::to_owned),
        })
    }

    /// The right to read the definition of a custom resource, which has its table columns and
    /// selectable fields.
    pub(crate) fn to_describe(resource: &Resource) -> Option<Self> {
        let is_custom = Kind::of(&resource.api_version(), &resource.kind).is_none();
        is_custom.then(|| Self {
            verb: "get",
            group: "apiextensions.k8s.io".to_owned(),
            resource: "customresourcedefinitions".to_owned(),
            name: Some(format!("{}.{}", resource.plural, resource.group)),
            namespace: None,
        })
    }

    /// The right as a text such as `list pods in API group ""`.
    fn act(&self) -> String {
        let Self { verb, group, resource, name, namespace } = self;
        let name = name.as_ref().map(|it| format!(" {it:?}")).unwrap_or_default();
        let namespace =
            namespace.as_ref().map(|it| format!(" in namespace {it}")).unwrap_or_default();
        format!("{verb} {resource}{name} in API group {group:?}{namespace}")
    }
}

/// Writes that the right is missing, and the RBAC rule to add.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, name, namespace } = self;
        write!(f, "this endpoint's account may not {}: add the rule ", self.act())?;
        write!(f, "{{apiGroups: [{group:?}], resources: [{resource:?}]")?;
        if let Some(name) = name {
            write!(f, ", resourceNames: [{name:?}]")?;
        }
        write!(f, ", verbs: [{verb:?}]}} to its ")?;
        match namespace {
            Some(namespace) => write!(f, "Role in namespace {namespace}"),
            None => f.write_str("ClusterRole"),
        }
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rights").field("known", &*self.lock()).finish_non_exhaustive()
    }
}

impl Collector for Rights {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Whether this endpoint's account lacks a right that holding a resource takes";
        let mut gauge =
            encoder.encode_descriptor("serve_missing_rights", help, None, MetricType::Gauge)?;
        for (right, known) in &*self.lock() {
            let labels = [
                ("verb", right.verb),
                ("group", right.group.as_str()),
                ("resource", right.resource.as_str()),
                ("name", right.name.as_deref().unwrap_or_default()),
            ];
            ConstGauge::new(i64::from(known.is_missing)).encode(gauge.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    fn right(verb: &'static str) -> Right {
        let [list, watch] = Right::to_hold(&Resource::of::<Deployment>(), None);
        if verb == "list" { list } else { watch }
    }

    fn rights() -> Rights {
        let unreachable = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        Rights::new(Client::try_from(unreachable).unwrap())
    }

    #[tokio::test]
    async fn what_is_missing_says_the_rule_to_add() {
        let rights = rights();
        rights.learn(right("list"), Some(true));
        rights.learn(right("watch"), Some(false));
        assert_eq!(
            rights.never_granted(&[right("list"), right("watch")]).unwrap(),
            "this endpoint's account may not watch deployments in API group \"apps\": add the rule \
             {apiGroups: [\"apps\"], resources: [\"deployments\"], verbs: [\"watch\"]} to its \
             ClusterRole"
        );
        assert_eq!(rights.never_granted(&[right("list")]), None);
        rights.learn(right("watch"), None);
        assert!(rights.never_granted(&[right("watch")]).is_some(), "no answer changes nothing");
        rights.learn(right("watch"), Some(true));
        assert_eq!(rights.never_granted(&[right("watch")]), None);
    }

    #[tokio::test]
    async fn a_right_that_was_there_and_is_taken_away_keeps_nobody_from_starting() {
        let rights = rights();
        rights.learn(right("list"), Some(true));
        rights.learn(right("list"), Some(false));
        assert_eq!(rights.never_granted(&[right("list")]), None);
        let mut registry = Registry::default();
        rights.register(&mut registry);
        let text = crate::metrics::encode(&registry).unwrap();
        let line =
            r#"serve_missing_rights{verb="list",group="apps",resource="deployments",name=""} 1"#;
        assert!(text.contains(line), "{text}");
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_takes_no_right_away() {
        let rights = rights();
        rights.check([right("list")]).await;
        assert_eq!(rights.never_granted(&[right("list")]), None);
    }
}
