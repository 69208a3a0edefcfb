//! From a place in a JSON text to the path of the value that stands there.

use std::fmt::Write as _;

/// The offset of a one-based line and column as serde_json counts them.
pub(super) fn offset(json: &[u8], line: usize, column: usize) -> usize {
    let skipped: usize =
        json.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (skipped + column.saturating_sub(1)).min(json.len())
}

/// The path of the value that holds the byte at `offset`; `.` for the whole text. Meant for texts that are
/// JSON up to there.
pub(super) fn at(json: &[u8], offset: usize) -> String {
    print(&steps(json, offset))
}

/// The path of the object or array in which the byte at `offset` stands.
pub(super) fn container(json: &[u8], offset: usize) -> String {
    let mut steps = steps(json, offset);
    steps.pop();
    print(&steps)
}

fn steps(json: &[u8], offset: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut position = 0;
    while position <= offset && position < json.len() {
        match json[position] {
            b'"' => {
                let end = string_end(json, position);
                // A parser that is done with a string stands on its last byte or behind it.
                let inside = offset < end;
                if let Some(Step::Member(name, awaits_key)) = steps.last_mut()
                    && std::mem::take(awaits_key)
                {
                    *name =
                        String::from_utf8_lossy(&json[position + 1..end.saturating_sub(1).max(position + 1)])
                            .into_owned();
                }
                if inside {
                    break;
                }
                position = end;
                continue;
            }
            b'{' => steps.push(Step::Member(String::new(), true)),
            b'[' => steps.push(Step::Element(0)),
            b'}' | b']' if position < offset => {
                steps.pop();
            }
            b',' if position < offset => match steps.last_mut() {
                Some(Step::Member(_, awaits_key)) => *awaits_key = true,
                Some(Step::Element(index)) => *index += 1,
                None => {}
            },
            _ => {}
        }
        position += 1;
    }
    steps
}

enum Step {
    /// In an object: the name of the member, and whether the next string is a name.
    Member(String, bool),
    /// In an array: the index.
    Element(usize),
}

/// Behind the closing quote of the string that begins at `start`.
fn string_end(json: &[u8], start: usize) -> usize {
    let mut position = start + 1;
    while let Some(byte) = json.get(position) {
        match byte {
            b'\\' => position += 2,
            b'"' => return position + 1,
            _ => position += 1,
        }
    }
    json.len()
}

fn print(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Member(name, _) if name.is_empty() => {}
            Step::Member(name, _) if path.is_empty() => path.push_str(name),
            Step::Member(name, _) => {
                path.push('.');
                path.push_str(name);
            }
            // Writing to a string cannot fail.
            Step::Element(index) => _ = write!(path, "[{index}]"),
        }
    }
    if path.is_empty() { ".".to_owned() } else { path }
}
