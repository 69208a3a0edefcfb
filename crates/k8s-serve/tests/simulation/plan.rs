//! A history before it happens: a configuration and a list of steps, drawn from a seed. Everything
//! that the simulation does follows from it, so that leaving out steps gives another history that
//! can be played.

use std::time::Duration;

use fastrand::Rng;

use crate::pod::{APPS, Look, NODES};

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) config: Config,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) replicas: usize,
    pub(crate) clients: Vec<ClientPlan>,
    /// How many changes the log of a replica holds.
    pub(crate) log: usize,
    /// Whether the API server does streaming lists.
    pub(crate) streaming_upstream: bool,
    /// How many versions its cache is behind, for lists that allow that.
    pub(crate) lag: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientPlan {
    /// Which of [`INTERESTS`](crate::client::INTERESTS).
    pub(crate) interest: usize,
    pub(crate) bookmarks: bool,
    pub(crate) streaming: bool,
    /// Whether the first list is at `""` and not at `"0"`.
    pub(crate) newest_first: bool,
    /// How many changes it takes at a time, and how long it needs for them.
    pub(crate) room: usize,
    pub(crate) pause: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) after: Duration,
    pub(crate) action: Action,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Creates, changes or deletes.
    Write(u8, Option<Look>),
    Burst(Vec<(u8, Option<Look>)>),
    /// Deletes the object, and creates another of its name.
    Recreate(u8, Look),
    /// Other resources are written.
    Elsewhere(u64),
    /// The watch or list of a replica breaks.
    CutUpstream(usize),
    CloseUpstream(usize),
    /// A replica loses its watch, gets no answer for so long, and has to list then; meanwhile
    /// this is written.
    Lose(usize, Duration, Vec<(u8, Option<Look>)>),
    /// What is on its way to a replica takes so much longer.
    Delay(usize, Duration),
    /// The API server is gone for a while.
    Outage(Duration),
    Compact(u64),
    /// etcd is restored: so many versions back.
    Restore(u64),
    /// A replica dies; another takes its place after a while.
    Kill(usize, Duration),
    /// The connection of a client breaks, when it has received so many of what is on its way.
    CutClient(usize, usize),
    /// The connection of a client breaks when it next receives something of a gap, and so much
    /// more.
    CutWithinGap(usize, usize),
    /// A client is slow from now on.
    Slow(usize, Duration),
}

pub(crate) fn plan(seed: u64) -> Plan {
    let rng = &mut Rng::with_seed(seed);
    let config = Config {
        replicas: rng.usize(1..=3),
        clients: (0..rng.usize(2..=5)).map(|_| client(rng)).collect(),
        log: one_of(rng, &[usize::MAX, usize::MAX, 12, 4]),
        streaming_upstream: rng.bool(),
        lag: one_of(rng, &[0, 0, 2, 7]),
    };
    let steps =
        (0..rng.usize(5..45)).map(|_| Step { after: pause(rng), action: action(rng) }).collect();
    Plan { seed, config, steps }
}

fn client(rng: &mut Rng) -> ClientPlan {
    ClientPlan {
        interest: if rng.u8(0..3) == 0 { 0 } else { rng.usize(0..crate::client::INTERESTS.len()) },
        bookmarks: rng.u8(0..4) > 0,
        streaming: rng.u8(0..3) == 0,
        newest_first: rng.bool(),
        room: one_of(rng, &[1, 1, 2, 64]),
        pause: Duration::from_millis(one_of(rng, &[0, 0, 40, 700, 4000, 30_000])),
    }
}

fn pause(rng: &mut Rng) -> Duration {
    Duration::from_millis(match rng.u8(0..20) {
        0..=5 => 0,
        6..=12 => rng.u64(1..500),
        13..=17 => rng.u64(500..9_000),
        18 => rng.u64(9_000..70_000),
        _ => rng.u64(70_000..300_000),
    })
}

fn action(rng: &mut Rng) -> Action {
    let seconds = |rng: &mut Rng, most: u64| Duration::from_millis(rng.u64(1..most * 1000));
    match rng.u8(0..100) {
        0..=33 => Action::Write(name(rng), look(rng)),
        34..=41 => Action::Burst(writes(rng)),
        42..=45 => Action::Recreate(name(rng), some_look(rng)),
        46..=50 => Action::Elsewhere(rng.u64(1..9)),
        51..=54 => Action::CutUpstream(rng.usize(0..3)),
        55..=59 => Action::Lose(rng.usize(0..3), seconds(rng, 20), writes(rng)),
        60..=62 => Action::CloseUpstream(rng.usize(0..3)),
        63..=67 => Action::Delay(rng.usize(0..3), seconds(rng, 40)),
        68..=72 => Action::Outage(seconds(rng, 60)),
        73..=79 => Action::Compact(one_of(rng, &[0, 0, 2])),
        80..=81 => Action::Restore(rng.u64(1..9)),
        82..=86 => Action::Kill(rng.usize(0..3), seconds(rng, 20)),
        87..=91 => Action::CutClient(rng.usize(0..5), rng.usize(0..4)),
        92..=95 => Action::CutWithinGap(rng.usize(0..5), rng.usize(0..4)),
        _ => Action::Slow(rng.usize(0..5), seconds(rng, 60)),
    }
}

fn writes(rng: &mut Rng) -> Vec<(u8, Option<Look>)> {
    (0..rng.usize(2..9)).map(|_| (name(rng), look(rng))).collect()
}

fn name(rng: &mut Rng) -> u8 {
    rng.u8(0..8)
}

fn look(rng: &mut Rng) -> Option<Look> {
    (rng.u8(0..4) > 0).then(|| some_look(rng))
}

fn some_look(rng: &mut Rng) -> Look {
    Look { app: one_of(rng, &APPS), node: one_of(rng, &NODES) }
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(0..all.len())]
}
