// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program's first memory: small blocks from 128 KiB that are part of the program, everything else from the C library.
//!
//! Context: SETUP, COLD. Units: bytes. musl's allocator asks the kernel for nearly every block of a page and gives it back as soon as it
//! is free: a third of all system calls until a measurement begins, each with a page fault behind it. Here a block that is given back
//! is the next one of its size. Nobody ever waits for another thread: who finds the heap taken uses the C library's, and a
//! block that is given back meanwhile is not used again.
//! Source: the standard library's `GlobalAlloc`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Until it measures a bare probe takes 100 KiB; what is taken of it stays in memory.
const BYTES: usize = 128 << 10;
/// Alignment of all blocks, and the least of them.
const GRAIN: usize = 16;
/// Sizes of blocks.
const SIZES: [usize; 22] = [
    16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
    12_288, 16_384, 24_576, 32_768,
];

/// Blocks that are free, by their place; the first free one of a size holds the place of the next.
#[derive(Debug)]
struct Blocks {
    /// Behind everything that was ever given; 0 at first.
    end: usize,
    /// The first free one of each size, or [`NONE`].
    free: [usize; SIZES.len()],
}

/// No block lies there. All zero bytes are a heap that is free, so that it takes no room in the program's file.
const NONE: usize = 0;
const FIRST: usize = GRAIN;

#[repr(C, align(4096))]
struct Memory([u8; BYTES]);

/// An allocator for a whole program: `#[global_allocator]`.
pub struct FirstHeap {
    memory: UnsafeCell<Memory>,
    blocks: UnsafeCell<Blocks>,
    is_taken: AtomicBool,
}

// SAFETY: `blocks` is used by whoever has set `is_taken`, and each part of `memory` by whoever was given it.
unsafe impl Sync for FirstHeap {}

impl std::fmt::Debug for FirstHeap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FirstHeap")
    }
}

impl Default for FirstHeap {
    fn default() -> Self {
        Self::new()
    }
}

/// Which size a block for this layout has; none: it is the C library's matter.
fn size_class(layout: Layout) -> Option<usize> {
    if layout.align() > GRAIN {
        return None;
    }
    SIZES.iter().position(|size| *size >= layout.size())
}

impl FirstHeap {
    /// All of it free.
    #[must_use]
    #[expect(clippy::large_stack_arrays, reason = "evaluated into a static")]
    pub const fn new() -> Self {
        Self {
            memory: UnsafeCell::new(Memory([0; BYTES])),
            blocks: UnsafeCell::new(Blocks { end: 0, free: [NONE; SIZES.len()] }),
            is_taken: AtomicBool::new(false),
        }
    }

    /// Does what is to be done with the free blocks, unless another thread does.
    fn with<T>(&self, what: impl FnOnce(&mut Blocks) -> Option<T>) -> Option<T> {
        let free =
            self.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        free.ok()?;
        // SAFETY: only who has set `is_taken` has a reference, which ends before it is set back.
        let done = what(unsafe { &mut *self.blocks.get() });
        self.is_taken.store(false, Ordering::Release);
        done
    }

    fn at(&self, place: usize) -> *mut u8 {
        self.memory.get().cast::<u8>().wrapping_add(place)
    }

    fn has(&self, block: *mut u8) -> bool {
        (block.addr()).wrapping_sub(self.memory.get().addr()) < BYTES
    }

    /// A block of this size, with what it was used for before in it.
    fn block(&self, class: usize) -> Option<*mut u8> {
        let bytes = *SIZES.get(class)?;
        self.with(|blocks| {
            let first = blocks.free.get_mut(class)?;
            if *first != NONE {
                let block = self.at(*first);
                // SAFETY: a free block, at whose begin `give_back` wrote this; all are aligned for it.
                *first = unsafe { block.cast::<usize>().read() };
                return Some(block);
            }
            let place = blocks.end.max(FIRST);
            let end = place.checked_add(bytes).filter(|end| *end <= BYTES)?;
            blocks.end = end;
            Some(self.at(place))
        })
    }

    /// # Safety
    /// A block of this heap and size, which nobody uses any more.
    unsafe fn give_back(&self, block: *mut u8, class: usize) {
        let place = block.addr().wrapping_sub(self.memory.get().addr());
        self.with(|blocks| {
            let first = blocks.free.get_mut(class)?;
            // SAFETY: at least 16 bytes, aligned to 16, and nobody's.
            unsafe { block.cast::<usize>().write(*first) };
            *first = place;
            Some(())
        });
    }
}

