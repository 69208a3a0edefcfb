//! Jobs that share threads: those that took no time worth mentioning when they were done last.
//!
//! A thread for each job costs more than what most handlers do: with a hundred handlers, a hundred wake-ups for every
//! batch. So jobs that were quick wait for a thread that takes one after the other, a *runner*; a further runner comes
//! when those ahead took more than a [`BUDGET`] together. What a job took is no promise, though: as long as jobs wait,
//! somebody watches, and sends for new runners when none of the old has returned.

use std::collections::VecDeque;
use std::time::Duration;

use super::hand_over::Job;

/// How long jobs may wait for others, by what those took last. Jobs that take longer do not share a thread.
pub(crate) const BUDGET: Duration = Duration::from_micros(100);

/// Rounds in which nothing waited before the watch ends.
const QUIET: u32 = 3;

/// What is there for runners.
#[derive(Default)]
pub(super) struct SharedWork {
    waiting: VecDeque<Waiting>,
    /// Threads that look for waiting jobs, or are about to; but for those that were not waited for any longer.
    runners: u32,
    /// Runners that were sent for and have not arrived.
    coming: usize,
    /// What those that wait and those that the runners do took last.
    ahead: Duration,
    /// Grows when the runners are not counted on any more.
    era: u64,
    /// Jobs that were done so far: whether anything moves.
    done: u64,
    is_watched: bool,
}

/// A thread that does what waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Runner {
    era: u64,
    has_arrived: bool,
    /// What the job that it has in hand took last.
    in_hand: Option<Duration>,
}

struct Waiting {
    job: Job,
    took: Duration,
}

/// Whom a job needs beyond those who are there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Needed {
    Runner(Runner),
    Watch,
}

/// What somebody who watches has seen.
pub(super) struct Seen {
    done: u64,
    quiet: u32,
    stuck: u32,
}

/// What to do for who watches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Watch {
    GoOn,
    /// Nothing waits, for a while.
    End,
    /// Nothing has moved: send for so many runners.
    Send(usize),
}

impl SharedWork {
    /// Adds a job, which took that long the last time.
    pub(super) fn add(&mut self, job: Job, took: Duration) -> Option<Needed> {
        let is_late = self.runners == 0 || self.ahead > BUDGET * self.runners;
        self.waiting.push_back(Waiting { job, took });
        self.ahead += took;
        if is_late { Some(Needed::Runner(self.runner())) } else { self.watch() }
    }

    /// One more.
    pub(super) fn runner(&mut self) -> Runner {
        self.runners += 1;
        self.coming += 1;
        Runner { era: self.era, has_arrived: false, in_hand: None }
    }

    /// Who sees that nothing is left behind, if there is something and nobody does.
    pub(super) fn watch(&mut self) -> Option<Needed> {
        let is_needed = !self.waiting.is_empty() && !self.is_watched;
        self.is_watched |= is_needed;
        is_needed.then_some(Needed::Watch)
    }

    /// The next job for `runner`, which has done the one before; or it is none any more.
    pub(super) fn next(&mut self, runner: &mut Runner) -> Option<Job> {
        self.coming -= usize::from(!std::mem::replace(&mut runner.has_arrived, true));
        let done = runner.in_hand.take();
        self.done += u64::from(done.is_some());
        let is_counted = runner.era == self.era;
        if is_counted {
            self.ahead = self.ahead.saturating_sub(done.unwrap_or_default());
        }
        let Some(Waiting { job, took }) = self.waiting.pop_front() else {
            self.runners -= u32::from(is_counted);
            return None;
        };
        if !is_counted {
            self.runners += 1;
            runner.era = self.era;
        }
        runner.in_hand = Some(took);
        Some(job)
    }

    /// No thread could be started for it. What waits is left to others, and to the next [`watch`](Self::watch).
    pub(super) fn is_missing(&mut self, needed: &Needed) {
        match needed {
            Needed::Runner(runner) => {
                self.coming -= 1;
                self.runners -= u32::from(runner.era == self.era);
            }
            Needed::Watch => self.is_watched = false,
        }
    }

    /// What there is to see now.
    pub(super) fn seen(&self) -> Seen {
        Seen { done: self.done, quiet: 0, stuck: 0 }
    }

