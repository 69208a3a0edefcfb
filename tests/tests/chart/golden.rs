//! What the chart renders, option by option, against files; after a wanted change write them with
//! `INFORMER_WRITE_GOLDEN=1`.

use anyhow::ensure;
use serde_json::Value;

use crate::helm::{Case, Helm, chart, objects};

#[test]
fn every_option_renders_what_is_expected() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    let writes = std::env::var_os("INFORMER_WRITE_GOLDEN").is_some();
    let mut failures = Vec::new();
    for case in Case::all()? {
        let rendered = helm.template(&case.values(), &[])?.clean(&case.name)?;
        objects(&rendered)?;
        if writes {
            std::fs::write(case.expected(), &rendered)?;
        }
        let expected = std::fs::read_to_string(case.expected()).unwrap_or_default();
        if rendered != expected {
            failures.push(format!("{}: {}", case.name, difference(&expected, &rendered)));
        }
    }
    ensure!(failures.is_empty(), "write them with INFORMER_WRITE_GOLDEN=1:\n{failures:#?}");
    Ok(())
}

#[test]
fn names_that_look_like_numbers_stay_strings() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    let names = ["nameOverride=7", "fullnameOverride=8", "serviceAccount.name=9"];
    let sets = names.iter().flat_map(|it| ["--set-string", it]).collect::<Vec<_>>();
    for case in Case::all()? {
        let rendered = helm.template_as("123", "456", &case.values(), &sets)?.clean(&case.name)?;
        for object in objects(&rendered)? {
            let path = not_a_string(&object);
            ensure!(path.is_none(), "{}: {path:?} of {object:#}", case.name);
        }
    }
    Ok(())
}

#[test]
fn helm_lint_finds_nothing() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    for case in Case::all()? {
        let linted = helm.lint(&case.values())?.clean(&case.name)?;
        ensure!(linted.contains("0 chart(s) failed"), "{linted}");
        ensure!(!linted.contains("[WARNING]") && !linted.contains("[ERROR]"), "{linted}");
    }
    Ok(())
}

#[test]
fn the_notes_say_how_to_reach_it_and_what_is_held() -> anyhow::Result<()> {
    let Some(helm) = Helm::find() else { return Ok(()) };
    // Only an installation prints them; `--dry-run=client` needs no cluster.
    for (case, words) in [
        (
            "default",
            &["endpointslices.discovery.k8s.io", "--tls-server-name informer.informer.svc"][..],
        ),
        ("everything", &["Secrets too"]),
        (
            "own-account",
            &["rbac.create is false", "- endpointslices", "metrics.readers and statusPage.readers"],
        ),
        ("metrics", &["kubectl", "proxy", "http://127.0.0.1:8001/"]),
    ] {
        let values = chart().join("tests").join(case).join("values.yaml");
        let notes = helm.notes(&values)?.clean(case)?;
        for word in words {
            ensure!(notes.contains(word), "{case}: no {word:?} in\n{notes}");
        }
    }
    Ok(())
}

#[test]
fn the_chart_is_of_this_version_and_its_values_are_documented() -> anyhow::Result<()> {
    let read = |name: &str| std::fs::read_to_string(chart().join(name));
    let version = env!("CARGO_PKG_VERSION");
    let meta = read("Chart.yaml")?;
    ensure!(meta.contains(&format!("\nappVersion: {version}\n")), "{meta}");
    let (readme, values) = (read("README.md")?, read("values.yaml")?);
    let names = values.lines().filter_map(|line| line.split_once(':').map(|it| it.0));
    for name in names.filter(|it| it.starts_with(|first: char| first.is_ascii_lowercase())) {
        ensure!(readme.contains(&format!("| `{name}")), "README.md says nothing of {name}");
    }
    Ok(())
}

/// A field of names, labels or annotations that is no string.
fn not_a_string(value: &Value) -> Option<String> {
    const NAMES: [&str; 5] =
        ["name", "namespace", "secretName", "serviceAccountName", "priorityClassName"];
    const MAPS: [&str; 3] = ["labels", "matchLabels", "annotations"];
    match value {
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let wrong = match value {
                Value::Object(map) if MAPS.contains(&&**key) => {
                    map.values().any(|it| !it.is_string())
                }
                Value::Array(all) if ["matchNames", "dnsNames"].contains(&&**key) => {
                    all.iter().any(|it| !it.is_string())
                }
                value => NAMES.contains(&&**key) && !value.is_string(),
            };
            if wrong { Some(key.clone()) } else { not_a_string(value) }
        }),
        Value::Array(all) => all.iter().find_map(not_a_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn difference(expected: &str, rendered: &str) -> String {
    let missing = expected.lines().filter(|it| !rendered.lines().any(|line| line == *it));
    let added = rendered.lines().filter(|it| !expected.lines().any(|line| line == *it));
    let shown = missing.map(|it| format!("- {it}")).take(10);
    shown.chain(added.map(|it| format!("+ {it}")).take(10)).collect::<Vec<_>>().join("\n")
}
