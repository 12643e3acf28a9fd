// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fixed ring from one hot writer to one cold reader, made of plain atomic words.
//!
//! Context: HOT (`push`), COLD (`pop`). A full ring drops the *new* entry and counts
//! it: what the reader has not yet taken is never overwritten under its hands.

use core::sync::atomic::{AtomicU64, Ordering};

/// Ring of `N` entries of `W` words. All zero bytes are a valid, empty ring.
#[derive(Debug)]
pub struct Ring<const W: usize, const N: usize> {
    head: AtomicU64,
    tail: AtomicU64,
    dropped: AtomicU64,
    slots: [[AtomicU64; W]; N],
}

impl<const W: usize, const N: usize> Default for Ring<W, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const W: usize, const N: usize> Ring<W, N> {
    /// An empty ring; the same as zero bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            slots: [const { [const { AtomicU64::new(0) }; W] }; N],
        }
    }

    /// Writer: appends one entry, or counts it as dropped when the ring is full.
    #[inline]
    pub fn push(&self, words: [u64; W]) {
        let head = self.head.load(Ordering::Relaxed);
        let used = head.wrapping_sub(self.tail.load(Ordering::Acquire));
        let Some(slot) = (used < N as u64).then(|| self.slot(head)).flatten() else {
            self.dropped
                .store(self.dropped.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            return;
        };
        for (place, word) in slot.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        self.head.store(head.wrapping_add(1), Ordering::Release);
    }

    /// Reader: takes the oldest entry.
    pub fn pop(&self) -> Option<[u64; W]> {
        let tail = self.tail.load(Ordering::Relaxed);
        if tail == self.head.load(Ordering::Acquire) {
            return None;
        }
        let slot = self.slot(tail)?;
        let mut words = [0; W];
        for (word, place) in words.iter_mut().zip(slot) {
            *word = place.load(Ordering::Relaxed);
        }
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        Some(words)
    }

    /// Entries lost because the reader was too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn slot(&self, position: u64) -> Option<&[AtomicU64; W]> {
        let i = position.checked_rem(N as u64)?;
        self.slots.get(usize::try_from(i).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_oldest_and_counts_what_it_drops() {
        let ring = Ring::<2, 3>::new();
        for i in 0..5 {
            ring.push([i, i * 10]);
        }
        assert_eq!(ring.dropped(), 2);
        assert_eq!((ring.pop(), ring.pop()), (Some([0, 0]), Some([1, 10])));
        ring.push([9, 90]);
        assert_eq!((ring.pop(), ring.pop(), ring.pop()), (Some([2, 20]), Some([9, 90]), None));
    }
}
