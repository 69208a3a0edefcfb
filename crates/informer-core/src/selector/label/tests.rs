use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> LabelSelector {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn every_form_parses_and_prints_canonically() {
    for (text, canonical) in [
        ("", ""),
        ("  ", ""),
        ("x", "x"),
        ("!x", "!x"),
        (" ! x ", "!x"),
        ("x=a", "x=a"),
        ("x==a", "x=a"),
        ("x != a", "x!=a"),
        ("x=", "x="),
        ("x= ", "x="),
        ("x==", "x="),
        ("x!=", "x!="),
        ("x=,z=a", "x=,z=a"),
        ("x=a,z!=b,y", "x=a,y,z!=b"),
        ("x in (a)", "x in (a)"),
        ("x in (c,b , a,b)", "x in (a,b,c)"),
        ("x\tnotin\n(a)", "x notin (a)"),
        ("x in(a)", "x in (a)"),
        ("x in ()", "x in ()"),
        ("x notin ()", "x notin ()"),
        ("x in (,)", "x in ()"),
        ("x in (a,)", "x in (,a)"),
        ("x in (,a)", "x in (,a)"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("x in (a,,,b)", "x in (,a,b)"),
        ("x in (a,,,)", "x in (,a)"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("x>1", "x>1"),
        ("x > 1, y< 05", "x>1,y<05"),
        ("x>5,x<7", "x>5,x<7"),
        ("in", "in"),
        ("!notin", "!notin"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin notin (in)", "notin notin (in)"),
        ("in=in", "in=in"),
        ("x=notin", "x=notin"),
        (
            "app.kubernetes.io/name=web,k8s-app in (kube-dns)",
            "app.kubernetes.io/name=web,k8s-app in (kube-dns)",
        ),
        ("x,x=a,x", "x=a,x"),
    ] {
        assert_eq!(parse(text).to_string(), canonical, "{text:?}");
    }
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    for (text, offset, expected) in [
        (",", 0, "a label key or '!'"),
        ("x,", 2, "a label key or '!'"),
        ("x,,y", 2, "a label key or '!'"),
        (",x", 0, "a label key or '!'"),
        ("=a", 0, "a label key or '!'"),
        ("!", 1, "a label key"),
        ("!!x", 1, "a label key"),
        ("!,x", 1, "a label key"),
        ("!x=a", 2, "',' or the end"),
        ("!x in (a)", 3, "',' or the end"),
        ("x=a b", 4, "',' or the end"),
        ("x in (a) y", 9, "',' or the end"),
        ("x in (a))", 8, "',' or the end"),
        ("x a", 2, "',', '=', '==', '!=', 'in', 'notin', '<', '>' or the end"),
        ("x)", 1, "',', '=', '==', '!=', 'in', 'notin', '<', '>' or the end"),
        ("x IN (a)", 2, "',', '=', '==', '!=', 'in', 'notin', '<', '>' or the end"),
        ("x in", 4, "'('"),
        ("x notin a", 8, "'('"),
        ("x in (a", 7, "',' or ')'"),
        ("x in (a b)", 8, "',' or ')'"),
        ("x in (a=b)", 7, "',' or ')'"),
        ("x in (a,,)", 9, "',' or a value"),
        ("x in (,,)", 8, "',' or a value"),
        ("x in (", 6, syntax::LABEL_VALUE),
        ("x in (a,", 8, syntax::LABEL_VALUE),
        ("x in (!a)", 6, syntax::LABEL_VALUE),
        ("x in ((a))", 6, syntax::LABEL_VALUE),
        ("x===a", 3, syntax::LABEL_VALUE),
        ("x=a/b", 2, syntax::LABEL_VALUE),
        ("x=-a", 2, syntax::LABEL_VALUE),
        ("x in (a,b_)", 8, syntax::LABEL_VALUE),
        ("x>-1", 2, syntax::LABEL_VALUE),
        ("x>=1", 2, syntax::LABEL_VALUE),
        ("x>", 2, "an integer"),
        ("x<,y", 2, "an integer"),
        ("x>a", 2, "an integer"),
        ("x< 1.5", 3, "an integer"),
        ("x>9223372036854775808", 2, "an integer"),
        ("a/b/c=d", 0, syntax::LABEL_KEY),
        ("x, A.b/c=d", 3, syntax::LABEL_KEY),
        ("ü=1", 0, syntax::LABEL_KEY),
        ("x\0", 0, syntax::LABEL_KEY),
    ] {
        let error = text.parse::<LabelSelector>().expect_err(text);
        assert_eq!((error.offset, error.expected), (offset, expected), "{text:?}");
        assert_eq!(error.text, text);
    }
}

#[test]
fn an_error_shows_what_was_found() {
    let error = "x in (a b)".parse::<LabelSelector>().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"label selector "x in (a b)": at offset 8: expected ',' or ')', found "b""#
    );
}

#[test]
fn matches_as_kubernetes_does() {
    let object =
        labels(&[("foo", "bar"), ("baz", "blah"), ("n", "7"), ("empty", ""), ("word", "x7")]);
    for selector in [
        "",
        "foo",
        "foo=bar",
        "foo=bar,baz=blah",
        "foo in (bar,x)",
        "foo!=baz",
        "foo notin (x,y)",
        "other!=x",
        "other notin (x)",
        "other!=",
        "!other",
        "empty",
        "empty=",
        "empty in ()",
        "foo notin ()",
        "n>6",
        "n<8",
        "n>6,n<8",
        "n>06",
        "word!=7",
    ] {
        assert!(parse(selector).matches_map(&object), "{selector}");
    }
    for selector in [
        "foo=blah",
        "foo=",
        "foo!=bar",
        "foo=bar,baz=bar",
        "!foo",
        "other",
        "other=",
        "other=x",
        "other in ()",
        "foo notin (bar)",
        "empty!=",
        "n>7",
        "n<7",
        "n>8",
        "word>1",
        "word<1",
        "other>0",
        "empty<9",
        "FOO",
        "foo=Bar",
    ] {
        assert!(!parse(selector).matches_map(&object), "{selector}");
    }
}

#[test]
fn builders_validate_and_keep_the_canonical_order() {
    let built =
        LabelSelector::default().with_equal("z", "1").unwrap().with_equal("a/b", "").unwrap();
    assert_eq!(built, parse("z=1,a/b="));
    assert_eq!(built.clone().with_equal("z", "1").unwrap(), built);
    assert_eq!(built.and(parse("!m,z=1")), parse("a/b=,!m,z=1"));

    let error = LabelSelector::default().with_equal("a=b", "c").unwrap_err();
    assert_eq!((error.offset, error.expected), (0, syntax::LABEL_KEY));
    let error = LabelSelector::default().with_equal("a", "b,c").unwrap_err();
    assert_eq!((&*error.text, error.offset, error.expected), ("a=b,c", 2, syntax::LABEL_VALUE));
}

#[test]
fn blank_text_selects_everything() {
    assert!(!parse("a").is_everything());
    assert!(parse(" ").is_everything());
}

/// A requirement as (key, operator as written, values).
fn requirement() -> impl Strategy<Value = (String, &'static str, Vec<String>)> {
    let key = "[abc]|in|notin|x\\.y/[ab]";
    prop_oneof![
        (key, prop::sample::select(vec!["=", "==", "!="]), vec("|[xy]|in", 1)),
        (key, prop::sample::select(vec!["<", ">"]), vec("[0-9]{1,2}", 1)),
        (key, prop::sample::select(vec!["in", "notin"]), vec("[xyz0-9]{0,2}", 1..4)),
        (key, prop::sample::select(vec!["", "!"]), vec("", 0)),
    ]
}

/// The requirement as text, with `space` wherever white space may stand.
fn written((key, operator, values): &(String, &str, Vec<String>), space: &str) -> String {
    let values = values.join(&format!("{space},{space}"));
    match *operator {
        "in" | "notin" => {
            format!("{space}{key} {space}{operator}{space}({space}{values}{space}){space}")
        }
        "" | "!" => format!("{space}{operator}{space}{key}{space}"),
        _ => format!("{space}{key}{space}{operator}{space}{values}{space}"),
    }
}

/// Straight from the documentation of Kubernetes, one requirement at a time.
fn holds(
    (key, operator, values): &(String, &str, Vec<String>),
    labels: &BTreeMap<String, String>,
) -> bool {
    let number = |text: &String| text.parse::<u32>().ok();
    match (labels.get(key), *operator) {
        (value, "") => value.is_some(),
        (value, "!") => value.is_none(),
        (None, operator) => matches!(operator, "!=" | "notin"),
        (Some(value), "=" | "==") => *value == values[0],
        (Some(value), "!=") => *value != values[0],
        (Some(value), "in") => values.contains(value),
        (Some(value), "notin") => !values.contains(value),
        (Some(value), "<") => number(value).is_some_and(|value| Some(value) < number(&values[0])),
        (Some(value), _) => number(value).is_some_and(|value| Some(value) > number(&values[0])),
    }
}

/// Whether the Go grammar takes these values between the parentheses: see `value_set`.
fn is_accepted(values: &[String]) -> bool {
    let empty = |at: usize| values.get(at).is_some_and(String::is_empty);
    !(values.len() >= 3 && empty(values.len() - 1) && empty(values.len() - 2))
}

proptest! {
    #[test]
    fn prints_and_parses_back(
        written_requirements in vec(requirement().prop_filter("Go's commas", |it| is_accepted(&it.2)), 0..5),
        space in "[ \t\r\n]{0,2}",
    ) {
        let text: Vec<String> = written_requirements.iter().map(|it| written(it, &space)).collect();
        let selector: LabelSelector = text.join(",").parse().unwrap();
        prop_assert_eq!(&selector.to_string().parse::<LabelSelector>().unwrap(), &selector);

        let rebuilt = selector.requirements().iter().rev().cloned().fold(LabelSelector::default(), LabelSelector::with);
        prop_assert_eq!(&rebuilt, &selector);
    }

    #[test]
    fn matches_what_each_requirement_says(
        written_requirements in vec(requirement().prop_filter("Go's commas", |it| is_accepted(&it.2)), 0..4),
        labels in prop::collection::btree_map("[abc]|in|x\\.y/a", "|[xy]|in|[0-9]{1,2}", 0..5),
    ) {
        let text: Vec<String> = written_requirements.iter().map(|it| written(it, "")).collect();
        let selector: LabelSelector = text.join(",").parse().unwrap();
        let expected = written_requirements.iter().all(|it| holds(it, &labels));
        prop_assert_eq!(selector.matches_map(&labels), expected);
    }

    #[test]
    fn any_text_is_a_selector_or_an_error_within_it(text in "\\PC*|[ab=!<>(),/. \t]{0,12}|(in|notin|[ab=!(),]| ){0,9}") {
        match text.parse::<LabelSelector>() {
            Ok(selector) => prop_assert_eq!(selector.to_string().parse::<LabelSelector>().unwrap(), selector),
            Err(error) => {
                prop_assert!(error.offset <= text.len() && text.is_char_boundary(error.offset));
                prop_assert!(error.to_string().contains(error.expected));
            }
        }
    }
}
