//! Impersonated requests: the user that they name, and the permissions that the caller needs. The
//! requests are forwarded, and kube-apiserver decides them. Only their open watches are reviewed
//! here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;

use super::attributes::{Attributes, ResourceAttributes};
use super::caller::{AUTHENTICATED, Identity, UNAUTHENTICATED};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const NODE: &str = "system:node:";
/// The group of all nodes.
const NODES: &str = "system:nodes";
const CORE: (&str, &str) = ("", "v1");
const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");

/// The impersonation that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Impersonation {
    /// The alternative sets of permissions. One of them is sufficient.
    pub(super) ways: Vec<Way>,
}

/// One set of permissions that allows a caller to impersonate a user.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The caller must have all of these.
    pub(super) rights: Vec<Arc<Attributes>>,
    /// The identity whose permissions then apply to the request.
    pub(super) identity: Arc<Identity>,
}

impl Impersonation {
    /// Parses the headers of a request as kube-apiserver does; `None` if they name no user.
    /// kube-apiserver then refuses a request that names groups, a UID or extra fields, and ignores
    /// all other headers.
    pub(super) fn of(headers: &HeaderMap, request: &Attributes) -> Option<Self> {
        let user = headers.get(USER).map(text).filter(|it| !it.is_empty())?;
        let mut extra = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in headers {
            let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
            let key = percent_decode_str(key).decode_utf8().unwrap_or(Cow::Borrowed(key));
            extra.entry(key.into_owned()).or_default().push(text(value));
        }
        let groups = headers.get_all(GROUP).iter().map(text).collect();
        let uid = headers.get(UID).map(text).unwrap_or_default();
        let wanted = Identity { user, groups, uid, extra };
        let legacy = Way {
            rights: rights("impersonate", CORE, &wanted).into_iter().map(arc).collect(),
            identity: completed(wanted.clone()),
        };
        Some(Self {
            ways: [Some(legacy), constrained(wanted, request)].into_iter().flatten().collect(),
        })
    }
}

/// Constrained impersonation: the permission to do this on behalf of another user, and one for each
/// part of the identity.
fn constrained(wanted: Identity, request: &Attributes) -> Option<Way> {
    let Attributes::Resource(request) = request else { return None };
    let is_user_alone =
        wanted.groups.is_empty() && wanted.uid.is_empty() && wanted.extra.is_empty();
    let mode = match (node(&wanted.user), service_account(&wanted.user)) {
        (None, None) if wanted.is_privileged() => return None,
        (None, None) => "user-info",
        (Some(_), _) if is_user_alone => "arbitrary-node",
        (_, Some(_)) if is_user_alone => "serviceaccount",
        (Some(_), _) | (_, Some(_)) => return None,
    };
    let verb = Cow::Owned(format!("impersonate-on:{mode}:{}", request.verb));
    let mut all = vec![ResourceAttributes { verb, ..(**request).clone() }];
    all.extend(rights(&format!("impersonate:{mode}"), AUTHENTICATION, &wanted));
    if let Some(node) = node(&wanted.user) {
        let of = ResourceAttributes { resource: "nodes".to_owned(), ..all[1].clone() };
        all[1] = ResourceAttributes { name: node.to_owned(), ..of };
    }
    let groups =
        node(&wanted.user).map_or_else(|| wanted.groups.clone(), |_| vec![NODES.to_owned()]);
    let identity = completed(Identity { groups, ..wanted });
    Some(Way { rights: all.into_iter().map(arc).collect(), identity })
}

/// One permission for each part of an identity, beginning with the user name.
fn rights(verb: &str, of_names: (&str, &str), wanted: &Identity) -> Vec<ResourceAttributes> {
    let right = |(group, version): (&str, &str), resource: &str, name: &str| ResourceAttributes {
        verb: Cow::Owned(verb.to_owned()),
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..ResourceAttributes::default()
    };
    let mut rights = vec![match service_account(&wanted.user) {
        Some((namespace, name)) => ResourceAttributes {
            namespace: namespace.to_owned(),
            ..right(of_names, "serviceaccounts", name)
        },
        None => right(of_names, "users", &wanted.user),
    }];
    rights.extend(wanted.groups.iter().map(|it| right(of_names, "groups", it)));
    for (key, values) in &wanted.extra {
        rights.extend(values.iter().map(|value| ResourceAttributes {
            subresource: key.clone(),
            ..right(AUTHENTICATION, "userextras", value)
        }));
    }
    if !wanted.uid.is_empty() {
        rights.push(right(AUTHENTICATION, "uids", &wanted.uid));
    }
    rights
}

/// The identity with the groups that are implied and need no header.
fn completed(mut identity: Identity) -> Arc<Identity> {
    if let Some((namespace, _)) =
        service_account(&identity.user).filter(|_| identity.groups.is_empty())
    {
        identity.groups.push("system:serviceaccounts".to_owned());
        identity.groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let has = |group| identity.groups.iter().any(|it| it == group);
    match identity.is_anonymous() {
        true if !has(UNAUTHENTICATED) => identity.groups.push(UNAUTHENTICATED.to_owned()),
        false if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) => {
            identity.groups.push(AUTHENTICATED.to_owned());
        }
        true | false => {}
    }
    Arc::new(identity)
}

fn arc(attributes: ResourceAttributes) -> Arc<Attributes> {
    Arc::new(Attributes::Resource(Box::new(attributes)))
}

