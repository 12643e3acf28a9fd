// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel tells about itself by system call and not by file: the state of its
//! clock discipline, the unit of its CPU time counters; and the numbers of a release.
//!
//! Units: ns; parts per million for frequency.
//! Not here: what is in /proc and /sys (`tailbound-host`).
//! Source: adjtimex(2), sysconf(3).

use crate::error::{SysError, check};

/// How the kernel's clock is being disciplined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockSync {
    /// Nothing keeps the clock in step (STA_UNSYNC).
    pub unsynchronised: bool,
    /// A leap second is about to be inserted or deleted.
    pub leap_pending: bool,
    /// What is still to be slewed away.
    pub offset_ns: i64,
    /// How far the clock's rate is corrected.
    pub frequency_ppm: f64,
    /// Bound on the error, as the synchronising program claims.
    pub max_error_ns: i64,
    /// TAI minus UTC; 0 where nobody set it.
    pub tai_offset_s: i32,
}

/// Reads the state of the clock discipline; changes nothing.
///
/// # Errors
/// EPERM under some seccomp filters of containers.
pub fn clock_sync() -> Result<ClockSync, SysError> {
    // SAFETY: all-zero bytes are a valid timex; modes = 0 asks to read only.
    let mut t: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: adjtimex(2) reads and writes one live timex.
    let state = check(unsafe { libc::adjtimex(&raw mut t) }, "adjtimex", "")?;
    let nano = t.status & libc::STA_NANO != 0;
    #[expect(clippy::cast_precision_loss, reason = "16 fractional bits of a small number")]
    let frequency_ppm = wide(t.freq) as f64 / 65_536.0;
    Ok(ClockSync {
        unsynchronised: t.status & libc::STA_UNSYNC != 0,
        leap_pending: matches!(state, libc::TIME_INS | libc::TIME_DEL),
        offset_ns: wide(t.offset).saturating_mul(if nano { 1 } else { 1000 }),
        frequency_ppm,
        max_error_ns: wide(t.maxerror).saturating_mul(1000),
        tai_offset_s: t.tai,
    })
}

/// `c_long` is 32 or 64 bits wide.
fn wide(v: impl Into<i64>) -> i64 {
    v.into()
}

/// Major and minor number of a kernel's release, as `/proc/sys/kernel/osrelease` holds it.
#[must_use]
pub fn release(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Units of the CPU time counters in /proc: this many make a second.
#[must_use]
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf(3) has no memory to get wrong.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_clock_discipline_or_says_why_not() {
        match clock_sync() {
            Ok(sync) => assert!(sync.frequency_ppm.abs() <= 100_000.0, "{sync:?}"),
            Err(e) => assert!(e.is_permission(), "{e}"),
        }
        assert!(ticks_per_second() >= 1);
    }
}
