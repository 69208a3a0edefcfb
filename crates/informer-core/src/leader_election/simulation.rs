//! Several candidates on one simulated API server, with a clock of true time that none of them
//! sees.
//!
//! Requests and answers are delayed and lost, processes are paused and killed, wall clocks are
//! wrong and stand still, Leases are deleted.

use std::collections::BTreeMap;

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::{ResourceVersion, Uid};

/// How bad the world is.
#[derive(Clone, Copy)]
struct World {
    /// The longest delay of a request, and of an answer.
    longest_delay: Duration,
    /// Of 100 requests, how many never arrive; of 100 answers too.
    lost: u32,
    /// Whether processes are paused, killed and asked to leave, and Leases are deleted.
    accidents: bool,
}

struct Simulation {
    world: World,
    random: Rng,
    /// True time.
    now: Duration,
    server: Server,
    processes: Vec<Process>,
    /// What happens when; the second number keeps the order of those that happen at one time.
    pending: BTreeMap<(Duration, u64), Happening>,
    scheduled: u64,
    /// How often leadership passed to another process.
    successions: u32,
    last_leader: Option<usize>,
}

struct Process {
    election: LeaderElection,
    /// What its monotonic clock is ahead of true time.
    offset: Duration,
    wall: Wall,
    paused_until: Duration,
    dead: bool,
    /// When it looks at its clock next, if nothing arrives before.
    wakes_at: Duration,
    /// The request whose answer it waits for.
    request: u64,
    /// What arrived during a pause.
    inbox: Vec<(u64, Input)>,
}

impl Process {
    fn knows_of_a_lease(&self) -> bool {
        self.dead || self.election.is_finished() || self.election.lease().is_some()
    }
}

/// A wall clock that is wrong.
#[derive(Clone, Copy)]
enum Wall {
    Ahead(i64),
    Stopped(i64),
}

enum Happening {
    /// The process looks at its clock.
    Wake {
        process: usize,
    },
    Arrives {
        process: usize,
        request: u64,
        body: Request,
    },
    Answered {
        process: usize,
        request: u64,
        input: Input,
    },
    Accident,
}

#[derive(Default)]
struct Server {
    lease: Option<ObservedLease>,
    version: u64,
}

impl Server {
    fn answer(&mut self, request: Request) -> Input {
        match request {
            Request::Get => match &self.lease {
                Some(lease) => Input::Lease(lease.clone()),
                None => Input::NotFound,
            },
            Request::Create(_) if self.lease.is_some() => Input::Conflict,
            Request::Create(record) => {
                let uid = format!("uid-{}", self.version);
                self.write(Uid::from(uid), record)
            }
            Request::Update { resource_version, record } => match &self.lease {
                None => Input::NotFound,
                Some(lease) if lease.resource_version != resource_version => Input::Conflict,
                // An update that changes nothing has no version of its own.
                Some(lease) if lease.record == record => Input::Lease(lease.clone()),
                Some(lease) => self.write(lease.uid.clone(), record),
            },
        }
    }

    fn write(&mut self, uid: Uid, record: LeaderElectionRecord) -> Input {
        self.version += 1;
        let resource_version = ResourceVersion::from(self.version);
        let lease = ObservedLease { uid, resource_version, record };
        self.lease = Some(lease.clone());
        Input::Lease(lease)
    }
}

impl Simulation {
    fn new(world: World, seed: u64, processes: usize) -> Self {
        let mut simulation = Self {
            world,
            random: Rng::with_seed(seed),
            now: Duration::ZERO,
            server: Server::default(),
            processes: Vec::new(),
            pending: BTreeMap::new(),
            scheduled: 0,
            successions: 0,
            last_leader: None,
        };
        for _ in 0..processes {
            simulation.start();
        }
        if world.accidents {
            simulation.schedule(Duration::from_secs(5), Happening::Accident);
        }
        simulation
    }

    /// Starts another process.
    fn start(&mut self) {
        let number = self.processes.len();
        let config = ElectionConfig {
            identity: format!("process-{number}"),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            seed: self.random.u64(..),
        };
        let day = 86_400_000_000;
        let wall = match self.random.u32(0..3) {
            0 => Wall::Stopped(self.random.i64(-day..day)),
            _ => Wall::Ahead(self.random.i64(-day..day)),
        };
        self.processes.push(Process {
            election: LeaderElection::new(config).unwrap(),
            offset: Duration::from_millis(self.random.u64(0..1_000_000)),
            wall,
            paused_until: Duration::ZERO,
            dead: false,
            wakes_at: Duration::ZERO,
            request: 0,
            inbox: Vec::new(),
        });
        let soon = self.delay();
        self.wake(number, soon);
    }

