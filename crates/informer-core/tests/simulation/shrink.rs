//! A history that broke something, as short as it still does.

use crate::plan::{self, Plan};
use crate::{Broken, play};

/// Shrinks the history of `seed`, and tells of it.
pub(crate) fn report(seed: u64) -> ! {
    let whole = plan::plan(seed);
    let Err(first) = play(&whole, false) else {
        panic!("seed {seed} broke something, and then did not: the simulation is not deterministic")
    };
    let short = shrink(whole.clone(), &first);
    let trace = play(&short, true).err().map(|broken| broken.trace).unwrap_or_default();
    println!("What happened in the shortest history that breaks the same:");
    trace.iter().for_each(|line| println!("{line}"));
    print(&short);
    panic!(
        "seed {seed}: {}\n{} of {} steps are left, above. The whole history:\n  INFORMER_SIMULATION_SEED={seed} \
         cargo test -p informer-core --test simulation histories -- --nocapture",
        first.what,
        short.steps.len(),
        whole.steps.len(),
    );
}

/// Leaves out steps, many at first, as long as the same guarantee is broken.
fn shrink(mut plan: Plan, broken: &Broken) -> Plan {
    let mut size = plan.steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < plan.steps.len() {
            let mut shorter = plan.clone();
            shorter.steps.drain(at..(at + size).min(plan.steps.len()));
            match play(&shorter, false) {
                Err(other) if tag(&other) == tag(broken) => plan = shorter,
                _ => at += size,
            }
        }
        size /= 2;
    }
    while let Some(fewer) = fewer_handlers(&plan)
        && play(&fewer, false).is_err_and(|other| tag(&other) == tag(broken))
    {
        plan = fewer;
    }
    plan
}

fn fewer_handlers(plan: &Plan) -> Option<Plan> {
    let mut fewer = plan.clone();
    fewer.config.handlers.pop().map(|_| fewer)
}

/// The first guarantee that a failure names; failures of one kind are told apart by nothing else.
fn tag(broken: &Broken) -> &str {
    let is_tag = |word: &&str| {
        word.starts_with('G') && word[1..].starts_with(|next: char| next.is_ascii_digit())
    };
    broken.what.split([' ', ':', ',']).find(is_tag).unwrap_or_default()
}

pub(crate) fn print(plan: &Plan) {
    println!("seed {}, {:#?}", plan.seed, plan.config);
    for (number, step) in plan.steps.iter().enumerate() {
        println!("{number:>4}. after {:>9.3} s  {:?}", step.after.as_secs_f64(), step.action);
    }
}
