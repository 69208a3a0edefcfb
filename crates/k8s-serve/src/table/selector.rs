//! How labels, selectors and containers are written.

use std::fmt::Write;

use informer_core::selector::LabelSelector;
use serde_json::{Map, Value};

use super::view::View;

/// `app=web,tier=front`, in order, or `<none>`.
pub(super) fn labels(labels: Option<&Map<String, Value>>) -> String {
    let pair = |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or(""));
    let mut pairs: Vec<String> = labels.into_iter().flatten().map(pair).collect();
    pairs.sort_unstable();
    or_none(pairs.join(","))
}

/// A `LabelSelector`, or `<none>` if it selects nothing or everything, or `<error>`.
pub(super) fn label_selector(selector: Option<View<'_>>) -> String {
    match written(selector) {
        Ok(text) => or_none(text),
        Err(InvalidSelector) => "<error>".to_owned(),
    }
}

pub(super) struct InvalidSelector;

/// A `LabelSelector`; empty if it selects nothing or everything.
pub(super) fn written(selector: Option<View<'_>>) -> Result<String, InvalidSelector> {
    let Some(selector) = selector else { return Ok(String::new()) };
    let mut requirements = Vec::new();
    for (key, value) in selector.map("matchLabels").into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        requirements.push((key.as_str(), requirement(key, "Equals", &[value])?));
    }
    for expression in selector.list("matchExpressions") {
        let key = expression.text("key");
        let values: Vec<&str> = expression.texts("values").collect();
        requirements.push((key, requirement(key, expression.text("operator"), &values)?));
    }
    requirements.sort_by_key(|(key, _)| *key);
    Ok(requirements.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","))
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Result<String, InvalidSelector> {
    let is_valid = |value: &str| LabelSelector::default().with_equal(key, value).is_ok();
    // The key by itself, as there may be no values.
    if !is_valid("") || !values.iter().all(|it| is_valid(it)) {
        return Err(InvalidSelector);
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let list = sorted.join(",");
    match (operator, values) {
        ("Equals", [value]) => Ok(format!("{key}={value}")),
        ("In", [_, ..]) => Ok(format!("{key} in ({list})")),
        ("NotIn", [_, ..]) => Ok(format!("{key} notin ({list})")),
        ("Exists", []) => Ok(key.to_owned()),
        ("DoesNotExist", []) => Ok(format!("!{key}")),
        _ => Err(InvalidSelector),
    }
}

/// The names and the images of a Pod's containers.
pub(super) fn containers(object: View<'_>, pod: &str) -> (String, String) {
    let (mut names, mut images) = (String::new(), String::new());
    let containers = object.at(pod).into_iter().flat_map(|it| it.list("containers"));
    for (position, container) in containers.enumerate() {
        let comma = if position > 0 { "," } else { "" };
        let _ = write!(names, "{comma}{}", container.text("name"));
        let _ = write!(images, "{comma}{}", container.text("image"));
    }
    (names, images)
}

/// `<none>` for nothing.
pub(super) fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}
