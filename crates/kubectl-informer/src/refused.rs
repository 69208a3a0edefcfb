//! Whether the server refuses a list for good, so that waiting for it is no use.

use futures_util::StreamExt;
use informer::SharedInformer;
use informer::source::Failure;

use crate::object::Object;

/// What trying again does not change: a request that is wrong (as with a field selector that the
/// server does not have), no or no valid user, no permission, no such resource.
const FINAL: [u16; 4] = [400, 401, 403, 404];

/// Resolves when the first list of `informer` is refused in a way that trying again does not
/// change.
///
/// # Cancel safety
/// Only reads.
pub(crate) async fn refused(informer: &SharedInformer<Object>) -> Failure {
    let mut changes = informer.status_changes();
    while let Some(status) = changes.next().await {
        let cause = status.state.cause().filter(|_| !status.has_synced);
        if let Some(cause) =
            cause.filter(|cause| cause.code.is_some_and(|code| FINAL.contains(&code)))
        {
            return cause.clone();
        }
    }
    std::future::pending().await
}
