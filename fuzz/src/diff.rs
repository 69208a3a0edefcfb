//! Changes between two states of an object.

use informer_core::diff::{DiffOptions, TextStyle, between};
use serde_json::Value;

/// Two lines of JSON: the exact diff makes the second of the first, and what is shown has no
/// control characters.
pub fn diff(data: &[u8]) {
    let Some(end) = data.iter().position(|it| *it == b'\n') else { return };
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    let (Ok(old), Ok(new)) = (read(&data[..end]), read(&data[end + 1..])) else { return };
    let mut state = old.clone();
    between(&old, &new, &DiffOptions::exact())
        .apply(&mut state)
        .expect("it is that of the old state");
    assert_eq!(state, new);
    let diff = between(&old, &new, &DiffOptions::default());
    assert!(diff.is_empty() || old != new);
    let mut text = String::new();
    let style = TextStyle { width: Some(data.len() % 120), ..TextStyle::default() };
    diff.write_text(&mut text, &style).expect("a string takes everything");
    assert!(text.chars().all(|it| it == '\n' || !it.is_control()));
    serde_json::to_string(&diff).expect("it has a JSON form");
}
