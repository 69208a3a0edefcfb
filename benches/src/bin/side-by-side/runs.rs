//! What is measured: which client keeps what, and how it asks for it.

use std::fmt;

use informer_benches::figures::{Initial, Kept, Wire};

/// Whose informer it is. All of them drop managedFields: ours while decoding, the others in a
/// transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Library {
    Informer(Kept),
    /// Keeps typed objects.
    ClientGo,
    /// Keeps typed objects, and understands JSON only.
    KubeRuntime,
}

/// One client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) library: Library,
    pub(crate) wire: Wire,
    pub(crate) initial: Initial,
}

/// Where the bytes of a first list come from, and what is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Conditions {
    /// From the server: CPU time and resident memory.
    Server,
    /// From a recording in memory: CPU time behind the socket.
    Recording,
    /// From the server, with the heap counted, and then a relist. Once, since it is the same each
    /// time.
    Counted,
}

pub(crate) const INITIALS: [Initial; 2] = [Initial::WatchList, Initial::List];

/// The clients that are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs {
    pub(crate) lazy: Run,
    pub(crate) typed: Run,
    pub(crate) typed_json: Run,
    pub(crate) client_go: Run,
    pub(crate) client_go_json: Run,
    pub(crate) kube_runtime: Run,
}

impl Runs {
    pub(crate) fn of(initial: Initial) -> Self {
        let run = |library, wire| Run { library, wire, initial };
        Self {
            lazy: run(Library::Informer(Kept::Lazy), Wire::Protobuf),
            typed: run(Library::Informer(Kept::Typed), Wire::Protobuf),
            typed_json: run(Library::Informer(Kept::Typed), Wire::Json),
            client_go: run(Library::ClientGo, Wire::Protobuf),
            client_go_json: run(Library::ClientGo, Wire::Json),
            kube_runtime: run(Library::KubeRuntime, Wire::Json),
        }
    }

    /// Those that a row of the table needs.
    pub(crate) fn under(self, conditions: Conditions) -> Vec<Run> {
        let Self { lazy, typed, typed_json, client_go, client_go_json, kube_runtime } = self;
        match conditions {
            Conditions::Server => {
                vec![lazy, typed, typed_json, client_go, client_go_json, kube_runtime]
            }
            Conditions::Recording => vec![lazy, typed, client_go],
            Conditions::Counted => vec![lazy, typed, kube_runtime],
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.library {
            Library::Informer(kept) => write!(f, "informer, {}", kept.name())?,
            Library::ClientGo => f.write_str("client-go")?,
            Library::KubeRuntime => f.write_str("kube-runtime")?,
        }
        write!(f, ", {}, {}", self.wire.name(), self.initial.name())
    }
}
