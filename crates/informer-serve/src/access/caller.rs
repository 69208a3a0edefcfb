//! The caller of a request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use secrecy::SecretString;

/// The caller of a request, as an `Arc<Caller>` in the extensions of every request that has passed
/// the guard.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
    /// Empty if there is none.
    pub(crate) uid: String,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
    pub(crate) credential: Credential,
}

/// What a request can be forwarded with.
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
    pub(crate) fn own() -> Self {
        Self {
            user: String::new(),
            groups: Vec::new(),
            uid: String::new(),
            extra: BTreeMap::new(),
            credential: Credential::Own,
        }
    }
}

/// Without the extra, which may hold anything.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("user", &self.user)
            .field("groups", &self.groups)
            .field("uid", &self.uid)
            .field("credential", &self.credential)
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
        let caller = Caller { credential, ..Caller::own() };
        assert!(!format!("{caller:?}").contains("hunter2"), "{caller:?}");
    }
}
