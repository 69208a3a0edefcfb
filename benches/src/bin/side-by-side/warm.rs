//! Memory that the machine has already.

use std::hint::black_box;

use memmap2::MmapMut;

/// More than any client takes, bytes.
const MOST: usize = 2 << 30;

/// Touches more memory than any client takes, and gives it back: on a virtual machine, the first
/// use of a page may wait for the host, as does one that was left alone for a while, which has
/// nothing to do with the client that needs it. In huge pages, since allocators ask for these, and
/// a system keeps small and large ones apart.
pub(crate) fn warm() {
    let Ok(mut memory) = MmapMut::map_anon(MOST) else { return };
    #[cfg(target_os = "linux")]
    if let Err(error) = memory.advise(memmap2::Advice::HugePage) {
        eprintln!("no huge pages: {error}");
    }
    memory.chunks_mut(4096).for_each(|page| page[0] = 1);
    black_box(&memory);
}
