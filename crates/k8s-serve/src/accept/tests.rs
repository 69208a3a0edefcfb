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
    short(negotiate(&accepting(accept), resource, support).and_then(Negotiated::object))
}

fn list(accept: &str, resource: &Resource) -> String {
    short(
        negotiate(&accepting(accept), resource, ProtobufSupport::Served).and_then(Negotiated::list),
    )
}

fn short(form: Result<Form, Status>) -> String {
    match form {
        Ok(Form(FormKind::Json(Representation::Full))) => "json".to_owned(),
        Ok(Form(FormKind::Json(Representation::Metadata))) => "json metadata".to_owned(),
        Ok(Form(FormKind::Protobuf { object, .. })) => object.to_string(),
        Err(status) => status.code.to_string(),
    }
}

/// All of it as kube-apiserver 1.36 answers, but for YAML and `Table`, which are not served here.
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
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "json", "json"),
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
        (&format!("{PB};{METADATA_LIST}"), "406", "406"),
        (&format!("{PB};{METADATA_LIST},application/json"), "406", "406"),
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
    for (accept, media) in [
        ("", MediaType::Json),
        ("text/html", MediaType::Json),
        ("*/*", MediaType::Json),
        (PB, MediaType::Protobuf),
        (&format!("{PB},application/json"), MediaType::Protobuf),
        (&format!("application/json,{PB}"), MediaType::Json),
        (&format!("{PB};{METADATA}"), MediaType::Json),
        (&format!("{PB};{METADATA},application/json"), MediaType::Json),
        (&format!("{PB};{METADATA},{PB}"), MediaType::Protobuf),
    ] {
        assert_eq!(status_media(&accepting(accept), ProtobufSupport::Served), media, "{accept}");
    }
    assert_eq!(status_media(&accepting(PB), ProtobufSupport::Unknown), MediaType::Json);
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
