// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both architectures of ARM have in common: what an instruction can do to what is watched.
//!
//! Context: SETUP. Pure.

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Nothing,
    /// Disables interrupts.
    Disables,
    /// Enables them.
    Enables,
    /// Does either, by a register.
    Moves,
    /// Returns from an exception.
    Returns,
    /// wfi
    Halts,
    /// It may store into the thread's own structure.
    OwnData,
}

/// Interrupts are masked: the bit in the processor's state, wherever it is kept.
pub(crate) const FLAG_INTERRUPTS: u64 = 1 << 7;
/// QEMU keeps the flags that mask exceptions in these bits of one word.
pub(crate) const FLAGS: u64 = 0xf << 6;
/// In a virtual CPU, from the beginning of its registers: `daif` and the saved state lie behind this.
pub(crate) const BEHIND: usize = 64 + 32 * 8;
