//! Jobs that share threads: those that took no time worth mentioning when they were done last.
//!
//! A thread for each job costs more than what most handlers do: with a hundred handlers, a hundred wake-ups for every
//! batch. So jobs that were quick wait for a thread that takes one after the other, a *runner*; a further runner comes
//! when those ahead took more than a [`BUDGET`] together. What a job took is no promise, though: as long as jobs wait,
//! somebody watches, and takes over when nothing has moved.

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
    /// Threads that look for waiting jobs, or are about to.
    runners: u32,
    /// What those that wait and those that are being done took last.
    ahead: Duration,
    /// Grows when somebody takes over; runners from before are not counted on.
    era: Era,
    /// Jobs that were begun so far: whether anything moves.
    begun: u64,
    is_watched: bool,
}

/// A number of its own for those who were runners at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Era(u64);

struct Waiting {
    job: Job,
    took: Duration,
}

/// Whom a job needs beyond those who are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    Runner(Era),
    Watch,
}

/// What somebody who watches has seen.
pub(super) struct Seen {
    begun: u64,
    quiet: u32,
}

/// What to do for who watches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Watch {
    GoOn,
    /// Nothing waits, for a while.
    End,
    /// Nothing has moved: be a runner, and let somebody else watch.
    TakeOver(Era),
}

impl SharedWork {
    /// Adds a job, which took that long the last time.
    pub(super) fn add(&mut self, job: Job, took: Duration) -> Option<Needed> {
        let is_late = self.runners == 0 || self.ahead > BUDGET * self.runners;
        self.waiting.push_back(Waiting { job, took });
        self.ahead += took;
        if is_late {
            self.runners += 1;
            return Some(Needed::Runner(self.era));
        }
        (!std::mem::replace(&mut self.is_watched, true)).then_some(Needed::Watch)
    }

    /// The next job for a runner of `era`, which has `done` one that took so long before; or it is none any more.
    pub(super) fn next(&mut self, era: Era, done: Option<Duration>) -> Option<(Job, Duration)> {
        if self.era != era {
            return None;
        }
        self.ahead = self.ahead.saturating_sub(done.unwrap_or_default());
        let next = self.waiting.pop_front();
        match next {
            Some(Waiting { job, took }) => {
                self.begun += 1;
                Some((job, took))
            }
            None => {
                self.runners -= 1;
                None
            }
        }
    }

    /// What there is to see now.
    pub(super) fn seen(&self) -> Seen {
        Seen { begun: self.begun, quiet: 0 }
    }

    /// What somebody who watches does after a while of it.
    pub(super) fn look(&mut self, seen: &mut Seen) -> Watch {
        let has_moved = std::mem::replace(&mut seen.begun, self.begun) != self.begun;
        if self.waiting.is_empty() {
            seen.quiet += 1;
            if seen.quiet < QUIET {
                return Watch::GoOn;
            }
            self.is_watched = false;
            return Watch::End;
        }
        seen.quiet = 0;
        if has_moved {
            return Watch::GoOn;
        }
        self.era.0 += 1;
        self.runners = 1;
        self.ahead = self.waiting.iter().map(|waiting| waiting.took).sum();
        Watch::TakeOver(self.era)
    }

    /// No thread could be started to watch. Whoever comes next tries again.
    pub(super) fn is_not_watched(&mut self) {
        self.is_watched = false;
    }

    /// No thread could be started to be a runner. What waits comes back as one job, unless there are others.
    pub(super) fn has_no_runner(&mut self, era: Era) -> Option<Job> {
        if self.era != era {
            return None;
        }
        self.runners -= 1;
        if self.runners > 0 || self.waiting.is_empty() {
            return None;
        }
        self.ahead = Duration::ZERO;
        let waiting = std::mem::take(&mut self.waiting);
        Some(Box::new(move || waiting.into_iter().for_each(|waiting| (waiting.job)())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const QUICK: Duration = Duration::from_micros(30);

    fn nothing() -> Job {
        Box::new(|| ())
    }

    fn runner(needed: Option<Needed>) -> Era {
        match needed {
            Some(Needed::Runner(era)) => era,
            other => panic!("{other:?} instead of a runner"),
        }
    }

    #[test]
    fn a_runner_comes_for_each_budget_and_somebody_watches() {
        let mut work = SharedWork::default();
        let era = runner(work.add(nothing(), QUICK));
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Watch));
        assert_eq!(work.add(nothing(), QUICK), None);
        // 90 µs are ahead, then 120 and 150.
        assert_eq!(work.add(nothing(), QUICK), None);
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Runner(era)));
        assert_eq!(work.add(nothing(), QUICK), None, "a share of a second runner");
        let mut done = None;
        for _ in 0..6 {
            done = work.next(era, done).map(|(_, took)| took);
            assert_eq!(done, Some(QUICK));
        }
        assert!(work.next(era, done).is_none() && work.next(era, None).is_none());
        assert_eq!((work.runners, work.ahead), (0, QUICK * 0));
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Runner(era)), "all have gone away");
    }

    #[test]
    fn g15_who_watches_takes_over_when_nothing_moves() {
        let mut work = SharedWork::default();
        let era = runner(work.add(nothing(), QUICK));
        assert!(work.next(era, None).is_some());
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Watch));
        let mut seen = work.seen();
        let Watch::TakeOver(later) = work.look(&mut seen) else { panic!("nothing has moved") };
        assert!(work.next(era, Some(QUICK)).is_none(), "whoever was a runner is none any more");
        assert!(work.next(later, None).is_some());
        assert_eq!(work.add(nothing(), QUICK), None, "somebody watches still");
        let mut seen = Seen { begun: 0, quiet: 0 };
        assert_eq!(work.look(&mut seen), Watch::GoOn, "one was begun meanwhile");
        assert_eq!(work.look(&mut seen), Watch::TakeOver(Era(2)));
    }

    #[test]
    fn the_watch_ends_when_nothing_waits_for_a_while() {
        let mut work = SharedWork::default();
        let era = runner(work.add(nothing(), QUICK));
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Watch));
        let mut seen = work.seen();
        while work.next(era, None).is_some() {}
        assert_eq!([(); 3].map(|()| work.look(&mut seen)), [Watch::GoOn, Watch::GoOn, Watch::End]);
        runner(work.add(nothing(), QUICK));
        assert_eq!(work.add(nothing(), QUICK), Some(Needed::Watch), "and begins again");
    }

    #[test]
    fn what_waits_for_a_runner_that_cannot_come_comes_back_together() {
        let mut work = SharedWork::default();
        let (sender, ran) = mpsc::channel();
        let job = |number: u32| -> Job {
            let sender = sender.clone();
            Box::new(move || _ = sender.send(number))
        };
        let era = runner(work.add(job(1), QUICK));
        assert_eq!(work.add(job(2), QUICK), Some(Needed::Watch));
        work.has_no_runner(era).expect("nobody else would do them")();
        assert_eq!(ran.try_iter().collect::<Vec<_>>(), [1, 2]);
        runner(work.add(job(3), QUICK * 4));
        assert_eq!(work.add(job(4), QUICK), Some(Needed::Runner(era)));
        assert!(work.has_no_runner(era).is_none(), "the other does both");
    }
}
