//! The keys of a list whose objects the store has already.

use std::cmp::Ordering;

use hashbrown::HashSet;

use crate::ObjectKey;

/// A set of keys that mostly come in key order, as those of a list do: they stand in a row, and are compared with the
/// store's in one walk over both. The others are looked up.
#[derive(Default)]
pub(super) struct Kept {
    /// In key order.
    row: Vec<ObjectKey>,
    /// Keys of the row that do not count any more.
    dropped: HashSet<ObjectKey>,
    /// Keys that came behind a greater one.
    others: HashSet<ObjectKey>,
}

impl Kept {
    pub(super) fn len(&self) -> usize {
        self.row.len() - self.dropped.len() + self.others.len()
    }

    pub(super) fn insert(&mut self, key: ObjectKey) {
        if self.row.last().is_none_or(|last| *last < key) {
            self.row.push(key);
        } else if self.row.binary_search(&key).is_ok() {
            self.dropped.remove(&key);
        } else {
            self.others.insert(key);
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) {
        if !self.others.is_empty() && self.others.remove(key) {
            return;
        }
        let behind_all = self.row.last().is_none_or(|last| last < key);
        if !behind_all && self.row.binary_search(key).is_ok() {
            self.dropped.insert(key.clone());
        }
    }

    /// To be asked for keys in key order.
    pub(super) fn walk(&self) -> Walk<'_> {
        Walk { kept: self, row: &self.row }
    }
}

/// See [`Kept::walk`].
pub(super) struct Walk<'a> {
    kept: &'a Kept,
    /// What has not been passed.
    row: &'a [ObjectKey],
}

impl Walk<'_> {
    /// Whether the set has `key`, which is behind every key that was asked for before.
    pub(super) fn contains(&mut self, key: &ObjectKey) -> bool {
        while let [first, rest @ ..] = self.row {
            // The store's own keys, mostly.
            let order = if first.is(key) { Ordering::Equal } else { first.cmp(key) };
            match order {
                Ordering::Less => self.row = rest,
                Ordering::Equal => {
                    self.row = rest;
                    return self.kept.dropped.is_empty() || !self.kept.dropped.contains(key);
                }
                Ordering::Greater => break,
            }
        }
        !self.kept.others.is_empty() && self.kept.others.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> ObjectKey {
        ObjectKey::cluster(&format!("{number:03}"))
    }

    proptest! {
        #[test]
        fn g07_has_the_keys_that_were_kept_in_whatever_order_they_came(
            steps in prop::collection::vec((0u8..4, 0u8..60), 0..200),
            (in_order, own) in any::<(bool, bool)>(),
        ) {
            let mut steps = steps;
            if in_order {
                steps.sort_by_key(|&(_, number)| number);
            }
            // Those of the store, which a list may give back, or others of the same text.
            let held: Vec<ObjectKey> = (0..60).map(key).collect();
            let given = |number: u8| if own { held[usize::from(number)].clone() } else { key(number) };
            let (mut kept, mut model) = (Kept::default(), BTreeSet::new());
            for (what, number) in steps {
                if what == 0 {
                    kept.remove(&key(number));
                    model.remove(&number);
                } else {
                    kept.insert(given(number));
                    model.insert(number);
                }
                prop_assert_eq!(kept.len(), model.len());
            }
            for every in 1..4 {
                let mut walk = kept.walk();
                for number in (0u8..60).step_by(every) {
                    prop_assert_eq!(walk.contains(&held[usize::from(number)]), model.contains(&number));
                }
            }
        }
    }
}
