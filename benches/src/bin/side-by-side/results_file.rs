//! Where the report is kept.

use std::path::Path;

use anyhow::{Context, Result};

/// Of each allocator there is one.
const BEGIN: &str = match cfg!(feature = "mimalloc") {
    true => "<!-- side-by-side, mimalloc -->\n",
    false => "<!-- side-by-side, the system's allocator -->\n",
};
const END: &str = match cfg!(feature = "mimalloc") {
    true => "<!-- end of side-by-side, mimalloc -->\n",
    false => "<!-- end of side-by-side, the system's allocator -->\n",
};

/// Replaces the report in `RESULTS.md`.
pub(crate) fn write(report: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md");
    let text = std::fs::read_to_string(&path)?;
    let text = replace(&text, report).with_context(|| format!("{} has no place for it", path.display()))?;
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
        assert_eq!(replaced, format!("before\n{BEGIN}\nnew\n\n{END}after\n"));
        assert_eq!(replace(&replaced, "new").as_ref(), Some(&replaced));
        assert_eq!(replace("before\n", "new"), None);
    }
}
