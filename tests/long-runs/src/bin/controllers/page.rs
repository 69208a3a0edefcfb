//! What is printed: Markdown.

use std::fmt::Write;

use crate::stage::Stage;

/// What takes part.
pub(crate) fn versions(stage: &Stage) -> String {
    format!("\nkube-apiserver {}, {}.", stage.server, stage.go)
}

/// A table with one column for each library.
#[derive(Debug, Default)]
pub(crate) struct Table {
    heads: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    pub(crate) fn new<S: Into<String>>(heads: impl IntoIterator<Item = S>) -> Self {
        Self { heads: heads.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    pub(crate) fn row<T: ToString>(
        &mut self,
        name: impl Into<String>,
        cells: impl IntoIterator<Item = T>,
    ) {
        self.rows.push((name.into(), cells.into_iter().map(|cell| cell.to_string()).collect()));
    }

    /// Under a heading.
    pub(crate) fn markdown(&self, title: &str) -> String {
        let mut text = format!("\n## {title}\n\n|");
        for head in &self.heads {
            _ = write!(text, " | {head}");
        }
        text.push_str(" |\n|---|");
        text.push_str(&"---|".repeat(self.heads.len()));
        for (name, cells) in &self.rows {
            _ = write!(text, "\n| {name} | {} |", cells.join(" | "));
        }
        text.push('\n');
        text
    }
}

/// The part of numbers in order that is not greater.
pub(crate) fn percentile(sorted: &[u64], part: usize) -> u64 {
    let at = (sorted.len() * part).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or_default()
}

/// Microseconds as milliseconds.
pub(crate) fn millis(micros: u64) -> String {
    format!("{:.1} ms", micros as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_markdown() {
        let mut table = Table::new(["a", "b"]);
        table.row("stale", [1, 2]);
        assert_eq!(
            table.markdown("T"),
            "\n## T\n\n| | a | b |\n|---|---|---|\n| stale | 1 | 2 |\n"
        );
    }

    #[test]
    fn percentiles_are_of_the_numbers() {
        let numbers: Vec<u64> = (1..=100).collect();
        assert_eq!((percentile(&numbers, 50), percentile(&numbers, 99)), (50, 99));
        assert_eq!((percentile(&[7], 50), percentile(&[], 99)), (7, 0));
    }
}
