//! Who may do what: bearer tokens and denials, enough to show 401 and 403.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, header};
use k8s_serve::{ResourcePath, Status, Verb};
use serde_json::{Value, json};

use crate::requests::names;

/// The user of requests while no tokens are required.
const ANONYMOUS: &str = "system:anonymous";

/// Who may do what on a server; a cheap handle.
///
/// At first everyone may do everything. Once a token is [added](Self::add_token), requests need
/// one. What is not [denied](Self::deny) is allowed. Reviews of tokens and of access that are
/// created on the server are answered by the same rules.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), informer_testkit::StartError> {
/// use informer_testkit::{TestServer, Verb};
///
/// let server = TestServer::start().await?;
/// server.auth().add_token("secret", "alice");
/// server.auth().deny("alice", Verb::List, "secrets");
/// server.auth().revoke_token("secret"); // from now on: 401
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Auth(Arc<Mutex<Rules>>);

#[derive(Debug, Default)]
struct Rules {
    required: bool,
    users: HashMap<String, String>,
    denials: Vec<Denial>,
}

#[derive(Debug, PartialEq, Eq)]
struct Denial {
    user: String,
    verb: Option<Verb>,
    resource: String,
}

impl Rules {
    fn denies(&self, user: &str, verb: &str, path: &ResourcePath) -> bool {
        self.denials.iter().any(|denial| {
            denial.user == user
                && denial.verb.is_none_or(|denied| denied.as_str() == verb)
                && (denial.resource == "*" || names(path, &denial.resource))
        })
    }
}

impl Auth {
    /// Requires a bearer token from now on, and accepts this one as a user.
    pub fn add_token(&self, token: &str, user: &str) {
        let mut rules = self.lock();
        rules.required = true;
        rules.users.insert(token.to_owned(), user.to_owned());
    }

    /// Accepts a token no longer, as if it had expired: requests with it are answered 401. Open
    /// watches go on, as on a real server.
    pub fn revoke_token(&self, token: &str) {
        self.lock().users.remove(token);
    }

    /// Denies a user a verb on a resource (`pods`, `deployments.apps`, or `*` for all): 403. Where
    /// no tokens are required the user is `system:anonymous`.
    pub fn deny(&self, user: &str, verb: Verb, resource: &str) {
        self.lock().denials.push(Denial {
            user: user.to_owned(),
            verb: Some(verb),
            resource: resource.to_owned(),
        });
    }

    /// Denies a user everything on a resource.
    pub fn deny_all(&self, user: &str, resource: &str) {
        self.lock().denials.push(Denial {
            user: user.to_owned(),
            verb: None,
            resource: resource.to_owned(),
        });
    }

    /// Takes back everything that a user was denied.
    pub fn allow(&self, user: &str) {
        self.lock().denials.retain(|denial| denial.user != user);
    }

    /// Takes back all rules: everyone may do everything again.
    pub fn clear(&self) {
        *self.lock() = Rules::default();
    }

    /// The user of a request, or 401.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Result<String, Status> {
        let rules = self.lock();
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        match token.and_then(|token| rules.users.get(token)) {
            Some(user) => Ok(user.clone()),
            None if rules.required => Err(Status::new(401, "Unauthorized", "Unauthorized")),
            None => Ok(ANONYMOUS.to_owned()),
        }
    }

    /// Whether a user may do this, or 403.
    pub(crate) fn check(&self, user: &str, verb: Verb, path: &ResourcePath) -> Result<(), Status> {
        if !self.lock().denies(user, verb.as_str(), path) {
            return Ok(());
        }
        let mut name = path.resource.clone();
        if !path.group.is_empty() {
            name = format!("{name}.{}", path.group);
        }
        let scope = match &path.namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        let object = path.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
        let mut status = Status::new(
            403,
            "Forbidden",
            format!(
                "{name}{object} is forbidden: User {user:?} cannot {verb} resource {:?} in API group {:?} {scope}",
                path.resource, path.group
            ),
        );
        status.details.group.clone_from(&path.group);
        status.details.kind.clone_from(&path.resource);
        status.details.name = path.name.clone().unwrap_or_default();
        Err(status)
    }

    /// The answer to a review, if the path is that of one: the review with its status.
    pub(crate) fn review(&self, path: &ResourcePath, review: &[u8]) -> Option<Value> {
        let rules = self.lock();
        let mut review: Value = match (path.group.as_str(), path.resource.as_str()) {
            ("authentication.k8s.io", "tokenreviews")
            | ("authorization.k8s.io", "subjectaccessreviews") => {
                serde_json::from_slice(review).ok()?
            }
            _ => return None,
        };
        let spec = &review["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let status = if path.resource == "tokenreviews" {
            match rules.users.get(&text(&spec["token"])) {
                Some(user) => json!({
                    "authenticated": true,
                    "user": { "username": user, "groups": ["system:authenticated"] },
                }),
                None => json!({ "error": "invalid bearer token" }),
            }
        } else {
            let of = &spec["resourceAttributes"];
            let some = |value: &Value| Some(text(value)).filter(|it| !it.is_empty());
            let asked = ResourcePath {
                group: text(&of["group"]),
                version: text(&of["version"]),
                namespace: some(&of["namespace"]),
                resource: text(&of["resource"]),
                name: some(&of["name"]),
                subresource: some(&of["subresource"]),
            };
            let denied = rules.denies(&text(&spec["user"]), &text(&of["verb"]), &asked);
            json!({ "allowed": !denied })
        };
        review["status"] = status;
        Some(review)
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
