use super::*;

/// The state that a list wants, or the code and message of the failure.
fn list(query: &str) -> Result<ListWant, (u16, String)> {
    Parameters::parse(query)
        .and_then(|parameters| parameters.list_want(Scope::Cluster))
        .map_err(|status| (status.code, status.message))
}

fn watch(query: &str) -> Result<WatchWant, (u16, String)> {
    Parameters::parse(query)
        .and_then(|parameters| parameters.watch_want())
        .map_err(|status| (status.code, status.message))
}

#[test]
fn list_options_mean_what_the_documentation_says() {
    let newest = |reached| ListWant::Newest { reached, at: At::Newest };
    for (query, want) in [
        ("", newest(None)),
        ("limit=-1", newest(None)),
        ("timeoutSeconds=-1", newest(None)),
        ("limit=1&limit=x", newest(None)),
        ("resourceVersion=0&limit=5", ListWant::Newest { reached: None, at: At::Any }),
        ("resourceVersion=7", newest(Some(7))),
        ("resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=5", newest(Some(7))),
        ("resourceVersion=7&limit=5", ListWant::Exact(7)),
        ("resourceVersion=7&resourceVersionMatch=Exact", ListWant::Exact(7)),
    ] {
        assert_eq!(list(query), Ok(want), "{query}");
    }
}

/// All of it as kube-apiserver 1.36 answers.
#[test]
fn bad_list_options_are_told_in_the_servers_words() {
    let invalid =
        |faults: &str| (422, format!("ListOptions.meta.k8s.io \"\" is invalid: {faults}"));
    for (query, failure) in [
        ("limit=abc", (400, r#"strconv.ParseInt: parsing "abc": invalid syntax"#.to_owned())),
        ("limit=", (400, r#"strconv.ParseInt: parsing "": invalid syntax"#.to_owned())),
        (
            "limit=99999999999999999999",
            (400, r#"strconv.ParseInt: parsing "99999999999999999999": value out of range"#.to_owned()),
        ),
        ("timeoutSeconds=x", (400, r#"strconv.ParseInt: parsing "x": invalid syntax"#.to_owned())),
        (
            "resourceVersion=abc",
            (400, r#"invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#.to_owned()),
        ),
        (
            "resourceVersion=-1",
            (400, r#"invalid resource version: resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax"#.to_owned()),
        ),
        (
            "resourceVersion=99999999999999999999999",
            (400, r#"invalid resource version: resourceVersion: Invalid value: "99999999999999999999999": strconv.ParseUint: parsing "99999999999999999999999": value out of range"#.to_owned()),
        ),
        ("fieldSelector=a", (400, "invalid selector: 'a'; can't understand 'a'".to_owned())),
        (
            "resourceVersion=1&resourceVersionMatch=Newer",
            invalid(r#"resourceVersionMatch: Unsupported value: "Newer": supported values: "Exact", "NotOlderThan", """#),
        ),
        (
            "resourceVersionMatch=Exact",
            invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            invalid(r#"resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0""#),
        ),
        ("sendInitialEvents=true", invalid("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")),
        (
            "continue=7a&resourceVersionMatch=Exact",
            invalid("[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided]"),
        ),
    ] {
        assert_eq!(list(query), Err(failure), "{query}");
    }
    assert_eq!(list("continue=7a&resourceVersion=7").map_err(|(code, _)| code), Err(400));
}

#[test]
fn watch_options_mean_what_the_documentation_says() {
    let invalid =
        |faults: &str| (422, format!("ListOptions.meta.k8s.io \"\" is invalid: {faults}"));
    for (query, want) in [
        ("", Ok(WatchWant::Everything { reached: None, at: At::Newest })),
        ("resourceVersion=0", Ok(WatchWant::Everything { reached: None, at: At::Any })),
        ("resourceVersion=7", Ok(WatchWant::After(7))),
        ("resourceVersion=7&continue=x", Ok(WatchWant::After(7))),
        (
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=7",
            Ok(WatchWant::Everything { reached: Some(7), at: At::Newest }),
        ),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", Ok(WatchWant::Now)),
        (
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=7",
            Ok(WatchWant::After(7)),
        ),
        (
            "sendInitialEvents=true",
            Err(invalid("resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")),
        ),
        (
            "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=7",
            Err(invalid(r#"[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]"#)),
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=7",
            Err(invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")),
        ),
        (
            "continue=7a",
            Err(invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided")),
        ),
        (
            "resourceVersion=abc",
            Err((500, r#"resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#.to_owned())),
        ),
    ] {
        assert_eq!(watch(query), want, "{query}");
    }
}

#[test]
fn fields_that_a_resource_does_not_index_are_refused() {
    let pods = Resource {
        selectable_fields: vec!["spec.nodeName".to_owned()],
        ..Resource::new("", "v1", "pods", "Pod")
    };
    let code = |query: &str| {
        Parameters::parse(query)
            .and_then(|parameters| parameters.selectors(&pods))
            .map_or_else(|status| status.code, |_| 200)
    };
    assert_eq!(code("fieldSelector=spec.nodeName%3Da,metadata.name!%3Db"), 200);
    assert_eq!(code("fieldSelector=spec.image%3Da"), 400);
    assert_eq!(code("labelSelector=a+in+("), 400);
}

#[test]
fn requirements_and_their_values_are_the_terms_of_selectors() {
    for (query, terms) in [
        ("", 0),
        ("labelSelector=a%3Db&fieldSelector=metadata.name%3Dc,metadata.namespace!%3Dd", 6),
        ("labelSelector=!a,b,c+in+(d,e,f),g+notin+(h)", 8),
    ] {
        assert_eq!(Parameters::parse(query).unwrap().selector_terms(), terms, "{query}");
    }
}
