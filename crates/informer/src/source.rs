//! Where objects come from: LIST and WATCH, as bytes, split into single objects while they stream
//! in.
//!
//! [`KubeSource`] asks an API server through a [`kube::Client`](::kube::Client). Implement
//! [`ListWatch`] to feed an informer from anything else:
//! [`SharedInformer::new`](crate::SharedInformer::new) takes any.

mod kube;

use futures_util::stream::BoxStream;

pub use informer_core::ingest::ListChunk;
pub use informer_core::reflector::{Failure, FailureKind, ListRequest, VersionMatch, WatchRequest};
pub use informer_core::wire::{
    ListHead, ListPart, MediaType, WatchEventType, WatchFrame, WireObject,
};

pub(crate) use self::kube::retry_after;
pub use self::kube::unretried_body;
pub use self::kube::{KubeSource, ListCompression, Projection, WireFormat};

/// Lists and watches a collection (client-go's `ListerWatcher`).
///
/// Both methods return once the server has accepted the request; what follows streams in. What goes
/// wrong before or after that is a [`Failure`]; the reflector decides what to do about it.
pub trait ListWatch: Send + Sync + 'static {
    /// Asks for a list, or a page of one.
    ///
    /// # Cancel safety
    /// Dropping the future, or the stream, gives up the request.
    fn list(
        &self,
        request: &ListRequest,
    ) -> impl Future<Output = Result<ListStream, Failure>> + Send;

    /// Asks for a watch, always with bookmarks.
    ///
    /// # Cancel safety
    /// Dropping the future, or the stream, gives up the request.
    fn watch(
        &self,
        request: &WatchRequest,
    ) -> impl Future<Output = Result<WatchStream, Failure>> + Send;

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

/// What arrived of a watch at one time: whole frames, as many as were complete; none is a sign of
/// life.
#[derive(Debug)]
pub struct WatchChunk(pub Vec<WatchFrame>);
