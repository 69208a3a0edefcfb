//! What the chart renders, option by option, against files; after a wanted change write them with
//! `INFORMER_WRITE_GOLDEN=1`.

use anyhow::ensure;

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
        ("own-account", &["rbac.create is false", "- endpointslices", "metrics.readers"]),
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

fn difference(expected: &str, rendered: &str) -> String {
    let missing = expected.lines().filter(|it| !rendered.lines().any(|line| line == *it));
    let added = rendered.lines().filter(|it| !expected.lines().any(|line| line == *it));
    let shown = missing.map(|it| format!("- {it}")).take(10);
    shown.chain(added.map(|it| format!("+ {it}")).take(10)).collect::<Vec<_>>().join("\n")
}
