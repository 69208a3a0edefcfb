//! What the two processes say to each other: questions on stdin, answers on stdout, a line of JSON
//! each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::collection::{Collection, Digest, Objects};
use crate::history::Counts;

/// What is asked of the process of the informers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Question {
    /// Answered with [`Views`].
    Views,
    /// Answered with [`Contents`].
    Contents,
    /// Answered with [`Figures`].
    Figures,
    /// Answered with [`Figures`] after everything was shut down; the process ends.
    Stop,
}

/// What every store holds and every handler was given, in short.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Views {
    pub(crate) stores: Vec<View>,
    pub(crate) handlers: Vec<View>,
    /// Informers that do not watch, and what they do instead.
    pub(crate) not_watching: Vec<String>,
    /// What was wrong with histories and indexes so far.
    pub(crate) faults: Vec<String>,
}

/// One copy of a collection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) collection: Collection,
    pub(crate) digest: Digest,
}

/// What every store holds and every handler was given, object by object.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Contents(pub(crate) Vec<(String, Collection, Objects)>);

/// Everything that is counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Bytes allocated and not freed.
    pub(crate) heap: usize,
    /// The most that it was since the figures were asked for before.
    pub(crate) heap_peak: usize,
    /// Allocations since the start.
    pub(crate) allocations: usize,
    /// Tasks of the runtime.
    pub(crate) tasks: usize,
    pub(crate) informers: Vec<InformerFigures>,
    pub(crate) registrations: Vec<RegistrationFigures>,
    /// By the handler's name.
    pub(crate) counts: BTreeMap<String, Counts>,
    /// How often a handler was registered late and removed again.
    pub(crate) late_registrations: u64,
    /// Failures that informers told, by the words that tell their kind.
    pub(crate) told: BTreeMap<String, u64>,
    /// Where an index does not hold what its store holds.
    pub(crate) index_faults: Vec<String>,
}

/// What one informer counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InformerFigures {
    pub(crate) name: String,
    pub(crate) objects: usize,
    pub(crate) lists: u64,
    pub(crate) watches: u64,
    pub(crate) events: u64,
    pub(crate) bookmarks: u64,
    pub(crate) bytes: u64,
    pub(crate) decoded: u64,
    pub(crate) unchanged: u64,
    pub(crate) undecodable: u64,
    pub(crate) errors: u64,
}

/// What one registration counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RegistrationFigures {
    pub(crate) name: String,
    pub(crate) depth: usize,
    pub(crate) merged: u64,
    pub(crate) panics: u64,
}
