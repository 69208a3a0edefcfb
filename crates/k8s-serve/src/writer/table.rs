//! Tables: what `kubectl get` asks for.

use std::cmp::Ordering;

use informer_core::wire::{Encoding, Wire};
use jiff::Timestamp;
use serde_json::{Value, json as json_value};

use super::{INITIAL_EVENTS_END, Include, MetaVersion, Writer, metadata};
use crate::form::built_in;
use crate::json;
use crate::object::WriteError;
use crate::table::{Columns, Row};

/// Writes objects as rows.
pub(crate) struct TableWriter {
    columns: Columns,
    version: MetaVersion,
    include: Include,
}

impl TableWriter {
    pub(super) fn new(columns: Columns, version: MetaVersion, include: Include) -> Self {
        Self { columns, version, include }
    }

    /// Appends the table up to its rows; `metadata` is that of the list or of the object.
    pub(crate) fn head(&self, out: &mut Vec<u8>, metadata: &str, has_columns: bool) {
        let columns = if has_columns {
            let text = serde_json::to_string(self.columns.definitions());
            json::go_escaped(&text.unwrap_or_else(|_| "[]".to_owned())).into_owned()
        } else {
            "null".to_owned()
        };
        let api_version = self.version.api_version();
        let head = format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\
             \"columnDefinitions\":{columns},\"rows\":"
        );
        out.extend_from_slice(head.as_bytes());
    }

    /// Whether its kind has no columns of its own.
    pub(crate) fn is_default(&self) -> bool {
        let names = self.columns.definitions().iter().map(|column| &*column.name);
        names.eq(["Name", "Created At"])
    }

    /// The order of the rows of a list, if it is not that of the objects.
    pub(crate) fn order(&self) -> Option<fn(&Value, &Value) -> Ordering> {
        self.columns.order()
    }

    /// What the columns need of an object, straight from its bytes.
    pub(crate) fn value(&self, wire: Wire<'_>) -> Result<Value, WriteError> {
        match wire.encoding {
            Encoding::Protobuf(kind) => {
                Ok(k8s_protobuf::from_message_seed(kind, wire.bytes, self.columns.needed())?)
            }
            Encoding::Json => self
                .columns
                .read_text(wire.bytes)
                .map_err(|_| WriteError::new("it is no JSON object")),
        }
    }

    /// Appends a table of one row.
    pub(super) fn whole(
        &self,
        out: &mut Vec<u8>,
        writer: &Writer,
        wire: Wire<'_>,
        version: u64,
        has_columns: bool,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        self.head(out, &format!("{{\"resourceVersion\":\"{version}\"}}"), has_columns);
        out.push(b'[');
        self.row(out, writer, wire, now)?;
        out.extend_from_slice(b"]}");
        Ok(())
    }

    /// Appends the row of an object.
    pub(crate) fn row(
        &self,
        out: &mut Vec<u8>,
        writer: &Writer,
        wire: Wire<'_>,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let row = self.columns.row(&self.value(wire)?, now);
        begin_row(out, &row);
        match self.include {
            Include::None => out.extend_from_slice(b"null"),
            Include::Metadata => metadata(out, self.version, wire)?,
            Include::Object => writer.full(out, wire)?,
        }
        out.push(b'}');
        Ok(())
    }

    /// Appends a bookmark: the row of an object that has nothing but a version.
    pub(super) fn bookmark(
        &self,
        out: &mut Vec<u8>,
        writer: &Writer,
        version: u64,
        ends_initial_events: bool,
        has_columns: bool,
        now: Timestamp,
    ) {
        let metadata = format!("{{\"resourceVersion\":\"{version}\"}}");
        self.head(out, &metadata, has_columns);
        out.push(b'[');
        let mut object = json_value!({ "metadata": { "resourceVersion": version.to_string() } });
        if ends_initial_events {
            object["metadata"]["annotations"] = json_value!({ INITIAL_EVENTS_END: "true" });
        }
        begin_row(out, &self.columns.row(&object, now));
        let kinds = match self.include {
            // What ends the initial events must be seen.
            Include::None if !ends_initial_events => None,
            Include::None | Include::Metadata => Some(self.version.metadata_kinds()),
            Include::Object => Some(built_in(writer.resource())),
        };
        match kinds {
            None => out.extend_from_slice(b"null"),
            Some(kinds) => writer.bookmark_of(
                out,
                kinds.map(|(object, _)| object),
                version,
                ends_initial_events,
            ),
        }
        out.extend_from_slice(b"}]}");
    }
}

/// Appends the row up to the object.
fn begin_row(out: &mut Vec<u8>, row: &Row) {
    out.extend_from_slice(b"{\"cells\":");
    // Both are plain values.
    let cells = serde_json::to_string(&row.cells).unwrap_or_default();
    out.extend_from_slice(json::go_escaped(&cells).as_bytes());
    if !row.conditions.is_empty() {
        let conditions = serde_json::to_string(row.conditions).unwrap_or_default();
        out.extend_from_slice(b",\"conditions\":");
        out.extend_from_slice(json::go_escaped(&conditions).as_bytes());
    }
    out.extend_from_slice(b",\"object\":");
}
