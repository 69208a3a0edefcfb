use super::*;
use crate::wire::lossy;

/// The text in JSON, when it stands at `at` in `source`, and when it stands alone.
fn written(source: &[u8], at: usize, length: usize) -> [String; 2] {
    let within = &source[at..at + length];
    let alone = within.to_vec();
    [within, &alone].map(|text| {
        let mut out = Out::new(b"before".to_vec(), source);
        out.text(text);
        String::from_utf8(out.json).unwrap().strip_prefix("before").unwrap().to_owned()
    })
}

#[test]
fn what_is_to_be_escaped_is_found_wherever_it_stands() {
    // Those that differ least from what is escaped.
    let plain = || [0x20, 0x21, 0x23, 0x25, 0x27, 0x3d, 0x3f, 0x5b, 0x5d, 0x7f].into_iter().cycle();
    for length in 1..40 {
        for at in 0..length {
            for byte in (0..0x80).step_by(if length > 33 { 7 } else { 1 }) {
                let mut bytes: Vec<u8> = plain().take(length).collect();
                bytes[at] = byte;
                // Behind the text stands what would be escaped.
                bytes.extend([b'"'; WINDOW]);
                let texts = written(&bytes, 0, length);
                let read: String = serde_json::from_str(&texts[0]).unwrap();
                assert_eq!(read.as_bytes(), &bytes[..length]);
                assert!(!texts[0].contains(['<', '>', '&']));
                assert_eq!(texts[0], texts[1]);
            }
        }
    }
}

#[test]
fn what_is_not_utf8_is_replaced_wherever_it_stands() {
    let characters: [&[u8]; 5] =
        ["é".as_bytes(), "€".as_bytes(), "🦀".as_bytes(), b"\x80", b"\xff"];
    for length in 1..40 {
        for at in 0..length {
            for character in characters {
                // The end of the text may cut the character, and what is missing then stands behind
                // it.
                let mut bytes = vec![b'a'; at];
                bytes.extend(character);
                bytes.resize(at + character.len() + WINDOW + 40, b'a');
                let expected = format!("\"{}\"", lossy(&bytes[..length]));
                assert_eq!(written(&bytes, 0, length), [&*expected, &*expected]);
            }
        }
    }
}

#[test]
fn texts_are_copied_without_what_is_around_them() {
    let source: Vec<u8> = (b'?'..=b'Z').cycle().take(100).collect();
    for at in 0..source.len() {
        for length in 0..=source.len() - at {
            let expected = format!("\"{}\"", str::from_utf8(&source[at..at + length]).unwrap());
            assert_eq!(written(&source, at, length), [&*expected, &*expected]);
        }
    }
}

#[test]
fn names_of_all_lengths_are_written() {
    let fields = crate::schema::all_messages().iter().flat_map(|message| message.fields);
    let mut lengths = std::collections::BTreeSet::new();
    for field in fields {
        let mut out = Out::new(Vec::new(), b"");
        out.key(field);
        out.field(field, b"x");
        let name = field.name;
        assert_eq!(String::from_utf8(out.json).unwrap(), format!(",\"{name}\":,\"{name}\":\"x\""));
        lengths.insert(name.len());
    }
    assert!(
        lengths.contains(&27) && lengths.contains(&28) && lengths.last() > Some(&40),
        "{lengths:?}"
    );
}