    /// Has a process look at its clock then, and not at the time that was planned before.
    fn wake(&mut self, process: usize, after: Duration) {
        self.processes[process].wakes_at = self.now + after;
        self.schedule(after, Happening::Wake { process });
    }

    fn delay(&mut self) -> Duration {
        let longest = u64::try_from(self.world.longest_delay.as_millis()).unwrap();
        // Mostly short, sometimes long.
        let longest = if self.random.u32(0..4) == 0 { longest } else { longest / 20 };
        Duration::from_millis(self.random.u64(0..=longest))
    }

    fn is_lost(&mut self) -> bool {
        self.random.u32(0..100) < self.world.lost
    }

    fn schedule(&mut self, after: Duration, happening: Happening) {
        self.scheduled += 1;
        self.pending.insert((self.now + after, self.scheduled), happening);
    }

    fn run_until(&mut self, end: Duration) {
        while let Some(next) = self.pending.first_entry() {
            if next.key().0 > end {
                break;
            }
            let ((at, _), happening) = next.remove_entry();
            self.check_until(at);
            self.now = at;
            self.happen(happening);
            self.check();
        }
        self.check_until(end);
        self.now = end;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Wake { process } => {
                if self.processes[process].wakes_at == self.now {
                    self.step(process);
                }
            }
            Happening::Arrives { process, request, body } => {
                let input = self.server.answer(body);
                if !self.is_lost() {
                    let delay = self.delay();
                    self.schedule(delay, Happening::Answered { process, request, input });
                }
            }
            Happening::Answered { process, request, input } => {
                // A connection that fails instead, though the server did what was asked.
                let input = if self.is_lost() { Input::Failed } else { input };
                self.processes[process].inbox.push((request, input));
                self.step(process);
            }
            Happening::Accident => {
                self.accident();
                let next = Duration::from_millis(self.random.u64(0..30_000));
                self.schedule(next, Happening::Accident);
            }
        }
    }

    /// Lets a process do what is due.
    fn step(&mut self, number: usize) {
        let true_time = self.now;
        let process = &mut self.processes[number];
        if process.dead || process.paused_until > true_time {
            return;
        }
        let now = true_time + process.offset;
        // Which of a timer and an answer a process sees first after a pause is chance.
        if self.random.bool() {
            let inbox = std::mem::take(&mut process.inbox);
            for (request, input) in inbox {
                if request == process.request {
                    process.election.handle(now, input);
                }
            }
        }
        let wall = MicroTime(match process.wall {
            Wall::Ahead(by) => i64::try_from(true_time.as_micros()).unwrap() + by,
            Wall::Stopped(at) => at,
        });
        while let Some(action) = self.processes[number].election.poll(now, wall) {
            self.processes[number].request += 1;
            let request = self.processes[number].request;
            match action {
                Action::Abandon => {}
                Action::Send(body) if !self.is_lost() => {
                    let delay = self.delay();
                    let arrives = Happening::Arrives { process: number, request, body };
                    self.schedule(delay, arrives);
                }
                Action::Send(_) => {}
            }
        }
        let process = &mut self.processes[number];
        let is_idle = process.inbox.is_empty();
        let deadline = process.election.deadline();
        if !is_idle {
            self.wake(number, Duration::ZERO);
        } else if deadline < Duration::MAX {
            let after = deadline.saturating_sub(now);
            self.wake(number, after);
        }
    }

    fn accident(&mut self) {
        let number = self.random.usize(0..self.processes.len());
        match self.random.u32(0..10) {
            // SIGSTOP, and SIGCONT after it.
            0..=4 => {
                let pause = Duration::from_millis(self.random.u64(0..40_000));
                self.processes[number].paused_until = self.now + pause;
                self.wake(number, pause);
            }
            // One that starts without a Lease cannot know that there is a leader.
            5 | 6 if self.server.lease.is_none() => {}
            5 => {
                self.processes[number].dead = true;
                self.start();
            }
            6 => {
                let process = &mut self.processes[number];
                process.election.release(self.now + process.offset);
                self.start();
                self.step(number);
            }
            // The Lease is deleted, once all have seen it. A creation has no precondition:
            // one that is on its way would be taken for one of after the deletion.
            7 if self.processes.iter().all(Process::knows_of_a_lease)
                && !self.is_creation_pending() =>
            {
                self.server.lease = None;
            }
            7 => {}
            // The Lease gets a label.
            _ => {
                self.server.version += 1;
                let version = ResourceVersion::from(self.server.version);
                if let Some(lease) = &mut self.server.lease {
                    lease.resource_version = version;
                }
            }
        }
    }

    fn is_creation_pending(&self) -> bool {
        let is_creation =
            |it: &Happening| matches!(it, Happening::Arrives { body: Request::Create(_), .. });
        self.pending.values().any(is_creation)
    }

    fn leaders(&self, at: Duration) -> Vec<usize> {
        let leads = |process: &Process| process.election.is_leader(at + process.offset);
        let alive = self.processes.iter().enumerate().filter(|(_, process)| !process.dead);
        alive.filter(|(_, process)| leads(process)).map(|(number, _)| number).collect()
    }

    /// Leadership only begins when something happens, and ends by itself, so that the moments after
    /// each happening are all moments that matter.
    fn check(&mut self) {
        let leaders = self.leaders(self.now);
        assert!(leaders.len() < 2, "processes {leaders:?} lead at {:?}", self.now);
        if let [leader] = *leaders
            && self.last_leader != Some(leader)
        {
            self.successions += 1;
            self.last_leader = Some(leader);
        }
    }

    fn check_until(&self, at: Duration) {
        let leaders = self.leaders(at);
        assert!(leaders.len() < 2, "processes {leaders:?} lead at {at:?}");
    }
}

