//! Reads a `Status` from its JSON text.

use serde::{Deserialize, Deserializer};

use super::error_offset;
use crate::wire::status::not_a_status;
use crate::wire::{FrameError, Status, StatusCause};

pub(super) fn read(json: &[u8]) -> Result<Status, FrameError> {
    let raw: RawStatus =
        serde_json::from_slice(json).map_err(|error| not_a_status(error_offset(json, &error)))?;
    if raw.kind != "Status" {
        return Err(not_a_status(0));
    }
    Ok(Status {
        code: raw.code.and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
        reason: raw.reason,
        message: raw.message,
        retry_after_seconds: raw.details.retry_after_seconds.and_then(|it| u32::try_from(it).ok()),
        causes: (raw.details.causes.into_iter())
            .map(|cause| StatusCause { reason: cause.reason, message: cause.message })
            .collect(),
    })
}

#[derive(Deserialize)]
struct RawStatus {
    #[serde(default, deserialize_with = "null_as_default")]
    kind: String,
    code: Option<i64>,
    #[serde(default, deserialize_with = "null_as_default")]
    reason: String,
    #[serde(default, deserialize_with = "null_as_default")]
    message: String,
    #[serde(default, deserialize_with = "null_as_default")]
    details: RawDetails,
}

#[derive(Default, Deserialize)]
struct RawDetails {
    #[serde(rename = "retryAfterSeconds")]
    retry_after_seconds: Option<i64>,
    #[serde(default, deserialize_with = "null_as_default")]
    causes: Vec<RawCause>,
}

#[derive(Deserialize)]
struct RawCause {
    #[serde(default, deserialize_with = "null_as_default")]
    reason: String,
    #[serde(default, deserialize_with = "null_as_default")]
    message: String,
}

fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
