//! The command line: [`Args`] and what it is made of.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ColorChoice, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::connect::ConnectionArgs;
use crate::version;

/// Watch, get and serve Kubernetes objects from a shared informer's cache.
///
/// Try `kubectl informer demo`: it needs no cluster.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "kubectl-informer",
    bin_name = "kubectl informer",
    version = version::SHORT,
    long_version = version::LONG,
    propagate_version = true
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Which server to ask, and as whom.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Say more on stderr: -v what the informers do, -vv every request, -vvv everything.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// See it all at work, without a cluster: an API server, a little life on it, an informer and
    /// the gateway.
    Demo(DemoArgs),
    /// Print a line for each add, update and delete.
    Watch(WatchArgs),
    /// Print objects from an informer's cache, as kubectl does.
    Get(GetArgs),
    /// Answer Kubernetes' read API, and plain HTTP requests, from informers' caches.
    Serve(Box<ServeArgs>),
    /// Print a shell's completion script.
    Completion(CompletionArgs),
}

/// Arguments of `demo`.
#[derive(Debug, Clone, Parser)]
#[command(after_help = DEMO_HELP)]
pub struct DemoArgs {
    /// End after this time, such as 20s; without it, end with Ctrl-C.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub lasting: Option<Duration>,
    /// Where the gateway listens; by default port 8888, or any free one if that is taken.
    #[arg(long, value_name = "ADDRESS")]
    pub addr: Option<SocketAddr>,
    /// How often the handler is shown everything again, at most once a second; 0 for never.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub resync: Duration,
}

/// Which objects of which resources.
#[derive(Debug, Clone, Default, Parser)]
pub struct SelectionArgs {
    /// All namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Only objects whose labels match, such as app=web,tier in (a,b); the server selects.
    #[arg(
        short = 'l',
        long,
        value_name = "SELECTOR",
        default_value = "",
        hide_default_value = true
    )]
    pub selector: String,
    /// Only objects whose fields match, such as spec.nodeName=node-1; the server selects.
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub field_selector: String,
}

/// Arguments of `watch`.
#[derive(Debug, Clone, Parser)]
pub struct WatchArgs {
    /// What to watch: `RESOURCE[.VERSION][.GROUP]`, several separated by commas or spaces.
    #[arg(required = true, value_name = "RESOURCE")]
    pub resources: Vec<String>,
    /// Which objects.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Show everything again this often, at most once a second, marked (resync), without asking the
    /// server.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub resync: Option<Duration>,
    /// How each line looks.
    #[arg(short, long, value_enum)]
    pub output: Option<WatchOutput>,
    /// Whether -o diff has colors; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// End after this time, such as 1m; without it, end with Ctrl-C.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub lasting: Option<Duration>,
}

/// How the lines of `watch` look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WatchOutput {
    /// With version, age, labels and the fields that changed.
    Wide,
    /// A JSON object per line: type, resource, initial, resync, object, and old for updates.
    Json,
    /// The word and namespace/name, nothing else.
    Name,
    /// The fields that changed, old -> new, below each line. Noise such as managedFields and
    /// heartbeats is only counted; values of Secrets are not shown.
    Diff,
}

/// Arguments of `get`.
#[derive(Debug, Clone, Parser)]
pub struct GetArgs {
    /// What to get: `RESOURCE[.VERSION][.GROUP]`, several separated by commas.
    #[arg(value_name = "RESOURCE")]
    pub resources: String,
    /// Only the objects with these names.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Which objects.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// How it is printed; a table if not said.
    #[arg(short, long, value_enum)]
    pub output: Option<GetOutput>,
    /// No line of column names.
    #[arg(long)]
    pub no_headers: bool,
    /// How long to wait for the first list.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub sync_timeout: Duration,
}

/// How `get` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GetOutput {
    /// A table with more columns.
    Wide,
    /// JSON; a List if there may be several.
    Json,
    /// YAML; a List if there may be several.
    Yaml,
    /// resource/name, one per line.
    Name,
}

