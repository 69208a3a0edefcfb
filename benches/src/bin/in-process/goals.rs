//! What we have set ourselves, and whether it is reached.

use informer_benches::numbers::{Spread, Table, short};

use crate::figures::Rounds;
use crate::growth;

/// All goals.
pub(crate) fn table(figures: &Rounds) -> String {
    let table = Table::new(&["goal", "at most", "measured", ""]);
    let mut goals = Goals { figures, table };
    goals.events();
    goals.writers();
    goals.reading();
    goals.relist();
    goals.handlers();
    goals.memory();
    goals.growth();
    goals.table.section("Goals inside the process", "At least, where that is said. – was not measured.")
}

struct Goals<'a> {
    figures: &'a Rounds,
    table: Table,
}

impl Goals<'_> {
    fn events(&mut self) {
        self.figure(
            "update, applied to handled, core, batches of 64: µs",
            1.5,
            "core.64.registrations-1.cpu-us",
        );
        self.figure(
            "update, frame to handled, informer, batches of 64: µs",
            1.5,
            "informer.64.handlers-1.cpu-us",
        );
        let over = |own, other| self.figures.ratio(own, other);
        let rows = [
            (
                "the same, over client-go's",
                over("informer.64.handlers-1.cpu-us", "client-go.events.64.cpu-us"),
            ),
            (
                "a single update that finds all asleep, over client-go's",
                over("informer.idle.cpu-us", "client-go.events.idle.cpu-us"),
            ),
            (
                "single updates, one after the other, over client-go's",
                over("informer.1.handlers-1.cpu-us", "client-go.events.1.cpu-us"),
            ),
            (
                "… by a stream: batches of 64, over client-go's handler",
                over("informer.64.stream.cpu-us", "client-go.events.64.cpu-us"),
            ),
            (
                "… by a stream: one that finds all asleep, over client-go's handler",
                over("informer.idle.stream.cpu-us", "client-go.events.idle.cpu-us"),
            ),
            (
                "… by a stream: one after the other, over client-go's handler",
                over("informer.1.stream.cpu-us", "client-go.events.1.cpu-us"),
            ),
            (
                "… by a stream, runtime of one thread: batches of 64, over client-go's handler",
                over("informer.64.one-thread.cpu-us", "client-go.events.64.cpu-us"),
            ),
            (
                "… by a stream, runtime of one thread: one that finds all asleep, over client-go's handler",
                over("informer.idle.one-thread.cpu-us", "client-go.events.idle.cpu-us"),
            ),
            (
                "… by a stream, runtime of one thread: one after the other, over client-go's handler",
                over("informer.1.one-thread.cpu-us", "client-go.events.1.cpu-us"),
            ),
            (
                "allocations of an update, batches of 64, over client-go's",
                over("informer.64.handlers-1.allocations", "client-go.events.64.allocations"),
            ),
            (
                "allocations of a single update, over client-go's",
                over("informer.1.handlers-1.allocations", "client-go.events.1.allocations"),
            ),
        ];
        for (goal, value) in rows {
            self.at_most(goal, 1.0, &value);
        }
    }

    fn writers(&mut self) {
        for (objects, times) in [(10_000, 500.0), (160_000, 4_000.0)] {
            let cases = [
                ("batch-1", "batches of 1"),
                ("batch-16", "batches of 16"),
                ("apart", "on a core of its own"),
            ];
            for (case, described) in cases {
                for reading in ["iterating", "collecting"] {
                    let name = |reading: &str| format!("writers.{objects}.{case}.{reading}.cpu-us");
                    let value = self.figures.ratio(&name(reading), &name("nothing"));
                    let goal = format!(
                        "a write beside ten readers {reading}, over one alone; {objects} objects, {described}"
                    );
                    self.at_most(&goal, 1.3, &value);
                    let another = self.figures.ratio(&name(reading), &name(&format!("{reading}another")));
                    let goal = format!("… over one beside readers {reading} what nobody writes");
                    self.at_most(&goal, 1.3, &another);
                }
            }
            let own = format!("writers.{objects}.batch-1.collecting.per-second");
            let value = self.figures.ratio(&own, &format!("client-go.writers.{objects}.per-second"));
            self.at_least(
                &format!("writes per second beside ten readers, over client-go's; {objects} objects"),
                times,
                &value,
            );
            let own = format!("writers.{objects}.apart.collecting.per-second");
            let over = |of| self.figures.ratio(&own, &format!("client-go.writers.{objects}.{of}per-second"));
            let value = match (over(""), over("apart.")) {
                (shared, apart) if apart.median() > shared.median() => shared,
                (_, apart) => apart,
            };
            let goal = format!(
                "… the writer on a core of its own, over the better of client-go's; {objects} objects"
            );
            self.at_least(&goal, times, &value);
        }
    }

    fn reading(&mut self) {
        for objects in [10_000, 100_000] {
            for what in ["iterate", "collect"] {
                let value = self.figures.ratio(
                    &format!("listing.{objects}.ours.{what}.ns"),
                    &format!("listing.{objects}.map.{what}.ns"),
                );
                self.at_most(
                    &format!("listing ({what}), over a locked hash map; {objects} objects"),
                    2.0,
                    &value,
                );
            }
        }
        for how in ["index", "selector"] {
            let name = |objects| format!("by-label.{objects}.{how}.us");
            self.figure(&format!("100 of 1,000,000 by label ({how}): µs"), 100.0, &name(1_000_000));
            let value = self.figures.ratio(&name(1_000_000), &name(10_000));
            self.at_most(&format!("100 of 1,000,000 by label ({how}), over 100 of 10,000"), 1.5, &value);
            let value = self.figures.ratio(&name(1_000_000), &format!("by-label.many-of-10000.{how}.us"));
            let goal = format!("… over 100 of 10,000 in one of 100 such stores ({how})");
            self.at_most(&goal, 1.5, &value);
        }
    }

    fn relist(&mut self) {
        self.figure("relist of 165,000 unchanged, core: µs per object", 1.0, "relist.core.us-per-object");
        self.figure(
            "relist of 165,000 unchanged, informer, beyond reading heads: µs per object",
            1.0,
            "relist.informer.beyond-heads.us-per-object",
        );
        self.figure("… events given to handlers", 0.0, "relist.informer.events");
        self.figure("… a snapshot meanwhile: µs", 1.0, "relist.core.snapshot-us");
    }

    fn handlers(&mut self) {
        let cases = [("core", "registrations"), ("informer", "handlers")];
        for (of, what) in cases {
            for batch in [64, 256] {
                let name = |count| format!("{of}.{batch}.{what}-{count}.cpu-us");
                let (one, many) = (self.figures.of(&name(1)).median(), self.figures.of(&name(100)).median());
                let each: Spread =
                    one.zip(many).map(|(one, many)| (many - one) / 99.0 * 1000.0).into_iter().collect();
                self.at_most(
                    &format!("each of 99 more {what}, {of}, batches of {batch}: ns per event"),
                    50.0,
                    &each,
                );
            }
        }
    }

    fn memory(&mut self) {
        for objects in [10_000, 100_000, 1_000_000] {
            let name = |what: &str| format!("memory.{objects}.{what}.bytes");
            self.figure(&format!("memory of an entry; {objects} listed: bytes"), 64.0, &name("listed"));
            self.figure(
                &format!("memory of an entry; {objects} one by one: bytes"),
                64.0,
                &name("one-by-one"),
            );
            self.figure(
                &format!("memory of an entry with a unique index; {objects}: bytes"),
                150.0,
                &name("unique-index"),
            );
        }
    }

    fn growth(&mut self) {
        for what in ["fill-ns", "list-ns", "update-ns", "memory-bytes"] {
            let names = growth::SIZES.map(|objects| format!("growth.{objects}.{what}"));
            let value = self.figures.growth(&names);
            self.at_most(
                &format!("{what} per object, the most over the least of 1k, 10k, 100k, 1M"),
                1.5,
                &value,
            );
            if what == "memory-bytes" {
                continue;
            }
            let names = growth::SIZES.map(|objects| format!("growth.many-of-{objects}.{what}"));
            let value = self.figures.growth(&names);
            self.at_most("… in as many such stores as have 1M objects together", 1.5, &value);
        }
    }

    fn figure(&mut self, goal: &str, limit: f64, name: &str) {
        let value = self.figures.of(name);
        self.at_most(goal, limit, &value);
    }

    fn at_most(&mut self, goal: &str, limit: f64, value: &Spread) {
        self.row(goal, &short(limit), value, |median| median <= limit);
    }

    fn at_least(&mut self, goal: &str, limit: f64, value: &Spread) {
        self.row(goal, &format!("at least {}", short(limit)), value, |median| median >= limit);
    }

    fn row(&mut self, goal: &str, limit: &str, value: &Spread, is_met: impl Fn(f64) -> bool) {
        let verdict = match value.median() {
            None => "–",
            Some(median) if is_met(median) => "ok",
            Some(_) => "**MISSED**",
        };
        self.table.row(&[goal.to_owned(), limit.to_owned(), value.to_string(), verdict.to_owned()]);
    }
}
