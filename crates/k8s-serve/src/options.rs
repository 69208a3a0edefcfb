//! What differs between servers.

use std::time::Duration;

/// How a server treats `sendInitialEvents` in a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchListSupport {
    /// Serves it: Kubernetes 1.34 and later.
    #[default]
    Served,
    /// Refuses it with 422: Kubernetes 1.27 to 1.33 with the feature gate off.
    Refused,
    /// Ignores it, as servers and proxies do that have never heard of it.
    Ignored,
}

/// How a server treats who asks for Kubernetes' protobuf.
///
/// Whatever is said here, a server never writes in protobuf what is of no built-in kind, but for
/// metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtobufSupport {
    /// Writes it where it is the first of the accepted: all API servers of Kubernetes.
    #[default]
    Served,
    /// Does not know it: takes another one of the accepted, and answers 406 where there is none.
    /// Extension servers behind the aggregation layer may be so.
    Unknown,
    /// Answers in JSON what was to be in protobuf, accepted or not: servers and proxies that do not
    /// read `Accept`.
    Ignored,
}

/// What differs between servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// How often a watch that asked for bookmarks gets one. Default: 60 s.
    pub bookmark_interval: Duration,
    /// When a watch without `timeoutSeconds` ends. Default: 30 min.
    pub default_watch_timeout: Duration,
    /// How long a request waits for a version in the future. Default: 3 s.
    pub freshness_wait: Duration,
    /// Whether watches can start with the whole collection. Default: they can.
    pub watch_list: WatchListSupport,
    /// Whether there is protobuf. Default: there is.
    pub protobuf: ProtobufSupport,
    /// What `/version` says. Default: `v1.36.3`.
    pub git_version: String,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            bookmark_interval: Duration::from_secs(60),
            default_watch_timeout: Duration::from_secs(1800),
            freshness_wait: Duration::from_secs(3),
            watch_list: WatchListSupport::Served,
            protobuf: ProtobufSupport::Served,
            git_version: "v1.36.3".to_owned(),
        }
    }
}
