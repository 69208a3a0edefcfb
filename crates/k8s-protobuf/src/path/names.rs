//! Names suggested in errors.

use crate::schema::{MessageDef, flags};

/// The number of names in an error.
const SHOWN: usize = 3;

/// The names of a message's fields in JSON.
pub(super) fn all(def: &'static MessageDef) -> Vec<&'static str> {
    let mut names = Vec::new();
    for field in def.fields {
        if field.has(flags::INLINE) {
            names.extend(all(field.message()));
        } else {
            names.push(field.name);
        }
    }
    names
}

/// The names spelled most similarly, the nearest first.
pub(super) fn near(names: &[&'static str], name: &str) -> Vec<&'static str> {
    let name: Vec<char> = name.chars().take(64).collect();
    let mut names: Vec<_> = names.iter().map(|found| (distance(&name, found), *found)).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name).take(SHOWN).collect()
}

/// `a, b or c`
pub(super) fn listed(names: &[&str], last: &str) -> String {
    match &names[..names.len().min(SHOWN)] {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// Edit distance, ignoring case.
fn distance(a: &[char], b: &str) -> usize {
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for b in b.chars() {
        let mut before = row[0];
        row[0] += 1;
        for at in 0..a.len() {
            let change = before + usize::from(!a[at].eq_ignore_ascii_case(&b));
            before = row[at + 1];
            row[at + 1] = change.min(before + 1).min(row[at] + 1);
        }
    }
    row[a.len()]
}
