//! Where the table is kept: in `RESULTS.md`, between two marks.

use std::path::Path;

use anyhow::{Context, Result};

const BEGIN: &str = "<!-- side-by-side -->\n";
const END: &str = "<!-- end of side-by-side -->\n";

/// Replaces it.
pub(crate) fn write(report: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md");
    let text = std::fs::read_to_string(&path)?;
    let text =
        replace(&text, report).with_context(|| format!("{} has no marks", path.display()))?;
    Ok(std::fs::write(path, text)?)
}

fn replace(text: &str, report: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n\n{END}{after}", report.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = format!("before\n{BEGIN}old\n{END}after\n");
        let replaced = replace(&text, "\nnew\n").unwrap();
        assert_eq!(replaced, text.replace("old\n", "\nnew\n\n"));
        assert_eq!(replace(&replaced, "new").as_ref(), Some(&replaced));
        assert_eq!(replace("before\n", "new"), None);
    }
}