/// Arguments of `serve`.
#[derive(Debug, Clone, Parser)]
#[command(after_help = SERVE_HELP)]
pub struct ServeArgs {
    /// Where to listen. On any other than a loopback address only health probes are answered,
    /// unless --tls-cert-file or --unprotected-api is given.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888")]
    pub addr: SocketAddr,
    /// The resources that are read with your account, and may be held: names as for watch, or * for
    /// all but Secrets and what extension API servers serve. With --tls-cert-file all others are
    /// passed on with the caller's token, and the caller gets what the API server allows; without
    /// it they are answered 403.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',', default_value = "*")]
    pub allow: Vec<String>,
    /// Host names by which this may be addressed, and whose pages may ask, besides loopback ones.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub allowed_hosts: Vec<String>,
    /// Switch access control off: everybody who reaches the address reads what your account may
    /// read. Without it nothing is answered on an address that is not loopback and has no TLS.
    #[arg(long)]
    pub unprotected_api: bool,
    /// Speak TLS with this certificate, in PEM, followed by those of its issuers, and answer
    /// callers what the API server allows them: your account must be allowed what
    /// system:auth-delegator allows. The files are read again when they change.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// The private key of the certificate, in PEM, not encrypted.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Know callers by certificates of these authorities, in PEM, too: the common name is the user,
    /// the organizations are the groups.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub client_ca_file: Option<PathBuf>,
    /// Resources to hold from the start to the end, such as pods,nodes. Others are held from the
    /// first list or watch of them on.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    pub cache: Vec<String>,
    /// Resources that the API server itself answers, always: for readers that must see the newest
    /// state.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    pub strict: Vec<String>,
    /// How long a request waits for the first list; it is answered 429 then.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub sync_timeout: Duration,
    /// How many resources may be held at a time; requests for more are passed on.
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    pub max_collections: usize,
    /// How much may be held, such as 512Mi or 2Gi: objects, and the changes from which watches go
    /// on. What does not fit is let go, and requests for it are passed on. A Pod takes about 3 KiB.
    #[arg(long, value_name = "BYTES", default_value = "1Gi", value_parser = bytes)]
    pub max_memory: usize,
    /// How much is held of the changes of each resource. A watch can go on from the oldest of them;
    /// before that it is answered 410, and its client lists.
    #[arg(long, value_name = "BYTES", default_value = "8Mi", value_parser = bytes)]
    pub max_changes: usize,
    /// A resource that nobody asked for this long is let go; 0 for never.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub idle_timeout: Duration,
    /// Answer reads with 503 when nothing was received of a resource for this long, at least 75s: a
    /// quiet API server sends a bookmark once a minute. Open watches stay open.
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = staleness)]
    pub max_staleness: Duration,
    /// Answer reads however old the cache is.
    #[arg(long)]
    pub serve_stale: bool,
    /// Whether metadata.managedFields are kept: almost half of a typical object.
    #[arg(long, value_enum, default_value_t = ManagedFields::Drop)]
    pub managed_fields: ManagedFields,
    /// How long the shutdown takes to end all open watches, so that their clients do not all
    /// reconnect at once.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub shutdown_spread: Duration,
    /// How many connections are served at a time; a watch takes one.
    #[arg(long, value_name = "COUNT", default_value_t = 4096)]
    pub max_connections: usize,
    /// How many requests may be passed on to the API server at a time, not counting watches, logs
    /// that are followed and exec; more are answered 429, as is one user beyond a quarter of them.
    #[arg(long, value_name = "COUNT", default_value_t = 400)]
    pub max_forwarded: usize,
    /// How many requests that last each user may have open where TLS is spoken: watches, logs that
    /// are followed, exec, attach and port-forward; more are answered 429.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub max_watches_per_user: usize,
    /// Append a line of JSON to this file, or to stdout if it is -, for each answer that the API
    /// server does not see, and for each refusal. Lines that cannot be written in time are dropped
    /// and counted.
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,
    /// End after this time; without it, end with Ctrl-C or SIGTERM.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub lasting: Option<Duration>,
    /// Read these flags from a file, in YAML or JSON, by their names in camelCase. Flags on the
    /// command line win.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the flags and the file, and do nothing.
    #[arg(long, requires = "config")]
    pub check: bool,
}

/// Arguments of `completion`.
#[derive(Debug, Clone, Parser)]
#[command(after_help = COMPLETION_HELP)]
pub struct CompletionArgs {
    /// The shell.
    pub shell: Shell,
}

/// What becomes of `metadata.managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManagedFields {
    /// They are kept.
    Keep,
    /// They are left out.
    Drop,
}

const DEMO_HELP: &str = "\
Open http://127.0.0.1:8888/ in a browser for the status page: what is held, and what changes. Where
port 8888 is taken, the demonstration prints another address.";

