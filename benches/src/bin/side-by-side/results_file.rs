//! Where the tables are kept: in `RESULTS.md`, each between two marks.

use std::path::Path;

use anyhow::{Context, Result};

/// The table of clients.
pub(crate) const CLIENTS: &str = "side-by-side";
/// The table of servers.
pub(crate) const SERVERS: &str = "serve";
/// The table of watches.
pub(crate) const WATCHES: &str = "watch";
/// The table of callers.
pub(crate) const CALLERS: &str = "callers";

/// Replaces the one with this name.
pub(crate) fn write(name: &str, report: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md");
    let text = std::fs::read_to_string(&path)?;
    let text =
        replace(&text, name, report).with_context(|| format!("{} has no marks", path.display()))?;
    Ok(std::fs::write(path, text)?)
}

fn replace(text: &str, name: &str, report: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", report.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = "before\n<!-- a -->\nold\n<!-- end of a -->\n<!-- b -->\n<!-- end of b -->\n";
        let replaced = replace(text, "a", "\nnew\n").unwrap();
        assert_eq!(replaced, text.replace("old\n", "\nnew\n\n"));
        assert_eq!(replace(&replaced, "a", "new").as_ref(), Some(&replaced));
        assert_eq!(replace(text, "c", "new"), None);
    }
}
