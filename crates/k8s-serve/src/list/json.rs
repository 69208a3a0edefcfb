//! Lists in JSON, written while they are read.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};

use super::{Page, STEP, Scan};
use crate::accept::Representation;
use crate::answer::BodyError;
use crate::backend::Snapshot;
use crate::object::Object;
use crate::render;
use crate::resource::Resource;

/// What stands before and behind the items.
struct Envelope {
    head: String,
    tail: String,
}

impl Envelope {
    /// Built-in kinds and metadata have the metadata first. Lists of custom resources have their
    /// fields in alphabetical order, so there the version and the token come **behind** the items.
    fn new(resource: &Resource, part: Representation, page: &Page) -> Self {
        let version = page.version;
        let token = page.token.iter().map(|token| format!("\"continue\":\"{token}\""));
        let rest: Vec<String> = token
            .chain(page.remaining.iter().map(|count| format!("\"remainingItemCount\":{count}")))
            .collect();
        let rest = rest.join(",");
        let comma = if rest.is_empty() { "" } else { "," };
        let alphabetical_metadata =
            || format!("{{{rest}{comma}\"resourceVersion\":\"{version}\"}}");
        let metadata = format!("{{\"resourceVersion\":\"{version}\"{comma}{rest}}}");
        match part {
            Representation::Metadata => Self {
                head: format!(
                    "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"items\":["
                ),
                tail: "]}\n".to_owned(),
            },
            Representation::Full if resource.custom => Self {
                head: format!("{{\"apiVersion\":\"{}\",\"items\":[", resource.api_version()),
                tail: format!(
                    "],\"kind\":\"{}List\",\"metadata\":{}}}\n",
                    resource.kind,
                    alphabetical_metadata()
                ),
            },
            Representation::Full => Self {
                head: format!(
                    "{}\"metadata\":{metadata},\"items\":[",
                    render::list_prefix(resource)
                ),
                tail: "]}\n".to_owned(),
            },
        }
    }
}

/// Writes a list while walking over the snapshot.
pub(super) fn whole<S: Snapshot>(
    resource: &Arc<Resource>,
    part: Representation,
    scan: Scan<S>,
    page: &Page,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + use<S> {
    let state = Some((Writer::new(Arc::clone(resource), part, page), scan));
    stream::unfold(state, |state| async move {
        let (mut writer, mut scan) = state?;
        match scan.step() {
            Some(objects) => {
                let chunk = writer.items(&objects);
                Some((chunk, Some((writer, scan))))
            }
            None => Some((Ok(writer.end()), None)),
        }
    })
}

/// Writes a page.
pub(super) fn page<O: Object>(
    resource: Arc<Resource>,
    part: Representation,
    items: Vec<O>,
    page: &Page,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + use<O> {
    let state = Some((Writer::new(resource, part, page), items.into_iter()));
    stream::unfold(state, |state| async move {
        let (mut writer, mut items) = state?;
        let objects: Vec<O> = items.by_ref().take(STEP).collect();
        if objects.is_empty() {
            return Some((Ok(writer.end()), None));
        }
        Some((writer.items(&objects), Some((writer, items))))
    })
}

struct Writer {
    resource: Arc<Resource>,
    part: Representation,
    parts: Envelope,
    started: bool,
}

impl Writer {
    fn new(resource: Arc<Resource>, part: Representation, page: &Page) -> Self {
        let parts = Envelope::new(&resource, part, page);
        Self { resource, part, parts, started: false }
    }

    fn items(&mut self, objects: &[impl Object]) -> Result<Bytes, BodyError> {
        let mut out = std::mem::take(&mut self.parts.head).into_bytes();
        for object in objects {
            if std::mem::replace(&mut self.started, true) {
                out.push(b',');
            }
            render::json_item(&mut out, &self.resource, object, self.part)
                .map_err(|_| BodyError)?;
        }
        Ok(out.into())
    }

    fn end(&mut self) -> Bytes {
        let mut out = std::mem::take(&mut self.parts.head);
        out.push_str(&self.parts.tail);
        out.into()
    }
}
