//! Values that make no sense are refused, and the schema knows the fields that the program knows.

use anyhow::{Context, ensure};
use clap::CommandFactory;
use kubectl_informer::Args;
use serde_json::Value;

use crate::helm::{Case, Helm, chart, object, objects};

/// The least that must be said.
const BASE: &str = "{image: {repository: kubectl-informer}, tls: {existingSecret: t}";

/// What is added to the base, and what must be said of it.
const REFUSED: [(&str, &[&str]); 51] = [
    ("replicas: -1", &["/replicas", "minimum: got -1, want 0"]),
    ("replicas: two", &["/replicas", "want integer"]),
    ("podDisruptionBudget: {minAvailable: 2}", &["minAvailable (2)", "replicas (2)"]),
    ("podDisruptionBudget: {minAvailable: 51%}", &["minAvailable (51%), rounded up to 2", "(2)"]),
    ("podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}", &["/podDisruptionBudget"]),
    ("podDisruptionBudget: {minAvailable: 100%}", &["/podDisruptionBudget/minAvailable"]),
    ("podDisruptionBudget: {maxUnavailable: 0}", &["/podDisruptionBudget"]),
    ("tls: {existingSecret: \"\"}", &["/tls", "existingSecret", "certManager/enabled"]),
    ("tls: {existingSecret: t, certManager: {enabled: true, issuerRef: {name: x}}}", &["/tls"]),
    ("tls: {existingSecret: \"\", certManager: {enabled: true}}", &["issuerRef/name"]),
    (
        "tls: {certManager: {enabled: true, issuerRef: {name: x}, renewBefore: 3000h}}",
        &["renewBefore (3000h)"],
    ),
    ("image: {repository: \"\"}", &["/image/repository"]),
    ("image: {repository: kubectl-informer, digest: sha256:abc}", &["/image/digest"]),
    ("config: {maxMemmory: 1Gi}", &["/config", "'maxMemmory' not allowed"]),
    ("config: {unprotectedApi: true}", &["/config", "'unprotectedApi' not allowed"]),
    ("config: {maxMemory: 1.5Gi}", &["/config/maxMemory"]),
    ("config: {maxMemory: 1Gi}", &["config.maxMemory (1Gi)", "resources.limits.memory (1Gi)"]),
    (
        "config: {maxMemory: 1073741824}",
        &["maxMemory (1073741824)", "resources.limits.memory (1Gi)"],
    ),
    ("config: {maxStaleness: 1m14s}", &["config.maxStaleness (1m14s)", "75s"]),
    ("config: {idleTimeout: soon}", &["/config/idleTimeout"]),
    ("config: {maxConnections: 0}", &["/config/maxConnections"]),
    ("cache: {resources: []}", &["/cache"]),
    ("cache: {resources: [{group: \"\", resource: \"*\"}]}", &["/cache/resources/0/resource"]),
    ("cache: {resources: [{group: \"*\", resource: pods}]}", &["/cache/resources/0/group"]),
    (
        "cache: {resources: [{group: core, resource: pods}]}",
        &["the group of pods is \"\": \"core\" is none"],
    ),
    ("cache: {resources: [{resource: pods}]}", &["/cache/resources/0", "group"]),
    (
        "cache: {everything: true, onDemand: [{group: \"\", resource: events}]}",
        &["/cache/onDemand"],
    ),
    ("networkPolicy: {enabled: true, from: []}", &["/networkPolicy/from"]),
    ("metrics: {readers: [{kind: ServiceAccount, name: prometheus}]}", &["namespace"]),
    ("networkPolicy: {apiServer: {cidrs: [10.0.0.1/99]}}", &["/networkPolicy/apiServer/cidrs/0"]),
    ("networkPolicy: {apiServer: {cidrs: [10.0.0.256/9]}}", &["/networkPolicy/apiServer/cidrs/0"]),
    ("networkPolicy: {apiServer: {cidrs: ['fd00::/129']}}", &["/networkPolicy/apiServer/cidrs/0"]),
    (
        "networkPolicy: {from: [{ipBlock: {cidr: 10.0.0.0/33}}]}",
        &["/networkPolicy/from/0/ipBlock/cidr"],
    ),
    ("networkPolicy: {dns: [{ipBlock: {}}]}", &["/networkPolicy/dns/0/ipBlock", "cidr"]),
    ("labels: {app.kubernetes.io/name: x}", &["/labels/app.kubernetes.io~1name"]),
    ("labels: {helm.sh/chart: x}", &["/labels/helm.sh~1chart"]),
    ("podLabels: {app.kubernetes.io/instance: x}", &["/podLabels/app.kubernetes.io~1instance"]),
    ("annotations: {checksum/config: x}", &["/annotations/checksum~1config"]),
    ("podAnnotations: {checksum/config: x}", &["/podAnnotations/checksum~1config"]),
    (
        "metrics: {serviceMonitor: {labels: {app.kubernetes.io/name: x}}}",
        &["/metrics/serviceMonitor/labels/app.kubernetes.io~1name"],
    ),
    ("statusPage: {readers: [{kind: User, name: jane, apiGroup: x}]}", &["/readers/0/apiGroup"]),
    ("serviceAccount: {create: false}", &["/serviceAccount/name"]),
    ("service: {externalTrafficPolicy: Local}", &["/service", "externalTrafficPolicy"]),
    ("service: {type: LoadBalancer, externalTrafficPolicy: Some}", &["/externalTrafficPolicy"]),
    ("runAsUser: 0", &["/runAsUser", "minimum"]),
    ("port: 443", &["/port", "minimum"]),
    ("resources: null", &["missing property 'resources'"]),
    ("config: null", &["missing property 'config'"]),
    ("podLabels: null", &["missing property 'podLabels'"]),
    ("verbosity: 4", &["/verbosity"]),
    ("replicaCount: 3", &["'replicaCount' not allowed"]),
];

