//! What a client's process prints: one line of JSON for each thing measured.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How a client keeps its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Kept {
    /// As the type of all fields: `k8s_openapi`'s, or client-go's.
    Typed,
    /// As the bytes of the whole object, decoded on access as a typed one.
    Lazy,
    /// As metadata only, which is all that the server sends.
    Metadata,
}

/// How the first list comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Initial {
    /// A LIST: in one piece, unless a client asks for pages of its own accord.
    List,
    /// A watch that begins with the objects that there are.
    WatchList,
}

/// What the server is asked to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Wire {
    /// `application/json`.
    Json,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// From the start until the informer has synced.
    First,
    /// A relist after that.
    Relist,
}

/// What one phase of one client cost. All sizes in bytes, all times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// What was measured.
    pub phase: Phase,
    /// Objects in the cache.
    pub objects: usize,
    /// CPU time of the process, user and system, in this phase.
    pub cpu_us: u64,
    /// Received since the start. Not every client knows.
    pub bytes: Option<u64>,
    /// Objects decoded in this phase.
    pub decoded: Option<u64>,
    /// The heap, where it is counted.
    pub heap: Option<Heap>,
    /// `VmRSS` once nothing moves any more.
    pub resident: usize,
    /// `VmHWM`, since the process began.
    pub resident_peak: usize,
}

/// Requested heap, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heap {
    /// What the synced client holds over what there was before it.
    pub settled: usize,
    /// The high-water mark of this phase, over what is settled after it. Go does not tell.
    pub over: Option<usize>,
}

impl Figures {
    /// CPU time per object, in microseconds.
    #[must_use]
    pub fn cpu_per_object(&self) -> f64 {
        self.cpu_us as f64 / self.objects.max(1) as f64
    }

    /// Settled heap per object.
    #[must_use]
    pub fn heap_per_object(&self) -> Option<f64> {
        Some(self.heap?.settled as f64 / self.objects.max(1) as f64)
    }

    /// The high-water mark of the heap as a multiple of what is settled.
    #[must_use]
    pub fn peak_over_settled(&self) -> Option<f64> {
        let heap = self.heap?;
        Some((heap.settled + heap.over?) as f64 / heap.settled.max(1) as f64)
    }
}

impl Kept {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Typed => "typed",
            Self::Lazy => "`Lazy`",
            Self::Metadata => "metadata",
        }
    }
}

impl Initial {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "LIST",
            Self::WatchList => "WatchList",
        }
    }
}

impl Wire {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Protobuf => "protobuf",
        }
    }
}
