//! Access control: authentication and authorization as the API server would decide them.
//!
//! The guard calls [`Access::asker`] for every request. With access control, the guard then reviews
//! the resource that the path names. The handler of a short path does this review itself, once it
//! has resolved the resource.

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

/// The access control of a listening address.
#[derive(Clone)]
pub(crate) enum Access {
    /// Every client that can connect may read what the endpoint's own account may read.
    Own,
    /// All requests are refused: the address is reachable from other machines, and clients cannot
    /// be authenticated.
    Refused,
    /// Callers may read what the API server allows them.
    Controlled(Control),
}

/// Authenticates and authorizes callers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Control {
    reviews: Arc<Reviews>,
    tls: Option<Tls>,
}

/// A caller, and the means to review its permissions. The guard puts it into the extensions of
/// every request that it admits.
#[derive(Clone)]
pub(crate) struct Asker {
    caller: Arc<Caller>,
    /// `None` if the address has no access control: everything is allowed.
    control: Option<(Control, Presented)>,
}

impl Access {
    /// Authenticates the caller of a request.
    ///
    /// # Errors
    /// If the caller cannot be authenticated.
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

    /// Whether the address has access control.
    pub(crate) fn is_reviewed(&self) -> bool {
        self.control.is_some()
    }

    /// Authenticates the caller of an open stream again, since its groups may have changed.
    ///
    /// # Errors
    /// If the credentials are no longer accepted or now belong to another user, or if the review
    /// fails.
    pub(crate) async fn again(&self) -> Result<Self, Refused> {
        let Some((control, presented)) = &self.control else { return Ok(self.clone()) };
        let purpose = Purpose::OpenWatch(self.caller.user.as_str().into());
        let caller = control.authenticate(presented, &purpose).await?;
        if caller.user != self.caller.user {
            return Err(Refused::Unauthenticated);
        }
        Ok(Self { caller: Arc::new(caller), control: self.control.clone() })
    }

    /// Reviews whether the caller may do this. Returns `None` on an address without access control,
    /// where no permission can be lost.
    ///
    /// # Errors
    /// If the caller may not do this, or if the review fails.
    pub(crate) async fn may(&self, attributes: Attributes) -> Result<Option<Permission>, Refused> {
        let Some((control, presented)) = self.control.clone() else { return Ok(None) };
        let attributes = Arc::new(attributes);
        let purpose = Purpose::Request(presented.address);
        control.reviews.check(&self.caller.identity, &attributes, &purpose).await?;
        let user = self.caller.user.as_str().into();
        Ok(Some(Permission { control, presented, user, attributes, impersonation: None }))
    }

    /// The permission of an impersonated request, for the reviews of its open watch; `None` if the
    /// headers name no other user, since kube-apiserver then goes by the caller's own rights. The
    /// API server decides whether the caller has it, since the request is forwarded.
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
