use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

fn copied(json: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    copy(json, &mut out).map(|()| out)
}

#[test]
fn what_is_json_is_copied_without_white_space() {
    for (json, copy) in [
        (r#"{}"#, r#"{}"#),
        ("[]", "[]"),
        (" [ ] ", "[]"),
        ("{ }", "{}"),
        ("true", "true"),
        ("false", "false"),
        ("null", "null"),
        ("-0", "-0"),
        ("0.10e+5", "0.10e+5"),
        ("12E-3", "12E-3"),
        ("\n\"a \\\" b\\\\\" ", r#""a \" b\\""#),
        (
            r#"{"a" : [1 , {"b":{}} , [] ] , "c":"\u00Ff\/"}"#,
            r#"{"a":[1,{"b":{}},[]],"c":"\u00Ff\/"}"#,
        ),
        ("\"é 😀\"", "\"é 😀\""),
    ] {
        assert_eq!(copied(json.as_bytes()).as_deref(), Ok(copy.as_bytes()), "{json}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    #[rustfmt::skip]
    let wrong = [
        "", " ", "{", "[", "}", "]", "{]", "[}", "[1,]", "[,1]", "[1 2]", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
        "{\"a\" 1}", "{a:1}", "{1:1}", "1 2", "{} x", "tru", "True", "nulll", "-", "01", "-01", "1.", ".5", "1e", "1e+",
        "+1", "0x1", "\"", "\"\\\"", "\"\\x\"", "\"\\u12g4\"", "\"\\u12", "\"\n\"", "\"\u{0}\"", "'a'", "\u{a0}1", "//",
    ];
    for json in wrong {
        assert!(copied(json.as_bytes()).is_err(), "{json}");
    }
    assert!(copied(b"\xff").is_err());
}

/// API servers store it as clients wrote it, and readers in Go replace it.
#[test]
fn invalid_utf8_is_replaced() {
    assert_eq!(
        copied(b"{\"\xff\": \"a\xc3\"}").unwrap(),
        "{\"\u{fffd}\":\"a\u{fffd}\"}".as_bytes()
    );
}

/// Objects and arrays in one another, of both kinds in no regular order.
fn nested(levels: usize) -> Vec<u8> {
    let is_object = |level: usize| level.wrapping_mul(0x9e37_79b9) >> 7 & 1 == 0;
    let mut text = Vec::new();
    for level in 0..levels {
        text.extend_from_slice(if is_object(level) { b"{\"a\":" } else { b"[" });
    }
    text.push(b'1');
    text.extend((0..levels).rev().map(|level| if is_object(level) { b'}' } else { b']' }));
    text
}

#[test]
fn json_is_copied_as_deep_as_in_go() {
    for levels in [126, 127, 128, 129, 255, 256, 257, 5_000, 10_000] {
        let json = nested(levels);
        assert_eq!(copied(&json).as_ref(), Ok(&json), "{levels}");
        // Every closing bracket counts.
        for wrong in [json.len() - 1, json.len() - levels, json.len() - levels.min(128)] {
            let mut json = json.clone();
            json[wrong] = if json[wrong] == b'}' { b']' } else { b'}' };
            assert!(copied(&json).is_err(), "{levels}");
        }
        assert!(copied(&json[..json.len() - 1]).is_err(), "{levels}");
    }
    for levels in [10_001, 100_000] {
        assert_eq!(copied(&nested(levels)), Err(Error::TooDeep { limit: 10_000 }), "{levels}");
    }
}

#[test]
fn json_that_is_cut_off_is_refused() {
    let json = json!({ "a": [1.5e3, "x\n\u{e9}", true, null, { "b": {} }], "c": -7 }).to_string();
    for end in 0..json.len() {
        assert!(copied(&json.as_bytes()[..end]).is_err(), "{end}");
    }
}

proptest! {
    #[test]
    fn any_text_is_judged_as_serde_json_does(text in r#"[\[\]{},:"\\ \n019eE.+-tru\x01é]{0,12}"#) {
        let judged = serde_json::from_str::<&RawValue>(text.trim_matches([' ', '\n'])).is_ok();
        prop_assert_eq!(copied(text.as_bytes()).is_ok(), judged, "{}", text);
    }

    #[test]
    fn brackets_are_judged_as_serde_json_does(
        levels in 0usize..600,
        at in any::<prop::sample::Index>(),
        bracket in "[\\[\\]{}]",
    ) {
        let mut json = nested(levels);
        let at = at.index(json.len());
        json[at] = bracket.as_bytes()[0];
        let judged = serde_json::from_slice::<&RawValue>(&json).is_ok();
        prop_assert_eq!(copied(&json).is_ok(), judged);
    }

    #[test]
    fn json_is_copied_as_it_is(value in json(), pretty: bool) {
        let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
        prop_assert_eq!(copied(&text).unwrap(), serde_json::to_vec(&value).unwrap());
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|entries| entries.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}
