//! What errors say of mistakes that are easily made, and what they must not say (G31, G34).

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

use std::convert::Infallible;
use std::sync::Arc;

use common::{config_map, soon, status_where, widgets_crd};
use http_body_util::Full;
use informer::discovery::Discovery;
use informer::source::KubeSource;
use informer::{
    Error, InformerOptions, InformerState, Resource, Scope, SharedInformer, SharedInformerFactory,
};
use informer_testkit::TestServer;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Client, Config};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

run_tests! {
    on_both_runtimes:
        g31_an_error_that_is_no_status_is_quoted,
        g34_what_may_be_an_object_or_a_credential_is_not_quoted,
        g31_an_untrusted_authority_is_no_wrong_address,
        g31_tls_to_a_port_without_tls_says_so,
        g31_a_wrong_plural_is_named_with_what_may_have_been_meant,
        a_namespace_that_cannot_be_one_is_an_error_before_anything_is_asked,
        another_name_than_the_plural_is_an_error_that_says_the_plural,
        no_suggestion_is_made_twice,
        a_kind_that_is_sent_as_metadata_says_that_its_api_version_is_another;
}

/// A client of a server that answers everything so.
fn answering(code: u16, body: impl Into<String>) -> Client {
    let body = body.into();
    let answer = move |_: http::Request<kube::client::Body>| {
        let response =
            http::Response::builder().status(code).body(Full::from(body.clone())).unwrap();
        std::future::ready(Ok::<_, Infallible>(response))
    };
    Client::new(tower::service_fn(answer), "default")
}

/// The first error of an informer that asks through `client`.
async fn first_error(client: &Client) -> String {
    let factory = SharedInformerFactory::builder(client.clone()).build();
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    let status = status_where(&informer, |status| !status.recent_errors.is_empty()).await;
    status.recent_errors[0].message.clone()
}

/// What the informer and what discovery says.
async fn both_errors(client: &Client) -> [String; 2] {
    [first_error(client).await, Discovery::fetch(client).await.unwrap_err().to_string()]
}

async fn g31_an_error_that_is_no_status_is_quoted() {
    // What a port that speaks TLS says to a client that does not.
    let client = answering(400, "Client sent an HTTP request to an HTTPS server.\n");
    for error in both_errors(&client).await {
        assert!(
            error.contains("Bad Request, with the body \"Client sent an HTTP request to an"),
            "{error}"
        );
        assert!(error.contains("`https://`"), "{error}");
    }
    let page = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>";
    for error in both_errors(&answering(502, page)).await {
        assert!(error.contains("<head><title>502 Bad Gateway</title></head>"), "{error}");
        assert!(!error.contains("https://"), "{error}");
    }
    for error in both_errors(&answering(503, "down ".repeat(10_000))).await {
        assert!(error.contains("down down") && error.len() < 500, "{error}");
    }
    for error in both_errors(&answering(404, "404 page not found\n")).await {
        assert!(!error.contains("page not found"), "it says nothing: {error}");
    }
}

async fn g34_what_may_be_an_object_or_a_credential_is_not_quoted() {
    for body in [
        r#"{"kind":"Secret","data":{"password":"hunter2"}}"#,
        r#" [{"kind":"Secret","data":{"password":"hunter2"}}]"#,
        r#"{"kind":"Secret","data":{"password":"hunter2"#,
        "k8s\0\n\u{f}\n\u{2}v1\u{12}\u{6}Secret\u{12}\u{7}hunter2",
        "bad request: GET /api/v1/configmaps\nAuthorization: Bearer hunter2\n",
    ] {
        for error in both_errors(&answering(500, body)).await {
            assert!(!error.contains("hunter2"), "{error}");
            assert!(error.contains("500") && error.contains("Internal Server Error"), "{error}");
        }
    }
}

async fn g31_an_untrusted_authority_is_no_wrong_address() {
    let pem = include_bytes!("server.pem");
    let chain = vec![CertificateDer::from_pem_slice(pem).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(pem).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(
        config.with_no_client_auth().with_single_cert(chain, key).unwrap(),
    ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            _ = acceptor.accept(stream).await;
        }
    });
    for error in both_errors(&client_of(&url)).await {
        assert!(
            error.contains("`certificate-authority`") && error.contains("is not trusted"),
            "{error}"
        );
        assert!(!error.contains("address right"), "{error}");
    }
    serving.abort();
    _ = serving.await;
}

async fn g31_tls_to_a_port_without_tls_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // As a server of HTTP without TLS does.
            _ = stream.read(&mut [0; 16]).await;
            _ = tokio::io::AsyncWriteExt::write_all(
                &mut stream,
                b"HTTP/1.1 400 Bad Request\r\n\r\n",
            )
            .await;
        }
    });
    for error in both_errors(&client_of(&url)).await {
        assert!(
            error.contains("does not speak TLS") && !error.contains("address right"),
            "{error}"
        );
    }
    serving.abort();
    _ = serving.await;
}

/// A client that trusts another authority than the server's.
fn client_of(url: &str) -> Client {
    let mut config = Config::new(url.parse().unwrap());
    let authority =
        CertificateDer::from_pem_slice(include_bytes!("another_authority.pem")).unwrap();
    config.root_cert = Some(vec![authority.to_vec()]);
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

#[derive(kube::CustomResource, Debug, Clone, serde::Deserialize, serde::Serialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    plural = "widgetries",
    namespaced,
    schema = "disabled"
)]
struct WidgetSpec {
    size: u32,
}

