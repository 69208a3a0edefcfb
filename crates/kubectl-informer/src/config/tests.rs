use std::io::Write;
use std::time::Duration;

use tempfile::NamedTempFile;

use super::*;
use crate::args::{Command as Subcommand, ServeArgs};

const HEAD: &str = "apiVersion: serve.informer/v1alpha1\nkind: ServeConfiguration\n";

fn parse(text: &str, flags: &[&str]) -> Result<ServeArgs, ArgsError> {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let line = ["x", "serve", "--config", path];
    let line = line.iter().chain(flags).map(OsString::from);
    match Args::of_command_line(line)?.command {
        Subcommand::Serve(serve) => Ok(*serve),
        other => panic!("{other:?}"),
    }
}

/// The error without the path of the file.
fn error(text: &str) -> String {
    match parse(text, &[]).unwrap_err() {
        ArgsError::Config(ConfigError { line, message, .. }) => match line {
            Some(line) => format!("{line}: {message}"),
            None => message,
        },
        ArgsError::CommandLine(error) => panic!("{error}"),
    }
}

#[test]
fn every_flag_of_serve_can_be_said_in_the_file_and_is_of_a_known_kind() {
    let command = command();
    let serve = Args::command().find_subcommand("serve").unwrap().clone();
    let fields: Vec<String> = args(&command).map(field_name).collect();
    for flag in serve.get_arguments().filter_map(Arg::get_long) {
        let is_field = args(&command).any(|it| it.get_long() == Some(flag));
        assert!(is_field || NOT_IN_FILES.contains(&flag), "--{flag}");
    }
    for name in ["maxConnections", "addr", "kubeconfig", "for", "serveStale", "requestTimeout"] {
        assert!(fields.iter().any(|it| it == name), "{name} of {fields:?}");
    }
    assert!(!fields.iter().any(|it| it == "token"));
}

#[test]
fn the_example_is_valid() {
    let serve = parse(include_str!("example.yaml"), &[]).unwrap();
    assert_eq!(serve.addr.to_string(), "0.0.0.0:8443");
    assert_eq!((serve.cache.len(), serve.max_memory), (3, 2 << 30));
    assert_eq!(serve.max_staleness, Duration::from_secs(90));
    assert_eq!(serve.tls_cert_file.as_deref(), Some(Path::new("/etc/informer/tls/tls.crt")));
}

#[test]
fn json_is_as_good_and_flags_win() {
    let text = r#"{"apiVersion":"serve.informer/v1alpha1","kind":"ServeConfiguration",
        "maxConnections":7,"cache":["pods","nodes"],"serveStale":true,"allow":"pods,nodes"}"#;
    let serve = parse(text, &[]).unwrap();
    assert_eq!((serve.max_connections, serve.cache.len()), (7, 2));
    assert!(serve.serve_stale);
    assert_eq!(serve.allow, ["pods", "nodes"]);
    let serve = parse(text, &["--max-connections=8", "--cache", "leases"]).unwrap();
    assert_eq!((serve.max_connections, serve.cache), (8, vec!["leases".to_owned()]));
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_is_expected() {
    let mut said = String::new();
    for fields in [
        "maxConnectionz: 7",
        "max-connections: 7",
        "colour: red",
        "token: hunter2",
        "maxConnections: many",
        "maxConnections: -1",
        "maxConnections: [7]",
        "maxMemory: 1.5Gi",
        "idleTimeout: soon",
        "maxStaleness: 10s",
        "serveStale: 1",
        "managedFields: perhaps",
        "addr: nowhere",
        "cache: {pods: true}",
        "cache: [\"pods,nodes\"]",
        "tlsCertFile: a.pem",
        "addr: 127.0.0.1:1\naddr: 127.0.0.1:2",
        "kind: Other",
        "addr: [",
    ] {
        let text = match fields.strip_prefix("kind") {
            Some(_) => format!("apiVersion: serve.informer/v1alpha1\n{fields}\n"),
            None => format!("{HEAD}\n{fields}\n"),
        };
        said.push_str(&format!("{}\n", error(&text)));
    }
    for text in ["", "[]", "addr: 127.0.0.1:1\n", "kind: ServeConfiguration\n"] {
        said.push_str(&format!("{}\n", error(text)));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let line = ["x", "serve", "--config", "/nowhere/serve.yaml"].map(OsString::from);
    let error = Args::of_command_line(line).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/serve.yaml: cannot be read: "), "{error}");
}
