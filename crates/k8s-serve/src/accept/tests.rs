use super::*;

const PB: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "as=Table;g=meta.k8s.io;v=v1";

fn accepting(accept: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, accept.parse().unwrap());
    headers
}

fn pods() -> Resource {
    Resource::new("", "v1", "pods", "Pod")
}

fn widgets() -> Resource {
    Resource { custom: true, ..Resource::new("example.com", "v1", "widgets", "Widget") }
}

/// What a GET gets, in short.
fn object(accept: &str, resource: &Resource, support: ProtobufSupport) -> String {
    short(
        negotiate(&accepting(accept), resource, Served::Documents, support)
            .and_then(|negotiated| negotiated.object(&Parameters::default())),
    )
}

fn list(accept: &str, resource: &Resource) -> String {
    short(
        negotiate(&accepting(accept), resource, Served::Collections, ProtobufSupport::Served)
            .and_then(|negotiated| negotiated.list(&Parameters::default())),
    )
}

fn short(form: Result<Form, Status>) -> String {
    match form {
        Ok(Form(FormKind::Json(Shape::Full))) => "json".to_owned(),
        Ok(Form(FormKind::Json(Shape::Metadata(MetaVersion::V1)))) => "json metadata".to_owned(),
        Ok(Form(FormKind::Json(Shape::Table(MetaVersion::V1, _)))) => "table".to_owned(),
        Ok(Form(FormKind::Json(shape))) => format!("{shape:?}"),
        Ok(Form(FormKind::Protobuf { object, .. })) => object.to_string(),
        Err(status) => status.code.to_string(),
    }
}

/// All of it as kube-apiserver 1.36 answers, but for YAML, which is not served here.
#[test]
fn the_first_served_form_wins() {
    let table = [
        ("", "json", "json"),
        ("*/*", "json", "json"),
        ("application/json;stream=watch", "json", "json"),
        ("text/html", "406", "406"),
        ("application/cbor", "406", "406"),
        ("APPLICATION/JSON", "406", "406"),
        ("application/*", "406", "json"),
        ("*", "406", "json"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "table", "table"),
        (&format!("application/json;as=Table;v=v2;g=meta.k8s.io,{PB}"), "v1 Pod", "406"),
        ("application/json;g=meta.k8s.io", "406", "406"),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io", "406", "406"),
        ("application/json;stream=foo", "406", "406"),
        ("application/json;sv=v1", "json", "json"),
        ("application/json;sv=v2", "406", "406"),
        (&format!("*/*;{TABLE}"), "table", "table"),
        (&format!("{PB};{TABLE},application/json"), "json", "json"),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            "Table(V1Beta1, Metadata)",
            "Table(V1Beta1, Metadata)",
        ),
        (
            "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
            "Metadata(V1Beta1)",
            "Metadata(V1Beta1)",
        ),
        (
            &format!("{PB};as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io"),
            "meta.k8s.io/v1beta1 PartialObjectMetadata",
            "meta.k8s.io/v1beta1 PartialObjectMetadata",
        ),
        (PB, "v1 Pod", "406"),
        ("application/vnd.kubernetes.protobuf ; stream=watch , application/json", "v1 Pod", "json"),
        (&format!("{PB};foo=bar"), "v1 Pod", "406"),
        (&format!("{PB},application/json"), "v1 Pod", "json"),
        (&format!("{PB},*/*"), "v1 Pod", "json"),
        (&format!("{PB},application/*"), "v1 Pod", "json"),
        (&format!("application/json,{PB}"), "json", "json"),
        (&format!("{PB};q=0.5,application/json"), "json", "json"),
        (&format!("{PB};q=0.5,application/json;q=0.4"), "v1 Pod", "json"),
        (&format!("{PB};q=zz,application/json"), "json", "json"),
        (&format!("*/*;q=0.1,{PB};q=0.05"), "v1 Pod", "json"),
        (&format!("application/cbor,{PB}"), "v1 Pod", "406"),
        (&format!("{PB};{TABLE}"), "406", "406"),
        (&format!("{PB};{TABLE},{PB}"), "v1 Pod", "406"),
        (
            &format!("{PB};{METADATA}"),
            "meta.k8s.io/v1 PartialObjectMetadata",
            "meta.k8s.io/v1 PartialObjectMetadata",
        ),
        (
            &format!("{PB};{METADATA},application/json;{METADATA}"),
            "meta.k8s.io/v1 PartialObjectMetadata",
            "meta.k8s.io/v1 PartialObjectMetadata",
        ),
        (&format!("application/json;{METADATA}"), "json metadata", "json metadata"),
        (&format!("{PB};{METADATA_LIST}"), "406", "500"),
        (&format!("{PB};{METADATA_LIST},application/json"), "406", "500"),
    ];
    for (accept, pod, widget) in table {
        assert_eq!(object(accept, &pods(), ProtobufSupport::Served), pod, "Pod: {accept}");
        assert_eq!(object(accept, &widgets(), ProtobufSupport::Served), widget, "Widget: {accept}");
    }
}

