//! A few bytes of each key, beside the pointer to its text.
//!
//! The keys of a node lie anywhere in memory, and to compare with one costs a wait for it, unless it was looked at
//! lately. What they begin with is mostly the same for all of a node; the eight bytes behind that, in leaves four, tell most
//! of them apart.

use std::hint::black_box;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that the processor fetches at a time.
const LINE: usize = 64;

/// A key whose text can be looked at in pieces. A map finds its keys by these; a type that does not say what its text is
/// is compared as a whole.
///
/// The text is the keys' own: of two keys that begin alike up to `at`, the lower one by [`Ord`] has no higher head there.
/// Where that does not hold, a map may not find what it has.
///
/// # Examples
/// ```
/// use informer_core::ObjectKey;
/// use informer_core::sorted_map::{SearchKey, SortedMap};
///
/// let key = |name| ObjectKey::namespaced("default", name);
/// assert_eq!(key("web-0").common_prefix(&key("web-1")), "default/web-".len());
/// assert_eq!(key("web-0").head("default/".len()), u64::from_be_bytes(*b"web-0\0\0\0"));
///
/// /// A key of one's own, which is compared as a whole.
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
    /// How many bytes this key and the other begin with alike, or fewer.
    fn common_prefix(&self, _other: &Self) -> usize {
        0
    }

    /// Eight bytes of this key from `at` on, the first of them highest; zeros behind its end, where any `at` may be.
    fn head(&self, _at: usize) -> u64 {
        0
    }
}

macro_rules! search_key_by_bytes {
    ($($key:ty, $bytes:ident;)*) => {$(
        impl SearchKey for $key {
            fn common_prefix(&self, other: &Self) -> usize {
                common_prefix_of(self.$bytes().as_ref(), other.$bytes().as_ref())
            }

            fn head(&self, at: usize) -> u64 {
                head_of(self.$bytes().as_ref(), at)
            }
        }
    )*};
}

search_key_by_bytes! {
    String, as_bytes;
    Arc<str>, as_bytes;
    u32, to_be_bytes;
    u64, to_be_bytes;
}

/// The [head](SearchKey::head) of a text.
pub(crate) fn head_of(text: &[u8], at: usize) -> u64 {
    let text = text.get(at..).unwrap_or_default();
    if let Some(eight) = text.first_chunk() {
        return u64::from_be_bytes(*eight);
    }
    let mut eight = [0; 8];
    eight[..text.len()].copy_from_slice(text);
    u64::from_be_bytes(eight)
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

/// What stands in a row by its key: an entry, or a node.
pub(super) trait Keyed {
    type Key: SearchKey;

    /// What it is found by.
    fn key(&self) -> &Self::Key;

    /// The lowest key that is in it.
    fn lowest(&self) -> Option<&Self::Key>;

    /// The highest key that is in it.
    fn highest(&self) -> Option<&Self::Key>;

    /// The bits of a head that it has room for.
    const HEAD: u64;

    /// The head of the key, behind the prefix of the row.
    fn head(&self) -> u64;

    fn set_head(&mut self, head: u64);
}

/// The entries of a leaf, or the children of a branch.
pub(super) struct Row<E> {
    items: Vec<E>,
    /// So many bytes all keys begin with alike that are in here, or below. Of one key, any number.
    prefix: u32,
}

impl<E> Row<E> {
    pub(super) fn new() -> Self {
        Self { items: Vec::new(), prefix: u32::MAX }
    }

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
    /// Reads something of each line of memory that the items are in. A search reads one after another, each of which may be
    /// far away; these reads wait for none of the others.
    #[inline]
    pub(super) fn fetch(&self) {
        let heads = self.items.iter().step_by((LINE / size_of::<E>()).max(1));
        black_box(heads.map(E::head).fold(0, u64::wrapping_add));
    }

    /// For a key to come that has so many bytes in common with one that is in here, or below.
    pub(super) fn narrow(&mut self, common: usize) {
        let common = bounded(common);
        if common < self.prefix {
            self.prefix = common;
            self.set_heads();
        }
    }

    /// Puts an item with the row's prefix in its place. Grows by a quarter of `most` at a time: doubling would waste up to
    /// half of what a row holds.
    pub(super) fn insert(&mut self, at: usize, mut item: E, most: usize) {
        item.set_head(item.key().head(self.prefix()));
        if self.items.len() == self.items.capacity() {
            self.items.reserve_exact((most / 4).min(most.saturating_sub(self.items.len()).max(1)));
        }
        self.items.insert(at, item);
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
        let ends = self.items.first().and_then(E::lowest).zip(self.items.last().and_then(E::highest));
        self.prefix = ends.map_or(u32::MAX, |(lowest, highest)| bounded(lowest.common_prefix(highest)));
        self.set_heads();
    }

    fn set_heads(&mut self) {
        let prefix = self.prefix();
        for item in &mut self.items {
            item.set_head(item.key().head(prefix));
        }
    }
}

/// No text of a key is that long.
fn bounded(prefix: usize) -> u32 {
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
