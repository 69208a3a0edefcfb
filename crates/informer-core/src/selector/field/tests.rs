use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> FieldSelector {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_form_parses_and_prints_canonically() {
    for (text, canonical) in [
        ("", ""),
        (",", ""),
        ("x=a", "x=a"),
        ("x==a", "x=a"),
        ("x!=a", "x!=a"),
        ("x=", "x="),
        ("x!=", "x!="),
        ("y=b,x=a,,y=b", "x=a,y=b"),
        ("metadata.name=a,spec.nodeName!=b", "metadata.name=a,spec.nodeName!=b"),
        (r"x=a\,b", r"x=a\,b"),
        (r"x=a\=b\\", r"x=a\=b\\"),
        (r"x==\=a", r"x=\=a"),
        ("x= a b ", "x= a b "),
        ("x=a!b", "x=a!b"),
        ("x=ü", "x=ü"),
    ] {
        assert_eq!(parse(text).to_string(), canonical, "{text:?}");
    }
    assert_eq!(parse(r"x=a\,b\=c\\d").required_value("x"), Some(r"a,b=c\d"));
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let operators = "'=', '==' or '!='";
    let escape = r"'\', ',' or '=' after '\'";
    let value = r"a value, in which '=' is written '\='";
    for (text, offset, expected) in [
        ("x", 1, operators),
        ("x,y=a", 1, operators),
        ("x=a,yy", 6, operators),
        ("x =a", 1, operators),
        ("x!a", 1, operators),
        ("x>5", 3, operators),
        ("x in (a)", 1, operators),
        ("=a", 0, FIELD_PATH),
        ("x=a, y=b", 4, FIELD_PATH),
        ("!x=a", 0, FIELD_PATH),
        (r"x\,y=a", 1, operators),
        ("x=a=b", 3, value),
        ("x===a", 3, value),
        ("x!==a", 3, value),
        (r"x=a\b", 4, escape),
        (r"x=\ü", 3, escape),
        (r"x=a\", 4, escape),
    ] {
        let error = text.parse::<FieldSelector>().expect_err(text);
        assert_eq!((error.offset, error.expected), (offset, expected), "{text:?}");
    }
    assert_eq!(
        "x=a=b".parse::<FieldSelector>().unwrap_err().to_string(),
        r#"field selector "x=a=b": at offset 3: expected a value, in which '=' is written '\=', found "=""#
    );
}

#[test]
fn absent_fields_are_empty() {
    let pod = json!({"metadata": {"name": "web"}, "spec": {"hostNetwork": true, "priority": 7, "containers": []}});
    for selector in [
        "",
        "metadata.name=web",
        "metadata.name!=x",
        "spec.nodeName=",
        "spec.nodeName!=x",
        "spec.hostNetwork=true",
        "spec.priority=7",
        "spec.containers=",
        "metadata=",
        "metadata.name.x=",
    ] {
        assert!(parse(selector).matches_value(&pod), "{selector}");
    }
    for selector in
        ["metadata.name=x", "metadata.name!=web", "spec.nodeName!=", "status.phase=Running"]
    {
        assert!(!parse(selector).matches_value(&pod), "{selector}");
    }
    assert!(parse("a=").matches(|_| None));
}

#[test]
fn builder_escapes_values_and_checks_paths() {
    let built =
        FieldSelector::default().with_equal("z", "a,b").unwrap().with_equal("a", "").unwrap();
    assert_eq!(built.to_string(), r"a=,z=a\,b");
    assert_eq!(built, parse(r"z=a\,b,a="));
    for path in ["", "a=b", "a b", "a!", "a\\"] {
        assert!(FieldSelector::default().with_equal(path, "x").is_err(), "{path}");
    }
}

proptest! {
    #[test]
    fn prints_and_parses_back(terms in vec(("[a-c]\\.?[a-c]?", any::<bool>(), "[ab,=!\\\\ ]{0,4}"), 0..5)) {
        let requirements: Vec<FieldRequirement> = terms
            .into_iter()
            .map(|(path, equal, value)| {
                FieldRequirement::new(&path, if equal { Operator::Equals } else { Operator::NotEquals }, value)
            })
            .collect();
        let text: Vec<String> = requirements.iter().map(ToString::to_string).collect();
        let selector = parse(&text.join(","));
        prop_assert_eq!(&parse(&selector.to_string()), &selector);
        prop_assert!(requirements.iter().all(|it| selector.requirements().contains(it)));
        prop_assert!(selector.requirements().iter().all(|it| requirements.contains(it)));
    }

    #[test]
    fn matches_what_each_requirement_says(
        terms in vec(("[a-c]", any::<bool>(), "[xy]?"), 0..4),
        fields in prop::collection::btree_map("[a-c]", "[xy]?", 0..4),
    ) {
        let fields: BTreeMap<String, String> = fields;
        let text: Vec<String> =
            terms.iter().map(|(path, equal, value)| format!("{path}{}{value}", if *equal { "=" } else { "!=" })).collect();
        let expected = terms.iter().all(|(path, equal, value)| {
            let actual = fields.get(path).map_or("", String::as_str);
            if *equal { actual == value } else { actual != value }
        });
        let selector = parse(&text.join(","));
        prop_assert_eq!(selector.matches(|path| fields.get(path).map(|it| Cow::Borrowed(it.as_str()))), expected);
    }

    #[test]
    fn any_text_is_a_selector_or_an_error_within_it(text in "\\PC*|[ab=!,\\\\ .]{0,12}") {
        match text.parse::<FieldSelector>() {
            Ok(selector) => prop_assert_eq!(parse(&selector.to_string()), selector),
            Err(error) => prop_assert!(error.offset <= text.len() && text.is_char_boundary(error.offset)),
        }
    }
}
