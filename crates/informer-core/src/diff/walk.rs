//! Traverses two states of an object in parallel and collects the changes.

use serde_json::{Map, Value};

use super::list::{ByKey, ElementKey, Matching, element_key, scalar_key};
use super::place::{Coding, Place, Subject};
use super::{Change, Diff, DiffOptions, Path, Segment, Shown};

pub(super) fn walk(old: &Value, new: &Value, options: &DiffOptions) -> Diff {
    let subject = Subject::of(old, new, options);
    let mut walk =
        Walk { options, subject, path: Vec::new(), diff: Diff::default(), generation: None };
    // An exact diff treats no field specially.
    let place = if options.is_exact() { Place::Other } else { Place::Root };
    walk.values(place, Some(old), Some(new));
    walk.finish()
}

struct Walk<'a> {
    options: &'a DiffOptions,
    subject: Subject,
    path: Vec<Step<'a>>,
    diff: Diff,
    /// The change of `metadata.generation`, which is shown only if nothing else changed.
    generation: Option<Change>,
}

/// A [`Segment`] that borrows its contents. It is converted only when a change is recorded.
#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
    Key(&'static [&'static str], ElementKey<'a>),
    Element,
}

impl<'a> Walk<'a> {
    fn finish(mut self) -> Diff {
        if let Some(generation) = self.generation {
            // Any other change is more informative.
            if self.diff.is_quiet() {
                self.diff.changes.push(generation);
            } else {
                self.diff.folded += 1;
            }
        }
        self.diff
    }