#[test]
fn lists_have_metadata_of_their_own() {
    for resource in [pods(), widgets()] {
        let metadata = "meta.k8s.io/v1 PartialObjectMetadata";
        assert_eq!(list(&format!("{PB};{METADATA_LIST}"), &resource), metadata);
        assert_eq!(list(&format!("{PB};{METADATA_LIST},application/json"), &resource), metadata);
        assert_eq!(list(&format!("application/json;{METADATA_LIST}"), &resource), "json metadata");
        assert_eq!(list(&format!("{PB};{METADATA},application/json"), &resource), "406");
    }
    assert_eq!(list(PB, &pods()), "v1 Pod");
}

#[test]
fn kinds_that_are_not_in_the_table_are_as_custom_ones() {
    let metrics = Resource::new("example.com", "v1", "things", "Thing");
    assert_eq!(object(PB, &metrics, ProtobufSupport::Served), "406");
    assert_eq!(
        object(&format!("{PB},application/json"), &metrics, ProtobufSupport::Served),
        "json"
    );
}

#[test]
fn failures_are_told_as_what_asks_for_nothing_special() {
    let (json, protobuf) =
        (StatusForm::Media(MediaType::Json), StatusForm::Media(MediaType::Protobuf));
    for (accept, form) in [
        ("", json),
        ("text/html", StatusForm::Raw),
        ("*/*", json),
        ("application/*", json),
        ("application/json;sv=v1", StatusForm::Raw),
        (PB, protobuf),
        (&format!("{PB},application/json"), protobuf),
        (&format!("application/json,{PB}"), json),
        (&format!("{PB};{METADATA}"), StatusForm::Raw),
        (&format!("{PB};{METADATA},application/json"), json),
        (&format!("{PB};{METADATA},{PB}"), protobuf),
    ] {
        assert_eq!(status_form(&accepting(accept), ProtobufSupport::Served), form, "{accept}");
    }
    assert_eq!(status_form(&accepting(PB), ProtobufSupport::Unknown), StatusForm::Raw);
}

/// As kube-apiserver 1.36 tells it, but for YAML.
#[test]
fn clients_that_accept_nothing_are_told_what_there_is() {
    let told = |accept: &str, resource: &Resource| {
        let status =
            negotiate(&accepting(accept), resource, Served::Collections, ProtobufSupport::Served)
                .unwrap_err();
        (status.message, status.sends_empty_details)
    };
    let only = "only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf";
    let all = "406: Not Acceptable\n\nAvailable representations: application/json, \
               application/vnd.kubernetes.protobuf, application/json;stream=watch, \
               application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(told("text/html", &pods()), (all.to_owned(), true));
    assert_eq!(told("text/html", &widgets()), (only.to_owned(), false));
    assert_eq!(told("application/json;as=Foo", &pods()), (only.to_owned(), false));
    let version = require_json(&accepting(PB)).unwrap_err();
    assert_eq!(
        version.message,
        "406: Not Acceptable\n\nAvailable representations: application/json"
    );
}

