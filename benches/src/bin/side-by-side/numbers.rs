//! Medians, ranges, and tables of them.

use std::fmt::{self, Display, Write};

/// What came out in several rounds. Displays as the median and, after several rounds, the range.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    /// The middle one, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> Option<f64> {
        let middle = self.0.len() / 2;
        match self.0.len() {
            0 => None,
            length if length % 2 == 1 => Some(self.0[middle]),
            _ => Some(f64::midpoint(self.0[middle - 1], self.0[middle])),
        }
    }

    /// Each round's value over that of `other`, which was measured in the same rounds.
    /// Not over nothing.
    pub(crate) fn ratios(own: &[Option<f64>], other: &[Option<f64>]) -> Self {
        let ratios = own.iter().zip(other).filter_map(|(own, other)| Some((*own)? / (*other)?));
        ratios.filter(|ratio| ratio.is_finite()).collect()
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

/// With about three figures, or all of those before the point.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.5}"),
    }
}

/// A Markdown table.
#[derive(Debug)]
pub(crate) struct Table {
    text: String,
}

impl Table {
    /// With a header only.
    pub(crate) fn new(columns: &[&str]) -> Self {
        Self { text: format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len())) }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }

    /// All of it.
    pub(crate) fn text(self) -> String {
        self.text
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
        assert_eq!(
            Spread::ratios(&[Some(6.0), None, Some(0.0)], &[Some(2.0), Some(1.0), Some(0.0)]),
            spread(&[3.0])
        );
    }

    #[test]
    fn tables_are_markdown() {
        let mut table = Table::new(&["a", "b"]);
        table.row(&["1".into(), "2".into()]);
        assert_eq!(table.text(), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
