//! Which resource a name means, and which names are like one that means none.

use super::ApiResourceInfo;
use crate::Resource;

/// How many similar names an error tells.
pub(super) const MAX_SUGGESTIONS: usize = 3;

/// The longest name, in bytes, that others are compared with: the time that it takes grows with the
/// length, and no resource has a longer name.
const MAX_COMPARED: usize = 63;

/// The resource that `arg` means. A dot after the name may start a version and a group or a group
/// alone; the former is tried first.
pub(super) fn find<'a>(resources: &'a [ApiResourceInfo], arg: &str) -> Option<&'a ApiResourceInfo> {
    let arg = arg.trim().to_lowercase();
    let Some((name, rest)) = arg.split_once('.') else {
        return by_any_name(resources, &arg, |_| true);
    };
    let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
    let exact = |it: &Resource| it.version == version && it.group == group;
    by_any_name(resources, name, exact)
        .or_else(|| by_any_name(resources, name, |it| it.group == rest))
        .or_else(|| by_any_name(resources, name, |it| it.group.starts_with(rest)))
}

/// Up to [`MAX_SUGGESTIONS`] resources whose names are like `asked`, the most similar first.
pub(super) fn similar<'a>(
    resources: &'a [ApiResourceInfo],
    asked: &str,
) -> Vec<&'a ApiResourceInfo> {
    let name = asked.trim().split('.').next().unwrap_or_default();
    if name.len() > MAX_COMPARED {
        return Vec::new();
    }
    let name = &*name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    let mut similar: Vec<(usize, &ApiResourceInfo)> = resources
        .iter()
        .filter(|it| it.preferred)
        .filter_map(|it| Some((distance_to(it, name, allowed)?, it)))
        .collect();
    // Stable: among equally similar ones the server's order stays.
    similar.sort_by_key(|(distance, _)| *distance);
    similar.into_iter().take(MAX_SUGGESTIONS).map(|(_, it)| it).collect()
}

/// The first match by full name, or else the first by short name, among those that `fits` lets
/// through.
pub(super) fn by_any_name<'a>(
    resources: &'a [ApiResourceInfo],
    name: &str,
    fits: impl Fn(&Resource) -> bool,
) -> Option<&'a ApiResourceInfo> {
    let full = resources.iter().find(|it| fits(&it.resource) && has_full_name(it, name));
    full.or_else(|| {
        resources.iter().find(|it| fits(&it.resource) && it.short_names.iter().any(|s| s == name))
    })
}

fn has_full_name(info: &ApiResourceInfo, name: &str) -> bool {
    info.resource.plural == name
        || info.singular == name
        || info.resource.kind.to_lowercase() == name
}

/// The distance to the more similar of a resource's names, if it is within what is allowed.
fn distance_to(info: &ApiResourceInfo, name: &str, allowed: usize) -> Option<usize> {
    let length = name.chars().count();
    let names = [&info.resource.plural, &info.singular].into_iter();
    // No distance is below the difference of the lengths.
    let near = names.filter(|it| it.chars().count().abs_diff(length) <= allowed);
    near.map(|it| distance(it, name)).min().filter(|it| *it <= allowed)
}

/// How many characters must be inserted, left out, replaced or swapped with their neighbour to make
/// `right` of `left`.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous = None;
    for (i, l) in left.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let replaced = last[j] + usize::from(l != *r);
            let mut cost = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if j > 0 && previous == Some(*r) && right[j - 1] == l {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
        previous = Some(l);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{MAX_COMPARED, distance, similar};
    use crate::Resource;
    use crate::discovery::ApiResourceInfo;

    #[test]
    fn names_longer_than_any_resource_has_are_not_compared() {
        let named = |name: String| ApiResourceInfo {
            resource: Resource {
                group: String::new(),
                version: "v1".into(),
                plural: name.clone(),
                kind: name.clone(),
                namespaced: true,
            },
            singular: name,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: Vec::new(),
            preferred: true,
        };
        let resources = [named("a".repeat(MAX_COMPARED))];
        assert_eq!(similar(&resources, &"a".repeat(MAX_COMPARED)).len(), 1);
        assert_eq!(similar(&resources, &"a".repeat(MAX_COMPARED - 1)).len(), 1);
        assert!(similar(&resources, &"a".repeat(MAX_COMPARED + 1)).is_empty());
    }

    #[test]
    fn distances_count_single_mistakes() {
        for (left, right, expected) in [
            ("pods", "pods", 0),
            ("pods", "pos", 1),
            ("pods", "pdos", 1),
            ("pods", "nodes", 2),
            ("", "abc", 3),
            ("abc", "", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
    }
}
