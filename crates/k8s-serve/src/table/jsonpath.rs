//! JSONPath as Kubernetes has it (`k8s.io/client-go/util/jsonpath`), for the columns of custom
//! resources.
//!
//! It is older than RFC 9535 and differs: keys are escaped by a backslash (`.a\.b`), filters compare
//! values of one type only, and quotes within brackets do not protect dots.

use std::borrow::Cow;
use std::str::FromStr;

use serde_json::Value;

mod evaluate;
mod parse;

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// The elements of a list.
    Slice(Slice),
    /// The elements of a list for which a filter holds.
    Filter(Filter),
    /// All members or elements.
    Wildcard,
    /// The value and everything in it that holds something itself.
    Recursive,
    /// The values of all paths.
    Union(Vec<Vec<Self>>),
    /// A value by itself, as on the right-hand side of filters.
    Literal(Value),
    /// `range` and `end`, which say nothing in a path that is no template, and words that are wrong.
    Word,
}

/// `[start:end:step]`
#[derive(Debug, Clone, PartialEq)]
struct Slice {
    /// Negative ones count from the end of the list.
    start: Option<i64>,
    end: End,
    step: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
enum End {
    Last,
    /// Of a slice.
    At(i64),
    /// After the one element of an index.
    AfterStart(i64),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Vec<Step>,
    comparison: Option<(Operator, Vec<Step>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
    /// Such as `=`, which is only noticed when it is used.
    Unknown,
}

/// A path that cannot be read.
#[derive(Debug)]
pub(super) struct InvalidPath;

impl JsonPath {
    pub(super) fn of_fields<const N: usize>(names: [&str; N]) -> Self {
        Self(names.into_iter().map(|it| Step::Field(it.to_owned())).collect())
    }

    /// The member of an object that the path begins at. `None` if it begins otherwise, or at
    /// metadata without going on.
    pub(super) fn member(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Step::Field(name), Step::Field(of_it), ..] if name == "metadata" => {
                // That much is never read of it.
                (of_it != "managedFields").then_some(name)
            }
            [Step::Field(name), ..] if name != "metadata" => Some(name),
            _ => None,
        }
    }

    /// The first value that the path leads to.
    pub(super) fn first<'v>(&'v self, value: &'v Value) -> Option<Cow<'v, Value>> {
        let found = evaluate::follow(vec![Cow::Borrowed(value)], &self.0);
        found.ok()?.into_iter().next()
    }
}

impl FromStr for JsonPath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::steps(text).map(Self)
    }
}