/// Fields of the configuration that the chart sets, or that make no sense in a cluster.
const NOT_IN_VALUES: [&str; 22] = [
    "addr",
    "allow",
    "cache",
    "tlsCertFile",
    "tlsPrivateKeyFile",
    "clientCaFile",
    "auditLog",
    "shutdownSpread",
    // With TLS every name is answered, and access control is not to be switched off.
    "allowedHosts",
    "unprotectedApi",
    // A Pod does not end by itself, and has its own account.
    "for",
    "kubeconfig",
    "context",
    "cluster",
    "user",
    "server",
    "as",
    "asGroup",
    "insecureSkipTlsVerify",
    // The roles are for the whole cluster.
    "namespace",
    // No fields of the file.
    "config",
    "check",
];

#[test]
fn values_that_make_no_sense_are_refused_in_words() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    ensure!(helm.template_of(&format!("{BASE}}}"))?.success, "the base itself");
    let mut failures = Vec::new();
    for (values, words) in REFUSED {
        // Later fields win.
        let key = values.split(':').next().unwrap_or_default();
        let base = match key {
            "image" => "{tls: {existingSecret: t}",
            "tls" => "{image: {repository: kubectl-informer}",
            _ => BASE,
        };
        let printed = helm.template_of(&format!("{base}, {values}}}"))?;
        let text = printed.all();
        if printed.success {
            failures.push(format!("{values}: accepted"));
        } else if let Some(word) = words.iter().find(|it| !text.contains(**it)) {
            failures.push(format!("{values}: no {word:?} in {text}"));
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

#[test]
fn the_schema_has_every_field_that_serve_reads_from_its_file() -> anyhow::Result<()> {
    let schema = std::fs::read_to_string(chart().join("values.schema.json"))?;
    let schema: Value = serde_json::from_str(&schema)?;
    let known = schema["properties"]["config"]["properties"].as_object().context("no config")?;
    let mut all = Args::command();
    all.build();
    let serve = all.find_subcommand("serve").context("no serve")?;
    let flags = serve.get_arguments().filter_map(|it| it.get_long());
    let fields: Vec<String> = flags
        .filter(|it| !["help", "version", "verbose", "token"].contains(it))
        .map(camel_case)
        .collect();
    for field in &fields {
        let is_known = known.contains_key(field) != NOT_IN_VALUES.contains(&&**field);
        ensure!(is_known, "{field} belongs either into values.schema.json or into NOT_IN_VALUES");
    }
    for field in known.keys() {
        ensure!(fields.contains(field), "serve knows no {field}");
    }
    Ok(())
}

#[test]
fn serve_accepts_every_configuration_that_is_rendered() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    for case in Case::all()? {
        let rendered = objects(&helm.template(&case.values(), &[])?.clean(&case.name)?)?;
        let config = object(&rendered, "ConfigMap", "-config")?;
        let config = config["data"]["serve.yaml"].as_str().context("no serve.yaml")?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("serve.yaml");
        std::fs::write(&file, config)?;
        let line = ["x".into(), "serve".into(), "--config".into(), file.into_os_string()];
        Args::of_command_line(line).with_context(|| format!("{}: {config}", case.name))?;
    }
    Ok(())
}

fn camel_case(flag: &str) -> String {
    let mut words = flag.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at(1);
        name + &head.to_ascii_uppercase() + tail
    })
}
