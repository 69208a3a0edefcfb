//! How long each controller is.

use crate::page::Table;

const PEERS: [(&str, &str, &str); 3] = [
    (
        "informer",
        include_str!("../../../../../benches/peers/controllers/src/bin/with-informer.rs"),
        "async fn five",
    ),
    (
        "kube-runtime",
        include_str!("../../../../../benches/peers/controllers/src/bin/with-kube-runtime.rs"),
        "async fn five",
    ),
    (
        "controller-runtime",
        include_str!("../../../../../benches/peers/controller-runtime/controller.go"),
        "\0",
    ),
];

pub(crate) fn run() -> String {
    let mut table = Table::new(PEERS.map(|(title, ..)| title));
    table.row("lines", PEERS.map(|(_, text, end)| count(text, end)));
    table.markdown("Lines")
}

/// Lines that are neither empty nor comments, up to what belongs to another section.
fn count(text: &str, end: &str) -> usize {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    text.lines().take_while(|line| !line.starts_with(end)).filter(is_code).count()
}