// SAFETY: a block is large enough and aligned, belongs to one caller until it is given back, and goes to where it came from.
unsafe impl GlobalAlloc for FirstHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let own = size_class(layout).and_then(|class| self.block(class));
        // SAFETY: the caller's promise.
        own.unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(block) = size_class(layout).and_then(|class| self.block(class)) else {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc_zeroed(layout) };
        };
        // SAFETY: a block of at least so many bytes, just given.
        unsafe { block.write_bytes(0, layout.size()) };
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match size_class(layout).filter(|_| self.has(block)) {
            // SAFETY: the caller's promise; the same layout has the same size.
            Some(class) => unsafe { self.give_back(block, class) },
            // SAFETY: the caller's promise.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !self.has(block) {
            // SAFETY: the caller's promise.
            return unsafe { System.realloc(block, layout, bytes) };
        }
        // SAFETY: the caller's promise: it does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        if size_class(wanted) == size_class(layout) {
            return block;
        }
        // SAFETY: the caller's promise; two blocks do not overlap.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(size: usize) -> Layout {
        Layout::from_size_align(size, 8).expect("a layout")
    }

    #[test]
    fn a_block_that_was_given_back_is_the_next_of_its_size() {
        let heap = Box::new(FirstHeap::new());
        // SAFETY: layouts of some bytes, and each block is given back once, as it was asked for.
        unsafe {
            let first = heap.alloc(bytes(100));
            let other = heap.alloc(bytes(100));
            assert!(heap.has(first) && heap.has(other) && first != other);
            assert_eq!(other.addr() - first.addr(), 128);
            first.write_bytes(7, 100);
            heap.dealloc(first, bytes(100));
            assert_eq!(heap.alloc(bytes(128)), first);
            heap.dealloc(first, bytes(128));
            let zeroed = heap.alloc_zeroed(bytes(97));
            assert_eq!(zeroed, first);
            assert!((0..97).all(|i| zeroed.add(i).read() == 0));
            // Room is left: it stays. Then it moves with what is in it.
            zeroed.write_bytes(9, 97);
            assert_eq!(heap.realloc(zeroed, bytes(97), 120), zeroed);
            let moved = heap.realloc(zeroed, bytes(120), 1000);
            assert!(moved != zeroed && (0..97).all(|i| moved.add(i).read() == 9));
            assert_eq!(heap.alloc(bytes(120)), zeroed);
        }
    }

    #[test]
    fn what_is_large_or_beyond_its_end_is_the_c_librarys() {
        let heap = Box::new(FirstHeap::new());
        let layouts = [bytes(32_769), Layout::from_size_align(64, 64).expect("a layout")];
        // SAFETY: layouts of some bytes, and each block is given back once, as it was asked for.
        unsafe {
            for layout in layouts {
                let block = heap.alloc(layout);
                assert!(!block.is_null() && !heap.has(block));
                heap.dealloc(block, layout);
            }
            let all: Vec<*mut u8> = (0..10).map(|_| heap.alloc(bytes(32_768))).collect();
            assert_eq!(all.iter().filter(|b| heap.has(**b)).count(), BYTES / 32_768 - 1);
            for block in all {
                block.write_bytes(1, 32_768);
                let grown = heap.realloc(block, bytes(32_768), 40_000);
                assert!(!heap.has(grown) && grown.add(32_767).read() == 1);
                heap.dealloc(grown, bytes(40_000));
            }
            assert!(heap.has(heap.alloc(bytes(32_768))));
        }
    }

    #[test]
    fn threads_never_have_the_same_block() {
        static HEAP: FirstHeap = FirstHeap::new();
        let work = |mark: u8| {
            let mut held: Vec<(*mut u8, usize)> = Vec::new();
            for i in 0..20_000_usize {
                let size = 1 + i * 37 % 700;
                // SAFETY: layouts of some bytes, and each block is given back once, as it was asked for.
                unsafe {
                    let block = HEAP.alloc(bytes(size));
                    block.write_bytes(mark, size);
                    held.push((block, size));
                    if held.len() > 20 {
                        let (block, size) = held.swap_remove(i % 20);
                        assert!((0..size).all(|at| block.add(at).read() == mark));
                        HEAP.dealloc(block, bytes(size));
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            (1..4).for_each(|mark| drop(scope.spawn(move || work(mark))));
        });
    }
}
