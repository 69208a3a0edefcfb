//! Texts without what changes with time.

/// Puts `AGE` in the place of every age, as in `5m12s`, `3 (2d ago)` or `5s (x3 over 10m)`.
pub(crate) fn without_ages(text: &str) -> String {
    let is_age = |word: &str| {
        let mut digits = 0;
        let fits = word.bytes().all(|byte| match byte {
            b'0'..=b'9' => {
                digits += 1;
                true
            }
            b's' | b'm' | b'h' | b'd' | b'y' if digits > 0 => {
                digits = 0;
                true
            }
            _ => false,
        });
        fits && digits == 0 && !word.is_empty()
    };
    let words = text.split_inclusive([' ', '(', ')', '\n']).map(|word| {
        let bare = word.trim_end_matches([' ', '(', ')', '\n']);
        if is_age(bare) { format!("AGE{}", &word[bare.len()..]) } else { word.to_owned() }
    });
    words.collect()
}

#[test]
fn ages_are_replaced_and_nothing_else() {
    for (text, expected) in [
        ("5m12s", "AGE"),
        ("3 (2d ago)", "3 (AGE ago)"),
        ("80/TCP", "80/TCP"),
        ("5s (x3 over 10m)", "AGE (x3 over AGE)"),
        ("12", "12"),
        ("node-1 s", "node-1 s"),
    ] {
        assert_eq!(without_ages(text), expected);
    }
}
