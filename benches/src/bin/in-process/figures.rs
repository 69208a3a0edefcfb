//! Figures as the processes of the parts print them: a name and a number on a line.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use informer_benches::numbers::{Spread, Table};

/// Prints one.
pub(crate) fn print(name: &str, value: f64) {
    println!("{name} {value}");
}

/// The figures of all rounds.
#[derive(Debug, Default)]
pub(crate) struct Rounds(BTreeMap<String, Vec<f64>>);

impl Rounds {
    /// Adds what one process has printed.
    pub(crate) fn read(&mut self, printed: &str) -> Result<()> {
        for line in printed.lines() {
            let (name, value) = line.split_once(' ').with_context(|| format!("no figure: {line}"))?;
            self.0.entry(name.to_owned()).or_default().push(value.parse()?);
        }
        Ok(())
    }

    /// One figure.
    pub(crate) fn of(&self, name: &str) -> Spread {
        self.0.get(name).into_iter().flatten().copied().collect()
    }

    /// One figure over another, round by round.
    pub(crate) fn ratio(&self, own: &str, other: &str) -> Spread {
        let each = |name| -> Vec<Option<f64>> {
            self.0.get(name).into_iter().flatten().map(|value| Some(*value)).collect()
        };
        Spread::ratios(&each(own), &each(other))
    }

    /// The greatest of some figures over the least of them, round by round.
    pub(crate) fn growth(&self, names: &[String]) -> Spread {
        let each: Vec<&Vec<f64>> = names.iter().filter_map(|name| self.0.get(name)).collect();
        let rounds = each.iter().map(|values| values.len()).min().unwrap_or_default();
        let ratio = |round: usize| {
            let values = each.iter().map(|values| values[round]);
            values.clone().fold(f64::MIN, f64::max) / values.fold(f64::MAX, f64::min)
        };
        (0..rounds).map(ratio).collect()
    }

    /// The medians, by name.
    pub(crate) fn medians(&self) -> BTreeMap<&str, f64> {
        let median = |values: &Vec<f64>| values.iter().copied().collect::<Spread>().median();
        self.0.iter().filter_map(|(name, values)| Some((name.as_str(), median(values)?))).collect()
    }

    /// Everything.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new(&["figure", "median (range)"]);
        for name in self.0.keys() {
            table.row(&[format!("`{name}`"), self.of(name).to_string()]);
        }
        table.section(
            "All figures",
            "The names end with the unit, or the number of objects or of events in a batch stands in them.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_several_rounds_come_together() {
        let mut rounds = Rounds::default();
        rounds.read("a.ns 2\nb.ns 4\n").unwrap();
        rounds.read("a.ns 1\nb.ns 5\n").unwrap();
        assert_eq!(rounds.of("a.ns").median(), Some(1.5));
        assert_eq!(rounds.ratio("b.ns", "a.ns").to_string(), "3.50 (2.00–5.00)");
        assert_eq!(rounds.growth(&["a.ns".into(), "b.ns".into()]).to_string(), "3.50 (2.00–5.00)");
        assert_eq!(rounds.of("c").median(), None);
        assert_eq!(rounds.medians()["b.ns"], 4.5);
        assert!(rounds.read("nothing").is_err());
    }
}
