//! Label and field selectors.

use std::collections::BTreeMap;

use informer_core::selector::{FieldSelector, LabelSelector};

/// A selector that parses prints as one that parses to the same, and matches the same.
pub fn selectors(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (selector, labels) = text.split_once('\n').unwrap_or((text, ""));
    let labels: BTreeMap<String, String> = labels
        .split(',')
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    match selector.parse::<LabelSelector>() {
        Ok(parsed) => {
            let again: LabelSelector = parsed.to_string().parse().expect("what is printed parses");
            assert_eq!(again, parsed);
            let matches = parsed.matches_map(&labels);
            assert_eq!(again.matches_map(&labels), matches);
            let each = parsed.requirements().iter().all(|requirement| {
                requirement.matches(labels.get(requirement.key()).map(String::as_str))
            });
            assert_eq!(each, matches);
            let both = parsed.clone().and(again);
            assert_eq!(both.matches_map(&labels), matches);
        }
        Err(error) => assert!(error.offset <= selector.len(), "{error}"),
    }
    match selector.parse::<FieldSelector>() {
        Ok(parsed) => {
            let again: FieldSelector = parsed.to_string().parse().expect("what is printed parses");
            assert_eq!(again, parsed);
        }
        Err(error) => assert!(error.offset <= selector.len(), "{error}"),
    }
}
