// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hot calls of the C interface with a real clock and nothing else: no standard library, no
//! allocator. The very files of the library, compiled a second time.
//!
//! `cargo xtask link-probe` reads the names that remain: whatever a hot call could reach besides
//! the clock (a bounds check, an overflow, an allocation, a lock) is there by name, or calls the
//! panic handler below.
//! Context: HOT. Units: ns. Not here: opening and closing; `slots` is compiled whole, what a loop
//! cannot call is dropped by the linker's optimisation.
//! Source: clock_gettime(2).
#![no_std]
#![allow(dead_code, reason = "the cold half of `slots` has no caller here")]

#[path = "../../../src/codes.rs"]
mod codes;
#[path = "../../../src/hot.rs"]
mod hot;
#[path = "../../../src/slots.rs"]
mod slots;

/// The clock as the library reads it; assumes a 64-bit machine.
mod clock {
    const SECOND_NS: i64 = 1_000_000_000;

    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }

    unsafe extern "C" {
        fn clock_gettime(clock: i32, now: *mut Timespec) -> i32;
    }

    pub(crate) fn now_ns(clock: i32) -> i64 {
        let mut now = Timespec { seconds: 0, nanoseconds: 0 };
        // SAFETY: `now` is a valid place for the answer, clock_gettime(2).
        unsafe { clock_gettime(clock, &raw mut now) };
        if cfg!(feature = "flaw-bounds-check") {
            return [now.seconds, now.nanoseconds][now.nanoseconds as usize];
        }
        if cfg!(feature = "flaw-overflow-check") {
            return now.seconds * SECOND_NS;
        }
        now.seconds.wrapping_mul(SECOND_NS).wrapping_add(now.nanoseconds)
    }
}

unsafe extern "C" {
    /// Defined nowhere: that this name remains is the proof that something can panic.
    fn tailbound_link_probe_panicked() -> !;
}

/// Keeps the slots from being known to be empty, as another translation unit would.
///
/// # Safety
/// The recorders must outlive the slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tailbound_capi_link_probe(
    start: &'static tailbound_rt::Recorder,
    completion: &'static tailbound_rt::Recorder,
    counts: &'static tailbound_rt::jobs::Counts,
) -> usize {
    let jobs = tailbound_rt::Jobs::new(start, completion, counts, 1_000_000);
    slots::claim(jobs, 1).unwrap_or(0)
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: never linked; see the declaration.
    unsafe { tailbound_link_probe_panicked() }
}
