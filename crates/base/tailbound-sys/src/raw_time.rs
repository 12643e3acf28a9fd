// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points of time for system calls that are made without the C library.
//!
//! Context: HOT. Units: ns.
//! On 32-bit machines such a call has two numbers: the first takes seconds of 32 bits, the second, of Linux 5.1, takes
//! 64. As in a C library the first is called while it does, so that older kernels serve.
//! Not here: times for the C library (`clock`).
//! Source: include/uapi/linux/time_types.h and arch/arm/tools/syscall.tbl of the kernel.

const SECOND_NS: i64 = 1_000_000_000;

/// A point of time as the kernel reads it: seconds and ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawTime {
    /// In words of this machine.
    Words([libc::c_long; 2]),
    /// What has no room in 32 bits.
    Wide([i64; 2]),
}

impl RawTime {
    /// A negative one becomes 0.
    #[inline]
    pub(crate) fn of(ns: i64) -> Self {
        let parts = [ns.max(0) / SECOND_NS, ns.max(0) % SECOND_NS];
        if libc::c_long::try_from(parts[0]).is_ok() {
            Self::Words(words(ns))
        } else {
            Self::Wide(parts)
        }
    }

    /// The number of the call that takes it, of the two that there are.
    #[inline]
    pub(crate) fn call(&self, words: libc::c_long, wide: libc::c_long) -> libc::c_long {
        match self {
            Self::Words(_) => words,
            Self::Wide(_) => wide,
        }
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *const libc::c_void {
        match self {
            Self::Words(parts) => parts.as_ptr().cast(),
            Self::Wide(parts) => parts.as_ptr().cast(),
        }
    }
}

/// Seconds and ns in words of this machine, no more than they hold.
#[inline]
pub(crate) fn words(ns: i64) -> [libc::c_long; 2] {
    [ns.max(0) / SECOND_NS, ns.max(0) % SECOND_NS]
        .map(|part| libc::c_long::try_from(part).unwrap_or(libc::c_long::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_takes_the_call_that_has_room_for_it() {
        assert_eq!(RawTime::of(-1), RawTime::Words([0, 0]));
        assert_eq!(RawTime::of(2_000_000_003), RawTime::Words([2, 3]));
        let in_2040 = RawTime::of(2_208_988_800 * SECOND_NS);
        let number = if cfg!(target_pointer_width = "32") { 2 } else { 1 };
        assert_eq!(in_2040.call(1, 2), number);
    }
}
