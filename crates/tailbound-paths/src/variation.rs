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
/// Words in all.
pub const WORDS: usize = 9;
/// A time that does not come.
pub const NEVER: u64 = u64::MAX >> 16;

/// Kinds of records beside those of `record.rs`.
pub mod kind {
    /// The instant was reached; value: the address of the block that ends there. Two [`NAME`] follow.
    pub const VARIED: u8 = 32;
    /// Half of a thread's name, 8 bytes. Two follow each switch of threads, too.
    pub const NAME: u8 = 33;
}
