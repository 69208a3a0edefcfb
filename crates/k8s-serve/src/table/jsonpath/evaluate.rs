//! Following paths.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::{End, Filter, Operator, Slice, Step};

type Values<'v> = Vec<Cow<'v, Value>>;

/// The path does not fit the value.
pub(super) struct Unfit {
    /// Whether there were values so far. A filter for what exists holds then, as in Go.
    has_values: bool,
}

/// The values that the steps lead to from `values`.
pub(super) fn follow<'v>(mut values: Values<'v>, steps: &'v [Step]) -> Result<Values<'v>, Unfit> {
    for step in steps {
        values = walk(values, step)?;
    }
    Ok(values)
}

fn walk<'v>(values: Values<'v>, step: &'v Step) -> Result<Values<'v>, Unfit> {
    match step {
        Step::Field(name) => {
            Ok(values.into_iter().filter_map(|value| child(value, |it| it.get(name))).collect())
        }
        Step::Slice(slice) => select(values, slice),
        Step::Filter(filter) => filtered(values, filter),
        Step::Wildcard => Ok(values.into_iter().flat_map(children).collect()),
        Step::Recursive => Ok(descendants(values)),
        Step::Union(paths) => {
            let has_values = !values.is_empty();
            let mut found = Vec::new();
            for path in paths {
                found.extend(follow(values.clone(), path).map_err(|_| Unfit { has_values })?);
            }
            Ok(found)
        }
        Step::Literal(literal) => Ok(values.iter().map(|_| Cow::Borrowed(literal)).collect()),
        Step::Word => Err(Unfit { has_values: !values.is_empty() }),
    }
}

/// A part of a value.
fn child<'v>(
    value: Cow<'v, Value>,
    part: impl for<'a> FnOnce(&'a Value) -> Option<&'a Value>,
) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => part(value).map(Cow::Borrowed),
        Cow::Owned(value) => part(&value).cloned().map(Cow::Owned),
    }
}

/// All parts of a value. Those of a text are its bytes, as in Go.
fn children(value: Cow<'_, Value>) -> Values<'_> {
    match value {
        Cow::Borrowed(Value::Array(list)) => list.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(map)) => map.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(list)) => list.into_iter().map(Cow::Owned).collect(),
        Cow::Owned(Value::Object(map)) => map.into_iter().map(|it| Cow::Owned(it.1)).collect(),
        value => match value.as_str() {
            Some(text) => text.bytes().map(|it| Cow::Owned(Value::from(it))).collect(),
            None => Vec::new(),
        },
    }
}

fn descendants(values: Values<'_>) -> Values<'_> {
    let mut found = Vec::new();
    for value in values {
        let children = children(value.clone());
        if !children.is_empty() {
            found.push(value);
            found.extend(descendants(children));
        }
    }
    found
}

fn select<'v>(values: Values<'v>, slice: &Slice) -> Result<Values<'v>, Unfit> {
    let has_values = !values.is_empty();
    let mut found = Vec::new();
    for value in values {
        if value.is_null() {
            continue;
        }
        if !value.is_array() {
            return Err(Unfit { has_values });
        }
        let elements = children(value);
        match slice.range(elements.len()) {
            Selected::Range { start, end, step } => {
                found.extend(elements.into_iter().take(end).skip(start).step_by(step));
            }
            // Go returns what it has, and does not look at the other values.
            Selected::Nothing => return Ok(found),
            Selected::OutOfBounds => return Err(Unfit { has_values }),
        }
    }
    Ok(found)
}

enum Selected {
    Range { start: usize, end: usize, step: usize },
    Nothing,
    OutOfBounds,
}

impl Slice {
    fn range(&self, length: usize) -> Selected {
        let Ok(length) = i64::try_from(length) else { return Selected::OutOfBounds };
        let from_end = |at: i64| if at < 0 { at.saturating_add(length) } else { at };
        let start = from_end(self.start.unwrap_or(0));
        let end = match self.end {
            End::Last => length,
            End::At(end) => from_end(end),
            End::AfterStart(0) => length,
            End::AfterStart(end) => from_end(end),
        };
        if start == end {
            return Selected::Nothing;
        }
        let in_bounds = (0..length).contains(&start) && (0..=length).contains(&end) && start <= end;
        let step = self.step.unwrap_or(1);
        match (usize::try_from(start), usize::try_from(end), usize::try_from(step)) {
            (Ok(start), Ok(end), Ok(step)) if in_bounds && step > 0 => {
                Selected::Range { start, end, step }
            }
            _ => Selected::OutOfBounds,
        }
    }
}

fn filtered<'v>(values: Values<'v>, filter: &'v Filter) -> Result<Values<'v>, Unfit> {
    let has_values = !values.is_empty();
    let mut found = Vec::new();
    for value in values {
        if !value.is_array() {
            return Err(Unfit { has_values });
        }
        for element in children(value) {
            match holds(&element, filter) {
                Ok(true) => found.push(element),
                Ok(false) => {}
                Err(Failure::Path) => return Err(Unfit { has_values }),
                Err(Failure::Comparison) => return Err(Unfit { has_values: !found.is_empty() }),
            }
        }
    }
    Ok(found)
}

enum Failure {
    Path,
    Comparison,
}

fn holds(element: &Value, filter: &Filter) -> Result<bool, Failure> {
    let left = follow(vec![Cow::Borrowed(element)], &filter.left);
    let Some((operator, right)) = &filter.comparison else {
        return Ok(match left {
            Ok(left) => !left.is_empty(),
            Err(Unfit { has_values }) => has_values,
        });
    };
    let Some(left) = single(left)? else { return Ok(false) };
    let Some(right) = single(follow(vec![Cow::Borrowed(element)], right))? else {
        return Ok(false);
    };
    operator.compare(&left, &right).ok_or(Failure::Comparison)
}

/// The only value, or none.
fn single(values: Result<Values<'_>, Unfit>) -> Result<Option<Cow<'_, Value>>, Failure> {
    let mut values = values.map_err(|Unfit { .. }| Failure::Path)?.into_iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Failure::Path),
    }
}

impl Operator {
    /// `None` if the values cannot be compared: only those of one type can, and an integer is not of
    /// the type of other numbers.
    fn compare(self, left: &Value, right: &Value) -> Option<bool> {
        if let (Value::Bool(left), Value::Bool(right)) = (left, right) {
            return match self {
                Self::Equal => Some(left == right),
                Self::NotEqual => Some(left != right),
                _ => None,
            };
        }
        let ordering = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
                _ => return None,
            },
            _ => return None,
        };
        match self {
            Self::Less => Some(ordering == Some(Ordering::Less)),
            Self::LessOrEqual => Some(ordering.is_some_and(Ordering::is_le)),
            Self::Equal => Some(ordering == Some(Ordering::Equal)),
            Self::NotEqual => Some(ordering != Some(Ordering::Equal)),
            Self::GreaterOrEqual => Some(ordering.is_some_and(Ordering::is_ge)),
            Self::Greater => Some(ordering == Some(Ordering::Greater)),
            Self::Unknown => None,
        }
    }
}
