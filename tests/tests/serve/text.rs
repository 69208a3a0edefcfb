//! Texts without what changes with time, or is left out on purpose.

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

/// Replaces the value of each `"name": "value"` in a JSON text.
pub(crate) fn replace_text(text: &str, name: &str, replace: fn(&str) -> String) -> String {
    let key = format!("\"{name}\":");
    let mut parts = text.split(&key);
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        written.push_str(&replace_first(&format!("{key}{part}"), replace));
    }
    written
}

/// Replaces the text of the first field in a piece of JSON that begins with it.
pub(crate) fn replace_first(text: &str, replace: fn(&str) -> String) -> String {
    let Some((key, value)) = text.split_once(':') else { return text.to_owned() };
    let spaces = value.len() - value.trim_start().len();
    let Some((old, rest)) = value[spaces..].strip_prefix('"').and_then(|it| it.split_once('"'))
    else {
        return text.to_owned();
    };
    format!("{key}:{}\"{}\"{rest}", &value[..spaces], replace(old))
}

/// Cuts every `"managedFields":[…]` out of a JSON text, and nothing else.
pub(crate) fn without_managed_fields_json(text: &str) -> String {
    const KEY: &str = "\"managedFields\":";
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(KEY) {
        let (before, from_key) = rest.split_at(at);
        let value = from_key[KEY.len()..].trim_start();
        // A key of the same name in a map of texts is not one.
        let Some(end) = value.starts_with('[').then(|| end_of_value(value)) else {
            written.push_str(&rest[..at + KEY.len()]);
            rest = &rest[at + KEY.len()..];
            continue;
        };
        let after = &value[end..];
        let before_comma = before.trim_end();
        match before_comma.strip_suffix(',') {
            Some(before) => written.push_str(before),
            None => written.push_str(before),
        }
        rest = match after.trim_start().strip_prefix(',') {
            Some(after) if !before_comma.ends_with(',') => after.trim_start(),
            _ => after,
        };
    }
    written.push_str(rest);
    written
}

/// Where an array or object that the text begins with ends.
fn end_of_value(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[test]
fn managed_fields_are_cut_and_nothing_else() {
    for (text, expected) in [
        (r#"{"a":1,"managedFields":[{"x":"]"}],"b":2}"#, r#"{"a":1,"b":2}"#),
        (r#"{"managedFields":[[],{}],"b":2}"#, r#"{"b":2}"#),
        (r#"{"a":1,"managedFields":[]}"#, r#"{"a":1}"#),
        (r#"{"managedFields":"[text"}"#, r#"{"managedFields":"[text"}"#),
        ("{\n \"a\": 1,\n \"managedFields\": [\n ]\n}", "{\n \"a\": 1\n}"),
    ] {
        assert_eq!(without_managed_fields_json(text), expected);
    }
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
