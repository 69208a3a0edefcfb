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
    if let Err(broken) = play(&short, true) {
        println!("What happened in the shortest history that breaks the same:");
        broken.trace.iter().for_each(|line| println!("{line}"));
        print(&short);
        println!("{}", broken.what);
    }
    panic!(
        "seed {seed}: {}\n{} of {} steps are left, above. The whole history:\n  INFORMER_SIMULATION_SEED={seed} \
         cargo test -p k8s-serve --test simulation histories -- --nocapture",
        first.what,
        short.steps.len(),
        whole.steps.len(),
    );
}

/// Leaves out steps, many at first, and clients, as long as the same rule is broken.
fn shrink(mut plan: Plan, broken: &Broken) -> Plan {
    let is_same = |plan: &Plan| play(plan, false).is_err_and(|other| tag(&other) == tag(broken));
    let mut size = plan.steps.len();
    while size > 0 {
        let mut at = 0;
        while at < plan.steps.len() {
            let mut shorter = plan.clone();
            shorter.steps.drain(at..(at + size).min(plan.steps.len()));
            match is_same(&shorter) {
                true => plan = shorter,
                false => at += size,
            }
        }
        size /= 2;
    }
    for at in (0..plan.config.clients.len()).rev() {
        let mut fewer = plan.clone();
        fewer.config.clients.remove(at);
        if is_same(&fewer) {
            plan = fewer;
        }
    }
    plan
}

/// The rule that a failure names; failures of one kind are told apart by nothing else.
fn tag(broken: &Broken) -> &str {
    broken.what.split(':').next().unwrap_or_default()
}

pub(crate) fn print(plan: &Plan) {
    println!("seed {}, {:#?}", plan.seed, plan.config);
    for (number, step) in plan.steps.iter().enumerate() {
        println!("{number:>4}. after {:>9.3} s  {:?}", step.after.as_secs_f64(), step.action);
    }
}
