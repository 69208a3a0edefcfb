use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::wire::testing::{any_value, chunks, pretty};

fn split(limit: usize, chunks: Vec<Bytes>) -> (Vec<Bytes>, Result<ListHead, FrameError>) {
    let mut splitter = JsonListSplitter::new(limit);
    let mut parts = Vec::new();
    let failed = chunks.into_iter().find_map(|chunk| splitter.push(chunk, &mut parts).err());
    let end = match failed {
        None => Box::new(splitter).finish(),
        Some(error) => {
            assert_eq!(splitter.push(Bytes::from_static(b"{}"), &mut parts), Err(error.clone()));
            assert_eq!(Box::new(splitter).finish(), Err(error.clone()));
            Err(error)
        }
    };
    (parts.iter().filter_map(item).collect(), end)
}

fn item(part: &ListPart) -> Option<Bytes> {
    match part {
        ListPart::Item(item) => Some(item.bytes.clone()),
        ListPart::TooLarge { .. } => None,
    }
}

fn whole(text: &str) -> (Vec<Bytes>, Result<ListHead, FrameError>) {
    split(1000, vec![Bytes::copy_from_slice(text.as_bytes())])
}

fn head(text: &str) -> ListHead {
    whole(text).1.unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn bytewise(text: &str) -> Vec<Bytes> {
    text.as_bytes().chunks(1).map(Bytes::copy_from_slice).collect()
}

const PODS: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42",
    "continue":"abc\n","remainingItemCount":7,"selfLink":{"x":[1]}},"items":[{"a":"}]\"{"},
    {"b":{"c":[{}]}} , {}]}"#;

#[test]
fn g34_debug_shows_nothing_of_what_is_incomplete() {
    let mut splitter = JsonListSplitter::new(1 << 20);
    splitter.push(Bytes::from_static(b"{\"items\":[{\"data\":\"hunter2"), &mut Vec::new()).unwrap();
    assert!(!format!("{splitter:?}").contains("hunter2"));
}

