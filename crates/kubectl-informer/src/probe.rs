//! Whether the server refuses a list for good, so that waiting for it is no use.

use futures_util::StreamExt;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use informer::{InformerState, SharedInformer};
use kube::Client;
use kube::client::Body;

use crate::object::Object;

/// The longest refusal that is read, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// What trying again does not change.
const FINAL: [StatusCode; 4] =
    [StatusCode::BAD_REQUEST, StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND];

/// The server's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The status code.
    pub(crate) code: StatusCode,
    /// The body, a `Status` object.
    pub(crate) body: Vec<u8>,
    /// The informer's words for it, which say what to do.
    pub(crate) message: String,
}

/// Resolves when the first list of `informer` is refused in a way that trying again does not change: 400 (as for a field
/// selector that the server does not have), 401, 403, 404.
///
/// # Cancel safety
/// Only reads.
pub(crate) async fn refused(client: &Client, informer: &SharedInformer<Object>) -> Refused {
    let mut changes = informer.status_changes();
    let mut probed = 0;
    while let Some(status) = changes.next().await {
        let failing =
            matches!(status.state, InformerState::BackingOff { .. } | InformerState::Unavailable { .. });
        // Once per failure, so that the server is not asked more often than by the informer.
        if failing && !status.has_synced && status.counters.errors > probed {
            probed = status.counters.errors;
            if let Some((code, body)) = probe(client, informer).await {
                let told = status.recent_errors.last().map(|it| it.message.clone());
                return Refused { code, body, message: told.unwrap_or_else(|| code.to_string()) };
            }
        }
    }
    std::future::pending().await
}

/// Asks for one object, to see the server's answer itself.
async fn probe(client: &Client, informer: &SharedInformer<Object>) -> Option<(StatusCode, Vec<u8>)> {
    let scope = informer.scope();
    let path = informer.resource().path(scope.namespace.as_deref());
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("limit", "1")
        .append_pair("labelSelector", &scope.labels.to_string())
        .append_pair("fieldSelector", &scope.fields.to_string())
        .finish();
    let request = Request::get(format!("{path}?{query}")).body(Body::empty()).ok()?;
    let response = client.send(request).await.ok()?;
    let code = response.status();
    if !FINAL.contains(&code) {
        return None;
    }
    let body = Limited::new(response.into_body(), MAX_REFUSAL_BYTES).collect().await;
    Some((code, body.map(|it| it.to_bytes().to_vec()).unwrap_or_default()))
}
