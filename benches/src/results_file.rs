//! Where reports are kept: in `RESULTS.md`, each between two marks.

use std::path::Path;

use anyhow::{Context, Result};

/// Replaces the report of the program `of` in `RESULTS.md`.
///
/// # Errors
/// Where the file cannot be read or written, or has no marks of that name.
pub fn write(of: &str, report: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md");
    let text = std::fs::read_to_string(&path)?;
    let text =
        replace(&text, of, report).with_context(|| format!("{} has no place for it", path.display()))?;
    Ok(std::fs::write(path, text)?)
}

fn replace(text: &str, of: &str, report: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {of} -->\n"), format!("<!-- end of {of} -->\n"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", report.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = "before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n<!-- b -->\n<!-- end of b -->\n";
        let replaced = replace(text, "a", "\nnew\n").unwrap();
        assert_eq!(replaced, text.replace("old\n", "\nnew\n\n"));
        assert_eq!(replace(&replaced, "a", "new").as_ref(), Some(&replaced));
        assert_eq!(replace("before\n", "a", "new"), None);
    }
}
