//! Label selectors.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{Grammar, ParseSelectorError, syntax};

mod parse;

/// A label selector: requirements that must all hold for an object's labels.
///
/// Parses the whole Kubernetes grammar: `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a notin (x,y)`, `a`
/// (the key exists), `!a`, `a>1`, `a<5`, joined by commas. The empty text selects everything. As in
/// Kubernetes, `!=` and `notin` hold for objects that lack the key.
///
/// `a==b` is kept as `a=b`; requirements and values are sorted and repeated ones dropped.
///
/// # Examples
/// ```
/// use informer_core::selector::LabelSelector;
///
/// let selector: LabelSelector = "tier in (web, api), !legacy".parse()?;
/// assert_eq!(selector.to_string(), "!legacy,tier in (api,web)");
///
/// let labels = [("tier".to_owned(), "web".to_owned())].into();
/// assert!(selector.matches_map(&labels));
///
/// let selector = LabelSelector::default().with_equal("k8s-app", "kube-dns")?;
/// assert!(!selector.matches_map(&labels));
/// # Ok::<(), informer_core::selector::ParseSelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    /// Sorted, without repetitions.
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Whether every object matches because nothing is required.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// This selector, requiring also that the label `key` is `value`.
    ///
    /// # Errors
    /// If `key` is not a label key or `value` not a label value; the error's text is `key=value`.
    pub fn with_equal(self, key: &str, value: &str) -> Result<Self, ParseSelectorError> {
        Ok(self.with(Requirement::equal(key, value)?))
    }

    /// This selector, requiring also `requirement`.
    fn with(mut self, requirement: Requirement) -> Self {
        if let Err(at) = self.requirements.binary_search(&requirement) {
            self.requirements.insert(at, requirement);
        }
        self
    }

    /// A selector with the requirements of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        other.requirements.into_iter().fold(self, Self::with)
    }

    /// The requirements, sorted by key.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether labels match. `lookup` returns the value for a key, or `None` if the object lacks
    /// it.
    pub fn matches<'v>(&self, lookup: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(lookup(&requirement.key)))
    }

    /// Whether `labels` match.
    #[must_use]
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(String::as_str))
    }
}

/// The canonical text, which parses back to an equal selector.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl FromStr for LabelSelector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut requirements = parse::requirements(text)?;
        requirements.sort_unstable();
        requirements.dedup();
        Ok(Self { requirements })
    }
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without repetitions; as many as the operator takes.
    values: Vec<String>,
}

impl Requirement {
    /// Requires that the label `key` is `value`.
    ///
    /// # Errors
    /// If `key` is not a label key or `value` not a label value; the error's text is `key=value`.
    fn equal(key: &str, value: &str) -> Result<Self, ParseSelectorError> {
        let error = |offset, expected, found| {
            ParseSelectorError::new(
                Grammar::Label,
                &format!("{key}={value}"),
                offset,
                expected,
                found,
            )
        };
        if !syntax::is_label_key(key) {
            return Err(error(0, syntax::LABEL_KEY, key));
        }
        if !syntax::is_label_value(value) {
            return Err(error(key.len() + 1, syntax::LABEL_VALUE, value));
        }
        Ok(Self::new(key, Operator::Equals, &[value]))
    }

    /// The label's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label is compared.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values that it is compared with, sorted: at least one for `in` and `notin`, none for
    /// `Exists` and `DoesNotExist`, else one.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether an object whose label [`key`](Self::key) is `value` matches; `None` if it lacks the
    /// label.
    #[must_use]
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|it| it == value);
        match self.operator {
            Operator::Equals | Operator::In => value.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.numbers(value).is_some_and(|(own, bound)| own > bound),
            Operator::LessThan => self.numbers(value).is_some_and(|(own, bound)| own < bound),
        }
    }

    /// The object's value and this requirement's bound, if both are integers.
    fn numbers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }

    /// Expects valid arguments.
    fn new(key: &str, operator: Operator, values: &[&str]) -> Self {
        let mut values: Vec<String> = values.iter().copied().map(str::to_owned).collect();
        values.sort_unstable();
        values.dedup();
        Self { key: key.to_owned(), operator, values }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, operator, values } = self;
        let values = values.join(",");
        match operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// How a requirement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// `a=b`: the value is this one.
    Equals,
    /// `a!=b`: the value is another, or absent.
    NotEquals,
    /// `a in (x,y)`: the value is one of these.
    In,
    /// `a notin (x,y)`: the value is none of these, or absent.
    NotIn,
    /// `a`: there is a value.
    Exists,
    /// `!a`: there is none.
    DoesNotExist,
    /// `a>1`: the value is an integer above this one.
    GreaterThan,
    /// `a<5`: the value is an integer below this one.
    LessThan,
}

#[cfg(test)]
mod tests;
