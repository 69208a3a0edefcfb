//! An allocator that counts.

#![expect(unsafe_code, reason = "an allocator implements an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Counts the bytes requested from the allocator inside, now and at most. Rounding, headers and
/// fragmentation of that allocator are not in the figures; the resident memory shows them.
#[derive(Debug, Default)]
pub struct Counting<A> {
    inner: A,
    stopped: AtomicBool,
    live: AtomicUsize,
    peak: AtomicUsize,
    calls: AtomicUsize,
}

impl<A> Counting<A> {
    /// Counts on top of `inner`.
    pub const fn new(inner: A) -> Self {
        Self {
            inner,
            stopped: AtomicBool::new(false),
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        }
    }

    /// Bytes allocated and not freed.
    pub fn live(&self) -> usize {
        self.live.load(Relaxed)
    }

    /// The most that [`live`](Self::live) was since the last [`reset`](Self::reset).
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Allocations and reallocations since the start.
    pub fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Counts no more, for good: counting takes time that is not the program's.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Starts a new high-water mark at what is allocated now.
    pub fn reset(&self) {
        self.peak.store(self.live(), Relaxed);
    }

    fn grow(&self, bytes: usize) {
        if self.stopped.load(Relaxed) {
            return;
        }
        let live = self.live.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(live, Relaxed);
        self.calls.fetch_add(1, Relaxed);
    }

    fn shrink(&self, bytes: usize) {
        if !self.stopped.load(Relaxed) {
            self.live.fetch_sub(bytes, Relaxed);
        }
    }
}

// SAFETY: every call is passed on unchanged to an allocator, and its answer is passed back
// unchanged. Counting touches atomics only: it neither allocates nor unwinds (`+` cannot overflow:
// memory is finite).
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        let block = unsafe { self.inner.alloc(layout) };
        if !block.is_null() {
            self.grow(layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        if !block.is_null() {
            self.grow(layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `inner` with this layout, as all blocks do.
        unsafe { self.inner.dealloc(block, layout) };
        self.shrink(layout.size());
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: `block` came from `inner` with this layout, and the caller vouches for
        // `new_size`.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            // For a moment there may be both, which a high-water mark must not hide.
            self.grow(new_size);
            self.shrink(layout.size());
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    #[test]
    fn what_is_freed_leaves_the_count_and_stays_in_the_peak() {
        let heap = Counting::new(System);
        let layout = Layout::array::<u8>(100).unwrap();
        // SAFETY: the layout is not empty, and each block is freed once, with the layout it has
        // then.
        unsafe {
            let block = heap.alloc(layout);
            let block = heap.realloc(block, layout, 300);
            assert_eq!((heap.live(), heap.peak(), heap.calls()), (300, 400, 2));
            heap.dealloc(block, Layout::array::<u8>(300).unwrap());
            assert_eq!((heap.live(), heap.peak()), (0, 400));
            heap.reset();
            let block = heap.alloc_zeroed(layout);
            assert_eq!((heap.live(), heap.peak()), (100, 100));
            heap.stop();
            heap.dealloc(block, layout);
            assert_eq!(heap.live(), 100);
        }
    }
}
