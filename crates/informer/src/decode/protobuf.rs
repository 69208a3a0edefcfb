//! Decoding protobuf messages.

use k8s_protobuf::{Error, Kind};
use serde::de::DeserializeOwned;

use crate::error::DecodeError;

/// Decodes the message of an object of this kind.
pub(super) fn from_message<T: DeserializeOwned + 'static>(
    kind: Kind,
    message: &[u8],
) -> Result<T, DecodeError> {
    k8s_protobuf::from_message(kind, message).map_err(describe)
}

fn describe(error: Error) -> DecodeError {
    match error {
        // Without the value, which it never has.
        Error::Type { path, message } => DecodeError { path, message },
        other => DecodeError { path: ".".to_owned(), message: other.to_string() },
    }
}
