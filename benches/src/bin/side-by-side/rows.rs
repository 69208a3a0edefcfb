//! The tables: what each row is, its limit, and whether it is kept.

use informer_benches::client::read::Form;
use informer_benches::figures::Initial;

use crate::events::Events;
use crate::inside::Inside;
use crate::lists::Lists;
use crate::numbers::{Spread, Table, short};
use crate::runs::{Conditions, INITIALS, Runs};
use crate::serve::{QUESTIONS, Question, Served, Server};

/// How much a row may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit {
    /// Over the peer's.
    Ratio(f64),
    /// By itself.
    Figure(f64),
    /// Only reported.
    None,
}

/// What was measured of a row, by rounds.
pub(crate) struct Row<'a> {
    pub(crate) what: &'a str,
    pub(crate) ours: Vec<Option<f64>>,
    pub(crate) peer: &'a str,
    pub(crate) theirs: Vec<Option<f64>>,
    pub(crate) limit: Limit,
}

/// All rows of clients.
pub(crate) fn table(lists: &Lists, events: &Events, inside: &Inside) -> String {
    let mut rows = Rows::new();
    for initial in INITIALS {
        rows.first_list(lists, initial);
    }
    rows.events(events);
    rows.inside(inside);
    rows.text()
}

/// All rows of servers.
pub(crate) fn of_servers(served: &Served) -> String {
    let mut rows = Rows::new();
    for question in QUESTIONS {
        rows.served(served, question);
    }
    rows.resident(served);
    rows.text()
}

/// A table of them.
pub(crate) struct Rows(Table);

impl Rows {
    pub(crate) fn new() -> Self {
        Self(Table::new(&["", "ours", "theirs", "", "ours over theirs", "at most", ""]))
    }

    fn first_list(&mut self, lists: &Lists, initial: Initial) {
        let runs = Runs::of(initial);
        let mut row = |what: &str, ours, peer, theirs, limit| {
            self.add(Row {
                what: &format!("{}: {what}", initial.name()),
                ours,
                peer,
                theirs,
                limit,
            });
        };
        row(
            "heap of a `Lazy` Pod, bytes",
            lists.heap(runs.lazy),
            "client-go",
            lists.heap(runs.client_go),
            Limit::Figure(2_800.0),
        );
        row(
            "heap of a typed Pod, bytes",
            lists.heap(runs.typed),
            "kube-runtime",
            lists.heap(runs.kube_runtime),
            Limit::Ratio(1.0),
        );
        row(
            "resident, `Lazy`, MB",
            lists.resident(runs.lazy),
            "client-go",
            lists.resident(runs.client_go),
            Limit::Ratio(1.0 / 3.0),
        );
        row(
            "resident, typed, MB",
            lists.resident(runs.typed),
            "kube-runtime",
            lists.resident(runs.kube_runtime),
            Limit::Ratio(1.0),
        );
        for (name, run) in [("`Lazy`", runs.lazy), ("typed", runs.typed)] {
            row(
                &format!("peak over settled, {name}, first list"),
                lists.first_peak(run),
                "kube-runtime",
                lists.first_peak(runs.kube_runtime),
                Limit::Figure(1.15),
            );
            row(
                &format!("peak over settled, {name}, relist"),
                lists.relist_peak(run),
                "kube-runtime",
                lists.relist_peak(runs.kube_runtime),
                Limit::Figure(1.15),
            );
        }
        for (name, run, most) in [("`Lazy`", runs.lazy, 0.05), ("typed", runs.typed, 0.35)] {
            row(
                &format!("bytes to store, {name}, µs per Pod"),
                lists.cpu(run, Conditions::Recording),
                "client-go",
                lists.cpu(runs.client_go, Conditions::Recording),
                Limit::Ratio(most),
            );
        }
        let peers = [
            ("client-go JSON", runs.client_go_json, 1.0 / 3.0),
            ("kube-runtime", runs.kube_runtime, 0.8),
        ];
        for (peer, run, most) in peers {
            row(
                "CPU to synced, typed JSON, µs per Pod",
                lists.cpu(runs.typed_json, Conditions::Server),
                peer,
                lists.cpu(run, Conditions::Server),
                Limit::Ratio(most),
            );
        }
    }

    fn events(&mut self, events: &Events) {
        let runs = Runs::of(Initial::WatchList);
        let peers = [runs.client_go, runs.kube_runtime];
        for (name, run, most) in [("typed", runs.typed, 0.8), ("`Lazy`", runs.lazy, 0.6)] {
            self.add(Row {
                what: &format!("500 events/s: CPU, {name}, µs per event"),
                ours: events.cpu(run),
                peer: "the better peer",
                theirs: least(&peers.map(|peer| events.cpu(peer))),
                limit: Limit::Ratio(most),
            });
            self.add(Row {
                what: &format!("500 events/s: p50 latency, {name}, ms"),
                ours: events.p50(run),
                peer: "the better peer",
                theirs: least(&peers.map(|peer| events.p50(peer))),
                limit: Limit::Ratio(1.1),
            });
        }
    }

