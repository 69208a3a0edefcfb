//! Simulated histories: the whole core against a model of an API server, under a clock of our own.
//!
//! Each seed gives one history: a plan of steps (writes, faults, handlers that come and go …), then
//! a server that is well again. After every step every guarantee that can be checked is checked;
//! what a check says begins with the guarantee's number. See CONTRIBUTING.md for how to replay one
//! and how to run more.

mod content;
mod coverage;
mod driver;
mod ending;
mod network;
mod plan;
mod readers;
mod refreshes;
mod requests;
mod server;
mod shrink;
mod states;
mod steps;
mod wire;
mod world;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use coverage::{Coverage, EXPECTED};
use plan::Plan;
use world::World;

/// Histories of a run that is not told otherwise.
const RUNS: u64 = 10_000;

/// Fewer histories than this need not show everything.
const ALL_SEEN: u64 = 2_000;

#[test]
fn histories_keep_the_contract() {
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

/// A history that broke a guarantee.
struct Broken {
    what: String,
    trace: Vec<String>,
}

/// Plays a history to its end; gives what it has covered and, if wanted, all that happened.
fn play(plan: &Plan, traced: bool) -> Result<(Coverage, Vec<String>), Broken> {
    quiet();
    let mut world =
        catch_unwind(|| World::new(plan, traced)).map_err(|panic| broken(&*panic, Vec::new()))?;
    let played = catch_unwind(AssertUnwindSafe(|| {
        plan.steps.iter().for_each(|step| world.step(step));
        world.end();
    }));
    let trace = world.take_trace();
    match played {
        Ok(()) => Ok((std::mem::take(&mut world.coverage), trace)),
        Err(panic) => Err(broken(&*panic, trace)),
    }
}

fn broken(panic: &(dyn std::any::Any + Send), trace: Vec<String>) -> Broken {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Broken { what: text.unwrap_or_else(|| "the panic carried no text".to_owned()), trace }
}

fn replay(seed: u64) {
    let plan = plan::plan(seed);
    shrink::print(&plan);
    match play(&plan, true) {
        Ok((coverage, trace)) => {
            trace.iter().for_each(|line| println!("{line}"));
            coverage.print();
        }
        Err(broken) => {
            broken.trace.iter().for_each(|line| println!("{line}"));
            panic!("seed {seed}: {}", broken.what);
        }
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
