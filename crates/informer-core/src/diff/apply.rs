//! Applies a diff to the old state.

use serde_json::Value;

use super::list::element_key;
use super::{Change, Diff, Path, Segment, Shown};

/// Why a diff cannot be applied to a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The diff is incomplete.
    #[error("the diff leaves something out; make it with DiffOptions::exact()")]
    Incomplete,
    /// The state is not the old state of the diff.
    #[error("the object has no such place as {path}; it is not the one that was compared")]
    Nowhere {
        /// The path that does not exist in it.
        path: Path,
    },
}

impl Diff {
    /// Turns the old state into the new one. The diff must have been made with
    /// [`DiffOptions::exact`](super::DiffOptions::exact).
    ///
    /// # Errors
    /// If the diff is incomplete, or belongs to another object. Some of the changes may have been
    /// applied to `state` in this case.
    ///
    /// # Examples
    /// ```
    /// use informer_core::diff::{DiffOptions, between};
    /// use serde_json::json;
    ///
    /// let (old, new) = (json!({"a": [3, 1]}), json!({"a": [1, 2], "b": {}}));
    /// let mut state = old.clone();
    /// between(&old, &new, &DiffOptions::exact()).apply(&mut state)?;
    /// assert_eq!(state, new);
    /// # Ok::<(), informer_core::diff::ApplyError>(())
    /// ```
    pub fn apply(&self, state: &mut Value) -> Result<(), ApplyError> {
        if self.more > 0 || self.folded > 0 {
            return Err(ApplyError::Incomplete);
        }
        let is_removed_position = |change: &&Change| {
            let last = change.path().segments().last();
            matches!((change, last), (Change::Removed { .. }, Some(Segment::Index(_))))
        };
        for change in self.changes.iter().filter(|it| !is_removed_position(it)) {
            change.apply(state)?;
        }
        // Removals by position come last and in reverse, so that the positions of the other changes
        // remain valid.
        for change in self.changes.iter().rev().filter(is_removed_position) {
            change.apply(state)?;
        }
        Ok(())
    }
}

impl Change {
    fn apply(&self, state: &mut Value) -> Result<(), ApplyError> {
        let segments = self.path().segments();
        let done = match self {
            Self::Changed { new, .. } => {
                let new = new.whole()?;
                at(state, segments).map(|it| *it = new)
            }
            Self::Added { new, .. } => add(state, segments, new.whole()?),
            Self::Removed { old, .. } => remove(state, segments, &old.whole()?),
            Self::Reordered { order, .. } => {
                let order = order.as_ref().ok_or(ApplyError::Incomplete)?;
                at(state, segments).and_then(|it| reorder(it, order))
            }
        };
        done.ok_or_else(|| ApplyError::Nowhere { path: self.path().clone() })
    }
}

impl Shown {
    fn whole(&self) -> Result<Value, ApplyError> {
        match self {
            Self::Whole { value } => Ok(value.clone()),
            Self::Part { .. } | Self::Hidden { .. } => Err(ApplyError::Incomplete),
        }
    }
}

fn at<'a>(state: &'a mut Value, segments: &[Segment]) -> Option<&'a mut Value> {
    segments.iter().try_fold(state, |value, segment| match segment {
        Segment::Name(name) => value.as_object_mut()?.get_mut(name),
        Segment::Index(index) => value.as_array_mut()?.get_mut(*index),
        Segment::Key(key) => {
            let list = value.as_array_mut()?;
            let at = find(list, key)?;
            list.get_mut(at)
        }
        // The elements of sets are scalars, so no path leads through one.
        Segment::Element => None,
    })
}

fn add(state: &mut Value, segments: &[Segment], new: Value) -> Option<()> {
    let (last, parent) = segments.split_last()?;
    let parent = at(state, parent)?;
    match last {
        Segment::Name(name) => {
            parent.as_object_mut()?.insert(name.clone(), new);
        }
        Segment::Index(index) => {
            let list = parent.as_array_mut()?;
            (*index <= list.len()).then(|| list.insert(*index, new))?;
        }
        Segment::Key(_) | Segment::Element => parent.as_array_mut()?.push(new),
    }
    Some(())
}

fn remove(state: &mut Value, segments: &[Segment], old: &Value) -> Option<()> {
    let (last, parent) = segments.split_last()?;
    let parent = at(state, parent)?;
    if let Segment::Name(name) = last {
        return parent.as_object_mut()?.remove(name).map(drop);
    }
    let list = parent.as_array_mut()?;
    let at = match last {
        Segment::Key(key) => find(list, key)?,
        Segment::Index(index) => Some(*index).filter(|it| *it < list.len())?,
        Segment::Element => list.iter().position(|it| it == old)?,
        Segment::Name(_) => return None,
    };
    list.remove(at);
    Some(())
}

fn find(list: &[Value], key: &[(&'static str, Value)]) -> Option<usize> {
    let fields: Vec<&'static str> = key.iter().map(|(field, _)| *field).collect();
    list.iter().position(|element| {
        let found = element_key(&fields, element);
        found.is_some_and(|it| key.iter().zip(it).all(|((_, value), found)| value == found))
    })
}

fn reorder(list: &mut Value, order: &[usize]) -> Option<()> {
    let list = list.as_array_mut()?;
    let ordered: Option<Vec<Value>> = order.iter().map(|at| list.get(*at).cloned()).collect();
    *list = ordered.filter(|it| it.len() == list.len())?;
    Some(())
}
