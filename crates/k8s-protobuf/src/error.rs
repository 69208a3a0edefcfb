//! Errors of reading.

/// Bytes that cannot be read as expected. Says where, never which value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not begin with `k8s\0`.
    #[error("not Kubernetes' protobuf: the bytes do not begin with \"k8s\\0\"")]
    NoEnvelope,
    /// The bytes end within a field.
    #[error("the protobuf ends within a field")]
    Truncated,
    /// A field is not encoded as any Kubernetes type is.
    #[error("malformed protobuf: {what}")]
    Malformed {
        /// What was found or expected.
        what: &'static str,
    },
    /// The kind is not in the table: a custom resource, or one of an aggregated API.
    #[error("{api_version} {kind} is no built-in kind: ask the server for JSON")]
    UnknownKind {
        /// Group and version, such as `apps/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// Messages are nested deeper than the limit.
    #[error("messages are nested more than {limit} deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A path that does not fit its kind.
    #[error("{path}: {problem}")]
    Path {
        /// The path, up to the part that does not fit.
        path: String,
        /// What is wrong with it, and which names there are.
        problem: String,
    },
    /// The bytes do not fit the type that is decoded.
    #[error("{path}: {message}")]
    Type {
        /// The path of the field, such as `spec.containers[1].ports`; `.` for the object itself.
        path: String,
        /// The types found and expected. Never the value, and never the type's own message, which
        /// may quote it.
        message: String,
    },
}

/// The message for fields that Go never writes in this way, and that only readers of a single field
/// accept.
pub(crate) const UNORDERED: &str = "fields out of the order of their numbers, or one twice that cannot be repeated, are not supported";

/// The error for bytes that break protobuf's own rules.
#[cold]
pub(crate) fn malformed(what: &'static str) -> Error {
    Error::Malformed { what }
}
