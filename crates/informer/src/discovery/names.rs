//! Which resource a name means, and which names are like one that means none.

use super::ApiResourceInfo;
use crate::Resource;

/// How many similar names an error tells.
pub(super) const MAX_SUGGESTIONS: usize = 3;

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
    let asked = asked.trim().to_lowercase();
    let name = asked.split('.').next().unwrap_or_default();
    let allowed = (name.chars().count() / 3).max(1);
    let mut similar: Vec<(usize, &ApiResourceInfo)> = resources
        .iter()
        .filter(|it| it.preferred)
        .map(|it| (distance_to(it, name), it))
        .filter(|(distance, _)| *distance <= allowed)
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

fn distance_to(info: &ApiResourceInfo, name: &str) -> usize {
    distance(&info.resource.plural, name).min(distance(&info.singular, name))
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
    use super::distance;

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
