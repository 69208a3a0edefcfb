//! What is measured: which client keeps what, how it asks for it, and what receiving that takes at least.

use std::fmt;

use informer_benches::figures::{Initial, Kept, Wire};

/// Whose informer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Library {
    Informer,
    /// Ours, whose events are taken from its stream by a task, instead of by a handler.
    InformerStream,
    ClientGo,
    KubeRuntime,
}

/// One informer. Displays as the name that `--only` knows it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) library: Library,
    pub(crate) kept: Kept,
    pub(crate) wire: Wire,
    /// managedFields are dropped in a transform. Ours drops them while decoding, unless told not to.
    pub(crate) stripped: bool,
    pub(crate) initial: Initial,
}

/// A program with the same HTTP client that throws the same bytes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Drain {
    pub(crate) client: HttpClient,
    pub(crate) wire: Wire,
    pub(crate) metadata: bool,
    pub(crate) initial: Initial,
    /// In pages, as kube-runtime asks for them.
    pub(crate) paged: bool,
}

/// The two libraries in Rust both have hyper, as kube configures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum HttpClient {
    Go,
    Rust,
}

pub(crate) const INITIALS: [Initial; 2] = [Initial::WatchList, Initial::List];

impl Run {
    /// Everything that is measured, in the order of the tables.
    pub(crate) fn all() -> Vec<Self> {
        INITIALS
            .into_iter()
            .flat_map(|initial| [ours(initial), client_go(initial), kube_runtime(initial)])
            .flatten()
            .collect()
    }

    /// What receiving its bytes takes.
    pub(crate) fn drain(&self) -> Drain {
        Drain {
            client: if self.library == Library::ClientGo { HttpClient::Go } else { HttpClient::Rust },
            wire: self.wire,
            metadata: self.kept.is_metadata(),
            initial: self.initial,
            paged: self.library == Library::KubeRuntime && self.initial == Initial::List,
        }
    }
}

fn run(library: Library, kept: Kept, wire: Wire, initial: Initial) -> Run {
    Run { library, kept, wire, stripped: false, initial }
}

fn stripped(run: Run) -> Run {
    Run { stripped: true, ..run }
}

/// Ours.
pub(crate) fn ours(initial: Initial) -> Vec<Run> {
    let run = |kept, wire| run(Library::Informer, kept, wire, initial);
    let decoded = [Kept::Typed, Kept::TenFields, Kept::Metadata, Kept::Dynamic];
    let kept_as_bytes = [Kept::Lazy, Kept::LazyMetadata, Kept::LazyDynamic];
    kept_as_bytes
        .into_iter()
        .map(|kept| run(kept, Wire::Protobuf))
        .chain([Wire::Protobuf, Wire::Json].into_iter().flat_map(|wire| decoded.map(|kept| run(kept, wire))))
        .collect()
}

fn client_go(initial: Initial) -> Vec<Run> {
    let run = |kept, wire| run(Library::ClientGo, kept, wire, initial);
    vec![
        run(Kept::Typed, Wire::Protobuf),
        stripped(run(Kept::Typed, Wire::Protobuf)),
        run(Kept::Typed, Wire::Json),
        stripped(run(Kept::Typed, Wire::Json)),
        run(Kept::Metadata, Wire::Protobuf),
        run(Kept::Dynamic, Wire::Json),
    ]
}

fn kube_runtime(initial: Initial) -> Vec<Run> {
    let run = |kept| run(Library::KubeRuntime, kept, Wire::Json, initial);
    vec![run(Kept::Typed), stripped(run(Kept::Typed)), run(Kept::Metadata), run(Kept::Dynamic)]
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stripped = if self.stripped { ", stripped" } else { "" };
        let (library, kept, wire, initial) =
            (self.library, self.kept.name(), self.wire.name(), self.initial.name());
        write!(f, "{library}, {kept}, {wire}{stripped}, {initial}")
    }
}

impl fmt::Display for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let client = match self.client {
            HttpClient::Go => "client-go",
            HttpClient::Rust => "kube",
        };
        let metadata = if self.metadata { ", metadata" } else { "" };
        let paged = if self.paged { " in pages" } else { "" };
        write!(f, "drain, {client}{metadata}, {}, {}{paged}", self.wire.name(), self.initial.name())
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Informer => "informer",
            Self::InformerStream => "informer's stream",
            Self::ClientGo => "client-go",
            Self::KubeRuntime => "kube-runtime",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_tell_everything_apart() {
        let all = Run::all();
        let names: HashSet<String> = all.iter().map(Run::to_string).collect();
        assert_eq!(names.len(), all.len());
        let drains: HashSet<Drain> = all.iter().map(Run::drain).collect();
        assert_eq!(drains.iter().map(Drain::to_string).collect::<HashSet<_>>().len(), drains.len());
    }
}