const SERVE_HELP: &str = "\
Try:
  kubectl informer serve --cache pods,nodes
  kubectl --server http://127.0.0.1:8888 get pods -A
  curl -g 'http://127.0.0.1:8888/deploy?labels[k8s-app]=kube-dns'
Open http://127.0.0.1:8888/ in a browser for the status page: what is held, and what changes.

Lists and watches are answered from memory, whatever cannot be is passed on to the API server. On
loopback without TLS that is done with your account, and nothing is written: writes, exec,
port-forward and proxy are answered 403. With --tls-cert-file callers get what the API server
allows them, and writes are passed on with their tokens.

Look at /metrics: serve_api_requests_total says whether the cache or the API server answered,
serve_staleness_seconds how old the caches are, serve_held_bytes what they take.";

const COMPLETION_HELP: &str = "\
Try:
  source <(kubectl-informer completion bash)                   # zsh likewise
  kubectl-informer completion fish | source

It completes the arguments of kubectl-informer. For those of kubectl informer, kubectl calls an
executable kubectl_complete-informer; save this as that, in a folder of $PATH:
  #!/bin/sh
  exec kubectl-informer __complete \"$@\"";

/// Durations as kubectl writes them: `5s`, `1m30s`, `500ms`, `0`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|_| "expected a duration such as 5s, 500ms or 1m30s".to_owned())?;
    Duration::try_from(parsed).map_err(|_| "a duration cannot be negative".to_owned())
}

fn staleness(text: &str) -> Result<Duration, String> {
    let min = informer_serve::Options::MIN_STALENESS;
    let given = duration(text)?;
    let too_little =
        || format!("signs of life come up to {} s apart: it must be at least that", min.as_secs());
    if given >= min { Ok(given) } else { Err(too_little()) }
}

/// Sizes as Kubernetes writes them: `512Mi`, `2Gi`, `100M`, or a number of bytes.
fn bytes(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, usize); 6] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("k", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = unit.unwrap_or((text, &1));
    let number = number.parse::<usize>().ok().and_then(|it| it.checked_mul(*factor));
    number.ok_or_else(|| "expected a size such as 512Mi or 2Gi".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn durations() {
        for (text, millis) in [
            ("5s", 5000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("0", 0),
            ("0s", 0),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "-5s", "soon", "5 parsecs"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_and_staleness_are_what_kubernetes_and_bookmarks_allow() {
        for (text, size) in [("7", 7), ("2Ki", 2048), ("3M", 3_000_000), ("1Gi", 1 << 30)] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "Mi", "-1", "1.5Gi", "1TB", "99999999999999999999Gi"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(staleness("75s"), Ok(Duration::from_secs(75)));
        assert!(staleness("74s").is_err());
    }

    #[test]
    fn the_usual_flags_may_stand_before_and_after_the_command() {
        let before = Args::try_parse_from([
            "x",
            "-n",
            "web",
            "--context",
            "c",
            "watch",
            "pods,deploy",
            "svc",
        ])
        .unwrap();
        let after =
            Args::try_parse_from(["x", "watch", "pods,deploy", "svc", "-n", "web", "--context=c"])
                .unwrap();
        for args in [before, after] {
            assert_eq!(args.connection.namespace.as_deref(), Some("web"));
            assert_eq!(args.connection.context.as_deref(), Some("c"));
            let Command::Watch(watch) = args.command else { panic!("not watch") };
            assert_eq!(watch.resources, ["pods,deploy", "svc"]);
        }
    }

    #[test]
    fn a_certificate_needs_its_key() {
        for one in ["--tls-cert-file=a", "--tls-private-key-file=a"] {
            assert!(Args::try_parse_from(["x", "serve", one]).is_err(), "{one}");
        }
        let both = ["x", "serve", "--tls-cert-file=a", "--tls-private-key-file=b"];
        assert!(Args::try_parse_from(both).is_ok());
    }

    #[test]
    fn a_namespace_and_all_namespaces_contradict_each_other() {
        assert!(Args::try_parse_from(["x", "get", "pods", "-A", "-n", "web"]).is_err());
        assert!(Args::try_parse_from(["x", "get", "pods", "-A"]).is_ok());
    }

    #[test]
    fn demo_ends_by_itself_when_told() {
        let args = Args::try_parse_from(["x", "demo", "--for", "20s"]).unwrap();
        let Command::Demo(demo) = args.command else { panic!("not demo") };
        assert_eq!(
            (demo.lasting, demo.resync),
            (Some(Duration::from_secs(20)), Duration::from_secs(5))
        );
    }
}