/// The name of the node, if the user is a node.
fn node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE).filter(|it| it.split('.').all(is_label))
}

/// The namespace and name of the service account, if the user is one.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    (is_label(namespace) && name.split('.').all(is_label)).then_some((namespace, name))
}

/// Whether the text is a DNS label.
fn is_label(text: &str) -> bool {
    let is_inner = |it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'-');
    text.bytes().all(is_inner) && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, Method};
    use serde_json::{Value, json};

    use super::*;

    /// The ways to watch Pods with these headers.
    fn of(pairs: &[(&'static str, &str)]) -> Option<Vec<Way>> {
        let pairs =
            pairs.iter().map(|(key, value)| (HeaderName::from_static(key), value.parse().unwrap()));
        let request = Attributes::of_request(&Method::GET, "/api/v1/pods", "watch=1");
        Impersonation::of(&pairs.collect(), &request).map(|it| it.ways)
    }

    fn rights(of: &Way) -> Vec<Value> {
        of.rights.iter().map(|it| it.to_review().1).collect()
    }

    #[test]
    fn everything_that_is_passed_on_of_a_user_is_a_right() {
        let ways = of(&[
            ("impersonate-user", "jane"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-uid", "u-1"),
            ("impersonate-extra-example.com%2fscopes", "x"),
            ("impersonate-extra-example.com%2fscopes", "y"),
        ])
        .unwrap();
        let expected = |verb: &str, group: &str| {
            let name = |resource, name| {
                let mut right =
                    json!({"verb": verb, "version": "v1", "resource": resource, "name": name});
                if !group.is_empty() {
                    right["group"] = group.into();
                }
                right
            };
            let extra = |name| {
                json!({"verb": verb, "group": "authentication.k8s.io", "version": "v1",
                    "resource": "userextras", "subresource": "example.com/scopes", "name": name})
            };
            let uid = json!({"verb": verb, "group": "authentication.k8s.io", "version": "v1",
                "resource": "uids", "name": "u-1"});
            let names = [name("users", "jane"), name("groups", "a"), name("groups", "b")];
            [&names[..], &[extra("x"), extra("y"), uid]].concat()
        };
        let [legacy, constrained] = &ways[..] else { panic!("{ways:?}") };
        assert_eq!(rights(legacy), expected("impersonate", ""));
        let [on, parts @ ..] = &rights(constrained)[..] else { panic!() };
        assert_eq!(
            *on,
            json!({"verb": "impersonate-on:user-info:watch", "version": "v1", "resource": "pods"})
        );
        assert_eq!(parts, expected("impersonate:user-info", "authentication.k8s.io"));
        for way in &ways {
            let Identity { user, groups, uid, extra } = &*way.identity;
            assert_eq!((&**user, &**uid), ("jane", "u-1"));
            assert_eq!(groups, &["a", "b", "system:authenticated"]);
            assert_eq!(extra["example.com/scopes"], ["x", "y"]);
        }
    }

    #[test]
    fn service_accounts_and_nodes_have_their_groups() {
        let ways = of(&[("impersonate-user", "system:serviceaccount:ns:a.b-c")]).unwrap();
        let account = json!({"verb": "impersonate", "version": "v1",
            "resource": "serviceaccounts", "namespace": "ns", "name": "a.b-c"});
        assert_eq!(rights(&ways[0]), [account]);
        assert_eq!(rights(&ways[1])[1]["verb"], "impersonate:serviceaccount");
        for way in &ways {
            assert_eq!(
                way.identity.groups,
                ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
            );
        }
        for user in ["system:serviceaccount:ns", "system:serviceaccount:ns:A", "system:x:ns:a"] {
            let ways = of(&[("impersonate-user", user)]).unwrap();
            assert_eq!(rights(&ways[0])[0]["resource"], "users", "{user}");
        }

        let ways = of(&[("impersonate-user", "system:node:n.1")]).unwrap();
        assert_eq!(rights(&ways[0])[0]["resource"], "users");
        assert_eq!(ways[0].identity.groups, ["system:authenticated"]);
        assert_eq!(
            rights(&ways[1])[1],
            json!({"verb": "impersonate:arbitrary-node", "group": "authentication.k8s.io",
                "version": "v1", "resource": "nodes", "name": "n.1"})
        );
        assert_eq!(ways[1].identity.groups, ["system:nodes", "system:authenticated"]);
    }

    #[test]
    fn constrained_impersonation_takes_no_more_than_it_may() {
        for (user, group) in
            [("jane", "system:masters"), ("system:node:n", "a"), ("system:serviceaccount:n:a", "a")]
        {
            let ways = of(&[("impersonate-user", user), ("impersonate-group", group)]).unwrap();
            assert_eq!(ways.len(), 1, "{user}");
        }
    }

    #[test]
    fn the_anonymous_user_is_none_of_the_authenticated() {
        let groups = |user, group: &[(&'static str, &str)]| {
            let user = [("impersonate-user", user)];
            of(&[&user[..], group].concat()).unwrap()[0].identity.groups.clone()
        };
        assert_eq!(groups("system:anonymous", &[]), ["system:unauthenticated"]);
        let outside = [("impersonate-group", "system:unauthenticated")];
        assert_eq!(groups("jane", &outside), ["system:unauthenticated"]);
    }

    #[test]
    fn nobody_is_named_without_a_user() {
        for pairs in [&[("impersonate-group", "a")][..], &[("impersonate-user", "")], &[]] {
            assert_eq!(of(pairs), None);
        }
    }
}