    /// What somebody who watches does after a while of it.
    pub(super) fn look(&mut self, seen: &mut Seen) -> Watch {
        let has_moved = std::mem::replace(&mut seen.done, self.done) != self.done;
        if self.waiting.is_empty() {
            (seen.stuck, seen.quiet) = (0, seen.quiet + 1);
            if seen.quiet < QUIET {
                return Watch::GoOn;
            }
            self.is_watched = false;
            return Watch::End;
        }
        seen.quiet = 0;
        if has_moved {
            seen.stuck = 0;
            return Watch::GoOn;
        }
        let missing = self.waiting.len().saturating_sub(self.coming);
        if missing == 0 {
            return Watch::GoOn;
        }
        // Twice as many each time: those that wait may all be of the kind that blocks.
        let sent = missing.min(1 << seen.stuck.min(16));
        seen.stuck += 1;
        self.era += 1;
        self.runners = 0;
        self.ahead = self.waiting.iter().map(|waiting| waiting.took).sum();
        Watch::Send(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(30);

    fn nothing() -> Job {
        Box::new(|| ())
    }

    fn runner(needed: Option<Needed>) -> Runner {
        match needed {
            Some(Needed::Runner(runner)) => runner,
            other => panic!("{other:?} instead of a runner"),
        }
    }

    #[test]
    fn a_runner_comes_for_each_budget_and_somebody_watches() {
        let mut work = SharedWork::default();
        let mut first = runner(work.add(nothing(), QUICK));
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Watch));
        assert_eq!(work.add(nothing(), QUICK), None);
        // 90 µs are ahead, then 120 and 150.
        assert_eq!(work.add(nothing(), QUICK), None);
        let mut second = runner(work.add(nothing(), QUICK));
        assert_eq!(work.add(nothing(), QUICK), None, "a share of a second runner");
        for _ in 0..6 {
            assert!(work.next(&mut first).is_some());
        }
        assert!(work.next(&mut first).is_none() && work.next(&mut second).is_none());
        assert_eq!((work.runners, work.ahead), (0, Duration::ZERO));
        runner(work.add(nothing(), QUICK));
    }

    #[test]
    fn g15_runners_are_sent_for_when_nothing_moves() {
        let mut work = SharedWork::default();
        let mut stuck = runner(work.add(nothing(), QUICK));
        assert!(work.next(&mut stuck).is_some());
        for needed in [Some(Needed::Watch), None, None, None] {
            assert_eq!(work.add(nothing(), Duration::ZERO), needed);
        }
        let mut seen = work.seen();
        assert_eq!(work.look(&mut seen), Watch::Send(1));
        let mut sent = work.runner();
        assert_eq!(work.look(&mut seen), Watch::Send(2), "it may not have arrived, and there are more jobs");
        assert!(work.next(&mut sent).is_some());
        assert_eq!(work.look(&mut seen), Watch::Send(3), "no more than there are jobs");
        let coming = [work.runner(), work.runner(), work.runner()];
        assert_eq!(work.look(&mut seen), Watch::GoOn, "one for each is on the way");
        for runner in coming {
            work.is_missing(&Needed::Runner(runner));
        }
        assert!(work.next(&mut stuck).is_some(), "whoever returns helps");
        assert_eq!(work.look(&mut seen), Watch::GoOn);
        assert_eq!((work.runners, work.waiting.len()), (1, 2));
        assert_eq!(work.look(&mut seen), Watch::Send(1), "from the beginning");
    }

    #[test]
    fn the_watch_ends_when_nothing_waits_for_a_while() {
        let mut work = SharedWork::default();
        let mut only = runner(work.add(nothing(), QUICK));
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Watch));
        let mut seen = work.seen();
        while work.next(&mut only).is_some() {}
        assert_eq!([(); 3].map(|()| work.look(&mut seen)), [Watch::GoOn, Watch::GoOn, Watch::End]);
        runner(work.add(nothing(), QUICK));
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Watch), "and begins again");
    }

    #[test]
    fn g15_what_waits_for_a_thread_that_did_not_start_is_left_to_others() {
        let mut work = SharedWork::default();
        let missing = work.add(nothing(), QUICK).expect("a runner");
        work.is_missing(&missing);
        assert_eq!(work.watch(), Some(Needed::Watch), "a thread that sees to it, when there is one");
        work.is_missing(&Needed::Watch);
        let mut later = runner(work.add(nothing(), QUICK));
        assert!(work.next(&mut later).is_some() && work.next(&mut later).is_some());
        assert_eq!(work.watch(), None, "nothing waits");
    }
}
