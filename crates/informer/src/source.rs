//! Where objects come from: LIST and WATCH, as bytes, split into single objects while they stream in.
//!
//! [`KubeSource`] asks an API server through a [`kube::Client`](::kube::Client). Implement [`ListWatch`] to feed an informer
//! from anything else: [`SharedInformer::new`](crate::SharedInformer::new) takes any.

mod kube;

use std::future::Future;
use std::time::Duration;

use futures_util::stream::BoxStream;

use informer_core::wire::Status;

pub use informer_core::reflector::{Failure, FailureKind, ListRequest, VersionMatch, WatchRequest};
pub use informer_core::wire::{ListHead, WatchEventType, WatchFrame, Wire, WireObject};

pub use self::kube::{KubeSource, ListCompression, Projection, WireFormat};
pub(crate) use self::kube::{retry_after, unretried_empty_body};

/// Lists and watches a collection (client-go's `ListerWatcher`).
///
/// Both methods return once the server has accepted the request; what follows streams in. What goes wrong
/// before or after that is a [`Failure`]; the reflector decides what to do about it.
pub trait ListWatch: Send + Sync + 'static {
    /// Asks for a list, or a page of one.
    ///
    /// # Cancel safety
    /// Dropping the future, or the stream, gives up the request.
    fn list(&self, request: &ListRequest) -> impl Future<Output = Result<ListStream, Failure>> + Send;

    /// Asks for a watch, always with bookmarks.
    ///
    /// # Cancel safety
    /// Dropping the future, or the stream, gives up the request.
    fn watch(&self, request: &WatchRequest) -> impl Future<Output = Result<WatchStream, Failure>> + Send;

    /// Asks discovery whether the server has the resource: `Ok(false)` only if the server said so.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the request.
    fn exists(&self) -> impl Future<Output = Result<bool, Failure>> + Send {
        std::future::ready(Ok(true))
    }
}

/// A list as it streams in: chunks of items, then [`ListChunk::End`].
#[expect(missing_debug_implementations, reason = "streams have nothing to show")]
pub struct ListStream(pub BoxStream<'static, Result<ListChunk, Failure>>);

/// A watch as it streams in.
#[expect(missing_debug_implementations, reason = "streams have nothing to show")]
pub struct WatchStream(pub BoxStream<'static, Result<WatchChunk, Failure>>);

/// What arrived of a list at one time.
#[derive(Debug)]
pub enum ListChunk {
    /// Whole items, as many as were complete; none is a sign of life.
    Items(Vec<WireObject>),
    /// An item that cannot be given whole, such as one above the source's limit. The source goes on behind it; whether
    /// the list does, the reflector decides (G30).
    Unreadable {
        /// As much of the item as there is, from its beginning: it may say who the object is.
        beginning: WireObject,
        /// Why the list fails, if it does.
        failure: Failure,
    },
    /// The list is complete.
    End(ListHead),
}

/// What arrived of a watch at one time: whole frames, as many as were complete; none is a sign of life.
#[derive(Debug)]
pub struct WatchChunk(pub Vec<WatchFrame>);

/// The failure that a `Status` of the server means, with `message` for people.
pub(crate) fn failure_of_status(status: &Status, message: String) -> Failure {
    let kind = match status.code {
        _ if status.is_too_large_resource_version() => FailureKind::TooLargeVersion,
        _ if status.is_expired() => FailureKind::Expired,
        401 => FailureKind::Unauthorized,
        403 => FailureKind::Forbidden,
        404 => FailureKind::NotFound,
        429 => FailureKind::TooManyRequests,
        400 | 405 | 406 | 415 | 422 => FailureKind::Invalid,
        500..=599 => FailureKind::Server,
        _ => FailureKind::Other,
    };
    let retry_after = status.retry_after_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    Failure { kind, message, retry_after }
}