    fn values(&mut self, place: Place, old: Option<&'a Value>, new: Option<&'a Value>) {
        if place == Place::Noise {
            self.diff.folded += usize::from(old != new);
            return;
        }
        if let Some(coding) = place.hides([old, new]) {
            if old != new {
                self.hidden(coding, old, new);
            }
            return;
        }
        if place == Place::Generation {
            if old != new {
                self.generation = self.change(old, new);
            }
            return;
        }
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.members(place, old, new),
            (Some(Value::Array(old)), Some(Value::Array(new))) => self.elements(place, old, new),
            (old, new) if old == new => {}
            (old, new) if place.guards_members() => self.guarded(place, old, new),
            (old, new) => self.emit(old, new),
        }
    }

    /// Compares two values of which at most one is an object with members. These members are
    /// recorded one by one, so that each can be hidden or folded.
    fn guarded(&mut self, place: Place, old: Option<&'a Value>, new: Option<&'a Value>) {
        let members = |value: Option<&'a Value>| {
            value.and_then(Value::as_object).filter(|members| !members.is_empty())
        };
        match (members(old), members(new)) {
            (Some(members), None) => {
                self.emit(None, new);
                for (name, value) in members {
                    self.member(place, name, Some(value), None);
                }
            }
            (None, Some(members)) => {
                self.emit(old, None);
                for (name, value) in members {
                    self.member(place, name, None, Some(value));
                }
            }
            (None, None) | (Some(_), Some(_)) => self.emit(old, new),
        }
    }

    fn members(&mut self, place: Place, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        for (name, value) in old {
            self.member(place, name, Some(value), new.get(name));
        }
        for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            self.member(place, name, None, Some(value));
        }
    }

    fn member(
        &mut self,
        place: Place,
        name: &'a str,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
    ) {
        let subject = self.subject;
        self.at(Step::Name(name), |walk| walk.values(place.member(name, subject), old, new));
    }

    fn elements(&mut self, place: Place, old: &'a [Value], new: &'a [Value]) {
        if old == new {
            return;
        }
        let field = match self.path.iter().rev().find(|it| matches!(it, Step::Name(_))) {
            Some(Step::Name(name)) => name,
            _ => "",
        };
        match Matching::of(field, old, new) {
            Matching::Keyed { fields, old: old_keys, new: new_keys } => {
                let step = |element| {
                    let key = element_key(fields, element)?;
                    Some((Step::Key(fields, key), key))
                };
                self.matched(place, [old, new], [&old_keys, &new_keys], step);
            }
            Matching::Set { old: old_keys, new: new_keys } => {
                let step = |element| Some((Step::Element, scalar_key(element)));
                self.matched(place, [old, new], [&old_keys, &new_keys], step);
            }
            Matching::Position => self.by_position(place, old, new),
        }
    }

    fn matched(
        &mut self,
        place: Place,
        [old, new]: [&'a [Value]; 2],
        [old_keys, new_keys]: [&ByKey<'a>; 2],
        step: impl Fn(&'a Value) -> Option<(Step<'a>, ElementKey<'a>)>,
    ) {
        // The positions in the new list of the elements that stayed, in their old order.
        let mut stayed = Vec::with_capacity(new.len());
        for element in old {
            let Some((step, key)) = step(element) else { continue };
            let at = new_keys.get(&key).copied();
            stayed.extend(at);
            let other = at.map(|at| &new[at]);
            self.at(step, |walk| walk.values(place.element(), Some(element), other));
        }
        let is_moved = !stayed.is_sorted();
        for (at, element) in new.iter().enumerate() {
            let Some((step, key)) = step(element) else { continue };
            if !old_keys.contains_key(&key) {
                stayed.push(at);
                self.at(step, |walk| walk.values(place.element(), None, Some(element)));
            }
        }
        let is_exact = self.options.is_exact();
        if is_moved || is_exact && !stayed.is_sorted() {
            let order = is_exact.then(|| {
                let mut order = vec![0; new.len()];
                for (position, at) in stayed.iter().enumerate() {
                    order[*at] = position;
                }
                order
            });
            let path = self.path();
            self.push(|| Change::Reordered { path, order });
        }
    }

    fn by_position(&mut self, place: Place, old: &'a [Value], new: &'a [Value]) {
        let common = |pairs: &mut dyn Iterator<Item = (&'a Value, &'a Value)>| {
            pairs.take_while(|(old, new)| old == new).count()
        };
        let start = common(&mut old.iter().zip(new));
        let end = common(&mut old[start..].iter().rev().zip(new[start..].iter().rev()));
        let (old_end, new_end) = (old.len() - end, new.len() - end);
        for at in start..old_end.max(new_end) {
            let old = (at < old_end).then(|| &old[at]);
            let new = (at < new_end).then(|| &new[at]);
            self.at(Step::Index(at), |walk| walk.values(place.element(), old, new));
        }
    }

    fn at(&mut self, step: Step<'a>, walk: impl FnOnce(&mut Self)) {
        self.path.push(step);
        walk(self);
        self.path.pop();
    }

    fn emit(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if old.is_none() && new.is_none() {
            return;
        }
        if self.is_full() {
            self.diff.more += 1;
        } else {
            let change = self.change(old, new);
            self.diff.changes.extend(change);
        }
    }

    fn hidden(&mut self, coding: Coding, old: Option<&Value>, new: Option<&Value>) {
        let hide = |value| Shown::hidden(value, coding);
        if self.is_full() {
            self.diff.more += 1;
        } else {
            let change = make(self.path(), old.map(hide), new.map(hide));
            self.diff.changes.extend(change);
        }
    }

    fn push(&mut self, change: impl FnOnce() -> Change) {
        if self.is_full() {
            self.diff.more += 1;
        } else {
            self.diff.changes.push(change());
        }
    }

    fn is_full(&self) -> bool {
        self.diff.changes.len() >= self.options.limits.changes
    }

    fn change(&self, old: Option<&Value>, new: Option<&Value>) -> Option<Change> {
        let max = self.options.limits.bytes;
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) => {
                let [old, new] = Shown::pair(old, new, max);
                (Some(old), Some(new))
            }
            (old, new) => (old.map(|it| Shown::of(it, max)), new.map(|it| Shown::of(it, max))),
        };
        make(self.path(), old, new)
    }

    fn path(&self) -> Path {
        let segment = |step: &Step<'_>| match *step {
            Step::Name(name) => Segment::Name(name.to_owned()),
            Step::Index(index) => Segment::Index(index),
            Step::Element => Segment::Element,
            Step::Key(fields, key) => {
                let parts = fields.iter().zip(key).map(|(field, value)| (*field, value.clone()));
                Segment::Key(parts.collect())
            }
        };
        self.path.iter().map(segment).collect()
    }
}

fn make(path: Path, old: Option<Shown>, new: Option<Shown>) -> Option<Change> {
    Some(match (old, new) {
        (Some(old), Some(new)) => Change::Changed { path, old, new },
        (Some(old), None) => Change::Removed { path, old },
        (None, Some(new)) => Change::Added { path, new },
        (None, None) => return None,
    })
}
