use proptest::prelude::*;

use super::*;
use crate::wire::put_varint;

fn instant(seconds: i64, nanos: i32) -> Vec<u8> {
    let mut message = Vec::new();
    for (tag, value) in [(8, seconds as u64), (16, i64::from(nanos) as u64)] {
        put_varint(tag, &mut message);
        put_varint(value, &mut message);
    }
    message
}

proptest! {
    #[test]
    fn times_are_read_back(seconds in -62_167_219_200i64..253_402_300_800, micros in 0u32..1_000_000) {
        let message = instant(seconds, micros as i32 * 1000);
        let written = time(FieldKind::MicroTime, &message).unwrap().map(|time| time.text().as_str().to_owned());
        let read = written.as_deref().and_then(crate::encode::time);
        prop_assert_eq!(read, Some((seconds, i64::from(micros) * 1000)));
    }

    #[test]
    fn durations_are_read_back(nanos: i64) {
        let written = text::duration(nanos);
        prop_assert_eq!(crate::encode::duration(written.as_str()), Some(nanos));
    }
}

/// As Go does, which reads fractions of a `Time` though it leaves them out.
#[test]
fn a_part_encoded_otherwise_is_refused_even_if_it_does_not_count() {
    let number = |number: u8| vec![number << 3, 1];
    let text = |number: u8| vec![number << 3 | 2, 1, b'1'];
    let cases: [(FieldKind, Vec<Vec<u8>>); 9] = [
        (FieldKind::Time, vec![number(1), text(2)]),
        (FieldKind::Time, vec![text(1), number(1)]),
        (FieldKind::MicroTime, vec![number(1), text(2)]),
        (FieldKind::Duration, vec![text(1), number(1)]),
        (FieldKind::Quantity, vec![number(1), text(1)]),
        (FieldKind::RawJson, vec![number(1), text(1)]),
        (FieldKind::IntOrString, vec![text(2), number(2)]),
        (FieldKind::IntOrString, vec![number(3), text(3), number(1)]),
        (FieldKind::PropsOrArray, vec![number(2)]),
    ];
    for (kind, parts) in cases {
        let message = parts.concat();
        let read = match kind {
            FieldKind::Time | FieldKind::MicroTime => time(kind, &message).map(drop),
            FieldKind::Duration => duration(&message).map(drop),
            FieldKind::Quantity => quantity(&message).map(drop),
            FieldKind::RawJson => raw(&message).map(drop),
            FieldKind::IntOrString => int_or_text(&message).map(drop),
            _ => schema(kind, &message).map(drop),
        };
        assert!(matches!(read, Err(Error::Malformed { .. })), "{kind:?} {parts:?}");
    }
}
