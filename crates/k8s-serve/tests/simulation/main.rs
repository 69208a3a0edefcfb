//! Simulated histories of the read side: an API server, replicas that read it with the informer's
//! own core and serve it from a [`Dispatch`](k8s_serve::watch_cache::Dispatch), and clients like
//! client-go's behind an address that any replica answers, under a clock of our own.
//!
//! Each seed gives one history: a plan of steps (writes, faults, replicas that die …), then a time
//! in which all is well. What is checked, by the names in the failures:
//!
//! | | |
//! |---|---|
//! | S1 | no watch goes back in time: versions, the states of an object, bookmarks |
//! | S2 | no list that is not to be older than a version is |
//! | S3 | what a list shows, and what a bookmark tells to be complete, is the collection at that version |
//! | S4 | no watch adds what is there or changes what is not: nothing came twice or was lost |
//! | S5 | in the end all clients have the collection |
//! | S6 | nothing is kept for those who have gone |
//! | S7 | all comes to rest |
//! | S8 | with a log that drops nothing, only a start within a gap, before the log or in another history is refused: no relist upstream makes others list |

mod client;
mod coverage;
mod plan;
mod pod;
mod replica;
mod server;
mod serving;
mod shrink;
mod upstream;
mod world;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use coverage::{Coverage, EXPECTED};
use plan::Plan;
use world::World;

/// Histories of a run that is not told otherwise; 10,000 before a release (half a minute).
const RUNS: u64 = 2_000;

/// Fewer histories than this need not show everything.
const ALL_SEEN: u64 = 2_000;

#[test]
fn histories_keep_the_rules_of_the_read_side() {
    if let Some(seed) = number_from("INFORMER_SIMULATION_SEED") {
        return replay(seed);
    }
    let minutes = number_from("INFORMER_SIMULATION_MINUTES");
    let runs = number_from("INFORMER_SIMULATION_RUNS")
        .unwrap_or_else(|| minutes.map_or(RUNS, |_| u64::MAX));
    let first = number_from("INFORMER_SIMULATION_FIRST").unwrap_or_default();
    let begun = Instant::now();
    let until = minutes.map(|minutes| begun + Duration::from_secs(60 * minutes));
    let next = AtomicU64::new(0);
    let failed: Mutex<Option<u64>> = Mutex::new(None);
    let covered = Mutex::new(Coverage::default());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut coverage = Coverage::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let late = until.is_some_and(|until| Instant::now() >= until);
                    if number >= runs || late || failed.lock().unwrap().is_some() {
                        break;
                    }
                    let seed = first + number;
                    match play(&plan::plan(seed), false) {
                        Ok((seen, _)) => coverage.add(seen),
                        Err(_) => {
                            let mut failed = failed.lock().unwrap();
                            *failed = Some(failed.map_or(seed, |other| other.min(seed)));
                        }
                    }
                }
                covered.lock().unwrap().add(coverage);
            });
        }
    });
    if let Some(seed) = *failed.lock().unwrap() {
        shrink::report(seed);
    }
    let runs = runs.min(next.load(Ordering::Relaxed));
    println!("{runs} histories in {:.1?}", begun.elapsed());
    let covered = covered.into_inner().unwrap();
    covered.print();
    if runs >= ALL_SEEN {
        let missing: Vec<_> =
            EXPECTED.iter().filter(|what| !covered.0.contains_key(*what)).collect();
        assert!(missing.is_empty(), "never happened: {missing:?}");
    }
}

#[test]
fn a_seed_gives_the_same_history_every_time() {
    for seed in 0..20 {
        let plan = plan::plan(seed);
        let traces = [(); 2]
            .map(|()| play(&plan, true).unwrap_or_else(|failure| panic!("{}", failure.what)).1);
        assert!(traces[0].len() > 10 && traces[0] == traces[1], "seed {seed}");
    }
}

/// A history that broke a rule.
struct Broken {
    what: String,
    trace: Vec<String>,
}

/// Plays a history to its end; gives what it has covered and, if wanted, all that happened.
fn play(plan: &Plan, traced: bool) -> Result<(Coverage, Vec<String>), Broken> {
    quiet();
    let mut world = World::new(plan, traced);
    let played = catch_unwind(AssertUnwindSafe(|| {
        plan.steps.iter().for_each(|step| world.step(step));
        world.end();
    }));
    let trace = world.take_trace();
    match played {
        Ok(()) => Ok((std::mem::take(&mut world.coverage), trace)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let what = text.unwrap_or_else(|| "the panic carried no text".to_owned());
            Err(Broken { what, trace })
        }
    }
}

fn replay(seed: u64) {
    let plan = plan::plan(seed);
    shrink::print(&plan);
    let (trace, broken) = match play(&plan, true) {
        Ok((_, trace)) => (trace, None),
        Err(Broken { what, trace }) => (trace, Some(what)),
    };
    trace.iter().for_each(|line| println!("{line}"));
    if let Some(what) = broken {
        panic!("seed {seed}: {what}");
    }
}

/// Panics within histories are caught and told of once, at the end.
fn quiet() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let here = panic.location().is_some_and(|at| {
                at.file().ends_with("simulation/main.rs") || at.file().ends_with("shrink.rs")
            });
            if here {
                before(panic);
            }
        }));
    });
}

fn number_from(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
