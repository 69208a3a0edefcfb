//! A history before it happens: a configuration and a list of steps, drawn from a seed. Everything
//! that the simulation does follows from it, so that leaving out steps gives another history that
//! can be played.

use std::time::Duration;

use fastrand::Rng;
use informer_core::wire::MediaType;

use crate::server::{Good, NAMES};

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) config: Config,
    pub(crate) steps: Vec<Step>,
}

/// How the informer is set up, and what kind of server it has.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) page_size: Option<u32>,
    pub(crate) page_relists: bool,
    pub(crate) streaming_lists: bool,
    pub(crate) strict: bool,
    /// How the server's answers are encoded.
    pub(crate) media_type: MediaType,
    /// Deltas that wait before reading stops, and how many the sink takes at a time.
    pub(crate) queue: usize,
    pub(crate) sink_batch: usize,
    pub(crate) objects: u8,
    pub(crate) settings: Settings,
    /// Handlers that are there from the start, and indexes.
    pub(crate) handlers: Vec<HandlerPlan>,
    pub(crate) index: bool,
}

/// What the server is like; steps change it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) watch_list: WatchList,
    pub(crate) bookmarks: bool,
    /// Whether a limit counts for a list at version 0.
    pub(crate) pages_at_zero: bool,
    /// Whether later pages of a list show the newest state, not that of the first page.
    pub(crate) moves_pages: bool,
    /// How many versions its cache is behind.
    pub(crate) lag: u64,
    pub(crate) expired_as_event: bool,
    /// Whether a list or watch from the future is refused; else the list is what there is, and the
    /// watch waits.
    pub(crate) refuses_future: bool,
    /// Whether watches end at the timeout they asked for.
    pub(crate) ends_watches: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchList {
    Served,
    Refused,
    /// The parameter is not known.
    Ignored,
    /// All objects are sent, but the bookmark after them never is.
    NoEnd,
    Stalled,
}

#[derive(Clone, Debug)]
pub(crate) struct HandlerPlan {
    pub(crate) capacity: usize,
    pub(crate) speed: Speed,
    pub(crate) resync: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    Prompt,
    Slow,
    /// Does not return from its first call until the end.
    Never,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) after: Duration,
    pub(crate) action: Action,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Write {
        name: u8,
        write: Write,
    },
    /// Writes in one go.
    Burst(Vec<(u8, Write)>),
    /// Another resource is written: the version moves on and nobody hears of it.
    Elsewhere(u64),
    /// Happens to the next request, or to the open watch or list.
    Fault(Fault),
    /// All requests are answered so for a while.
    Outage(Refusal, Duration),
    /// Watches go wrong for a while, and lists do not.
    Watches(WatchesGo, Duration),
    Compact {
        keep: u64,
    },
    /// Back to an older snapshot; what is lost may be done again, which gives the same versions to
    /// other states.
    Restore {
        back: u64,
        redo: bool,
    },
    RemoveResource {
        seen: bool,
    },
    ReturnResource,
    Set(Settings),
    /// The process does not run for a while.
    Leap(Duration),
    AddHandler(HandlerPlan),
    RemoveHandler(u8),
    Block(u8, Duration),
    AddIndex,
    KeepSnapshot,
    /// The program asks for a list at `""`.
    Refresh,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Write {
    /// Creates it, or updates it.
    Put(Good),
    Delete,
    /// Deletes the object, and creates another of its name.
    Recreate,
    /// As `Recreate`, but the watch tells of both in one event.
    Replace(Good),
    /// An update whose event is broken on its way, always.
    Poison(Poison),
    /// The event is sent twice.
    Twice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poison {
    Garbage,
    UnknownType,
    NoName,
    Unbalanced,
    Oversized,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Refused,
    TooMany {
        retry_after: Option<u16>,
    },
    Internal,
    Unavailable {
        retry_after: Option<u16>,
    },
    Unauthorized,
    Forbidden,
    /// 404, while discovery says that the resource is there.
    NotFound,
    Invalid,
    Expired,
    TooLarge,
    Unanswered,
}

/// What becomes of watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchesGo {
    /// They are answered so, streaming lists, too.
    Refused(Refusal),
    /// They are opened and nothing is sent, not even bookmarks. Streaming lists are served.
    Deaf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The next request is answered so.
    Refuse(Refusal),
    /// What is open, or opened next:
    Cut,
    CutWithinFrame,
    Close,
    CloseWithinFrame,
    Stall,
    Drip,
    ErrorEvent(Refusal),
    MalformedFrame(Poison),
    /// The next list has objects twice.
    Duplicates,
    /// The next list is no list.
    NoList,
    ContinueExpired,
    /// The next answer is compressed, although nobody asked for that.
    Compressed,
    /// Watches are closed as soon as they are opened.
    CloseLoop,
}

const REFUSALS: [Refusal; 13] = [
    Refusal::Refused,
    Refusal::TooMany { retry_after: None },
    Refusal::TooMany { retry_after: Some(7) },
    Refusal::TooMany { retry_after: Some(900) },
    Refusal::Internal,
    Refusal::Unavailable { retry_after: None },
    Refusal::Unavailable { retry_after: Some(3) },
    Refusal::Unauthorized,
    Refusal::Forbidden,
    Refusal::NotFound,
    Refusal::Invalid,
    Refusal::Expired,
    Refusal::TooLarge,
];

