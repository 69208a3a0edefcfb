//! Random histories of one queue, against a model that is obviously right.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    AddLow(u8),
    AddAfter(u8, u64),
    Pass(u64),
    Take,
    /// The item taken so long ago, as an index into those in work, is done.
    Done(prop::sample::Index),
    /// `done` for any item, whether or not somebody has it.
    DoneAny(u8),
    ShutDown,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..6).prop_map(Step::Add),
        6 => (0u8..6).prop_map(Step::AddLow),
        5 => (0u8..6, 0u64..20).prop_map(|(item, delay)| Step::AddAfter(item, delay)),
        4 => (0u64..15).prop_map(Step::Pass),
        8 => Just(Step::Take),
        6 => any::<prop::sample::Index>().prop_map(Step::Done),
        1 => (0u8..6).prop_map(Step::DoneAny),
    ];
    (prop::collection::vec(step, 0..120), prop::option::of(any::<prop::sample::Index>())).prop_map(
        |(mut steps, shutdown)| {
            if let Some(at) = shutdown {
                let at = at.index(steps.len() + 1);
                steps.insert(at, Step::ShutDown);
            }
            steps
        },
    )
}

/// Each item's state by itself, and the order of those that wait.
#[derive(Default)]
struct Model {
    /// Those of normal priority, and those of low priority.
    order: Vec<u8>,
    low: Vec<u8>,
    /// How many of normal priority were handed out since one of low priority waits.
    passed: u32,
    /// With which priority each is to come again.
    in_work: BTreeMap<u8, Option<Priority>>,
    delayed: Vec<(u64, u8)>,
    is_shutting_down: bool,
    adds: u64,
    retries: u64,
}

impl Model {
    fn add(&mut self, item: u8, priority: Priority) {
        if self.is_shutting_down || self.order.contains(&item) {
            return;
        }
        if let Some(at) = self.low.iter().position(|&waits| waits == item) {
            if priority == Priority::Normal {
                self.low.remove(at);
                self.order.push(item);
            }
            return;
        }
        match self.in_work.get_mut(&item) {
            Some(again) => {
                self.adds += u64::from(again.is_none());
                *again = (*again).max(Some(priority));
            }
            None => {
                self.adds += 1;
                self.push(item, priority);
            }
        }
    }

    fn push(&mut self, item: u8, priority: Priority) {
        match priority {
            Priority::Normal => self.order.push(item),
            Priority::Low => self.low.push(item),
        }
    }

    fn waiting(&self) -> usize {
        self.order.len() + self.low.len()
    }

    fn add_after(&mut self, now: u64, item: u8, delay: u64) {
        if self.is_shutting_down {
            return;
        }
        self.retries += 1;
        if delay == 0 {
            return self.add(item, Priority::Normal);
        }
        let deadline = now + delay;
        match self.delayed.iter().position(|&(_, waits)| waits == item) {
            Some(at) if self.delayed[at].0 <= deadline => return,
            Some(at) => _ = self.delayed.remove(at),
            None => {}
        }
        self.delayed.push((deadline, item));
    }

    fn advance(&mut self, now: u64) {
        // Stable: the same deadlines stay in the order in which they came.
        self.delayed.sort_by_key(|&(deadline, _)| deadline);
        let due = self.delayed.iter().take_while(|&&(deadline, _)| deadline <= now).count();
        for (_, item) in self.delayed.drain(..due).collect::<Vec<_>>() {
            self.add(item, Priority::Normal);
        }
    }

    fn take(&mut self) -> Option<u8> {
        if self.waiting() == 0 {
            return None;
        }
        let is_low = self.order.is_empty() || self.passed == 9 && !self.low.is_empty();
        let item = if is_low { self.low.remove(0) } else { self.order.remove(0) };
        self.passed = if is_low || self.low.is_empty() { 0 } else { self.passed + 1 };
        assert!(self.in_work.insert(item, None).is_none(), "two workers have {item}");
        Some(item)
    }

    fn done(&mut self, item: u8) {
        if let Some(Some(priority)) = self.in_work.remove(&item) {
            self.push(item, priority);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// What is handed out, in what order and how often; nothing lost, nobody beside another on the
    /// same item.
    #[test]
    fn a_queue_does_what_a_naive_one_does(steps in steps()) {
        let (mut queue, mut model, mut now) = (queue::<u8>(), Model::default(), 0);
        let check = |queue: &mut Queue<u8>, model: &mut Model, now: u64| {
            queue.advance(ms(now));
            model.advance(now);
            prop_assert_eq!(queue.len(), model.waiting());
            prop_assert_eq!(queue.delayed(), model.delayed.len());
            let next = model.delayed.iter().map(|&(deadline, _)| ms(deadline)).min();
            prop_assert_eq!(queue.next_deadline(), next);
            let again = model.in_work.values().filter(|again| again.is_some()).count();
            let metrics = queue.metrics(ms(now));
            prop_assert_eq!((metrics.adds, metrics.retries), (model.adds, model.retries));
            prop_assert_eq!(metrics.depth, model.waiting() + again);
            prop_assert_eq!(metrics.depth_low, model.low.len());
            let is_over = model.is_shutting_down && model.waiting() == 0 && again == 0;
            prop_assert_eq!(queue.is_over(), is_over);
            prop_assert_eq!(queue.is_drained(), is_over && model.in_work.is_empty());
            // All that was added was handed out, or will be.
            let handed_out = metrics.queue_duration.count();
            prop_assert_eq!(metrics.adds, handed_out + metrics.depth as u64);
            prop_assert_eq!(handed_out, metrics.work_duration.count() + model.in_work.len() as u64);
            Ok(())
        };
        for step in steps {
            match step {
                Step::Add(item) => {
                    queue.add(ms(now), item);
                    model.add(item, Priority::Normal);
                }
                Step::AddLow(item) => {
                    queue.add_with_priority(ms(now), item, Priority::Low);
                    model.add(item, Priority::Low);
                }
                Step::AddAfter(item, delay) => {
                    queue.add_after(ms(now), item, ms(delay));
                    model.add_after(now, item, delay);
                }
                Step::Pass(time) => now += time,
                Step::Take => prop_assert_eq!(queue.take(ms(now)), model.take()),
                Step::Done(which) => {
                    let items: Vec<u8> = model.in_work.keys().copied().collect();
                    if !items.is_empty() {
                        let item = items[which.index(items.len())];
                        queue.done(ms(now), &item);
                        model.done(item);
                    }
                }
                Step::DoneAny(item) => {
                    queue.done(ms(now), &item);
                    model.done(item);
                }
                Step::ShutDown => {
                    queue.shut_down();
                    model.is_shutting_down = true;
                    model.delayed.clear();
                }
            }
            check(&mut queue, &mut model, now)?;
        }
        // Whoever works on gets everything.
        now += 1000;
        check(&mut queue, &mut model, now)?;
        for item in model.in_work.keys().copied().collect::<Vec<_>>() {
            queue.done(ms(now), &item);
            model.done(item);
        }
        while let Some(item) = queue.take(ms(now)) {
            prop_assert_eq!(Some(item), model.take());
            queue.done(ms(now), &item);
            model.done(item);
        }
        prop_assert_eq!(model.take(), None);
        queue.shut_down();
        prop_assert!(queue.is_drained());
    }
}
