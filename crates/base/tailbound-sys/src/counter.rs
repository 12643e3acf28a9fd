// SPDX-License-Identifier: MIT OR Apache-2.0
//! A counter that is read without a system call, and who had the CPU since a moment.
//!
//! Context: HOT ([`ticks`], [`armed`], [`arm`]), SETUP (the rest). Units: ticks; ns.
//! x86-64 has the time stamp counter, 64-bit ARM the virtual timer's count, RISC-V the CSR `time`; elsewhere it
//! is CLOCK_MONOTONIC_RAW, whose tick is 1 ns.
//!
//! Was the kernel entered? On x86-64 the CPU itself tells: a return from an interrupt or an
//! exception to user mode (IRET) sets a data segment register that holds a null selector to 0,
//! and there are four null selectors, 0 to 3. ES has no use in 64-bit programs. So 1 is put
//! into it; found as 0, this CPU was interrupted since. Neither firmware (SMM) nor a hypervisor
//! touches it. [`reports_entries`] tries whether it is so here: emulators and later ways of
//! returning (FRED) may leave the register alone.
//! Source: Intel SDM volume 2, IRET and 3.4.2 "Segment Selectors"; Arm ARM, CNTVCT_EL0; RISC-V unprivileged ISA, Zicntr;
//! SegScope (HPCA 2024) for the register as a witness.

use crate::clock;
use crate::error::SysError;
use crate::mapping::{Mapping, page_bytes};

pub use libc::CLOCK_MONOTONIC_RAW;

/// Name of the counter on this architecture.
pub const NAME: &str = if cfg!(target_arch = "x86_64") {
    "TSC"
} else if cfg!(target_arch = "aarch64") {
    "CNTVCT"
} else if cfg!(target_arch = "riscv64") {
    "time CSR"
} else {
    "CLOCK_MONOTONIC_RAW"
};

/// Reads the counter. Not ordered with what stands before or after it: the loop that reads it
/// over and over wants the shortest turn.
#[must_use]
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: reads a register; Linux lets user mode do so unless prctl(PR_SET_TSC) forbade it.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads a register that Linux lets user mode read.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags));
        }
        count
    }
    #[cfg(target_arch = "riscv64")]
    {
        let count: u64;
        // SAFETY: reads a register that Linux lets user mode read, as its own vDSO does.
        unsafe {
            core::arch::asm!("rdtime {}", out(reg) count, options(nomem, nostack, preserves_flags));
        }
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    {
        clock::now_ns(CLOCK_MONOTONIC_RAW).unsigned_abs()
    }
}

/// From here on an entry of the kernel can be told.
#[inline(always)]
pub fn arm() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: 1 is a null selector, which may be loaded at any privilege; nothing in 64-bit mode
    // addresses through ES.
    unsafe {
        core::arch::asm!("mov es, {0:x}", in(reg) 1u16, options(nomem, nostack, preserves_flags));
    }
}

/// Has the kernel not been entered since [`arm`]? Worth something where [`reports_entries`].
#[must_use]
#[inline(always)]
pub fn armed() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let selector: u16;
        // SAFETY: reads a register.
        unsafe {
            core::arch::asm!("mov {0:x}, es", out(reg) selector, options(nomem, nostack, preserves_flags));
        }
        selector != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Does this machine report entries into the kernel? Tried with a page fault, and with none.
#[must_use]
pub fn reports_entries() -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    // An interrupt may come between: seldom a hundred times.
    let stays = (0..100).any(|_| {
        arm();
        let mut since = ticks();
        for _ in 0..20 {
            since = since.max(ticks());
        }
        since > 0 && armed()
    });
    stays && (0..10).all(|_| fault().is_ok_and(|told| told))
}

/// A page fault, which enters the kernel: was it told?
fn fault() -> Result<bool, SysError> {
    let mut page = Mapping::new(page_bytes())?;
    arm();
    page.touch(1, &|_| {});
    Ok(!armed())
}

/// The counter and CLOCK_MONOTONIC_RAW at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The counter.
    pub ticks: u64,
    /// The clock.
    pub ns: i64,
    /// The two are no farther apart than this.
    pub apart_ns: i64,
}

/// Reads both, as close together as it gets in `tries`.
#[must_use]
pub fn pair(tries: u32) -> Pair {
    pair_with(CLOCK_MONOTONIC_RAW, tries)
}

/// Reads the counter and another clock.
#[must_use]
pub fn pair_with(id: i32, tries: u32) -> Pair {
    let one = || {
        let before = clock::now_ns(id);
        let at = ticks();
        let after = clock::now_ns(id);
        let apart = after.saturating_sub(before).max(0);
        Pair { ticks: at, ns: before.saturating_add(apart / 2), apart_ns: apart / 2 + 1 }
    };
    let mut best = one();
    for _ in 1..tries {
        let next = one();
        if next.apart_ns < best.apart_ns {
            best = next;
        }
    }
    best
}

/// The counter's frequency between two moments, and by how much it may be wrong, in Hz.
///
/// # Errors
/// The counter or the clock did not go on.
pub fn frequency(from: &Pair, to: &Pair) -> Result<(f64, f64), SysError> {
    let ticks = to.ticks.wrapping_sub(from.ticks);
    let ns = to.ns.saturating_sub(from.ns);
    if ns <= 0 || ticks == 0 || ticks > u64::MAX / 2 {
        return Err(SysError::code(
            "calibration",
            format!("{NAME}: {ticks} ticks in {ns} ns"),
            libc::ERANGE,
        )
        .needs("a counter that goes on while CLOCK_MONOTONIC_RAW does"));
    }
    #[expect(clippy::cast_precision_loss, reason = "a frequency in floating point")]
    let (ticks, ns, apart) = (ticks as f64, ns as f64, (from.apart_ns + to.apart_ns) as f64);
    let hz = ticks / ns * 1e9;
    Ok((hz, hz * apart / ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_on_as_the_clock_does() {
        let from = pair(100);
        let mut to = pair(100);
        while to.ns - from.ns < 5_000_000 {
            to = pair(100);
        }
        let (hz, wrong) = frequency(&from, &to).unwrap();
        assert!(hz > 1e6 && hz < 1e11 && wrong > 0.0 && wrong < hz, "{hz} +- {wrong}");
        assert!(frequency(&to, &from).is_err(), "a counter that goes backwards is refused");
    }

    #[test]
    fn an_entry_of_the_kernel_is_told_where_it_can_be() {
        if !reports_entries() {
            let why = "entries of the kernel leave no trace in a register here";
            return tailbound_testing::skip("entries", why);
        }
        for _ in 0..100 {
            assert!(fault().unwrap(), "a page fault left no trace");
        }
    }
}
