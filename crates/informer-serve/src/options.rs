//! What an endpoint may do, and how much it may take.

use std::time::Duration;

/// What an [`Endpoint`](crate::Endpoint) may do, and how much it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Hold only this namespace of namespaced resources, for accounts that may read no more.
    /// Default: all.
    pub namespace: Option<String>,
    /// The resources that are read with the endpoint's account, and may be held, named as for
    /// kubectl; `*` is all but Secrets. Where access is controlled, requests for all others are
    /// forwarded with the caller's own token; elsewhere, and on short paths, they are refused. What
    /// an extension API server serves is held only if it is named, and forwarded else.
    /// Default: `*`.
    pub allow: Vec<String>,
    /// Host names by which the endpoint may be addressed, besides loopback ones. Default: none.
    pub allowed_hosts: Vec<String>,
    /// Whether there is no access control: everybody who reaches the address reads what the account
    /// of the endpoint may read, over TLS too. Without it nothing is answered on an address that
    /// other machines reach and that has no TLS. Default: no.
    pub unprotected_api: bool,
    /// Resources that are held from the start and never let go. Default: none.
    pub cache: Vec<String>,
    /// Resources that the API server itself answers, always. Default: none.
    pub strict: Vec<String>,
    /// How long a request waits for the first list. Default: 10 s.
    pub sync_timeout: Duration,
    /// How many resources are held at a time; requests for more are forwarded. Default: 64.
    pub max_collections: usize,
    /// How many bytes of objects and changes are held; requests for more are forwarded. Default:
    /// 1 GiB.
    pub max_bytes: usize,
    /// How many bytes of changes are kept of each resource, from which watches go on. Default: 8
    /// MiB.
    pub log_bytes: usize,
    /// A resource that nobody asked for this long is let go; zero for never. Default: 10 minutes.
    pub idle_timeout: Duration,
    /// How many snapshots are kept of each resource for `continue=`. Default: 32.
    pub kept_snapshots: usize,
    /// How long a snapshot is kept for `continue=` after its last page was asked for. Default: 5
    /// minutes.
    pub snapshot_lifetime: Duration,
    /// Reads of a resource are refused when no frame or bookmark of it was received for this long.
    /// A quiet API server sends a bookmark every 60 to 75 s. Default: 90 s; at least
    /// [`MIN_STALENESS`](Self::MIN_STALENESS).
    pub max_staleness: Duration,
    /// Answer from a cache that is staler than that, too. Default: no.
    pub serve_stale: bool,
    /// Keep `metadata.managedFields`, almost half of a typical object. Default: no.
    pub keep_managed_fields: bool,
    /// How long the shutdown takes to end all open watches, so that their clients do not all
    /// reconnect at once. Default: 5 s.
    pub shutdown_spread: Duration,
    /// How many connections are served at a time. Default: 4096.
    pub max_connections: usize,
    /// How many requests are forwarded at a time, a quarter of them for one user, not counting
    /// watches and connections that were upgraded. More are refused with 429. Default: 400.
    pub max_forwarded: usize,
    /// How many requests that last one user may have open where access is controlled: watches, logs
    /// that are followed, exec, attach and port-forward. More are refused with 429. Default: 1000.
    pub max_watches_per_user: usize,
}

impl Options {
    /// The least [`max_staleness`](Self::max_staleness): bookmarks come up to 75 s apart.
    pub const MIN_STALENESS: Duration = Duration::from_secs(75);

    /// How stale an answer may be, if there is a limit.
    pub(crate) fn staleness_limit(&self) -> Option<Duration> {
        (!self.serve_stale).then_some(self.max_staleness.max(Self::MIN_STALENESS))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: None,
            allow: vec!["*".to_owned()],
            allowed_hosts: Vec::new(),
            unprotected_api: false,
            cache: Vec::new(),
            strict: Vec::new(),
            sync_timeout: Duration::from_secs(10),
            max_collections: 64,
            max_bytes: 1 << 30,
            log_bytes: 8 << 20,
            idle_timeout: Duration::from_secs(600),
            kept_snapshots: 32,
            snapshot_lifetime: Duration::from_secs(300),
            max_staleness: Duration::from_secs(90),
            serve_stale: false,
            keep_managed_fields: false,
            shutdown_spread: Duration::from_secs(5),
            max_connections: 4096,
            max_forwarded: 400,
            max_watches_per_user: 1000,
        }
    }
}
