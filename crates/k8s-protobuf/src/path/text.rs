//! The text form of paths.

use std::fmt;

use super::Segment;

/// The parts of a path, or what is wrong with it.
pub(super) fn parse(path: &str) -> Result<Vec<Segment>, &'static str> {
    let mut segments = Vec::new();
    let mut rest = path;
    loop {
        let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
        if name.is_empty() {
            return Err(
                "there must be a name at the beginning and after each dot, as in spec.nodeName",
            );
        }
        segments.push(Segment::Name(name.to_owned()));
        rest = after;
        while let Some(after) = rest.strip_prefix('[') {
            let (segment, after) = bracket(after)?;
            segments.push(segment);
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(segments),
            None => return Err("after a bracket must be a dot, another bracket or nothing"),
        }
    }
}

/// The content of brackets, and the text after them.
fn bracket(text: &str) -> Result<(Segment, &str), &'static str> {
    if let Some(after) = text.strip_prefix("*]") {
        return Ok((Segment::Each, after));
    }
    for (quote, end) in [("'", "']"), ("\"", "\"]")] {
        if let Some(key) = text.strip_prefix(quote) {
            let (key, after) = key.split_once(end).ok_or("a key in brackets does not end")?;
            return Ok((Segment::Key(key.to_owned()), after));
        }
    }
    Err("in brackets must be * for all items, or a key in quotes")
}

pub(super) fn write(segments: &[Segment], f: &mut impl fmt::Write) -> fmt::Result {
    for (at, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Name(name) => write!(f, "{}{name}", if at > 0 { "." } else { "" })?,
            Segment::Key(key) if key.contains("']") => write!(f, "[\"{key}\"]")?,
            Segment::Key(key) => write!(f, "['{key}']")?,
            Segment::Each => f.write_str("[*]")?,
        }
    }
    Ok(())
}

/// The first parts of a path, for errors.
pub(super) fn written(segments: &[Segment]) -> String {
    let mut text = String::new();
    let _ = write(segments, &mut text);
    text
}
