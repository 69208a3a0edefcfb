use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::key::ObjectKey;
use crate::wire::Wire;
use crate::wire::testing::{any_value, pretty};

fn parse(text: &str) -> ObjectHead<'_> {
    read(text.as_bytes(), false).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The text without its managed fields.
fn cut(text: &str) -> String {
    let mut scratch = b"left over".to_vec();
    let cut = without_managed_fields(text.as_bytes(), &parse(text), &mut scratch);
    String::from_utf8(cut.to_vec()).unwrap()
}

#[test]
fn everything_is_read_and_borrowed() {
    let text = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default",
        "uid":"3f0c2f3e-64a6-4b1c-8d0e-0123456789ab","resourceVersion":"12","labels":{"a":"b"},
        "annotations":{"x":"y"}},"spec":{"replicas":3}}"#;
    let head = parse(text);
    assert_eq!((&*head.api_version, &*head.kind), ("apps/v1", "Deployment"));
    assert_eq!(head.key(), ObjectKey::namespaced("default", "web"));
    assert_eq!(head.uid, Uid::new("3f0c2f3e-64a6-4b1c-8d0e-0123456789ab"));
    assert_eq!(head.version, "12".into());
    assert!(!head.initial_events_end && head.managed_fields.is_none());
    for text in [head.api_version, head.kind, head.name, head.namespace] {
        assert!(matches!(text, Cow::Borrowed(_)));
    }
}