    fn inside(&mut self, inside: &Inside) {
        let rows = [
            ("100 of 1,000,000 by an indexed label, µs", "by-label.us", Limit::Ratio(0.001)),
            ("100 handlers, batches of 64, µs per event", "handlers.64.us", Limit::Ratio(1.0)),
            ("100 handlers, single events, µs per event", "handlers.1.us", Limit::None),
            ("handler calls in an unchanged relist of 20,000", "relist.calls", Limit::Figure(0.0)),
        ];
        for (what, name, limit) in rows {
            let (ours, theirs) = (inside.ours.of(name), inside.client_go.of(name));
            self.add(Row { what, ours, peer: "client-go", theirs, limit });
        }
    }

    fn served(&mut self, served: &Served, question: Question) {
        let Question { form, version } = question;
        let most = match form {
            Form::Json => 1.0 / 20.0,
            Form::Protobuf => 1.0 / 15.0,
            Form::Table => 1.0 / 5.0,
        };
        let name = form.name();
        let mut row = |what: &str, of: &dyn Fn(Server) -> Vec<Option<f64>>, limit| {
            self.add(Row {
                what: &format!("{name} at `\"{version}\"`: {what}"),
                ours: of(Server::Ours),
                peer: "kube-apiserver",
                theirs: of(Server::KubeApiserver),
                limit,
            });
        };
        row("CPU of the server, ms", &|server| served.cpu(question, server), Limit::Ratio(most));
        let first_byte = |server| served.first_byte(question, server);
        row("to the first byte, ms", &first_byte, Limit::Ratio(1.0));
        row("to the last byte, ms", &|server| served.whole(question, server), Limit::None);
        row("length, MB", &|server| served.bytes(question, server), Limit::None);
    }

    fn resident(&mut self, served: &Served) {
        let megabytes = |bytes: usize| bytes as f64 / 1e6;
        let most = 30.0 + 1.3 * megabytes(served.held);
        for (when, bytes) in ["before the first list", "after the last"].iter().zip(served.resident)
        {
            self.add(Row {
                what: &format!("resident {when}, MB"),
                ours: vec![Some(megabytes(bytes))],
                peer: "",
                theirs: Vec::new(),
                limit: Limit::Figure(most),
            });
        }
        self.add(Row {
            what: "bytes of the Pods that it holds, MB",
            ours: vec![Some(megabytes(served.held))],
            peer: "",
            theirs: Vec::new(),
            limit: Limit::None,
        });
    }

    /// In Markdown.
    pub(crate) fn text(self) -> String {
        self.0.text()
    }

    /// Unless it was not measured.
    pub(crate) fn add(&mut self, row: Row<'_>) {
        let Row { what, ours, peer, theirs, limit } = row;
        let ratio = Spread::ratios(&ours, &theirs);
        let [ours, theirs] =
            [ours, theirs].map(|values| values.into_iter().flatten().collect::<Spread>());
        if ours.median().is_none() {
            return;
        }
        let is_kept = |value: &Spread, most: f64| match value.median() {
            None => "–",
            Some(median) if median <= most => "ok",
            Some(_) => "missed",
        };
        let (most, verdict) = match limit {
            Limit::Ratio(most) => (short(most), is_kept(&ratio, most)),
            Limit::Figure(most) => (format!("{} itself", short(most)), is_kept(&ours, most)),
            Limit::None => ("–".to_owned(), "–"),
        };
        let median = |values: &Spread| values.median().map_or_else(|| "–".to_owned(), short);
        self.0.row(&[
            what.to_owned(),
            median(&ours),
            median(&theirs),
            peer.to_owned(),
            ratio.to_string(),
            most,
            verdict.to_owned(),
        ]);
    }
}

/// In each round, the least of those that there are.
fn least(rounds: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let count = rounds.iter().map(Vec::len).max().unwrap_or_default();
    (0..count)
        .map(|round| rounds.iter().filter_map(|of| *of.get(round)?).reduce(f64::min))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_peer_is_that_of_the_round() {
        let rounds =
            [vec![Some(2.0), None, Some(4.0)], vec![Some(3.0), None], vec![Some(1.0), None, None]];
        assert_eq!(least(&rounds), [Some(1.0), None, Some(4.0)]);
    }

    #[test]
    fn a_row_is_kept_up_to_its_limit() {
        let said = |ours: f64, limit| {
            let mut rows = Rows(Table::new(&["what"]));
            rows.add(Row {
                what: "x",
                ours: vec![Some(ours)],
                peer: "y",
                theirs: vec![Some(10.0)],
                limit,
            });
            rows.0.text()
        };
        assert!(said(5.0, Limit::Ratio(0.5)).contains("| 0.50 | 0.50 | ok |"));
        assert!(said(5.1, Limit::Ratio(0.5)).contains("| missed |"));
        assert!(said(5.0, Limit::Figure(4.0)).contains("| 4.00 itself | missed |"));
        assert!(said(5.0, Limit::None).contains("| – | – |"));
    }
}
