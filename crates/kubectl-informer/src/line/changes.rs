//! The lines of `watch -o diff`: one for each event, and below it one for each changed field.

use std::fmt::{self, Write};

use informer::Resource;
use informer::diff::{Color, Diff, DiffOptions, TextStyle, escape};
use jiff::Timestamp;

use super::Facts;
use crate::object::{changes, full_name};

/// Columns before the line of a changed field.
const INDENT: usize = 2;

/// Appends the lines of one event.
pub(super) fn append(
    text: &mut String,
    resource: &Resource,
    facts: &Facts<'_>,
    now: Timestamp,
    style: &TextStyle,
) {
    // Writing to a string does not fail.
    let _ = lines(text, resource, facts, now, style);
}

fn lines(
    text: &mut String,
    resource: &Resource,
    facts: &Facts<'_>,
    now: Timestamp,
    style: &TextStyle,
) -> fmt::Result {
    let diff = facts.diff();
    let is_faint = match &diff {
        Some(Ok(diff)) => facts.earlier.is_none() && diff.is_quiet(),
        Some(Err(_)) => false,
        None => facts.initial || facts.resync,
    };
    let mut rest = format!(" {} {}", full_name(facts.object), resource.group_resource());
    facts.marks(&mut rest);
    if let Some(Ok(Diff { folded, .. })) = diff.as_ref().filter(|_| is_faint) {
        match folded {
            0 => {}
            1 => rest.push_str(" (1 field of noise)"),
            fields => write!(rest, " ({fields} fields of noise)")?,
        }
    }
    let rest = escape(&rest);
    style.paint(text, Color::Dim, &now.strftime("%H:%M:%SZ").to_string())?;
    text.push(' ');
    if is_faint {
        style.paint(text, Color::Dim, &format!("{}{rest}", facts.word))?;
    } else {
        let color = match facts.word {
            "add" => Color::New,
            "delete" => Color::Old,
            _ => Color::Plain,
        };
        style.paint(text, color, facts.word)?;
        text.push_str(&rest);
    }
    text.push('\n');
    let below = TextStyle { indent: INDENT, ..*style };
    match diff {
        Some(Ok(diff)) if !diff.is_quiet() => diff.write_text(text, &below),
        Some(Ok(_)) | None => Ok(()),
        Some(Err(error)) => {
            writeln!(text, "{:INDENT$}cannot tell what changed: {}", "", escape(&error))
        }
    }
}

impl Facts<'_> {
    /// What changed, if there is an old state; or why that cannot be told.
    fn diff(&self) -> Option<Result<Diff, String>> {
        let old = self.old.or(self.earlier)?;
        let diff = changes(old, self.object, &DiffOptions::default());
        Some(diff.map_err(|error| error.to_string()))
    }
}
