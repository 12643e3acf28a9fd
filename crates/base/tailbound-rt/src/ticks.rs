// SPDX-License-Identifier: MIT OR Apache-2.0
//! A counter that is read without a system call, and how its ticks are nanoseconds.
//!
//! Context: HOT. Units: ticks of the counter, ns. One multiplication converts either way; its
//! factor was measured, with an uncertainty that is the caller's to report.

/// Who had the CPU in a gap, as far as it can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// The kernel was entered and another task ran.
    Task,
    /// The kernel was entered and came straight back: an interrupt, an exception, a fault.
    Interrupt,
    /// The kernel was not entered: what took the time was beneath it.
    Outside,
    /// This machine cannot tell.
    Unknown,
}

/// A polling loop's view of the machine.
pub trait Counter {
    /// The counter; it never goes backwards on one CPU.
    fn ticks(&mut self) -> u64;
    /// Who took the time since the last [`Counter::arm`].
    fn taker(&mut self) -> Taker;
    /// From here on a taker is to be told.
    fn arm(&mut self);
    /// Work done in every turn of the loop, part of its period.
    #[inline]
    fn work(&mut self) {}
}

/// Ticks and nanoseconds of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// ns a tick, times 2^32.
    pub ns_q32: u64,
    /// Ticks an ns, times 2^32.
    pub ticks_q32: u64,
}

impl Scale {
    /// From a frequency in ticks a second.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "floating-point casts saturate"
    )]
    pub fn of_hz(hz: f64) -> Self {
        let one = 4_294_967_296.0;
        Self { ns_q32: (1e9 / hz * one) as u64, ticks_q32: (hz / 1e9 * one) as u64 }
    }
    /// Ticks as ns.
    #[must_use]
    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        let wide = u128::from(ticks).wrapping_mul(u128::from(self.ns_q32)) >> 32;
        i64::try_from(wide).unwrap_or(i64::MAX)
    }
    /// ns as ticks; 0 for a negative span.
    #[must_use]
    #[inline]
    pub fn ticks(&self, ns: i64) -> u64 {
        let wide =
            u128::from(ns.max(0).unsigned_abs()).wrapping_mul(u128::from(self.ticks_q32)) >> 32;
        u64::try_from(wide).unwrap_or(u64::MAX)
    }
}
