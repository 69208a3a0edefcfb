//! Runs helm and kubectl, and reads what they render.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;

use anyhow::{Context, ensure};
use serde_json::Value;

/// Where helm is; set by `deploy/helm/check`.
const HELM: &str = "INFORMER_HELM";
/// The files with the CustomResourceDefinitions of cert-manager and the Prometheus operator,
/// separated by colons; set by `deploy/helm/check`.
const DEFINITIONS: &str = "INFORMER_CHART_DEFINITIONS";
/// The release and its namespace.
pub(crate) const NAME: &str = "informer";

/// helm, if it was built.
pub(crate) struct Helm(PathBuf);

/// What a command printed.
pub(crate) struct Printed {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Helm {
    /// helm, or `None`, said once on stderr, where it was not built.
    pub(crate) fn find() -> Option<Self> {
        static SAY: Once = Once::new();
        let found = std::env::var_os(HELM).filter(|it| !it.is_empty());
        if found.is_none() {
            SAY.call_once(|| eprintln!("skipped: deploy/helm/check builds helm and runs it"));
        }
        found.map(|it| Self(it.into()))
    }

    /// What the chart renders with these values.
    pub(crate) fn template(&self, values: &Path, more: &[&str]) -> anyhow::Result<Printed> {
        self.template_as(NAME, NAME, values, more)
    }

    /// As [`template`](Self::template), as another release in another namespace.
    pub(crate) fn template_as(
        &self,
        release: &str,
        namespace: &str,
        values: &Path,
        more: &[&str],
    ) -> anyhow::Result<Printed> {
        let mut command = Command::new(&self.0);
        command.args(["template", release]).arg(chart());
        command.args(["--namespace", namespace, "--values"]);
        run(command.arg(values).args(more), "")
    }

    /// As [`template`](Self::template), with values as text.
    pub(crate) fn template_of(&self, values: &str) -> anyhow::Result<Printed> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(values.as_bytes())?;
        self.template(file.path(), &[])
    }

    /// What an installation says at its end.
    pub(crate) fn notes(&self, values: &Path) -> anyhow::Result<Printed> {
        let mut command = Command::new(&self.0);
        command.args(["install", NAME]).arg(chart()).args(["--namespace", NAME, "--values"]);
        run(command.arg(values).arg("--dry-run=client"), "")
    }

    /// `helm lint`.
    pub(crate) fn lint(&self, values: &Path) -> anyhow::Result<Printed> {
        let mut command = Command::new(&self.0);
        run(command.args(["lint", "--strict"]).arg(chart()).arg("--values").arg(values), "")
    }
}

/// A folder of values and what they render.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    folder: PathBuf,
}

impl Case {
    /// All of them, in order.
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        let mut cases = Vec::new();
        for entry in std::fs::read_dir(chart().join("tests"))? {
            let folder = entry?.path();
            let name = folder.file_name().context("no name")?.to_string_lossy().into_owned();
            cases.push(Self { name, folder });
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        ensure!(cases.len() >= 10, "only {} cases", cases.len());
        Ok(cases)
    }

    pub(crate) fn values(&self) -> PathBuf {
        self.folder.join("values.yaml")
    }

    pub(crate) fn expected(&self) -> PathBuf {
        self.folder.join("expected.yaml")
    }
}

/// A file or folder of `deploy/`.
pub(crate) fn deploy(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy")).join(path)
}

pub(crate) fn chart() -> PathBuf {
    deploy("helm/informer")
}

/// The files of definitions.
pub(crate) fn definitions() -> anyhow::Result<Vec<PathBuf>> {
    let files =
        std::env::var_os(DEFINITIONS).with_context(|| format!("{DEFINITIONS} is not set"))?;
    Ok(std::env::split_paths(&files).collect())
}

/// The objects of a text with several documents.
pub(crate) fn objects(text: &str) -> anyhow::Result<Vec<Value>> {
    let documents = text.split("\n---").map(|it| it.trim_start_matches("---"));
    let is_empty = |it: &str| it.lines().all(|it| it.trim().is_empty() || it.starts_with('#'));
    let read = |it: &str| serde_saphyr::from_str(it).with_context(|| it.to_owned());
    documents.filter(|it| !is_empty(it)).map(read).collect()
}

/// The object of a kind whose name ends so.
pub(crate) fn object<'a>(
    objects: &'a [Value],
    kind: &str,
    suffix: &str,
) -> anyhow::Result<&'a Value> {
    let is_it = |it: &&Value| {
        let name = it["metadata"]["name"].as_str().unwrap_or_default();
        it["kind"] == kind && name.ends_with(suffix)
    };
    objects.iter().find(is_it).with_context(|| format!("no {kind} …{suffix}"))
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command, input: &str) -> anyhow::Result<Printed> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{command:?} does not run"))?;
    let mut stdin = child.stdin.take().context("stdin is piped")?;
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    // One that does not read has failed, or needs nothing.
    drop(writer.join());
    let [stdout, stderr] = [stdout, stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Ok(Printed { success: status.success(), stdout, stderr })
}

impl Printed {
    /// What was printed on stdout, if it succeeded and had nothing to warn of.
    pub(crate) fn clean(self, what: &str) -> anyhow::Result<String> {
        ensure!(self.success && !self.stderr.contains("Warning"), "{what}: {}", self.all());
        Ok(self.stdout)
    }

    pub(crate) fn all(&self) -> String {
        let mut all = self.stdout.clone();
        let _ = write!(all, "{}", self.stderr);
        all
    }
}
