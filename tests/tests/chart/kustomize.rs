//! The kustomize base is what the chart renders by default; after a wanted change write it with
//! `INFORMER_WRITE_GOLDEN=1`.

use std::collections::HashMap;
use std::process::Command;

use anyhow::{Context, ensure};
use informer_tests::real::kubectl_path;
use serde_json::Value;

use crate::helm::{Helm, NAME, chart, deploy, object, objects, run};

#[test]
fn the_base_is_what_the_chart_renders_by_default() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    let default = chart().join("tests/default/values.yaml");
    let rendered = helm.template(&default, &[])?.clean("default")?;
    let mut wanted = objects(&rendered)?;
    wanted.iter_mut().for_each(without_helm);
    wanted.iter_mut().for_each(with_own_roles);
    let config = object(&wanted, "ConfigMap", "-config")?["data"]["serve.yaml"].clone();
    let config = config.as_str().context("no serve.yaml")?.to_owned();
    let base = deploy("kustomize/base");
    if std::env::var_os("INFORMER_WRITE_GOLDEN").is_some() {
        std::fs::write(base.join("informer.yaml"), manifests(&rendered)?)?;
        std::fs::write(base.join("serve.yaml"), &config)?;
    }
    let mut command = Command::new(kubectl_path()?);
    let built = run(command.arg("kustomize").arg(&base), "")?.clean("the base")?;
    // kustomize appends a hash of its content to the name of the ConfigMap, for the same purpose as
    // the chart's checksum.
    let map = object(&objects(&built)?, "ConfigMap", "")?["metadata"]["name"].clone();
    let map = map.as_str().context("no name")?.to_owned();
    ensure!(map.starts_with(&format!("{NAME}-config-")), "{map}");
    let mut got = objects(&built.replace(&map, &format!("{NAME}-config")))?;
    for all in [&mut got, &mut wanted] {
        all.sort_by_key(|it| format!("{} {}", it["kind"], it["metadata"]["name"]));
    }
    for (got, wanted) in got.iter().zip(&wanted) {
        ensure!(got == wanted, "\n{got:#}\nfor\n{wanted:#}");
    }
    ensure!(got.len() == wanted.len(), "{} objects for {}", got.len(), wanted.len());
    Ok(())
}

#[test]
fn a_release_and_overlays_in_several_namespaces_share_no_roles() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    let default = chart().join("tests/default/values.yaml");
    let released = helm.template(&default, &[])?.clean("default")?;
    let copy = tempfile::tempdir()?;
    for folder in ["base", "overlays/example"] {
        let (from, to) = (deploy("kustomize").join(folder), copy.path().join(folder));
        std::fs::create_dir_all(&to)?;
        for file in std::fs::read_dir(from)? {
            let file = file?;
            std::fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    let file = copy.path().join("overlays/example/kustomization.yaml");
    let example = std::fs::read_to_string(&file)?;
    let mut all = vec![("the release".to_owned(), objects(&released)?)];
    for namespace in [NAME, "reads", "others"] {
        let namespaced = format!("\nnamespace: {namespace}\n");
        std::fs::write(&file, example.replace("\nnamespace: reads\n", &namespaced))?;
        let mut command = Command::new(kubectl_path()?);
        let built = run(command.arg("kustomize").arg(copy.path().join("overlays/example")), "")?;
        all.push((namespace.to_owned(), objects(&built.clean(namespace)?)?));
    }
    let mut command = Command::new(kubectl_path()?);
    let base = run(command.arg("kustomize").arg(deploy("kustomize/base")), "")?.clean("base")?;
    ensure!(all.iter().all(|(_, it)| it.iter().filter(|it| is_for_all(it)).count() == 3));
    let mut seen = HashMap::new();
    for (owner, objects) in &all {
        for object in objects.iter().filter(|it| is_for_all(it)) {
            let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
            let other = seen.insert(name.clone(), owner);
            ensure!(other.is_none(), "{name} is of {other:?} and of {owner}");
            let role = &object["roleRef"]["name"];
            let is_here =
                |it: &Value| it["kind"] == "ClusterRole" && &it["metadata"]["name"] == role;
            let is_found = role.is_null() || role == "system:auth-delegator";
            ensure!(is_found || objects.iter().any(is_here), "{owner} has no {role}");
        }
    }
    // A base without an overlay has the names of an overlay in its namespace.
    for object in objects(&base)?.iter().filter(|it| is_for_all(it)) {
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        ensure!(seen.get(&name).is_some_and(|it| *it == NAME), "{name} of the base");
    }
    Ok(())
}

/// Whether it belongs to no namespace.
fn is_for_all(object: &Value) -> bool {
    ["ClusterRole", "ClusterRoleBinding"].iter().any(|it| object["kind"] == *it)
}

/// The names without a namespace are others than the chart's, which has no colons in them.
fn with_own_roles(object: &mut Value) {
    for path in ["/metadata/name", "/roleRef/name"] {
        if is_for_all(object)
            && let Some(Value::String(name)) = object.pointer_mut(path)
        {
            *name = of_kustomize(name);
        }
    }
}

fn of_kustomize(text: &str) -> String {
    text.replace(&format!("{NAME}-{NAME}-"), &format!("{NAME}:{NAME}:"))
}

/// What only helm needs.
fn without_helm(object: &mut Value) {
    let mut remove = |from: &str, names: &[&str]| {
        let map = object.pointer_mut(from).and_then(Value::as_object_mut);
        if let Some(map) = map {
            map.retain(|name, value| !names.contains(&&**name) || has_more(value));
        }
    };
    remove("/metadata/labels", &["helm.sh/chart", "app.kubernetes.io/managed-by"]);
    remove("/spec/template/metadata/annotations", &["checksum/config"]);
    remove("/spec/template/metadata", &["annotations"]);
}

/// Whether it is a map that has entries.
fn has_more(value: &Value) -> bool {
    value.as_object().is_some_and(|it| !it.is_empty())
}

/// The rendered text with its comments, without the ConfigMap, which kustomize makes.
fn manifests(rendered: &str) -> anyhow::Result<String> {
    let helms =
        ["helm.sh/chart:", "app.kubernetes.io/managed-by:", "# Source:", "checksum/config:"];
    let is_helms = |line: &str| helms.iter().any(|it| line.trim_start().starts_with(it));
    let mut text = String::from("# What the chart renders by default; written by its tests.\n");
    for document in rendered.split("---\n").filter(|it| !it.trim().is_empty()) {
        if document.contains("\nkind: ConfigMap\n") {
            continue;
        }
        let kept = document.lines().filter(|it| !is_helms(it) && !it.trim().is_empty());
        let kept: Vec<_> = kept
            .filter(|it| *it != "      annotations:" && !it.contains("# A changed configuration"))
            .collect();
        text += &format!("---\n{}\n", of_kustomize(&kept.join("\n")));
    }
    Ok(text)
}
