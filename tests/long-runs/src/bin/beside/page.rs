//! What is printed: Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::peer::{Call, Line};
use crate::stage::Pair;

/// Who takes part.
#[derive(Debug, Clone, Default)]
pub(crate) struct Versions {
    pub(crate) server: String,
    pub(crate) client_go: String,
    pub(crate) informer: String,
}

/// The beginning of the page.
pub(crate) fn head(versions: &Versions) -> String {
    let Versions { server, client_go, informer } = versions;
    format!(
        "# Beside client-go

client-go's shared informer and ours before the same API server, each behind a proxy of its own, in the same trouble at
the same moment: what each tells its handler. Printed by

```sh
cargo run --release -p informer-long-runs --bin beside
```

with client-go {client_go}, informer {informer} and kube-apiserver {server}. Both sides are as they come: a factory
without resync, typed Pods, one handler; client-go speaks protobuf, informer JSON. The peer is in
[`benches/peers/client-go`](../benches/peers/client-go). The program fails where our history is not as promised;
client-go's is shown as it was. On other days the counts of requests and bytes differ a little.
"
    )
}

/// What one scenario came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    text: String,
    /// Promises of ours that did not hold.
    pub(crate) broken: Vec<String>,
    surprises: Vec<String>,
}

impl Outcome {
    /// A section of the page.
    pub(crate) fn new(title: &str) -> Self {
        Self { text: format!("## {title}\n"), ..Self::default() }
    }

    /// A paragraph.
    pub(crate) fn say(&mut self, paragraph: &str) {
        _ = writeln!(self.text, "\n{paragraph}");
    }

    /// A table with one column for each side.
    pub(crate) fn table(&mut self, first: &str, rows: &[(String, Pair<String>)]) {
        _ = write!(self.text, "\n| {first} | client-go | informer |\n|---|---|---|\n");
        for (name, Pair { client_go, informer }) in rows {
            _ = writeln!(self.text, "| {name} | {client_go} | {informer} |");
        }
    }

    /// Our side promised this.
    pub(crate) fn promise(&mut self, promise: &str, holds: bool) {
        if !holds {
            self.broken.push(promise.to_owned());
        }
    }

    /// client-go was expected to do this.
    pub(crate) fn expect(&mut self, expected: &str, was_so: bool) {
        if !was_so {
            self.surprises.push(expected.to_owned());
        }
    }

    /// The section.
    pub(crate) fn markdown(&self) -> String {
        let mut text = self.text.clone();
        for surprise in &self.surprises {
            _ = writeln!(
                text,
                "\n**Unexpected of client-go this time.** Expected was: {surprise}."
            );
        }
        for promise in &self.broken {
            _ = writeln!(text, "\n**Broken by informer:** {promise}.");
        }
        text
    }
}

/// Names for UIDs, in the order in which they are met: A, B, C.
#[derive(Debug, Default)]
pub(crate) struct Uids(BTreeMap<String, char>);

impl Uids {
    pub(crate) fn name(&mut self, uid: &str) -> char {
        let next = (b'A' + (self.0.len() % 26) as u8) as char;
        *self.0.entry(uid.to_owned()).or_insert(next)
    }

    /// A handler's call in the words of client-go.
    pub(crate) fn of_client_go(&mut self, line: &Line) -> String {
        match line {
            Line::Added(call) => format!("`OnAdd`({}{})", self.object(call), initial(call)),
            Line::Updated(call) => {
                format!("`OnUpdate`({})", self.change(call))
            }
            Line::Deleted(call) if call.final_state_unknown => {
                format!("`OnDelete`(`DeletedFinalStateUnknown` {})", self.object(call))
            }
            Line::Deleted(call) => format!("`OnDelete`({})", self.object(call)),
            other => format!("{other:?}"),
        }
    }

    /// A handler's call in our words.
    pub(crate) fn of_informer(&mut self, line: &Line) -> String {
        match line {
            Line::Added(call) => format!("`Added`({}{})", self.object(call), initial(call)),
            Line::Updated(call) => {
                format!("`Updated`({})", self.change(call))
            }
            Line::Deleted(call) => {
                let state = if call.final_state_unknown { "Unknown" } else { "Known" };
                format!("`Deleted`({}, final state {state})", self.object(call))
            }
            other => format!("{other:?}"),
        }
    }

    fn change(&mut self, call: &Call) -> String {
        let (old, new) = (self.name(&call.from_uid), self.object(call));
        if call.from_uid == call.uid { new } else { format!("{new}, which was UID {old}") }
    }

    fn object(&mut self, call: &Call) -> String {
        let name = call.key.rsplit('/').next().unwrap_or_default();
        format!("{name}, UID {}", self.name(&call.uid))
    }
}

fn initial(call: &Call) -> &'static str {
    if call.initial { ", initial" } else { "" }
}

/// `1234567` as `1.2 MiB`.
pub(crate) fn mebibytes(bytes: usize) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_broken_is_on_the_page() {
        let mut outcome = Outcome::new("A thing");
        outcome.table(
            "what",
            &[("one".to_owned(), Pair { client_go: "1".into(), informer: "2".into() })],
        );
        outcome.promise("kept", true);
        outcome.promise("an order", false);
        outcome.expect("a surprise", false);
        let page = outcome.markdown();
        assert!(page.starts_with(
            "## A thing\n\n| what | client-go | informer |\n|---|---|---|\n| one | 1 | 2 |\n"
        ));
        assert!(
            page.contains("Expected was: a surprise.")
                && page.contains("**Broken by informer:** an order.")
        );
        assert_eq!(outcome.broken, ["an order"]);
    }
}
