//! What was found, as rows of a table.

use crate::rows::{Limit, Row, Rows};
use crate::serve::Server;

/// In the order in which they were found first.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

#[derive(Debug)]
struct Finding {
    what: String,
    limit: Limit,
    ours: Vec<Option<f64>>,
    theirs: Vec<Option<f64>>,
}

impl Findings {
    /// Adds a round's figure of one server. With [`Limit::Figure`] ours is judged by itself.
    pub(crate) fn add(
        &mut self,
        what: impl Into<String>,
        limit: Limit,
        server: Server,
        value: f64,
    ) {
        let what = what.into();
        eprintln!("    {server:?}: {what}: {value:.3}");
        let at = self.0.iter().position(|found| found.what == what).unwrap_or_else(|| {
            self.0.push(Finding { what, limit, ours: Vec::new(), theirs: Vec::new() });
            self.0.len() - 1
        });
        match server {
            Server::Ours => self.0[at].ours.push(Some(value)),
            Server::KubeApiserver => self.0[at].theirs.push(Some(value)),
        }
    }

    /// The table.
    pub(crate) fn table(self) -> String {
        let mut rows = Rows::new();
        for Finding { what, limit, ours, theirs } in self.0 {
            let peer = if theirs.is_empty() { "" } else { "kube-apiserver" };
            rows.add(Row { what: &what, ours, peer, theirs, limit });
        }
        rows.text()
    }
}
