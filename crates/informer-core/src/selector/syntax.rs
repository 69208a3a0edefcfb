//! The syntax of label keys and label values in Kubernetes.

/// The rule of [`is_label_key`], in words that follow "expected".
pub(super) const LABEL_KEY: &str = "a label key ([prefix/]name; the name at most 63 letters, digits, '-', '_' or '.', \
     beginning and ending with a letter or digit; the prefix a lower-case DNS name of at most 253)";

/// The rule of [`is_label_value`], in words that follow "expected".
pub(super) const LABEL_VALUE: &str = "a label value (nothing, or at most 63 letters, digits, '-', '_' or '.', \
     beginning and ending with a letter or digit)";

const MAX_NAME: usize = 63;
const MAX_PREFIX: usize = 253;

/// Whether `key` is a qualified name: `name` or `dns.prefix/name`.
pub(super) fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
    }
}

pub(super) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && has_alphanumeric_ends(name)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_dns_subdomain(prefix: &str) -> bool {
    prefix.len() <= MAX_PREFIX
        && prefix.split('.').all(|label| {
            has_alphanumeric_ends(label)
                && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        })
}

/// Returns false for the empty text, too.
fn has_alphanumeric_ends(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys_are_qualified_names() {
        let longest = "a".repeat(63);
        let long_prefix = format!(
            "{}/x",
            ["a".repeat(62), "b".repeat(63), "c".repeat(63), "d".repeat(62)].join(".")
        );
        assert_eq!(long_prefix.len(), 253 + 2);
        for good in [
            "a",
            "A",
            "9",
            "a-b_c.D",
            "k8s-app",
            "app.kubernetes.io/name",
            "1.x/A_b",
            "x--y",
            &longest,
            &long_prefix,
        ] {
            assert!(is_label_key(good), "{good}");
        }
        let too_long = "a".repeat(64);
        let too_long_prefix = format!("e{long_prefix}");
        for bad in [
            "",
            "/",
            "/a",
            "a/",
            "a/b/c",
            "-a",
            "a-",
            ".a",
            "a.",
            "_a",
            "a_",
            "a b",
            "ä",
            "A.b/c",
            "a..b/c",
            "-a/b",
            "a-/b",
            "a_b/c",
            ".a/b",
            "a./b",
            &too_long,
            &too_long_prefix,
        ] {
            assert!(!is_label_key(bad), "{bad}");
        }
    }

    #[test]
    fn label_values_may_be_empty() {
        let longest = "1".repeat(63);
        for good in ["", "a", "0", "a.b", "A_-.b", &longest] {
            assert!(is_label_value(good), "{good}");
        }
        let too_long = "1".repeat(64);
        for bad in ["-", "a-", "-1", "a/b", "a b", "é", "\0", &too_long] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }
}