#[test]
fn lists_and_objects_are_told_apart_by_their_go_types() {
    let message = |accept: &str, resource: &Resource| {
        let negotiated =
            negotiate(&accepting(accept), resource, Served::Collections, ProtobufSupport::Served);
        let (object, list) = negotiated
            .map(|it| (it.object(&Parameters::default()), it.list(&Parameters::default())))
            .unwrap();
        object.err().or_else(|| list.err()).unwrap().message
    };
    let list = format!("application/json;{METADATA_LIST}");
    let roles = Resource::new("rbac.authorization.k8s.io", "v1", "roles", "Role");
    for (resource, go_type) in
        [(pods(), "core.Pod"), (roles, "rbac.Role"), (widgets(), "unstructured.Unstructured")]
    {
        let expected = match resource.custom {
            true => "content is not a list".to_owned(),
            false => format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{go_type})"
            ),
        };
        assert_eq!(message(&list, &resource), expected);
        assert_eq!(
            message(&format!("application/json;{METADATA}"), &resource),
            format!(
                "you requested PartialObjectMetadata, but the requested object is a list (*{go_type}List)"
            )
        );
    }
}

#[test]
fn rows_have_what_is_asked_for_of_their_objects() {
    let negotiated = negotiate(
        &accepting(&format!("application/json;{TABLE}")),
        &pods(),
        Served::Collections,
        ProtobufSupport::Served,
    )
    .unwrap();
    let include = |query: &str| negotiated.list(&Parameters::parse(query).unwrap());
    for (query, include_object) in [
        ("", Include::Metadata),
        ("includeObject=Metadata", Include::Metadata),
        ("includeObject=None", Include::None),
        ("includeObject=Object", Include::Object),
    ] {
        let form = Form(FormKind::Json(Shape::Table(MetaVersion::V1, include_object)));
        assert_eq!(include(query), Ok(form), "{query}");
    }
    let refused = include("includeObject=Foo").unwrap_err();
    assert_eq!(
        refused.message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": \
         must be 'Metadata', 'Object', 'None', or empty"
    );
}

#[test]
fn discovery_is_aggregated_where_it_is_asked_for_and_there_is_such_a_document() {
    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const BETA: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let choice = |accept: &str, aggregates| {
        discovery(&accepting(accept), aggregates, ProtobufSupport::Served)
            .map(|(_, version)| version)
            .map_err(|status| status.code)
    };
    assert_eq!(choice(V2, true), Ok(Some(DiscoveryVersion::V2)));
    assert_eq!(choice(BETA, true), Ok(Some(DiscoveryVersion::V2Beta1)));
    assert_eq!(
        choice(&format!("{V2},{BETA},application/json"), true),
        Ok(Some(DiscoveryVersion::V2))
    );
    assert_eq!(choice(V2, false), Err(406));
    assert_eq!(choice(&format!("{V2},application/json"), false), Ok(None));
    assert_eq!(choice("text/html", true), Err(406));
    assert_eq!(choice("", true), Ok(None));
}

#[test]
fn people_get_indented_json() {
    let wants = |agent: &str, accept: &str, query: &str| {
        let mut headers = accepting(accept);
        headers.insert(header::USER_AGENT, agent.parse().unwrap());
        wants_indented(&headers, query)
    };
    assert!(wants("curl/8", "*/*", ""));
    assert!(wants("x", "*/*", "pretty=true"));
    assert!(wants("x", "application/json;pretty=1", ""));
    assert!(!wants("curl/8", "*/*", "pretty=0"));
    assert!(!wants("x", "*/*", "notpretty=true"));
    assert!(!wants("x", "*/*", ""));
}

#[test]
fn servers_without_protobuf_do_with_json() {
    let both = format!("{PB},application/json");
    for (support, alone, either) in
        [(ProtobufSupport::Unknown, "406", "json"), (ProtobufSupport::Ignored, "json", "json")]
    {
        assert_eq!(object(PB, &pods(), support), alone, "{support:?}");
        assert_eq!(object(&both, &pods(), support), either, "{support:?}");
    }
}
