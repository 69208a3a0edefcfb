//! Requests in the name of another user: whom they name, and what the caller must be allowed for
//! that. kube-apiserver decides when such a request is passed on to it; here its open watches are
//! reviewed.

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
/// Where the rights to pass on a UID and extra are.
const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");

/// Another user, in whose name a request is made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Impersonation {
    pub(super) identity: Arc<Identity>,
    /// All that the caller must be allowed.
    pub(super) rights: Vec<Arc<Attributes>>,
}

impl Impersonation {
    /// Reads the headers as kube-apiserver does; `None` if they name no user, which it refuses.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let user = headers.get(USER).map(text).filter(|it| !it.is_empty())?;
        let mut groups = Vec::from_iter(headers.get_all(GROUP).iter().map(text));
        let mut rights = vec![match service_account(&user) {
            Some((namespace, name)) => ResourceAttributes {
                namespace: namespace.to_owned(),
                ..right("serviceaccounts", name)
            },
            None => right("users", &user),
        }];
        rights.extend(groups.iter().map(|it| right("groups", it)));
        let mut extra = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in headers {
            let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
            let key = percent_decode_str(key).decode_utf8().unwrap_or(Cow::Borrowed(key));
            let value = text(value);
            rights.push(ResourceAttributes {
                subresource: key.clone().into_owned(),
                ..of_authentication("userextras", &value)
            });
            extra.entry(key.into_owned()).or_default().push(value);
        }
        let uid = headers.get(UID).map(text).unwrap_or_default();
        if !uid.is_empty() {
            rights.push(of_authentication("uids", &uid));
        }
        if let Some((namespace, _)) = service_account(&user).filter(|_| groups.is_empty()) {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let mut identity = Identity { user, groups, uid, extra };
        let has = |group| identity.groups.iter().any(|it| it == group);
        match identity.is_anonymous() {
            true if !has(UNAUTHENTICATED) => identity.groups.push(UNAUTHENTICATED.to_owned()),
            false if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) => {
                identity.groups.push(AUTHENTICATED.to_owned());
            }
            true | false => {}
        }
        let rights = rights.into_iter().map(|it| Arc::new(Attributes::Resource(Box::new(it))));
        Some(Self { identity: Arc::new(identity), rights: rights.collect() })
    }
}

fn right(resource: &str, name: &str) -> ResourceAttributes {
    ResourceAttributes {
        verb: Cow::Borrowed("impersonate"),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..ResourceAttributes::default()
    }
}

fn of_authentication(resource: &str, name: &str) -> ResourceAttributes {
    let (group, version) = AUTHENTICATION;
    let of_core = right(resource, name);
    ResourceAttributes { group: group.to_owned(), version: version.to_owned(), ..of_core }
}

/// Namespace and name of the service account that is this user.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let is_label = |it: &str| {
        let is_inner = |it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'-');
        it.bytes().all(is_inner) && !it.is_empty() && !it.starts_with('-') && !it.ends_with('-')
    };
    (is_label(namespace) && name.split('.').all(is_label)).then_some((namespace, name))
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use serde_json::{Value, json};

    use super::*;

    fn of(pairs: &[(&'static str, &str)]) -> Option<Impersonation> {
        let pairs =
            pairs.iter().map(|(key, value)| (HeaderName::from_static(key), value.parse().unwrap()));
        Impersonation::of(&pairs.collect())
    }

    fn rights(of: &Impersonation) -> Vec<Value> {
        of.rights.iter().map(|it| it.to_review().1).collect()
    }

    #[test]
    fn everything_that_is_passed_on_of_a_user_is_a_right() {
        let it = of(&[
            ("impersonate-user", "jane"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-uid", "u-1"),
            ("impersonate-extra-example.com%2fscopes", "x"),
            ("impersonate-extra-example.com%2fscopes", "y"),
        ])
        .unwrap();
        let extra = |name| {
            json!({"verb": "impersonate", "group": "authentication.k8s.io", "version": "v1",
                "resource": "userextras", "subresource": "example.com/scopes", "name": name})
        };
        assert_eq!(
            rights(&it),
            [
                json!({"verb": "impersonate", "resource": "users", "name": "jane"}),
                json!({"verb": "impersonate", "resource": "groups", "name": "a"}),
                json!({"verb": "impersonate", "resource": "groups", "name": "b"}),
                extra("x"),
                extra("y"),
                json!({"verb": "impersonate", "group": "authentication.k8s.io", "version": "v1",
                    "resource": "uids", "name": "u-1"}),
            ]
        );
        let Identity { user, groups, uid, extra } = &*it.identity;
        assert_eq!((&**user, &**uid), ("jane", "u-1"));
        assert_eq!(groups, &["a", "b", "system:authenticated"]);
        assert_eq!(extra["example.com/scopes"], ["x", "y"]);
    }

    #[test]
    fn service_accounts_have_their_groups_and_the_anonymous_user_is_none_of_the_authenticated() {
        let it = of(&[("impersonate-user", "system:serviceaccount:ns:a.b-c")]).unwrap();
        let account = json!({"verb": "impersonate", "resource": "serviceaccounts",
            "namespace": "ns", "name": "a.b-c"});
        assert_eq!(rights(&it), [account]);
        assert_eq!(
            it.identity.groups,
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        );
        for user in ["system:serviceaccount:ns", "system:serviceaccount:ns:A", "system:x:ns:a"] {
            let it = of(&[("impersonate-user", user)]).unwrap();
            assert_eq!(rights(&it)[0]["resource"], "users", "{user}");
        }
        let groups = |user, group: &[(&'static str, &str)]| {
            let user = [("impersonate-user", user)];
            of(&[&user[..], group].concat()).unwrap().identity.groups.clone()
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