const POISONS: [Poison; 5] =
    [Poison::Garbage, Poison::UnknownType, Poison::NoName, Poison::Unbalanced, Poison::Oversized];

pub(crate) fn plan(seed: u64) -> Plan {
    let rng = &mut Rng::with_seed(seed);
    let objects = rng.u8(0..=NAMES);
    let config = Config {
        page_size: one_of(rng, &[None, Some(1), Some(3), Some(500)]),
        page_relists: rng.bool(),
        streaming_lists: rng.u8(0..10) < 6,
        strict: rng.u8(0..10) == 0,
        media_type: one_of(rng, &MediaType::ALL),
        queue: one_of(rng, &[1, 3, 64]),
        sink_batch: one_of(rng, &[usize::MAX, usize::MAX, usize::MAX, 1, 4]),
        objects,
        settings: settings(rng),
        handlers: (0..rng.usize(1..=3)).map(|_| handler(rng)).collect(),
        index: rng.bool(),
    };
    let steps =
        (0..rng.usize(5..40)).map(|_| Step { after: pause(rng), action: action(rng) }).collect();
    Plan { seed, config, steps }
}

fn settings(rng: &mut Rng) -> Settings {
    let watch_list = match rng.u8(0..10) {
        0 => WatchList::Refused,
        1 => WatchList::Ignored,
        2 => WatchList::NoEnd,
        3 => WatchList::Stalled,
        _ => WatchList::Served,
    };
    Settings {
        watch_list,
        bookmarks: rng.u8(0..4) > 0,
        pages_at_zero: rng.bool(),
        moves_pages: rng.u8(0..3) == 0,
        lag: one_of(rng, &[0, 0, 3, 9]),
        expired_as_event: rng.bool(),
        refuses_future: rng.bool(),
        ends_watches: rng.u8(0..4) > 0,
    }
}

fn handler(rng: &mut Rng) -> HandlerPlan {
    HandlerPlan {
        capacity: one_of(rng, &[1, 2, 5, 1000]),
        speed: one_of(rng, &[Speed::Prompt, Speed::Prompt, Speed::Slow, Speed::Slow, Speed::Never]),
        resync: one_of(rng, &[None, None, None, Some(30), Some(7_000), Some(45_000)])
            .map(Duration::from_millis),
    }
}

fn pause(rng: &mut Rng) -> Duration {
    Duration::from_millis(match rng.u8(0..20) {
        0..=4 => 0,
        5..=10 => rng.u64(1..1000),
        11..=15 => rng.u64(1000..10_000),
        16..=18 => rng.u64(10_000..70_000),
        _ => rng.u64(70_000..400_000),
    })
}

fn action(rng: &mut Rng) -> Action {
    match rng.u8(0..106) {
        0..=29 => Action::Write { name: name(rng), write: write(rng) },
        30..=35 => Action::Burst(burst(rng)),
        36..=38 => Action::Elsewhere(rng.u64(1..10)),
        39..=62 => Action::Fault(fault(rng)),
        63..=68 => {
            let refusal = match rng.u8(0..5) {
                0 => Refusal::Unanswered,
                _ => one_of(rng, &REFUSALS),
            };
            Action::Outage(refusal, Duration::from_millis(rng.u64(500..90_000)))
        }
        69..=72 => Action::Compact { keep: one_of(rng, &[0, 0, 1, 5]) },
        73..=75 => Action::Restore { back: rng.u64(1..12), redo: rng.bool() },
        76..=77 => Action::RemoveResource { seen: rng.bool() },
        78..=80 => Action::ReturnResource,
        81..=83 => Action::Set(settings(rng)),
        84..=85 => Action::Leap(Duration::from_secs(one_of(rng, &[2, 40, 500, 100_000]))),
        86..=89 => Action::AddHandler(handler(rng)),
        90..=92 => Action::RemoveHandler(rng.u8(0..4)),
        93..=95 => Action::Block(rng.u8(0..4), Duration::from_secs(rng.u64(1..200))),
        96..=97 => Action::AddIndex,
        98 => Action::KeepSnapshot,
        100..=105 => Action::Refresh,
        _ => {
            let refusals = [
                Refusal::Internal,
                Refusal::Forbidden,
                Refusal::TooMany { retry_after: None },
                Refusal::Unanswered,
            ];
            let goes = if rng.bool() {
                WatchesGo::Deaf
            } else {
                WatchesGo::Refused(one_of(rng, &refusals))
            };
            Action::Watches(goes, Duration::from_secs(rng.u64(60..2000)))
        }
    }
}

fn burst(rng: &mut Rng) -> Vec<(u8, Write)> {
    let mut writes: Vec<_> = (0..rng.usize(3..15)).map(|_| (name(rng), write(rng))).collect();
    if rng.bool() {
        // A good state and then a bad one, close together.
        let name = name(rng);
        writes.extend([(name, Write::Put(Good::Yes)), (name, Write::Put(Good::NotDecodable))]);
    }
    writes
}

