//! What can be wrong with bytes.

/// Bytes that cannot be read as what they should be. Says where, never what stood there.
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
        /// What was met or expected.
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
    /// Messages within messages, more than the limit.
    #[error("messages are nested more than {limit} deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A path that does not fit the kind it is for.
    #[error("{path}: {problem}")]
    Path {
        /// The path, to where it fits no more.
        path: String,
        /// What is wrong with it, and what there is instead.
        problem: String,
    },
    /// What stands in the bytes does not fit the type that is decoded.
    #[error("{path}: {message}")]
    Type {
        /// The path of the field, such as `spec.containers[1].ports`; `.` for the object itself.
        path: String,
        /// What was found and expected, by type. Never the value, and nothing that the type itself says, which may quote it.
        message: String,
    },
}

/// The error for bytes that break protobuf's own rules.
#[cold]
pub(crate) fn malformed(what: &'static str) -> Error {
    Error::Malformed { what }
}
