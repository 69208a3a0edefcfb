//! What can go wrong with own writes.

use std::fmt;

use kube::core::Status;

use crate::error::Missing;
use crate::leader_election::NotLeader;
use crate::{ObjectKey, ResourceVersion, Uid};

/// A write of a reconcile failed.
///
/// It names the request, never the object's content.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The controller may not write now.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    /// The server has refused it: nothing was written.
    #[error("{operation}: {} ({} {})", status.message, status.code, status.reason)]
    Refused {
        /// The request, such as `create pods.v1 shop/web-0`.
        operation: String,
        /// What the server answered; of an answer that is no `Status`, its code.
        status: Box<Status>,
    },
    /// Whether it was written is unknown: the answer is missing (a timeout, a reset, the process
    /// leads no more), or is a 5xx.
    /// Before the next reconcile of the key, the object is read or the informers are refreshed.
    #[error("{operation}: whether it was written is unknown: {cause}")]
    Unknown {
        /// The request.
        operation: String,
        /// What happened.
        cause: String,
        /// The answer, if there was one.
        status: Option<Box<Status>>,
    },
    /// The server could not be reached: nothing was written.
    #[error("{operation}: it was not sent: {cause}")]
    NotSent {
        /// The request.
        operation: String,
        /// What happened.
        cause: String,
    },
    /// It was written, and the answer cannot be decoded into the type asked for.
    #[error("{operation}: it was written, but the answer cannot be decoded: {cause}")]
    Undecodable {
        /// The request.
        operation: String,
        /// Why, with line and column of the answer.
        cause: String,
    },
    /// There is no such request: nothing was written.
    #[error("{operation}: {problem}")]
    Invalid {
        /// The request.
        operation: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl WriteError {
    /// What the server answered, if it answered with an error.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => Some(status),
            Self::Unknown { status, .. } => status.as_deref(),
            Self::NotLeader(_)
            | Self::NotSent { .. }
            | Self::Undecodable { .. }
            | Self::Invalid { .. } => None,
        }
    }

    /// Whether the name is taken.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(Status::is_already_exists)
    }

    /// Whether the object is at another version, or has another UID, than the write expected.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| status.is_conflict() && !status.is_already_exists())
    }

    /// Whether there is no such object.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(Status::is_not_found)
    }

    /// The error of a write through the client of [`Writer::client`](super::Writer::client), if
    /// that is what a `kube::Error` is of.
    #[must_use]
    pub fn of_client(error: &kube::Error) -> Option<&Self> {
        match error {
            kube::Error::Service(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

/// The deadline passed before every informer showed what the reconciles of a key wrote, or an own
/// write cannot be decoded. The key must not be reconciled: it would act on an older state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCaughtUp {
    /// What is not shown, of each informer.
    pub missing: Vec<NotShown>,
}

/// One write that is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotShown {
    /// A write was not answered yet.
    InFlight {
        /// The resource, such as `deployments.apps`.
        resource: String,
        /// The name of the object, if it is known.
        name: Option<String>,
    },
    /// The outcome of a write is unknown, and neither a read nor a refresh has told it.
    Unsettled {
        /// The resource.
        resource: String,
        /// The name of the object, if it is known.
        name: Option<String>,
    },
    /// The store has not reached the version of a write.
    Version {
        /// The object.
        key: ObjectKey,
        /// The version that was written.
        wanted: ResourceVersion,
        /// The version that the store stands for; unset before the first list.
        reached: ResourceVersion,
        /// The informer, its state and its last error.
        informer: Missing,
    },
    /// The store holds an object that was deleted, or may come to hold it.
    Delete {
        /// The object.
        key: ObjectKey,
        /// Its UID.
        uid: Uid,
        /// The informer.
        informer: Missing,
    },
    /// The server's history was replaced during a write, and the informer is not refreshed since.
    Refresh {
        /// The informer.
        informer: Missing,
    },
    /// The object that was written cannot be decoded into what the informer holds, so it will not
    /// be shown.
    Undecodable {
        /// The object.
        key: ObjectKey,
        /// The version that was written.
        version: ResourceVersion,
        /// Why, with the path of the field.
        cause: String,
        /// The informer.
        informer: Missing,
    },
}

impl std::error::Error for NotCaughtUp {}

impl fmt::Display for NotCaughtUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("own writes are not shown: ")?;
        for (at, missing) in self.missing.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{missing}")?;
        }
        Ok(())
    }
}

impl fmt::Display for NotShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = |resource: &String, name: &Option<String>| match name {
            Some(name) => format!("{resource} {name:?}"),
            None => format!("{resource}, whose name is not known"),
        };
        match self {
            Self::InFlight { resource, name } => {
                write!(f, "a write to {} is not answered", object(resource, name))
            }
            Self::Unsettled { resource, name } => {
                write!(f, "the outcome of a write to {} is unknown", object(resource, name))
            }
            Self::Version { key, wanted, reached, informer } if reached.is_unset() => {
                write!(f, "version {wanted} of {key}: the store has no version yet: {informer}")
            }
            Self::Version { key, wanted, reached, informer } => {
                write!(f, "version {wanted} of {key}: the store stands at {reached}: {informer}")
            }
            Self::Delete { key, uid, informer } => {
                write!(f, "the delete of {key} with UID {uid}: {informer}")
            }
            Self::Refresh { informer } => {
                write!(f, "the history was replaced during a write: {informer}")
            }
            Self::Undecodable { key, version, cause, informer } => {
                write!(f, "version {version} of {key} cannot be decoded: {cause}: {informer}")
            }
        }
    }
}