/// Some names are written more often than others, so that much happens to one object.
fn name(rng: &mut Rng) -> u8 {
    if rng.bool() { rng.u8(0..3) } else { rng.u8(0..NAMES) }
}

fn write(rng: &mut Rng) -> Write {
    match rng.u8(0..42) {
        0..=17 => Write::Put(Good::Yes),
        18..=19 => Write::Put(Good::NotDecodable),
        20 => Write::Put(Good::NotTransformed),
        21 => Write::Put(Good::Oversized),
        40 => Write::Put(Good::Broken),
        41 => Write::Put(Good::Nameless),
        22..=29 => Write::Delete,
        30..=33 => Write::Recreate,
        34 => Write::Replace(Good::Yes),
        35 => Write::Replace(Good::NotDecodable),
        36..=37 => Write::Poison(one_of(rng, &POISONS)),
        _ => Write::Twice,
    }
}

fn fault(rng: &mut Rng) -> Fault {
    match rng.u8(0..31) {
        0..=6 => Fault::Refuse(one_of(rng, &REFUSALS)),
        7 => Fault::Refuse(Refusal::Unanswered),
        8..=10 => Fault::Cut,
        11..=12 => Fault::CutWithinFrame,
        13..=14 => Fault::Close,
        15 => Fault::CloseWithinFrame,
        16..=18 => Fault::Stall,
        19 => Fault::Drip,
        20..=21 => Fault::ErrorEvent(Refusal::Expired),
        22 => Fault::ErrorEvent(one_of(rng, &REFUSALS)),
        23..=25 => Fault::MalformedFrame(one_of(rng, &POISONS)),
        26 => Fault::Duplicates,
        27 => Fault::NoList,
        28 => Fault::ContinueExpired,
        29 => Fault::Compressed,
        _ => Fault::CloseLoop,
    }
}

pub(crate) fn one_of<T: Clone>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(0..choices.len())].clone()
}

impl Action {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Write { .. } => "step: write",
            Self::Burst(_) => "step: burst",
            Self::Elsewhere(_) => "step: write elsewhere",
            Self::Fault(_) => "step: fault",
            Self::Outage(..) => "step: outage",
            Self::Watches(WatchesGo::Refused(_), _) => "step: watches are refused",
            Self::Watches(WatchesGo::Deaf, _) => "step: watches are deaf",
            Self::Compact { .. } => "step: compact",
            Self::Restore { .. } => "step: restore",
            Self::RemoveResource { .. } => "step: remove resource",
            Self::ReturnResource => "step: return resource",
            Self::Set(_) => "step: other server settings",
            Self::Leap(_) => "step: leap in time",
            Self::AddHandler(_) => "step: add handler",
            Self::RemoveHandler(_) => "step: remove handler",
            Self::Block(..) => "step: block handler",
            Self::AddIndex => "step: add index",
            Self::KeepSnapshot => "step: keep snapshot",
            Self::Refresh => "step: refresh",
        }
    }
}

impl Write {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Put(Good::Yes) => "write: put",
            Self::Put(Good::NotDecodable) => "write: undecodable",
            Self::Put(Good::NotTransformed) => "write: refused by the transform",
            Self::Put(Good::Oversized) => "write: oversized",
            Self::Put(Good::Broken) => "write: broken",
            Self::Put(Good::Nameless) => "write: broken, and without a name",
            Self::Delete => "write: delete",
            Self::Recreate => "write: delete and create",
            Self::Replace(_) => "write: replace in one event",
            Self::Poison(_) => "write: poisoned event",
            Self::Twice => "write: event sent twice",
        }
    }
}

impl Refusal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Refused => "refusal: connection refused",
            Self::TooMany { retry_after: None } => "refusal: 429",
            Self::TooMany { .. } => "refusal: 429 with Retry-After",
            Self::Internal => "refusal: 500",
            Self::Unavailable { retry_after: None } => "refusal: 503",
            Self::Unavailable { .. } => "refusal: 503 with Retry-After",
            Self::Unauthorized => "refusal: 401",
            Self::Forbidden => "refusal: 403",
            Self::NotFound => "refusal: transient 404",
            Self::Invalid => "refusal: 422",
            Self::Expired => "refusal: 410",
            Self::TooLarge => "refusal: version too large",
            Self::Unanswered => "refusal: no answer",
        }
    }
}

impl Fault {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Refuse(_) => "fault: refused once",
            Self::Cut => "fault: cut",
            Self::CutWithinFrame => "fault: cut within a frame",
            Self::Close => "fault: closed",
            Self::CloseWithinFrame => "fault: closed within a frame",
            Self::Stall => "fault: stalled",
            Self::Drip => "fault: slow drip",
            Self::ErrorEvent(_) => "fault: ERROR event",
            Self::MalformedFrame(_) => "fault: malformed frame",
            Self::Duplicates => "fault: duplicates in a list",
            Self::NoList => "fault: a list that is none",
            Self::ContinueExpired => "fault: continue token expires",
            Self::Compressed => "fault: compressed body",
            Self::CloseLoop => "fault: closed in a loop",
        }
    }
}