async fn g31_a_wrong_plural_is_named_with_what_may_have_been_meant() {
    let server = TestServer::start().await.unwrap();
    server.cluster().create(&widgets_crd()).unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    let widgets = factory.informer::<Widget>().unwrap();
    // Another kind, with a similar name.
    let gadget = Resource {
        plural: "widget".to_owned(),
        kind: "Gadget".to_owned(),
        ..Resource::of::<Widget>()
    };
    let gadgets = factory.dynamic(gadget, InformerOptions::new()).unwrap();
    factory.start();
    let unavailable =
        |status: &informer::Status| matches!(status.state, InformerState::Unavailable { .. });
    for (status, plural) in [
        (status_where(&widgets, unavailable).await, "\"widgetries\""),
        (status_where(&gadgets, unavailable).await, "\"widget\""),
    ] {
        let text = status.to_string();
        assert!(
            text.contains(plural) && text.contains("did you mean widgets.v1.example.com?"),
            "{text}"
        );
    }
}

async fn a_namespace_that_cannot_be_one_is_an_error_before_anything_is_asked() {
    let server = TestServer::start().await.unwrap();
    let builder = || SharedInformerFactory::builder(server.client().unwrap());
    let factory = builder().namespace("kube-system/secrets").build();
    let error = factory.informer::<ConfigMap>().unwrap_err();
    assert_eq!(error, Error::InvalidNamespace { namespace: "kube-system/secrets".to_owned() });
    let options = InformerOptions::<ConfigMap>::new;
    assert!(factory.informer_with(options().namespace("default")).is_ok());
    assert!(factory.informer_with(options().all_namespaces()).is_ok());
    let error = builder().build().informer_with(options().namespace("Default")).unwrap_err();
    assert!(error.to_string().contains("\"Default\" is no name of a namespace"), "{error}");
    assert!(factory.informer::<Namespace>().is_ok(), "it means nothing to what has none");

    // A source used alone tells it as the failure of its requests.
    let (resource, scope) = (Resource::of::<ConfigMap>(), Scope::namespace("a b"));
    let source = KubeSource::new(server.client().unwrap(), resource.clone(), scope);
    let alone = SharedInformer::new(source, resource, options());
    alone.start();
    let status = status_where(&alone, |status| !status.recent_errors.is_empty()).await;
    assert!(
        status.recent_errors[0].message.contains("\"a b\" is no name of a namespace"),
        "{status:?}"
    );
    assert!(server.requests().is_empty());
}

async fn another_name_than_the_plural_is_an_error_that_says_the_plural() {
    let server = TestServer::start().await.unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    for (group, name, plural) in [
        ("", "cm", "configmaps.v1? Its plural is needed here, \"configmaps\""),
        ("core", "ConfigMap", "configmaps.v1? Its plural is needed here, \"configmaps\""),
        ("apps", "deploy", "deployments.v1.apps? Its plural is needed here, \"deployments\""),
        ("apps", "deployment", "deployments.v1.apps? Its plural is needed here, \"deployments\""),
    ] {
        let error = factory.for_resource(group, "v1", name).await.unwrap_err();
        assert!(error.to_string().contains(plural), "{error}");
        // It would be waited for in vain.
        let error =
            soon(factory.for_resource(group, "v1", name).when_installed()).await.unwrap_err();
        assert!(error.to_string().contains(plural), "{error}");
    }
    let error = factory.for_resource("", "v1", "deploy").await.unwrap_err();
    assert!(
        error.to_string().contains("did you mean deployments.v1.apps?"),
        "in another group: {error}"
    );
}

async fn no_suggestion_is_made_twice() {
    let server = TestServer::start().await.unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    for (group, version, name) in
        [("", "v1", "deployments"), ("apps", "v2", "deployment"), ("x", "v1", "pods")]
    {
        let Error::UnknownResource(unknown) =
            factory.for_resource(group, version, name).await.unwrap_err()
        else {
            panic!("it is unknown")
        };
        let mut once = unknown.suggestions.clone();
        once.sort();
        once.dedup();
        assert_eq!((once.len(), once.is_empty()), (unknown.suggestions.len(), false), "{unknown}");
    }
}

async fn a_kind_that_is_sent_as_metadata_says_that_its_api_version_is_another() {
    let server = TestServer::start().await.unwrap();
    server.cluster().create(&config_map("a", "1")).unwrap();
    let resource = Resource::of::<ConfigMap>();
    for format in [informer::source::WireFormat::Json, informer::source::WireFormat::Auto] {
        let source = KubeSource::new(server.client().unwrap(), resource.clone(), Scope::all())
            .projection(informer::source::Projection::Metadata)
            .wire_format(format);
        let alone =
            SharedInformer::<ConfigMap>::new(source, resource.clone(), InformerOptions::new());
        alone.start();
        let error = soon(alone.synced()).await.unwrap_err().to_string();
        assert!(error.contains("apiVersion") && error.contains("meta.k8s.io/v1"), "{error}");
    }
}
