//! The caller of a request.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use secrecy::SecretString;

/// The group of every caller whose identity is known.
pub(super) const AUTHENTICATED: &str = "system:authenticated";
/// The group of the user of requests without credentials.
pub(super) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group whose members may do everything.
const PRIVILEGED: &str = "system:masters";
/// The user of requests without credentials.
const ANONYMOUS: &str = "system:anonymous";

/// The caller of a request, as an `Arc<Caller>` in the extensions of every request that has passed
/// the guard. The user, its groups, UID and extra are fields of the [`Identity`].
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) identity: Arc<Identity>,
    pub(crate) credential: Credential,
}

/// The identity of a caller, as the API server reports it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    /// Empty on an address without access control.
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
    /// Empty if there is none.
    pub(crate) uid: String,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// The credential that a request can be forwarded with.
#[derive(Clone)]
pub(crate) enum Credential {
    /// The endpoint's own account: every caller on an address without access control.
    Own,
    /// The bearer token of the caller, without `Bearer`.
    Token(Arc<SecretString>),
    /// A client certificate, which cannot be passed on.
    Certificate,
}

impl Caller {
    /// A caller on an address without access control.
    pub(crate) fn own() -> Arc<Self> {
        static OWN: LazyLock<Arc<Caller>> = LazyLock::new(|| {
            Arc::new(Caller { identity: Arc::default(), credential: Credential::Own })
        });
        Arc::clone(&OWN)
    }
}

impl Deref for Caller {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl Identity {
    /// Whether no review is needed.
    pub(super) fn is_privileged(&self) -> bool {
        self.groups.iter().any(|it| it == PRIVILEGED)
    }

    pub(super) fn is_anonymous(&self) -> bool {
        self.user.is_empty() || self.user == ANONYMOUS
    }

    /// Bytes in memory, approximately.
    pub(super) fn weight(&self) -> usize {
        let groups = self.groups.iter().map(String::len);
        let extra = self.extra.iter().flat_map(|(key, values)| {
            std::iter::once(key.len()).chain(values.iter().map(String::len))
        });
        let texts = groups.chain(extra).map(|it| it + size_of::<String>());
        size_of::<Self>() + self.user.len() + self.uid.len() + texts.sum::<usize>()
    }
}

/// Leaves out the extra, which may contain secrets.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("user", &self.user)
            .field("groups", &self.groups)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "Own",
            Self::Token(_) => "Token",
            Self::Certificate => "Certificate",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_never_printed() {
        let credential = Credential::Token(Arc::new("hunter2".into()));
        let caller = Caller { credential, identity: Arc::default() };
        assert!(!format!("{caller:?}").contains("hunter2"), "{caller:?}");
    }
}
