//! Medians, ranges, and tables of them.

use std::fmt::{self, Display, Write};

/// What came out in several rounds. Displays as the median and, after several rounds, the range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spread(Vec<f64>);

impl Spread {
    /// The middle one, or the mean of the two in the middle.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        let middle = self.0.len() / 2;
        match self.0.len() {
            0 => None,
            length if length % 2 == 1 => Some(self.0[middle]),
            _ => Some(f64::midpoint(self.0[middle - 1], self.0[middle])),
        }
    }

    /// Each round's value over that of `other`, which was measured in the same rounds.
    #[must_use]
    pub fn ratios(own: &[Option<f64>], other: &[Option<f64>]) -> Self {
        own.iter().zip(other).filter_map(|(own, other)| Some((*own)? / (*other)?)).collect()
    }
}

impl FromIterator<f64> for Spread {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(median) = self.median() else { return f.write_str("–") };
        f.write_str(&short(median))?;
        match self.0.as_slice() {
            [least, .., most] => write!(f, " ({}–{})", short(*least), short(*most)),
            _ => Ok(()),
        }
    }
}

/// With three figures, or all of those before the point.
#[must_use]
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A dash for what is not known.
pub fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

/// A Markdown table.
#[derive(Debug)]
pub struct Table {
    text: String,
}

impl Table {
    /// With a header only.
    #[must_use]
    pub fn new(columns: &[&str]) -> Self {
        Self { text: format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len())) }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }

    /// Under a heading, with what there is to say first.
    #[must_use]
    pub fn section(&self, heading: &str, said: &str) -> String {
        format!("### {heading}\n\n{said}\n\n{}\n", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_medians_and_ranges() {
        let spread = |values: &[f64]| values.iter().copied().collect::<Spread>();
        assert_eq!(spread(&[]).to_string(), "–");
        assert_eq!(spread(&[2.0]).to_string(), "2.00");
        assert_eq!(spread(&[300.4, 0.5, 20.0]).to_string(), "20.0 (0.50–300)");
        assert_eq!(spread(&[4.0, 1.0]).to_string(), "2.50 (1.00–4.00)");
        assert_eq!(Spread::ratios(&[Some(6.0), None, Some(1.0)], &[Some(2.0), Some(1.0)]), spread(&[3.0]));
    }

    #[test]
    fn tables_are_markdown() {
        let mut table = Table::new(&["a", "b"]);
        table.row(&["1".into(), "2".into()]);
        assert_eq!(table.section("It", "Said."), "### It\n\nSaid.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n");
    }
}
