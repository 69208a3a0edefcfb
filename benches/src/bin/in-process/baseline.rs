//! Memory and allocations as they were, in `baseline.json`: a change that needs more than a tenth
//! more is noticed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::Part;

/// How much more there may be.
const MORE: f64 = 1.1;

/// And as much whatever the figure: allocations that come with a batch or a wake-up vary by a few
/// in a thousand.
const SLACK: f64 = 0.1;

type Figures = BTreeMap<String, f64>;

/// Compares with the baseline.
///
/// # Errors
/// Where a figure is too high, or is not in both.
pub(crate) fn check() -> Result<()> {
    let text = std::fs::read_to_string(path())
        .context("benches/baseline.json cannot be read: write it with --rebase")?;
    let was: Figures = serde_json::from_str(&text)?;
    let is = measured()?;
    for (name, value) in &is {
        println!("{name}: {value:.2}, was {:.2}", was.get(name).copied().unwrap_or(f64::NAN));
    }
    let risen = risen(&was, &is);
    ensure!(
        risen.is_empty(),
        "more memory or allocations than in benches/baseline.json; if that is meant, run with --rebase:\n{}",
        risen.join("\n")
    );
    Ok(())
}

/// Writes the baseline.
///
/// # Errors
/// Where the file cannot be written.
pub(crate) fn write() -> Result<()> {
    let mut text = serde_json::to_string_pretty(&measured()?)?;
    text.push('\n');
    Ok(std::fs::write(path(), text)?)
}

fn measured() -> Result<Figures> {
    let figure = |line: &str| -> Result<(String, f64)> {
        let (name, value) = line.split_once(' ').with_context(|| format!("no figure: {line}"))?;
        Ok((name.to_owned(), (value.parse::<f64>()? * 100.0).round() / 100.0))
    };
    Part::Baseline.run(false)?.lines().map(figure).collect()
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("baseline.json")
}

/// What is too high, in words.
fn risen(was: &Figures, is: &Figures) -> Vec<String> {
    let mut risen = Vec::new();
    for (name, before) in was {
        match is.get(name) {
            None => risen.push(format!("{name} is not measured any more")),
            Some(now) if *now > before * MORE + SLACK => {
                risen.push(format!("{name} is {now:.2}, a tenth or more above {before:.2}"));
            }
            Some(_) => {}
        }
    }
    let new = is.keys().filter(|name| !was.contains_key(*name));
    risen.extend(new.map(|name| format!("{name} is not in the baseline")));
    risen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_risen_by_a_tenth_is_told() {
        let figures = |values: &[(&str, f64)]| {
            values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let was: Figures = figures(&[("a", 100.0), ("b", 3.0)]);
        assert!(risen(&was, &figures(&[("a", 109.0), ("b", 1.0)])).is_empty());
        assert_eq!(risen(&was, &figures(&[("a", 111.0), ("b", 4.0)])).len(), 2);
        assert_eq!(risen(&was, &figures(&[("a", 1.0), ("c", 1.0)])).len(), 2);
    }
}
