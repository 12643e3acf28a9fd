// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples one by one: exact distribution, and raw records in chunks, in bounded memory.
//!
//! Context: COLD. Units: ns.

use tailbound_core::Distribution;
use tailbound_core::record::RawRecord;
use tailbound_core::runfile::pack_raw;

/// Samples of one raw record.
const CHUNK: usize = 1 << 16;

/// All samples of one thread.
pub(crate) struct Samples {
    pub(crate) distribution: Distribution,
    thread: u32,
    from: u64,
    chunk: Vec<i64>,
    packed: Vec<RawRecord>,
}

impl Samples {
    pub(crate) fn new(thread: u32) -> Self {
        Self {
            distribution: Distribution::default(),
            thread,
            from: 0,
            chunk: Vec::new(),
            packed: Vec::new(),
        }
    }

    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    /// Number of samples so far.
    pub(crate) fn n(&self) -> u64 {
        self.distribution.n
    }

    pub(crate) fn add(&mut self, value_ns: i64) {
        self.distribution.add(value_ns);
        self.chunk.push(value_ns);
        if self.chunk.len() >= CHUNK {
            self.pack();
        }
    }

    fn pack(&mut self) {
        if !self.chunk.is_empty() {
            self.packed.push(pack_raw(self.thread, self.from, &self.chunk));
            self.from += self.chunk.len() as u64;
            self.chunk.clear();
        }
    }

    pub(crate) fn finish(mut self) -> (Distribution, Vec<RawRecord>) {
        self.pack();
        (self.distribution, self.packed)
    }
}
