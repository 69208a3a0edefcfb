//! What the compiler says of mistakes that types can see: our words, not its own, which change with
//! its version.

use std::process::Command;

use anyhow::{Context, ensure};
use informer_tests::examples::{Libraries, libraries};

const PRELUDE: &str = "
    use informer::{InformerOptions, Lister, SharedInformer, SharedInformerFactory};
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::DynamicObject;
    pub struct Own;
";

/// A mistake, and what the compiler says of it.
const MISTAKES: [(&str, &[&str]); 6] = [
    (
        "pub fn select(pods: &Lister<Own>) { let _ = pods.select(\"app=web\"); }",
        &["error[E0277]", "the labels of `Own` cannot be read", "implement `informer::HasLabels`"],
    ),
    (
        "pub async fn index(pods: &SharedInformer<Own>) { let _ = pods.add_label_index(\"app\").await; }",
        &["error[E0277]", "the labels of `Own` cannot be read", "implement `informer::HasLabels`"],
    ),
    (
        "pub fn own(factory: &SharedInformerFactory) { let _ = factory.informer::<Own>(); }",
        &["the type `Own` alone does not say which resource it is", "factory.informer_as::<Own>("],
    ),
    (
        "pub fn dynamic(factory: &SharedInformerFactory) { let _ = factory.informer::<DynamicObject>(); }",
        &[
            "the type `DynamicObject` alone does not say which resource it is",
            "factory.for_resource(\"apps\", \"v1\", \"deployments\")",
        ],
    ),
    (
        "pub fn metadata() -> InformerOptions<Pod> { InformerOptions::new().metadata_only() }",
        &["`Pod` does not decode from metadata alone", "factory.metadata::<Kind>("],
    ),
    (
        "pub fn lazily() -> InformerOptions<informer::Lazy<Pod>> { InformerOptions::new().metadata_only() }",
        &["`Pod` does not decode from metadata alone", "factory.metadata::<Kind>("],
    ),
];

/// The same, done right.
const RIGHT: &str = "
    impl informer::HasLabels for Own {
        fn label(&self, _: &str) -> Option<&str> { None }
    }
    impl informer::MetadataOnly for Own {}
    pub fn select(pods: &Lister<Own>) { let _ = pods.select(\"app=web\"); }
    pub fn kind(factory: &SharedInformerFactory) { let _ = factory.informer::<Pod>(); }
    pub fn metadata() -> InformerOptions<Own> {
        InformerOptions::of(informer::Representation::custom(\"own\", |_| Ok(Own))).metadata_only()
    }
    pub fn dynamic() -> InformerOptions<DynamicObject> { InformerOptions::new().metadata_only() }
";

#[test]
fn the_compiler_says_what_to_do_instead() -> anyhow::Result<()> {
    let libraries = libraries()?;
    let right = compile(&libraries, RIGHT)?;
    ensure!(!right.contains("error"), "{right}");
    for (mistake, phrases) in MISTAKES {
        let said = compile(&libraries, mistake)?;
        for phrase in phrases {
            ensure!(
                said.contains(phrase),
                "{phrase:?} is not in what is said of {mistake}\n{said}"
            );
        }
    }
    Ok(())
}

/// What the compiler says of `source`.
fn compile(libraries: &Libraries, source: &str) -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("source.rs");
    std::fs::write(&file, format!("{PRELUDE}{source}"))?;
    let mut command = Command::new("rustc");
    command.args([
        "--edition",
        "2024",
        "--crate-type",
        "lib",
        "--emit",
        "metadata",
        "--cap-lints",
        "allow",
    ]);
    command.arg("--out-dir").arg(folder.path()).arg("-L").arg(libraries.dependencies());
    for name in ["informer", "kube", "k8s_openapi"] {
        command.arg("--extern").arg(format!("{name}={}", libraries.path(name)?.display()));
    }
    let output = command.arg(&file).output().context("rustc does not run")?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}
