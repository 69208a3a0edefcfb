//! What the query of a list asks for.

use informer::{FieldSelector, LabelSelector, ParseSelectorError};

/// The longest query that is read, in bytes.
pub(crate) const MAX_QUERY_BYTES: usize = 8 * 1024;

/// The query of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ListQuery {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) namespace: Option<String>,
    /// Objects per page; `None` for all.
    pub(crate) limit: Option<usize>,
    /// The token of the page before.
    pub(crate) continues: Option<String>,
}

impl ListQuery {
    /// Reads the part of the URL after the question mark.
    ///
    /// # Errors
    /// A message for whoever wrote the query.
    pub(crate) fn parse(query: &str) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut fields = Vec::new();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match key.as_ref() {
                "" if value.is_empty() => {}
                "labelSelector" => parsed.and_labels(value.parse().map_err(|error| said(&error))?),
                "fieldSelector" => {
                    value.parse::<FieldSelector>().map_err(|error| said(&error))?;
                    fields.push(value);
                }
                "namespace" => once(&mut parsed.namespace, "namespace", value.into_owned())?,
                "continue" => once(&mut parsed.continues, "continue", value.into_owned())?,
                "limit" => {
                    let limit: usize = value.parse().map_err(|_| {
                        format!("limit={value}: expected a number of objects, 0 for all")
                    })?;
                    once(&mut parsed.limit, "limit", limit)?;
                }
                "watch" => {
                    return Err(
                        "watch: the gateway lists and gets; for changes use `kubectl informer watch`"
                            .to_owned(),
                    );
                }
                other => match other.strip_prefix("labels[").and_then(|it| it.strip_suffix(']')) {
                    Some(label) => {
                        let labels = LabelSelector::default().with_equal(label, &value);
                        parsed.and_labels(
                            labels.map_err(|error| format!("labels[{label}]={value}: {error}"))?,
                        );
                    }
                    None => return Err(unknown(other)),
                },
            }
        }
        parsed.limit = parsed.limit.filter(|it| *it > 0);
        parsed.namespace = parsed.namespace.filter(|it| !it.is_empty());
        parsed.continues = parsed.continues.filter(|it| !it.is_empty());
        parsed.fields = fields.join(",").parse().map_err(|error| said(&error))?;
        Ok(parsed)
    }

    /// What is asked for, without where the page begins and ends: pages of one token must agree in
    /// it.
    pub(crate) fn identity(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        format!("{namespace}?{}&{}", self.labels, self.fields)
    }

    fn and_labels(&mut self, labels: LabelSelector) {
        self.labels = std::mem::take(&mut self.labels).and(labels);
    }
}

fn said(error: &ParseSelectorError) -> String {
    error.to_string()
}

fn once<V>(slot: &mut Option<V>, name: &str, value: V) -> Result<(), String> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name}: given more than once")),
    }
}

fn unknown(name: &str) -> String {
    format!(
        "{name}: no such parameter; there are labels[KEY], labelSelector, fieldSelector, namespace, limit and continue"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_asked() {
        let query = ListQuery::parse(
            "labels[app]=web&labels%5Bk8s.io/tier%5D=db&labelSelector=a+in+(b,c)&fieldSelector=spec.nodeName%3Dn&fieldSelector=metadata.name!=x&namespace=shop&limit=5&continue=t",
        )
        .unwrap();
        assert_eq!(query.labels.to_string(), "a in (b,c),app=web,k8s.io/tier=db");
        assert_eq!(query.fields.to_string(), "metadata.name!=x,spec.nodeName=n");
        assert_eq!((query.namespace.as_deref(), query.limit), (Some("shop"), Some(5)));
        assert_eq!(query.continues.as_deref(), Some("t"));
        assert_eq!(ListQuery::parse("").unwrap(), ListQuery::default());
        assert_eq!(
            ListQuery::parse("limit=0&namespace=&continue=&&").unwrap(),
            ListQuery::default()
        );
    }

    #[test]
    fn the_order_of_labels_is_no_part_of_what_is_asked() {
        let one = ListQuery::parse("labels[a]=1&labels[b]=2&limit=1").unwrap();
        let other = ListQuery::parse("labelSelector=b=2,a=1&continue=x").unwrap();
        assert_eq!(one.identity(), other.identity());
        assert_ne!(one.identity(), ListQuery::parse("labels[a]=1").unwrap().identity());
    }

    #[test]
    fn mistakes_are_told() {
        for (query, expected) in [
            ("labelSelector=a in (x", "at offset 7: expected ',' or ')'"),
            ("labels[a b]=x", "labels[a b]=x: "),
            ("labels[a]=x y", "labels[a]=x y: "),
            ("fieldSelector=spec.nodeName", "field selector"),
            ("limit=many", "limit=many: expected a number"),
            ("limit=-1", "limit=-1: expected a number"),
            ("limit=1&limit=2", "limit: given more than once"),
            ("label=x", "label: no such parameter; there are labels[KEY]"),
            ("watch=true", "kubectl informer watch"),
        ] {
            let error = ListQuery::parse(query).unwrap_err();
            assert!(error.contains(expected), "{query}: {error}");
        }
    }
}
