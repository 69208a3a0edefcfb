//! Memory that the machine has already.

use std::hint::black_box;

/// More than any client takes, bytes.
const MOST: usize = 3 << 30;

/// Touches as much memory as any client takes, and gives it back: on a virtual machine, the first use of a page may wait
/// for the host, as does one that was left alone for a while, which has nothing to do with the client that needs it.
pub(crate) fn warm() {
    let mut memory = vec![0u8; MOST];
    memory.chunks_mut(4096).for_each(|page| page[0] = 1);
    black_box(&memory);
}
