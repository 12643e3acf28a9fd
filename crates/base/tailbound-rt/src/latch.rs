// SPDX-License-Identifier: MIT OR Apache-2.0
//! Some words that one writer changes and any reader sees whole, whoever preempts whom.
//!
//! Context: HOT (`publish`), COLD (`read`).
//! A latch of two copies: while the writer is at one of them, the sequence number sends readers
//! to the other. So a reader that preempts the writer on its own CPU, at whatever instruction,
//! has its answer at the first attempt. A reader on another CPU begins again only where the
//! writer has published meanwhile, which it does once a second.
//! The orderings are checked by `tests/latch.rs`: every execution that the memory model permits,
//! and that each of them is needed.
//! Source: `seqcount_latch_t` of the kernel, include/linux/seqlock.h; Boehm, "Can seqlocks get
//! along with programming language memory models?", 2012.

use core::sync::atomic::{AtomicU64, Ordering, fence};

/// A word of memory: an atomic integer, or the model of one.
pub trait Word {
    /// Reads it.
    fn load(&self, order: Ordering) -> u64;
    /// Writes it.
    fn store(&self, value: u64, order: Ordering);
    /// Orders what stands before against what comes after.
    fn fence(order: Ordering);
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        Self::load(self, order)
    }
    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        Self::store(self, value, order);
    }
    #[inline]
    fn fence(order: Ordering) {
        fence(order);
    }
}

/// `N` words. All zero bytes are a valid latch, of zeros.
#[derive(Debug)]
#[repr(C)]
pub struct Latch<W, const N: usize> {
    /// Even: readers go to the first copy; odd: to the second.
    sequence: W,
    copies: [[W; N]; 2],
}

impl<const N: usize> Default for Latch<AtomicU64, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Latch<AtomicU64, N> {
    /// A latch of zeros; the same as zero bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            sequence: AtomicU64::new(0),
            copies: [const { [const { AtomicU64::new(0) }; N] }; 2],
        }
    }
}

impl<W: Word, const N: usize> Latch<W, N> {
    /// A latch of words made elsewhere, all zero.
    pub const fn of(sequence: W, copies: [[W; N]; 2]) -> Self {
        Self { sequence, copies }
    }

    /// Writer: publishes `words`.
    #[inline]
    pub fn publish(&self, words: &[u64; N]) {
        let [first, second] = &self.copies;
        let sequence = self.sequence.load(Ordering::Relaxed);
        // Release: who is sent to the second copy sees all that was written to it last time.
        self.sequence.store(sequence.wrapping_add(1), Ordering::Release);
        // Whoever sees a word of what follows sees that the first copy is not to be read.
        W::fence(Ordering::Release);
        write(first, words);
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
        W::fence(Ordering::Release);
        write(second, words);
    }

    /// Reader: the words published last, or those before while new ones are being written.
    pub fn read(&self) -> [u64; N] {
        let [first, second] = &self.copies;
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let copy = if before.is_multiple_of(2) { first } else { second };
            let mut words = [0; N];
            for (word, place) in words.iter_mut().zip(copy) {
                *word = place.load(Ordering::Relaxed);
            }
            W::fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == before {
                return words;
            }
            core::hint::spin_loop();
        }
    }
}

#[inline]
fn write<W: Word, const N: usize>(copy: &[W; N], words: &[u64; N]) {
    for (place, word) in copy.iter().zip(words) {
        place.store(*word, Ordering::Relaxed);
    }
}
