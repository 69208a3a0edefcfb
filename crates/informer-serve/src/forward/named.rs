//! Reports the resource version that a response names to a callback.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;

use super::version::VersionScan;
use crate::body::{Observed, Observer};

/// Calls `tell` with the resource version in the body of a response, before the reader of the body
/// gets that part.
pub(crate) fn on_version(
    response: Response,
    tell: impl FnOnce(u64) + Send + Unpin + 'static,
) -> Response {
    let scan = VersionScan::of(response.headers());
    let scanned = Scanned(Some((scan, tell)));
    response.map(|body| Body::new(Observed::new(body, scanned)))
}

struct Scanned<F>(Option<(VersionScan, F)>);

impl<F: FnOnce(u64)> Observer for Scanned<F> {
    fn data(&mut self, data: &Bytes) {
        if let Some((scan, _)) = &mut self.0
            && let Some(version) = scan.push(data)
            && let Some((_, tell)) = self.0.take()
        {
            tell(version);
        }
    }
}
