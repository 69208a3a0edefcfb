//! Four bytes of each key, beside the pointer to its text.
//!
//! The keys of a node lie anywhere in memory, and to compare with one costs a wait for it, unless it was looked at
//! lately. What they begin with is mostly the same for all of a node; the four bytes behind that tell most of them apart.

use std::hint::black_box;
use std::ops::Deref;

/// Bytes that the processor fetches at a time.
const LINE: usize = 64;

/// A key whose text can be looked at in pieces.
///
/// Without these, a map works as well, and looks at more keys.
///
/// # Examples
/// ```
/// use informer_core::ObjectKey;
/// use informer_core::sorted_map::{SearchKey, SortedMap};
///
/// let key = |name| ObjectKey::namespaced("default", name);
/// assert_eq!(key("web-0").common_prefix(&key("web-1")), "default/web-".len());
/// assert_eq!(key("web-0").head("default/".len()), u32::from_be_bytes(*b"web-"));
///
/// /// A key of one's own.
/// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
/// struct Port(u16);
///
/// impl SearchKey for Port {}
///
/// let mut map = SortedMap::new();
/// map.insert(Port(443), "https");
/// assert_eq!(map.get(&Port(443)), Some(&"https"));
/// ```
pub trait SearchKey: Ord {
    /// How many bytes this key and the other begin with alike.
    fn common_prefix(&self, _other: &Self) -> usize {
        0
    }

    /// The four bytes of this key from `at` on, the first of them highest; zeros behind its end. Of two keys that are alike
    /// up to there, the lower one has no higher head.
    fn head(&self, _at: usize) -> u32 {
        0
    }
}

/// The [head](SearchKey::head) of a text.
pub(crate) fn head_of(text: &[u8], at: usize) -> u32 {
    let text = text.get(at..).unwrap_or_default();
    if let Some(four) = text.first_chunk::<4>() {
        return u32::from_be_bytes(*four);
    }
    let mut four = [0; 4];
    four[..text.len()].copy_from_slice(text);
    u32::from_be_bytes(four)
}

/// How many bytes two texts begin with alike.
pub(crate) fn common_prefix_of(own: &[u8], other: &[u8]) -> usize {
    let (own_eights, other_eights) = (own.as_chunks::<8>().0, other.as_chunks::<8>().0);
    for (at, (own, other)) in own_eights.iter().zip(other_eights).enumerate() {
        let different = u64::from_le_bytes(*own) ^ u64::from_le_bytes(*other);
        if different != 0 {
            return 8 * at + different.trailing_zeros() as usize / 8;
        }
    }
    let alike = 8 * own_eights.len().min(other_eights.len());
    let ends = own[alike..].iter().zip(&other[alike..]);
    alike + ends.take_while(|(own, other)| own == other).count()
}

/// What stands in a row by its key.
pub(super) trait Keyed {
    type Key: SearchKey;

    fn key(&self) -> &Self::Key;

    /// The head of the key, behind what all of the row begin with.
    fn head(&mut self) -> &mut u32;
}

/// The entries of a leaf, or the children of a branch.
pub(super) struct Row<E> {
    items: Vec<E>,
    /// So many bytes all keys begin with alike; of one key, all it has.
    prefix: u32,
}

impl<E> Row<E> {
    pub(super) fn new() -> Self {
        Self { items: Vec::new(), prefix: u32::MAX }
    }

    /// Reads something of each line of memory that the items are in. A search reads one after another, each of which may be
    /// far away; these reads wait for none of the others.
    #[inline]
    pub(super) fn fetch(&self, head: impl Fn(&E) -> u32) {
        let heads = self.items.iter().step_by((LINE / size_of::<E>()).max(1));
        black_box(heads.map(head).fold(0, u32::wrapping_add));
    }

    /// So many bytes all keys begin with alike.
    pub(super) fn prefix(&self) -> usize {
        self.prefix as usize
    }

    /// For what is not the key.
    pub(super) fn item_mut(&mut self, at: usize) -> &mut E {
        &mut self.items[at]
    }

    /// Those that are left have the prefix still, and maybe more.
    pub(super) fn remove(&mut self, at: usize) -> E {
        self.items.remove(at)
    }
}

impl<E: Keyed> Row<E> {
    /// Grows by a quarter of `most` at a time: doubling would waste up to half of what a row holds.
    pub(super) fn insert(&mut self, at: usize, mut item: E, most: usize) {
        let prefix = match self.items.first() {
            Some(first) => self.prefix.min(narrow(first.key().common_prefix(item.key()))),
            None => u32::MAX,
        };
        *item.head() = item.key().head(prefix as usize);
        let heads_stay = prefix == self.prefix || self.items.is_empty();
        self.prefix = prefix;
        if self.items.len() == self.items.capacity() {
            self.items.reserve_exact((most / 4).min(most.saturating_sub(self.items.len()).max(1)));
        }
        self.items.insert(at, item);
        if !heads_stay {
            self.set_heads();
        }
    }

    /// The items from `at` on, in a row that can take `most`.
    pub(super) fn split_off(&mut self, at: usize, most: usize) -> Self {
        let mut items = Vec::with_capacity(most);
        items.extend(self.items.drain(at..));
        // What remains tells its keys apart by more if much has gone.
        if items.len() > 1 {
            self.measure();
        }
        Self::from(items)
    }

    /// Puts another row behind this one.
    pub(super) fn append(&mut self, other: Self) {
        self.items.extend(other.items);
        self.measure();
    }

    fn measure(&mut self) {
        let common = match self.items.split_first() {
            Some((first, others)) => others.iter().map(|item| first.key().common_prefix(item.key())).min(),
            None => None,
        };
        self.prefix = common.map_or(u32::MAX, narrow);
        self.set_heads();
    }

    fn set_heads(&mut self) {
        let prefix = self.prefix();
        for item in &mut self.items {
            *item.head() = item.key().head(prefix);
        }
    }
}

/// No text of a key is that long.
fn narrow(prefix: usize) -> u32 {
    prefix.try_into().unwrap_or(u32::MAX)
}

impl<E: Keyed> From<Vec<E>> for Row<E> {
    fn from(items: Vec<E>) -> Self {
        let mut row = Self { items, prefix: u32::MAX };
        row.measure();
        row
    }
}

impl<E> Deref for Row<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        &self.items
    }
}

impl<E: Clone> Clone for Row<E> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), prefix: self.prefix }
    }
}
