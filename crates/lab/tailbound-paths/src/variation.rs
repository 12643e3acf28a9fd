// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the plugin is told when a run is not to be as it was from one instant on: a third file of 64-bit words.
//!
//! Context: HOT (the plugin), SETUP. Units: ns of the guest's virtual time.
//! This file is compiled twice, as `record.rs` is. Where the file is missing nothing is varied.

/// First word of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tbvary01");
/// From here on, at the end of the first block of instructions that ends then or later.
pub const AT: usize = 1;
/// The processor stands still until then; [`NEVER`]: it does not.
pub const UNTIL: usize = 2;
/// Not 0: the guest is stopped at [`AT`].
pub const STOP: usize = 3;
/// The measured thread, and the time for which its timer is set by the guest's clock: once it was woken by that timer
/// or a later one, and is in user mode, QEMU ends.
pub const THREAD: usize = 4;
/// See [`THREAD`].
pub const DUE: usize = 5;
/// QEMU ends at this time in any case.
pub const END: usize = 6;
/// What was before is not recorded.
pub const LOG_FROM: usize = 7;
/// The kernel's first thread, which is called `swapper`: that is how threads' names are found. 0: they are not.
pub const FIRST_THREAD: usize = 8;
/// Places of the guest's memory that are exchanged at [`AT`]: their number, at most [`RANGES`].
pub const PLACES: usize = 9;
/// What they are exchanged by follows from this; 0: each byte is written as it is.
pub const SEED: usize = 10;
/// From here on, for each place its address and its [`range`].
pub const PLACE: usize = 11;
/// So many places have room.
pub const RANGES: usize = 8;
/// Words in all.
pub const WORDS: usize = PLACE + 2 * RANGES;
/// A time that does not come.
pub const NEVER: u64 = u64::MAX >> 16;

/// Bit of a range: the address is that within a CPU's own data.
pub const OF_CPU: u64 = 1 << 32;

/// How often a place is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// Once, for all CPUs.
    One,
    /// Once in each CPU's own data.
    EachCpu,
}

/// The second word of a place.
#[must_use]
pub const fn range(bytes: u64, copies: Copies) -> u64 {
    match copies {
        Copies::One => bytes,
        Copies::EachCpu => bytes | OF_CPU,
    }
}

/// What word `nth` of a place is changed by: another word for each place and seed.
#[must_use]
pub const fn mask(seed: u64, place: u64, nth: u64) -> u64 {
    if seed == 0 {
        return 0;
    }
    // SplitMix64's output function over a counter: Steele, Lea, Flood, OOPSLA 2014.
    let counter = (seed << 16 | place << 8 | nth).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (counter ^ counter >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Kinds of records beside those of `record.rs`.
pub mod kind {
    /// The instant was reached; value: the address of the block that ends there. Two [`NAME`] follow.
    pub const VARIED: u8 = 32;
    /// Half of a thread's name, 8 bytes. Two follow each switch of threads, too.
    pub const NAME: u8 = 33;
    /// Places of the guest's memory were exchanged; value: bytes that are others now.
    pub const EXCHANGED: u8 = 34;
}
