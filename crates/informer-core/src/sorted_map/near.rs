//! Looking for keys that come in order, as a list brings them: each one is looked for where the last one was found.

use std::cmp::Ordering;

use super::{Node, SearchKey, SortedMap};

/// Where in a map to look first, as [`SortedMap::find_near`] returned it. Good for any map and at any time: a place that
/// is not the right one costs one comparison at most, and the way there.
///
/// The way down from the root: a one, then six bits for each level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u64);

/// Of the number of an entry or child.
const BITS: u32 = 6;

const MASK: u64 = (1 << BITS) - 1;

const _: () = assert!(super::WIDTH as u64 <= MASK);

impl Place {
    /// Nowhere.
    pub(crate) const NONE: Self = Self(0);

    /// Where every way begins.
    pub(super) const ROOT: Self = Self(1);

    /// The place as a number, to be kept in an atomic.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// The place of which this is the number.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// One level down. A tree of more than ten levels has no places.
    pub(super) fn down(self, at: usize) -> Self {
        if self.0 == 0 || self.0 >> (64 - BITS) != 0 { Self::NONE } else { Self(self.0 << BITS | at as u64) }
    }

    /// How far the bits of the root's level are from the right.
    fn shift(self) -> Option<u32> {
        let bits = self.0.checked_ilog2()?;
        bits.checked_sub(BITS).filter(|shift| shift.is_multiple_of(BITS))
    }
}

impl<K: SearchKey, V> SortedMap<K, V> {
    /// Finds an entry, and the place of what comes next. Where that is looked for next, with this `near`, one comparison
    /// is all it takes. `compare` and `head` are as for [`find_by_head`](Self::find_by_head).
    pub(crate) fn find_near(
        &self,
        near: Place,
        compare: impl Fn(&K) -> Ordering,
        head: impl Fn(usize) -> u64,
    ) -> (Option<(&K, &V)>, Place) {
        if let Some(((key, value), next)) = self.at(near)
            && compare(key).is_eq()
        {
            return (Some((key, value)), next);
        }
        self.search::<true>(&compare, &head)
    }

    /// The entry at a place, or behind it where a leaf ends there, with the place that follows.
    fn at(&self, place: Place) -> Option<((&K, &V), Place)> {
        let shift = place.shift()?;
        let (entry, way) = at(&self.root, place.0, shift)?;
        Some((entry, Place((1 << (shift + BITS) | way) + 1)))
    }
}

/// An entry with the way to it.
type Found<'a, K, V> = ((&'a K, &'a V), u64);

/// `shift`: how far the bits of this node's level are from the right.
fn at<K, V>(node: &Node<K, V>, way: u64, shift: u32) -> Option<Found<'_, K, V>> {
    let number = way >> shift & MASK;
    match node {
        Node::Leaf(entries) if shift == 0 => Some((entries.get(number as usize)?.parts(), number)),
        Node::Branch(children) if shift > 0 => {
            let below = |number: u64, way| {
                let (entry, below) = at(&children.get(number as usize)?.node, way, shift - BITS)?;
                Some((entry, number << shift | below))
            };
            below(number, way).or_else(|| below(number + 1, 0))
        }
        Node::Leaf(_) | Node::Branch(_) => None,
    }
}