const BAD: World = World { longest_delay: Duration::from_secs(8), lost: 10, accidents: true };
const GOOD: World = World { longest_delay: Duration::from_millis(200), lost: 0, accidents: false };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn at_no_moment_do_two_candidates_lead(seed: u64, candidates in 2_usize..=3) {
        Simulation::new(BAD, seed, candidates).run_until(Duration::from_secs(600));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn when_the_leader_dies_another_leads_within_lease_and_retry(
        seed: u64,
        candidates in 2_usize..=3,
        at in 20_000_u64..60_000,
    ) {
        let mut simulation = Simulation::new(GOOD, seed, candidates);
        simulation.run_until(Duration::from_millis(at));
        let leaders = simulation.leaders(simulation.now);
        prop_assert_eq!(leaders.len(), 1);
        prop_assert_eq!(simulation.successions, 1, "one that renews is not replaced");
        simulation.processes[leaders[0]].dead = true;
        // The look at the Lease and the write, each there and back; a look that failed to see the
        // last renewal on its way.
        let requests = GOOD.longest_delay * 8;
        let within = Duration::from_secs(15 + 2) + requests;
        simulation.run_until(simulation.now + within);
        prop_assert_eq!(simulation.leaders(simulation.now).len(), 1);
    }

    #[test]
    fn when_the_leader_releases_another_leads_within_a_retry(
        seed: u64,
        candidates in 2_usize..=3,
        at in 20_000_u64..60_000,
    ) {
        let mut simulation = Simulation::new(GOOD, seed, candidates);
        simulation.run_until(Duration::from_millis(at));
        let leader = simulation.leaders(simulation.now)[0];
        let now = simulation.now + simulation.processes[leader].offset;
        simulation.processes[leader].election.release(now);
        simulation.step(leader);
        prop_assert!(simulation.leaders(simulation.now).is_empty());
        let within = Duration::from_secs(2) + GOOD.longest_delay * 10;
        simulation.run_until(simulation.now + within);
        let leaders = simulation.leaders(simulation.now);
        prop_assert!(leaders.len() == 1 && leaders[0] != leader);
        prop_assert!(simulation.processes[leader].election.is_finished());
    }
}

#[test]
fn the_simulation_sees_leaders_come_and_go() {
    let successions = (0..50).map(|seed| {
        let mut simulation = Simulation::new(BAD, seed, 3);
        simulation.run_until(Duration::from_secs(600));
        simulation.successions
    });
    let successions: u32 = successions.sum();
    assert!(successions > 200, "only {successions}");
}
