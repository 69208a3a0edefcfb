//! Rejects ambiguous paths, and writes paths for the API server.

use std::borrow::Cow;

use k8s_serve::ResourcePath;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The characters to escape in a segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b':');

/// The canonical form of a parsed path, with the query. It ensures that the API server resolves the
/// path in the same way.
pub(super) fn canonical(path: &ResourcePath, query: &str) -> String {
    let ResourcePath { group, version, namespace, resource, name, subresource } = path;
    let mut segments = match group.as_str() {
        "" => vec!["api"],
        group => vec!["apis", group],
    };
    segments.push(version);
    segments.extend(namespace.iter().flat_map(|it| ["namespaces", it]));
    segments.push(resource);
    segments.extend(name.as_deref());
    segments.extend(subresource.iter().flat_map(|it| it.split('/')));
    url(segments, query)
}

pub(crate) fn url<'a>(segments: impl IntoIterator<Item = &'a str>, query: &str) -> String {
    let mut text = String::new();
    for segment in segments {
        text.push('/');
        text.extend(utf8_percent_encode(segment, SEGMENT));
    }
    if !query.is_empty() {
        text.push('?');
        text.push_str(query);
    }
    text
}

pub(super) fn segments(path: &str) -> Vec<Cow<'_, str>> {
    let segments = path.split('/').filter(|it| !it.is_empty());
    segments.map(|it| percent_decode_str(it).decode_utf8_lossy()).collect()
}

/// Whether a path is unambiguous: no segment changes its meaning for a server that decodes or
/// resolves the path once more.
pub(super) fn is_plain(path: &str) -> bool {
    let is_strange = |it: &Cow<'_, str>| {
        it.contains(['/', '%', '\\'])
            || it.contains(char::is_control)
            || matches!(&**it, "." | "..")
    };
    !segments(path).iter().any(is_strange)
}

#[cfg(test)]
mod tests {
    use k8s_serve::Route;

    use super::*;

    #[test]
    fn what_is_passed_on_is_what_was_understood() {
        for (asked, passed) in [
            ("/api/v1/pods", "/api/v1/pods"),
            ("//api//v1/namespaces/a/pods/b/log", "/api/v1/namespaces/a/pods/b/log"),
            ("/api/v1/namespaces/a%20b/pods", "/api/v1/namespaces/a%20b/pods"),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
            ),
        ] {
            let Route::Resource(path) = Route::parse(asked) else { panic!("{asked}") };
            assert_eq!(canonical(&path, ""), passed);
            assert!(is_plain(asked));
        }
        assert_eq!(url(["apis", "apps"], "a=b&c=%2F"), "/apis/apps?a=b&c=%2F");
    }

    #[test]
    fn paths_that_could_be_resolved_once_more_are_not_plain() {
        for path in [
            "/api/v1/namespaces/a/pods/..%2F..%2Fsecrets",
            "/api/v1/namespaces/a/pods/%2e%2e/secrets",
            "/apis/..%2fapi%2fv1%2fsecrets",
            "/api/v1/pods/%252e",
            "/api/v1/pods/a%5cb",
            "/api/v1/./pods",
            "/api/v1/pods/a%00b",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }
}
