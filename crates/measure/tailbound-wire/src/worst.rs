// SPDX-License-Identifier: MIT OR Apache-2.0
//! The 256 longest reactions with their times: a heap, so that a new one costs eight comparisons.

use crate::channel::PulseRecord;

/// How many are kept.
pub const WORST: usize = 256;

/// One of the longest.
pub type WorstEntry = PulseRecord;

/// The longest reactions until now.
#[derive(Debug, Clone)]
pub struct Worst {
    /// The shortest is the first; the two behind `i` are at `2i + 1` and `2i + 2`.
    heap: [WorstEntry; WORST],
    length: usize,
}

impl Default for Worst {
    fn default() -> Self {
        Self::new()
    }
}

impl Worst {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { heap: [WorstEntry::NONE; WORST], length: 0 }
    }

    /// Those that are kept, in no order.
    #[must_use]
    pub fn entries(&self) -> &[WorstEntry] {
        self.heap.get(..self.length).unwrap_or_default()
    }

    /// Forgets all.
    pub const fn clear(&mut self) {
        self.length = 0;
    }

    /// Keeps it if it is among the longest. Of equals the first stays.
    pub fn keep(&mut self, entry: WorstEntry) {
        let ticks = entry.reaction.ticks();
        if self.length < WORST {
            let end = self.length;
            self.length += 1;
            self.put(end, entry);
            self.rise(end);
        } else if self.at(0) < ticks {
            self.put(0, entry);
            self.sink();
        }
    }

    fn at(&self, place: usize) -> u32 {
        self.heap.get(place).map_or(u32::MAX, |entry| entry.reaction.ticks())
    }

    fn put(&mut self, place: usize, entry: WorstEntry) {
        if let Some(to) = self.heap.get_mut(place) {
            *to = entry;
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.at(above) <= self.at(place) {
                return;
            }
            self.heap.swap(above, place);
            place = above;
        }
    }

    fn sink(&mut self) {
        let mut place = 0;
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let below =
                if right < self.length && self.at(right) < self.at(left) { right } else { left };
            if below >= self.length || self.at(place) <= self.at(below) {
                return;
            }
            self.heap.swap(below, place);
            place = below;
        }
    }
}
