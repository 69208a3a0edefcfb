//! Who may read: authentication and authorization as the API server would decide them.
//!
//! Every request passes [`Access::asker`] in the guard. Where access is controlled, the guard then
//! asks for what the path names; a short path of the gateway asks by itself, once it knows the
//! resource.

mod answers;
mod attributes;
mod caller;
mod certificate;
mod credentials;
mod familiar;
mod impersonation;
mod permission;
mod review_client;
mod reviews;

use std::sync::Arc;

use http::HeaderMap;
use http::request::Parts;

pub(crate) use attributes::{Attributes, ResourceAttributes};
pub(crate) use caller::{Caller, Credential};
pub(crate) use certificate::{ClientCa, Peer};
pub(crate) use credentials::WEBSOCKET_BEARER;
pub(crate) use permission::Permission;
pub(crate) use reviews::{Refused, Reviews};

use crate::tls::Tls;
use credentials::Presented;
use impersonation::Impersonation;
use reviews::Purpose;

/// Who may read at an address.
#[derive(Clone)]
pub(crate) enum Access {
    /// Everybody who reaches it, what the endpoint's own account may read.
    Own,
    /// Nobody: the address is exposed, and nobody can say who is there.
    Refused,
    /// Those whom the API server allows it.
    Controlled(Control),
}

/// How callers are known and checked; a cheap handle.
#[derive(Clone)]
pub(crate) struct Control {
    reviews: Arc<Reviews>,
    tls: Option<Tls>,
}

/// A caller, and how to find out what they may do: in the extensions of every request that has
/// passed the guard.
#[derive(Clone)]
pub(crate) struct Asker {
    caller: Arc<Caller>,
    /// Without it everything is allowed.
    control: Option<(Control, Presented)>,
}

impl Access {
    /// Who asks.
    ///
    /// # Errors
    /// If nobody can say.
    pub(crate) async fn asker(&self, parts: &Parts) -> Result<Asker, Refused> {
        match self {
            Self::Own | Self::Refused => Ok(Asker { caller: Caller::own(), control: None }),
            Self::Controlled(control) => {
                let presented = Presented::of(&parts.headers, &parts.extensions);
                let purpose = Purpose::Request(presented.address);
                let caller = Arc::new(control.authenticate(&presented, &purpose).await?);
                Ok(Asker { caller, control: Some((control.clone(), presented)) })
            }
        }
    }
}

impl Control {
    pub(crate) fn new(reviews: Arc<Reviews>, tls: Option<Tls>) -> Self {
        Self { reviews, tls }
    }

    async fn authenticate(
        &self,
        presented: &Presented,
        purpose: &Purpose,
    ) -> Result<Caller, Refused> {
        let ca = self.tls.as_ref().and_then(Tls::client_ca);
        let certified = presented.certificate.as_ref().and_then(|it| ca?.identity(it));
        if let Some(identity) = certified.filter(|it| !it.is_anonymous()) {
            return Ok(Caller { identity, credential: Credential::Certificate });
        }
        let token = presented.token.as_ref().ok_or(Refused::Unauthenticated)?;
        let identity = self.reviews.whose(token, purpose).await?;
        Ok(Caller { identity, credential: Credential::Token(Arc::clone(token)) })
    }
}

impl Asker {
    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// Whether callers are known and reviewed.
    pub(crate) fn is_reviewed(&self) -> bool {
        self.control.is_some()
    }

    /// The caller as the credentials say now, for a stream that goes on: groups may have changed.
    ///
    /// # Errors
    /// If the credentials are not accepted any more, or are another user's now; or if the API
    /// server does not say.
    pub(crate) async fn again(&self) -> Result<Self, Refused> {
        let Some((control, presented)) = &self.control else { return Ok(self.clone()) };
        let purpose = Purpose::OpenWatch(self.caller.user.as_str().into());
        let caller = control.authenticate(presented, &purpose).await?;
        if caller.user != self.caller.user {
            return Err(Refused::Unauthenticated);
        }
        Ok(Self { caller: Arc::new(caller), control: self.control.clone() })
    }

    /// Whether the caller may do this; there is no permission to lose where nothing is reviewed.
    ///
    /// # Errors
    /// If not, or if the API server does not say.
    pub(crate) async fn may(&self, attributes: Attributes) -> Result<Option<Permission>, Refused> {
        let Some((control, presented)) = self.control.clone() else { return Ok(None) };
        let attributes = Arc::new(attributes);
        let purpose = Purpose::Request(presented.address);
        control.reviews.check(&self.caller.identity, &attributes, &purpose).await?;
        let user = self.caller.user.as_str().into();
        Ok(Some(Permission { control, presented, user, attributes, impersonation: None }))
    }

    /// What a caller that acts in the name of another may lose; `None` if the headers name no
    /// other user, since kube-apiserver then goes by the caller's own rights. Whether the caller
    /// has the permission is decided by kube-apiserver, since it gets the request.
    pub(crate) fn may_lose(
        &self,
        attributes: &Attributes,
        headers: &HeaderMap,
    ) -> Option<Permission> {
        let (control, presented) = self.control.clone()?;
        let user = self.caller.user.as_str().into();
        let impersonation = Some(Arc::new(Impersonation::of(headers, attributes)?));
        let attributes = Arc::new(attributes.clone());
        Some(Permission { control, presented, user, attributes, impersonation })
    }
}