#[test]
fn head_and_items_are_read_whole_or_byte_by_byte() {
    for chunks in [vec![Bytes::from_static(PODS.as_bytes())], bytewise(PODS)] {
        let (items, end) = split(1000, chunks);
        let expected = ListHead {
            api_version: "v1".to_owned(),
            kind: "PodList".to_owned(),
            resource_version: "42".into(),
            continue_token: Some("abc\n".to_owned()),
            remaining_item_count: Some(7),
        };
        assert_eq!(end, Ok(expected));
        assert_eq!(items, [r#"{"a":"}]\"{"}"#, r#"{"b":{"c":[{}]}}"#, "{}"].map(str::as_bytes));
    }
}

#[test]
fn members_may_stand_in_any_order_and_be_null_or_absent() {
    for text in [
        r#"{"metadata":{"resourceVersion":"5"},"items":[{}],"kind":"L"}"#,
        r#"{"items":[{}],"kind":"L","metadata":{"resourceVersion":"5","continue":"","remainingItemCount":null}}"#,
        " {\n\"\\u006bind\" : \"L\" ,\r\n\"items\" : [ { } ] ,\t\"metadata\" : { \"resourceVersion\" : \"5\" } }\n",
        r#"{"apiVersion":null,"items":[{}],"kind":"L","metadata":{"resourceVersion":"5","continue":null}}"#,
        r#"{"a":-1.5e+3,"b":true,"c":null,"d":"]}","e":[[{"x":"\\"}]],"items":[{}],"kind":"L","metadata":{"resourceVersion":"5"}}"#,
    ] {
        for chunks in [vec![Bytes::copy_from_slice(text.as_bytes())], bytewise(text)] {
            let (items, end) = split(1000, chunks);
            assert_eq!(items.len(), 1, "{text}");
            let expected = ListHead {
                kind: "L".to_owned(),
                resource_version: "5".into(),
                ..ListHead::default()
            };
            assert_eq!(end, Ok(expected), "{text}");
        }
    }
    for text in [
        "{}",
        r#"{"items":[]}"#,
        r#"{"items":[ ]}"#,
        r#"{"items":null}"#,
        r#"{"metadata":null,"kind":null}"#,
    ] {
        assert_eq!(whole(text), (vec![], Ok(ListHead::default())), "{text}");
    }
}

#[test]
fn a_status_shows_by_its_kind() {
    let head = head(
        r#"{"kind":"Status","metadata":{},"status":"Failure","details":{"causes":[{}]},"code":410}"#,
    );
    assert_eq!(head.kind, "Status");
}

#[test]
fn of_repeated_members_the_last_counts_and_items_stand_once() {
    let head = head(
        r#"{"kind":"A","kind":"B","metadata":{"resourceVersion":"1","continue":"x"},"metadata":{"resourceVersion":"1","resourceVersion":"2"}}"#,
    );
    assert_eq!((head.kind.as_str(), head.continue_token), ("B", None));
    assert_eq!(head.resource_version, "2".into());

    let (items, end) = whole(r#"{"items":[{}],"items":[{}]}"#);
    assert_eq!(items.len(), 1);
    assert_eq!(end, Err(FrameError::Malformed { offset: 21, expected: Value::Key.description() }));
}

#[test]
fn an_item_within_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(br#"{"items":[{"a":1},{"b":2},{"c""#);
    let mut parts = Vec::new();
    let mut splitter = JsonListSplitter::new(1 << 20);
    splitter.push(chunk.clone(), &mut parts).unwrap();
    let starts: Vec<_> = parts.iter().filter_map(item).map(|item| item.as_ptr()).collect();
    assert_eq!(starts, [chunk[10..].as_ptr(), chunk[18..].as_ptr()]);
}

#[test]
fn g35_nothing_but_one_incomplete_item_is_held() {
    let mut splitter = JsonListSplitter::new(100);
    let mut parts = Vec::new();
    let mut push = |text: &str| {
        splitter.push(Bytes::copy_from_slice(text.as_bytes()), &mut parts).unwrap();
        splitter.collector.len()
    };
    assert_eq!(push(r#"{"unknown":{"#), 0);
    for _ in 0..1000 {
        assert_eq!(push(r#""a":["many","bytes"],"#), 0);
    }
    assert_eq!(push(r#""a":1},"note":""#), 0);
    assert_eq!(push(&"x".repeat(1000)), 0);
    assert_eq!(push(r#"","items":[{},{"a":"#), 5);
    assert_eq!(push("1},{}"), 0);
}

#[test]
fn g30_every_beginning_of_a_list_is_truncated() {
    for end in 0..PODS.len() {
        let cut = &PODS[..end];
        assert_eq!(whole(cut).1, Err(FrameError::Truncated { offset: end as u64 }), "{cut}");
    }
    assert!(whole(&format!("{PODS}\n ")).1.is_ok());
}

#[test]
fn g30_garbage_is_malformed_at_its_place() {
    for (text, offset, expected) in [
        ("<html>", 0, "'{' of a list"),
        ("[]", 0, "'{' of a list"),
        ("{,", 1, "a member or '}'"),
        ("{\"a\" 1", 5, "':'"),
        ("{\"a\":,", 5, "a value"),
        ("{\"a\":1,}", 7, "a member"),
        ("{\"a\":1 2", 7, "',' or '}'"),
        ("{\"a\":nul}", 8, SCALAR),
        ("{\"a\":1.}", 7, SCALAR),
        ("{\"a\":]", 5, "a value"),
        ("{\"kind\":1}", 8, "a string"),
        ("{\"kind\":\"\\x\"}", 12, "a string"),
        ("{\"metadata\":[]}", 12, "an object"),
        ("{\"metadata\":{1}}", 15, "the metadata of a list"),
        ("{\"metadata\":{\"resourceVersion\":1}}", 33, "the metadata of a list"),
        ("{\"items\":{}}", 9, "an array or null"),
        ("{\"items\":[1]}", 10, "an object or ']'"),
        ("{\"items\":[null]}", 10, "an object or ']'"),
        ("{\"items\":[,]}", 10, "an object or ']'"),
        ("{\"items\":[{},]}", 13, "an object"),
        ("{\"items\":[{}{}]}", 12, "',' or ']'"),
        ("{\"items\":[{}]]", 13, "',' or '}'"),
        ("{}{}", 2, "the end of the body"),
        ("{} x", 3, "the end of the body"),
    ] {
        assert_eq!(whole(text).1, Err(FrameError::Malformed { offset, expected }), "{text}");
        let (_, end) = split(1000, bytewise(text));
        assert!(
            matches!(end, Err(FrameError::Malformed { offset: found, .. }) if found == offset),
            "{text}: {end:?}"
        );
    }
}

#[test]
fn g30_items_above_the_limit_are_gone_past_at_any_chunk_border() {
    let text = format!("{{\"items\":[{{}},{{\"a\":\"{}\"}},{{\"b\":1}}]}}", "x".repeat(32));
    let chunks = |size| text.as_bytes().chunks(size).map(Bytes::copy_from_slice);
    for (size, limit) in (1..=text.len()).flat_map(|size| [(size, 19), (size, 39)]) {
        let (items, end) = split(40, chunks(size).collect());
        assert_eq!((items.len(), end.is_ok()), (3, true));
        let mut splitter = JsonListSplitter::new(limit);
        let mut parts = Vec::new();
        for chunk in chunks(size) {
            splitter.push(chunk, &mut parts).unwrap();
            assert!(splitter.collector.len() <= limit);
        }
        assert_eq!(Box::new(splitter).finish(), Ok(ListHead::default()));
        let error = FrameError::TooLarge { offset: 13, limit };
        let beginning = WireObject::from(Bytes::copy_from_slice(&text.as_bytes()[13..13 + limit]));
        assert_eq!(parts[1..2], [ListPart::TooLarge { beginning, error }]);
        assert_eq!(parts.iter().filter_map(item).collect::<Vec<_>>(), ["{}", "{\"b\":1}"]);
    }
}

#[test]
fn g30_other_members_above_the_limit_are_refused_at_any_chunk_border() {
    let text = format!("{{\"kind\":\"{}\"}}", "x".repeat(20));
    for size in 1..=text.len() {
        let (_, end) =
            split(19, text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect());
        assert_eq!(end, Err(FrameError::TooLarge { offset: 8, limit: 19 }));
    }
}

#[test]
fn g30_a_count_of_what_remains_never_makes_a_list_fail() {
    for (count, expected) in [
        ("7", Some(7)),
        ("-1", None),
        ("1.0", None),
        ("\"3\"", None),
        ("[{}]", None),
        ("1e400", None),
        ("null", None),
    ] {
        let text = format!(
            "{{\"metadata\":{{\"remainingItemCount\":{count},\"resourceVersion\":\"5\"}}}}"
        );
        let expected = ListHead {
            resource_version: "5".into(),
            remaining_item_count: expected,
            ..ListHead::default()
        };
        assert_eq!(whole(&text).1, Ok(expected), "{count}");
        assert!(split(1000, bytewise(&text)).1.is_ok());
    }
}

#[test]
fn long_numbers_are_refused() {
    for digits in [64, 65] {
        let text = format!("{{\"a\":{}}}", "1".repeat(digits));
        assert_eq!(whole(&text).1.is_ok(), digits == 64);
        assert_eq!(split(1000, bytewise(&text)).1.is_ok(), digits == 64);
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(whole(&deep(10_000)).1.is_ok());
    assert!(matches!(whole(&deep(10_001)).1, Err(FrameError::Malformed { offset: 10_005, .. })));
}

/// A list's members in any order, and what should be read of it.
fn list() -> impl Strategy<Value = (String, Vec<Json>, ListHead)> {
    let items = prop::collection::vec(any_value().prop_map(|value| json!({"x": value})), 0..5);
    let head = (any::<Option<u64>>(), "[a-z\"\\\\]{0,3}", any::<u64>());
    (items, head, prop::collection::vec(any_value(), 0..3), any::<bool>(), any::<u64>()).prop_map(
        |(items, (remaining, token, version), unknown, is_pretty, order)| {
            let metadata =
                json!({"resourceVersion": version.to_string(), "continue": token, "remainingItemCount": remaining});
            let mut members = vec![("kind", json!("L")), ("metadata", metadata), ("items", json!(items))];
            members.extend(unknown.into_iter().map(|value| ("other", value)));
            let count = members.len();
            members.rotate_left((order % 7) as usize % count);
            members.swap((order % 11) as usize % count, (order % 13) as usize % count);
            let text: Vec<String> = members
                .iter()
                .map(|(key, value)| {
                    format!("\"{key}\":{}", if is_pretty { pretty(value) } else { value.to_string() })
                })
                .collect();
            let head = ListHead {
                api_version: String::new(),
                kind: "L".to_owned(),
                resource_version: version.into(),
                continue_token: (!token.is_empty()).then_some(token),
                remaining_item_count: remaining,
            };
            (format!("{{{}}}", text.join(",")), items, head)
        },
    )
}

proptest! {
    #[test]
    fn lists_are_what_serde_json_reads(
        (text, items, head) in list(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let (split_items, end) = split(usize::MAX, chunks(text.as_bytes(), &cuts));
        prop_assert_eq!(end, Ok(head));
        let parsed: Vec<Json> = split_items.iter().map(|it| serde_json::from_slice(it).unwrap()).collect();
        prop_assert_eq!(parsed, items);
    }

    #[test]
    fn chunk_borders_do_not_matter(
        text in "[{}\\[\\]\"\\\\a1:, \n]{0,30}|\\{(\"items\":\\[|\"kind\":|\\{\"a\":1\\}|,|\\]|\\}|\"a\"){0,9}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (items, end) = split(20, vec![Bytes::copy_from_slice(text.as_bytes())]);
        let (cut_items, cut_end) = split(20, chunks(text.as_bytes(), &cuts));
        prop_assert_eq!(cut_items, items);
        prop_assert_eq!(cut_end, end);
    }

    #[test]
    fn whatever_serde_json_takes_for_a_list_is_one(
        text in "\\{(\"items\":\\[|\"a\":|\\{\"a\":1\\}|,|\\]|\\}|\"a\"|null){0,9}",
    ) {
        let parsed = serde_json::from_str::<Json>(&text);
        let (items, end) = whole(&text);
        if let Ok(json) = parsed {
            let is_list = json["items"].is_null() || json["items"].as_array().is_some_and(|it| it.iter().all(Json::is_object));
            if is_list && text.matches("\"items\"").count() <= 1 {
                prop_assert!(end.is_ok(), "{:?}", end);
                prop_assert_eq!(items.len(), json["items"].as_array().map_or(0, Vec::len));
            }
        }
    }

    #[test]
    fn any_bytes_are_a_list_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = split(20, vec![Bytes::from(bytes)]);
    }
}
