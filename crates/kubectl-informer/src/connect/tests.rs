//! Flags, files and environments.

use std::fs;

use tempfile::TempDir;

use super::*;

const GOOD: &str = "apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: one
  cluster: {server: 'https://one.example:6443'}
- name: two
  cluster: {server: 'https://two.example:6443'}
users:
- name: me
  user: {token: s3cret}
contexts:
- name: dev
  context: {cluster: one, user: me, namespace: web}
- name: prod
  context: {cluster: two, user: me}
";

fn written(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, text).unwrap();
    (folder, file)
}

fn with_file(file: &Path) -> ConnectionArgs {
    ConnectionArgs { kubeconfig: Some(file.to_owned()), ..ConnectionArgs::default() }
}

#[tokio::test]
async fn a_namespace_that_cannot_be_one_names_the_flag() {
    let (_folder, file) = written(GOOD);
    let args = ConnectionArgs { namespace: Some("a/b".to_owned()), ..with_file(&file) };
    let error = args.config(&Environment::default()).await.unwrap_err().to_string();
    assert!(error.starts_with("--namespace: \"a/b\" is no name of a namespace"), "{error}");
}

#[tokio::test]
async fn the_current_context_is_used_and_flags_override_it() {
    let (_folder, file) = written(GOOD);
    let config = with_file(&file).config(&Environment::default()).await.unwrap();
    assert_eq!(config.cluster_url, "https://one.example:6443/");
    assert_eq!(config.default_namespace, "web");
    assert!(!config.default_retry);

    let args = ConnectionArgs {
        context: Some("prod".to_owned()),
        namespace: Some("shop".to_owned()),
        server: Some("three.example:6443".to_owned()),
        impersonate: Some("eve".to_owned()),
        impersonate_groups: vec!["devs".to_owned()],
        insecure_skip_tls_verify: true,
        ..with_file(&file)
    };
    let config = args.config(&Environment::default()).await.unwrap();
    assert_eq!(config.cluster_url, "https://three.example:6443/");
    assert_eq!(config.default_namespace, "shop");
    assert_eq!(config.auth_info.impersonate.as_deref(), Some("eve"));
    assert!(config.accept_invalid_certs);
}

#[tokio::test]
async fn a_missing_kubeconfig_is_named() {
    let file = PathBuf::from("/nowhere/kube.yaml");
    let error = with_file(&file).config(&Environment::default()).await.unwrap_err();
    assert!(
        error.to_string().starts_with("cannot read the kubeconfig /nowhere/kube.yaml: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_malformed_kubeconfig_is_named_and_never_quoted() {
    for text in [
        "clusters: {token: s3cret",
        "clusters:\n- nonsense s3cret\n",
        "kind: [s3cret]\n",
        "- s3cret",
    ] {
        let (_folder, file) = written(text);
        let error = with_file(&file).config(&Environment::default()).await.unwrap_err();
        assert!(matches!(error, ConnectError::Malformed { .. }), "{error:?}");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(file.to_str().unwrap()), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[tokio::test]
async fn wrong_names_are_answered_with_the_right_ones() {
    let (_folder, file) = written(GOOD);
    for (args, expected) in [
        (
            ConnectionArgs { context: Some("x".into()), ..with_file(&file) },
            "no context \"x\"; it has dev, prod",
        ),
        (
            ConnectionArgs { cluster: Some("x".into()), ..with_file(&file) },
            "no cluster \"x\"; it has one, two",
        ),
        (ConnectionArgs { user: Some("x".into()), ..with_file(&file) }, "no user \"x\"; it has me"),
        (ConnectionArgs { server: Some("http://a b".into()), ..with_file(&file) }, "--server: "),
        (
            ConnectionArgs { impersonate_groups: vec!["g".into()], ..with_file(&file) },
            "together with --as",
        ),
    ] {
        let error = args.config(&Environment::default()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let (_folder, file) = written(&GOOD.replace("current-context: dev\n", ""));
    let error = with_file(&file).config(&Environment::default()).await.unwrap_err().to_string();
    assert!(error.contains("--context, of dev, prod"), "{error}");
}

#[tokio::test]
async fn the_environment_is_searched_as_kubectl_does_it() {
    let (folder, file) = written(GOOD);
    let args = ConnectionArgs::default();

    let list = std::env::join_paths([Path::new("/nowhere/a"), &file]).unwrap();
    let environment = Environment { kubeconfig: Some(list), ..Environment::default() };
    assert_eq!(args.config(&environment).await.unwrap().default_namespace, "web");

    fs::create_dir(folder.path().join(".kube")).unwrap();
    fs::copy(&file, folder.path().join(".kube/config")).unwrap();
    let environment =
        Environment { home: Some(folder.path().to_owned()), ..Environment::default() };
    assert_eq!(args.config(&environment).await.unwrap().default_namespace, "web");

    let empty = Environment { home: Some(PathBuf::from("/nowhere")), ..Environment::default() };
    let error = args.config(&empty).await.unwrap_err().to_string();
    for expected in ["/nowhere/.kube/config does not exist", "--kubeconfig", "demo"] {
        assert!(error.contains(expected), "{error}");
    }
    let server = ConnectionArgs { server: Some("http://127.0.0.1:8001".to_owned()), ..args };
    assert_eq!(server.config(&empty).await.unwrap().cluster_url, "http://127.0.0.1:8001/");
}

#[test]
fn tokens_stay_out_of_debug_output() {
    let args = ConnectionArgs {
        token: Some(Token::from("s3cret".to_owned())),
        ..ConnectionArgs::default()
    };
    assert!(!format!("{args:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_token_that_no_header_may_hold_is_an_error_that_does_not_show_it() {
    let (_folder, file) = written(&GOOD.replace("token: s3cret", r#"token: "s3cret\n""#));
    let error = with_file(&file).config(&Environment::default()).await.unwrap_err();
    assert_eq!(error, ConnectError::UnusableToken);
    let (_folder, file) = written(GOOD);
    let args = ConnectionArgs { token: Some("s3cret\nx".to_owned().into()), ..with_file(&file) };
    let error = args.config(&Environment::default()).await.unwrap_err();
    assert_eq!(error, ConnectError::UnusableToken);
    assert!(!error.to_string().contains("s3cret"), "{error}");
}
