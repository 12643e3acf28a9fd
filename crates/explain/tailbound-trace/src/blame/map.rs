// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps by the numbers of threads, timers, locks and CPUs: looked at several times an event.
//!
//! The hash of the standard library is there to withstand keys that are chosen to collide,
//! and takes longer than all the rest of an event. These maps are of bounded size, so that chosen
//! keys cost time and no more.
//! Source: Knuth, The Art of Computer Programming 3, 6.4: multiplication by the golden ratio.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by a number.
pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Golden>>;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Golden(u64);

impl Golden {
    fn add(&mut self, n: u64) {
        // The map takes its place from the low bits and a tag from the high ones: both get of all.
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

impl Hasher for Golden {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.add(u64::from(*b)));
    }
    fn write_i32(&mut self, n: i32) {
        self.add(u64::from(n.cast_unsigned()));
    }
    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