#[test]
fn what_is_absent_or_null_is_empty() {
    let head =
        parse(r#"{"metadata":{"name":"node-1","namespace":null,"uid":null,"annotations":null}}"#);
    assert_eq!(head.key(), ObjectKey::cluster("node-1"));
    assert!(head.uid.is_unset() && head.version.is_unset() && head.kind.is_empty());
}

#[test]
fn escapes_are_understood_and_the_last_member_counts() {
    let text = r#"{"metadata":{"name":"x","uid":"1"},"m\u0065tadata":{"n\u0061me":"a\u002db","name":"c\u002dd"}}"#;
    let head = parse(text);
    assert_eq!((&*head.name, head.uid.is_unset()), ("c-d", true));
}

#[test]
fn only_what_is_read_must_have_the_right_type() {
    parse(
        r#"{"metadata":{"name":"a","labels":7,"annotations":{"x":1,"y":[]},"generation":"x"},"spec":5,"status":[]}"#,
    );
    for (text, field, offset) in [
        (r#"{"kind":7}"#, "kind", 8),
        (r#"{"apiVersion":{}}"#, "apiVersion", 13),
        (r#"{"metadata":[]}"#, "metadata", 13),
        (r#"{"metadata":{"name":5}}"#, "metadata.name", 20),
        (r#"{"metadata":{"resourceVersion":5}}"#, "metadata.resourceVersion", 31),
        (r#"{"metadata":{"annotations":[]}}"#, "metadata.annotations", 28),
        ("{\"metadata\":{\n\n\"name\":true}}", "metadata.name", 25),
        ("[]", "the object", 1),
        ("\"a\"", "the object", 2),
    ] {
        assert_eq!(
            read(text.as_bytes(), false),
            Err(HeadError::WrongType { field, offset }),
            "{text}"
        );
    }
}

#[test]
fn the_whole_text_must_be_json() {
    for (text, offset) in [
        ("", 0),
        ("{", 0),
        (r#"{"metadata":{"name":"a"},"spec":{x}}"#, 33),
        (r#"{"metadata":{"name":"a"},"spec":[}}"#, 33),
        (r#"{"metadata":{"name":"a"}} {"#, 26),
    ] {
        match read(text.as_bytes(), false) {
            Err(HeadError::Malformed { offset: found }) => assert_eq!(found, offset, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(read(b"{\"metadata\":{\"name\":\"\xff\"}}", false).is_err());
}

#[test]
fn a_name_is_missing_except_in_bookmarks() {
    let bookmark =
        br#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","creationTimestamp":null,
        "annotations":{"a":"b","k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}"#;
    assert_eq!(ObjectHead::of(Wire::json(bookmark)), Err(HeadError::MissingName));
    let head = read(bookmark, false).unwrap();
    assert!(head.initial_events_end);
    assert_eq!(head.version, "9".into());
    for json in ["{}", r#"{"metadata":null}"#, r#"{"metadata":{"name":""}}"#] {
        assert_eq!(ObjectHead::of(Wire::json(json.as_bytes())), Err(HeadError::MissingName));
    }
}

#[test]
fn initial_events_end_with_exactly_true() {
    for (annotations, expected) in [
        (r#"{"k8s.io/initial-events-end":"true"}"#, true),
        (r#"{"k8s.io/initial-events-end":"false"}"#, false),
        (r#"{"k8s.io/initial-events-end":"True"}"#, false),
        (r#"{"k8s.io/initial-events-end":null}"#, false),
        (r#"{"x":"k8s.io/initial-events-end"}"#, false),
    ] {
        let text = format!(r#"{{"metadata":{{"annotations":{annotations}}}}}"#);
        assert_eq!(read(text.as_bytes(), false).unwrap().initial_events_end, expected);
    }
}

#[test]
fn managed_fields_are_cut_wherever_they_stand() {
    for (text, expected) in [
        (r#"{"metadata":{"name":"a","managedFields":[{}]}}"#, r#"{"metadata":{"name":"a"}}"#),
        (r#"{"metadata":{"managedFields":[{}],"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
        (
            r#"{"metadata":{"uid":"u","managedFields":[],"name":"a"}}"#,
            r#"{"metadata":{"uid":"u","name":"a"}}"#,
        ),
        (r#"{"metadata":{"name":"a","managedFields":null}}"#, r#"{"metadata":{"name":"a"}}"#),
        (
            r#"{"metadata":{"name":"a","m\u0061nagedFields" : [1] }}"#,
            r#"{"metadata":{"name":"a" }}"#,
        ),
        (
            "{\"metadata\":{\"name\":\"a\"\n,\n\"managedFields\"\n:\n[\n]\n}}",
            "{\"metadata\":{\"name\":\"a\"\n\n}}",
        ),
        (
            "{\"metadata\":{\n\"managedFields\": {}\n,\n\"name\":\"a\"}}",
            "{\"metadata\":{\n\n\"name\":\"a\"}}",
        ),
    ] {
        assert_eq!(cut(text), expected, "{text}");
        assert!(parse(expected).managed_fields.is_none());
    }
}

#[test]
fn the_only_member_can_be_cut() {
    let text = br#"{"metadata":{ "managedFields":[{"a":1}] }}"#;
    let head = read(text, false).unwrap();
    assert_eq!(without_managed_fields(text, &head, &mut Vec::new()), br#"{"metadata":{  }}"#);
}

#[test]
fn only_the_managed_fields_of_the_metadata_are_cut() {
    for text in [
        r#"{"metadata":{"name":"a","annotations":{"managedFields":"b"}},"managedFields":[],"spec":{"managedFields":[]}}"#,
        r#"{"metadata":{"name":"\"managedFields\":[]","labels":{"metadata":"managedFields"}}}"#,
        r#"{"spec":{"metadata":{"managedFields":[1]}},"metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"a","managedFields":[1],"managedFields":[2]}}"#,
    ] {
        assert_eq!(cut(text), text);
    }
}

#[test]
fn g34_errors_do_not_repeat_the_object() {
    for text in [
        r#"{"kind":{"hunter2":1}}"#,
        r#"{"metadata":"hunter2"}"#,
        r#"{"metadata":{"name":"a"},"data":hunter2}"#,
    ] {
        let error = read(text.as_bytes(), false).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}

proptest! {
    #[test]
    fn the_cut_is_serde_jsons_value_without_the_member(
        members in prop::collection::btree_map("[a-c\"\\\\]{0,2}|managedFields2", any_value(), 0..4),
        managed_fields in prop::option::of(any_value()),
        position in any::<prop::sample::Index>(),
        spec in any_value(),
        space in "[ \n\t]{0,2}",
        is_pretty in any::<bool>(),
    ) {
        let mut members: Vec<(String, Value)> = members.into_iter().collect();
        members.push(("name".to_owned(), json!("web")));
        members.push(("annotations".to_owned(), json!({"managedFields": "x", "k8s.io/initial-events-end": "true"})));
        if let Some(value) = &managed_fields {
            members.insert(position.index(members.len() + 1), ("managedFields".to_owned(), value.clone()));
        }
        let members: Vec<String> = members
            .iter()
            .map(|(key, value)| {
                let value = if is_pretty { pretty(value) } else { value.to_string() };
                format!("{space}{}{space}:{space}{value}{space}", json!(key))
            })
            .collect();
        let text = format!(
            "{{\"managedFields\":[],\"metadata\":{{{}}},\"spec\":{}}}{space}",
            members.join(","),
            json!({"managedFields": spec, "metadata": {"managedFields": [1]}}),
        );

        let head = parse(&text);
        prop_assert_eq!(head.managed_fields.is_some(), managed_fields.is_some());
        prop_assert!(head.initial_events_end);
        prop_assert_eq!(&ObjectHead::of(Wire::json(text.as_bytes())).unwrap(), &head);
        let mut expected: Value = serde_json::from_str(&text).unwrap();
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        prop_assert_eq!(serde_json::from_str::<Value>(&cut(&text)).unwrap(), expected);
    }

    #[test]
    fn any_bytes_are_an_object_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        text in "\\{(\"metadata\":|\"managedFields\":|\"name\":|\\{|\\}|,|\"a\"|\\[\\]){0,12}",
    ) {
        let _ = read(&bytes, false);
        if let Ok(head) = read(text.as_bytes(), false) {
            let mut scratch = Vec::new();
            let cut = without_managed_fields(text.as_bytes(), &head, &mut scratch);
            prop_assert!(serde_json::from_slice::<Value>(cut).is_ok());
        }
    }
}

#[test]
fn reading_ends_with_the_metadata() {
    for (text, kind) in [
        (r#"{"kind":"Pod","metadata":{"name":"a","uid":"u"},"spec":{]"#, "Pod"),
        (
            r#"{"spec":{"metadata":{"name":"b"}},"metadata":{"name":"a","uid":"u"},"kind":"Pod"}"#,
            "",
        ),
        (r#" {"metadata":{"uid":"u","name":"a"}} "#, ""),
    ] {
        let head = ObjectHead::of(Wire::json(text.as_bytes())).unwrap();
        assert_eq!((&*head.name, &*head.kind, head.uid), ("a", kind, "u".into()));
    }
    for (broken, expected) in [
        (r#"{"kind":"Pod","spec":{]"#, HeadError::Malformed { offset: 22 }),
        (r#"{"metadata":{"name":"a""#, HeadError::Malformed { offset: 22 }),
        (
            r#"{"metadata":{"name":7},"spec":1}"#,
            HeadError::WrongType { field: "metadata.name", offset: 20 },
        ),
        (r#"{"kind":"Pod"}"#, HeadError::MissingName),
    ] {
        assert_eq!(ObjectHead::of(Wire::json(broken.as_bytes())), Err(expected), "{broken}");
    }
}

proptest! {
    #[test]
    fn the_beginning_says_what_the_whole_does(
        before in prop::sample::subsequence(vec![r#""kind":"K""#, r#""apiVersion":"v1""#, r#""spec": {"a":1,"metadata":{"name":"no"}}"#, r#""a":-1.5E+7"#], 0..5),
        members in prop::collection::vec(prop::sample::select(vec![
            r#""name":"a""#, r#""name":"b""#, r#""n\u0061me":"c""#, r#""name":"\u0064""#, r#""name":null"#, r#""namespace":"n""#,
            r#""managedFields":[{"a":"\"]"}]"#, r#""managedFields":null"#, r#""uid":"u""#, r#" "uid" : "v" "#,
            r#""resourceVersion":"7""#, r#""annotations":{"managedFields":"}"}"#, r#""annotations":null"#, r#""annotations":7"#,
            r#""labels":{"name":"no","}":"{"}"#, r#""generation":1"#, r#""name":2"#,
            r#""labels": {"a":"b","namespace":"no"}"#, r#""managedFields": [{"a":1}]"#, r#""generation": 1"#, r#""name": "e""#,
            r#""ownerReferences": [[{"name":"no"},1], {"uid":"no"}]"#, r#""b":null "#, r#""annotations": {"uid":"no"}"#,
        ]), 0..6),
        after in prop::sample::subsequence(vec![r#""spec":{"a":1}"#, r#""status":{}"#], 0..3),
    ) {
        let metadata = format!(r#""metadata":{{{}}}"#, members.join(","));
        let all: Vec<_> = before.iter().copied().chain([&*metadata]).chain(after).collect();
        let text = format!("{{{}}}", all.join(","));
        let json = Wire::json(text.as_bytes());
        prop_assert_eq!(ObjectHead::of(json).ok(), read(text.as_bytes(), false).ok().filter(|head| !head.name.is_empty()));
    }

    #[test]
    fn the_beginning_of_anything_is_a_head_or_an_error(
        text in "\\{(\"metadata\":\\{)?(\"managedFields\":|\"name\":|\\{|\\}|,|\"a\"|\\[\\]|\\\\|\"){0,12}",
    ) {
        if let Ok(head) = ObjectHead::of(Wire::json(text.as_bytes())) {
            without_managed_fields(text.as_bytes(), &head, &mut Vec::new());
        }
    }
}

#[test]
fn g30_where_a_member_ends_is_not_guessed() {
    for members in [
        r#""managedFields":null"namespace":"n","uid":"u""#,
        r#""generation":1"namespace":"n","uid":"u""#,
        r#""generation":,"namespace":"n""#,
        r#""labels":{"a":"b"}"namespace":"n""#,
        r#""managedFields":[{"m":1},"namespace":"n"},"uid":"u"}"#,
        r#""managedFields":[{"m":1],"namespace":"n"],"uid":"u""#,
        r#""managedFields":[{[}],"namespace":"n"],"uid":"u""#,
        r#""labels":{"a":"b"],"namespace":"n""#,
        r#""managedFields":[{"m":"\"}],"namespace":"n""#,
    ] {
        let text = format!(r#"{{"metadata":{{"name":"a",{members}}},"spec":{{}}}}"#);
        let head = ObjectHead::of(Wire::json(text.as_bytes()));
        assert!(matches!(head, Err(HeadError::Malformed { .. })), "{text}: {head:?}");
    }
}
