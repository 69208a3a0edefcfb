//! The section's tables, and its goals.

use super::{Attached, Burst, CHANGING, Latency, Measured, Rate, drain, runs};
use crate::goals::verdict;
use crate::numbers::{Spread, Table, or_dash, short};

impl Measured {
    /// The report of the section.
    pub(crate) fn table(&self) -> String {
        if self.bursts.is_empty() {
            return String::new();
        }
        let mut text = self.goals();
        for rate in Rate::ALL {
            text.push_str(&self.of_rate(rate));
        }
        text
    }

    fn goals(&self) -> String {
        let [typed, lazy, typed_stream, lazy_stream, go, go_json, kube_runtime] = runs();
        let mut table = Table::new(&["goal", "at most", "500/s", "flat out", ""]);
        let mut at_most = |goal: &str, limit: f64, value: &dyn Fn(Rate) -> Spread| {
            let values = Rate::ALL.map(value);
            let verdict = verdict(&values, [limit; 2]);
            let [steady, flat] = values.map(|value| value.to_string());
            table.row(&[goal.to_owned(), short(limit), steady, flat, verdict.to_owned()]);
        };
        let ours = [
            ("typed", typed),
            ("lazy", lazy),
            ("typed, stream,", typed_stream),
            ("lazy, stream,", lazy_stream),
        ];
        for (name, own) in ours {
            at_most(&format!("p50 latency: {name} over the better peer"), 1.0, &|rate| {
                let peers = [go, go_json, kube_runtime].map(|peer| self.latency(peer, rate, |late| late.p50));
                let better = least(&peers);
                Spread::ratios(&self.latency(own, rate, |late| late.p50), &better)
            });
            at_most(&format!("net CPU per event: {name} over client-go protobuf"), 1.0 / 3.0, &|rate| {
                Spread::ratios(&self.net(own, rate), &self.net(go, rate))
            });
        }
        table.section(
            "Goals of events over HTTP",
            "Ours from protobuf, medians of the rounds. *Net* CPU time is that minus the client's own drain's.",
        )
    }

    fn of_rate(&self, rate: Rate) -> String {
        let mut table = Table::new(&[
            "client",
            "CPU, µs per event",
            "minus drain",
            "latency p50, ms",
            "p99",
            "most",
            "events per s",
            "not seen",
            "allocations per event",
        ]);
        let spread = |values: Vec<Option<f64>>| values.into_iter().flatten().collect::<Spread>().to_string();
        let mut rows = runs().map(Attached::Run).to_vec();
        for run in runs() {
            let drain = Attached::Drain(drain(run));
            if !rows.contains(&drain) {
                rows.push(drain);
            }
        }
        for attached in rows.into_iter().filter(|attached| !self.of(*attached, rate).is_empty()) {
            let milliseconds = |of: fn(Latency) -> u64| {
                spread(self.each(attached, rate, |burst| Some(of(burst.latency?) as f64 / 1e3)))
            };
            let net = match attached {
                Attached::Run(run) => self.net(run, rate),
                Attached::Drain(_) => Vec::new(),
            };
            let missing =
                self.of(attached, rate).iter().flatten().map(Burst::not_seen).collect::<Option<Vec<_>>>();
            table.row(&[
                attached.to_string(),
                spread(self.cpu(attached, rate)),
                spread(net),
                milliseconds(|late| late.p50),
                milliseconds(|late| late.p99),
                milliseconds(|late| late.max),
                spread(self.each(attached, rate, |burst| Some(burst.arrived_per_second()))),
                or_dash(missing.map(|missing| missing.iter().sum::<usize>())),
                or_dash(self.allocations.get(&attached).map(|count| short(*count))),
            ]);
        }
        table.section(
            &format!("Events over HTTP, {rate}"),
            &format!(
                "{} updates of {CHANGING} Pods in turn, put into etcd by another process as the API server would have stored them{}. \
                 *Latency* is from that put to the call of the handler (streams: to their item), so much of it is etcd's and \
                 the API server's; it can be compared within a run only. *Not seen* are updates that the handler was not told of one by \
                 one, in all rounds. A *drain* is a watch of the same bytes, thrown away. *Allocations* were counted once, at 500/s.",
                rate.bursts() * rate.events(),
                match rate {
                    Rate::Steady => "",
                    Rate::Flat => ": 250 as fast as etcd takes them, the next ones once the client has handled those. What is further behind \
                                   than some hundred events is shut out by the API server, and it would be measured how clients come back",
                },
            ),
        )
    }
}

/// In each round, the least of those that there are.
fn least(rounds: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let count = rounds.iter().map(Vec::len).max().unwrap_or_default();
    (0..count).map(|round| rounds.iter().filter_map(|of| *of.get(round)?).reduce(f64::min)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_peer_is_that_of_the_round() {
        let rounds = [vec![Some(2.0), None, Some(4.0)], vec![Some(3.0), None], vec![Some(1.0), None, None]];
        assert_eq!(least(&rounds), [Some(1.0), None, Some(4.0)]);
    }
}
