// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measuring loop with a real clock and nothing else: no standard library, no allocator.
//!
//! `cargo xtask link-probe` compiles this library as the release build is compiled and reads
//! the names that remain: whatever the loop could reach besides its two system calls (a bounds
//! check, an overflow, an allocation) is there by name, or calls the panic handler below.
//! Context: HOT. Units: ns on CLOCK_MONOTONIC.
//! Not here: the port that measures (`tailbound-sys`); this one has the same two calls and
//! assumes a 64-bit machine.
//! Source: clock_nanosleep(2), clock_gettime(2).
#![no_std]

use core::sync::atomic::AtomicBool;

use tailbound_rt::{LoopEnd, Port, Recorder, Schedule, Wake};

const CLOCK_MONOTONIC: i32 = 1;
const TIMER_ABSTIME: i32 = 1;
const EINTR: i32 = 4;
const SECOND_NS: i64 = 1_000_000_000;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, now: *mut Timespec) -> i32;
    fn clock_nanosleep(clock: i32, flags: i32, due: *const Timespec, left: *mut Timespec) -> i32;
    /// Defined nowhere: that this name remains is the proof that something can panic.
    fn tailbound_link_probe_panicked() -> !;
}

struct Monotonic;

impl Port for Monotonic {
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        let due = Timespec {
            seconds: due_ns.div_euclid(SECOND_NS),
            nanoseconds: due_ns.rem_euclid(SECOND_NS),
        };
        // SAFETY: `due` outlives the call; a null `left` is allowed, clock_nanosleep(2).
        match unsafe {
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &raw const due, core::ptr::null_mut())
        } {
            0 => Wake::Due,
            EINTR => Wake::Interrupted,
            errno => Wake::Failed(errno),
        }
    }

    fn now_ns(&mut self) -> i64 {
        let mut now = Timespec { seconds: 0, nanoseconds: 0 };
        // SAFETY: `now` is a valid place for the answer, clock_gettime(2); CLOCK_MONOTONIC
        // always exists, so the call cannot fail.
        unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut now) };
        if cfg!(feature = "flaw-bounds-check") {
            return [now.seconds, now.nanoseconds][now.nanoseconds as usize];
        }
        if cfg!(feature = "flaw-overflow-check") {
            return now.seconds * SECOND_NS;
        }
        now.seconds.wrapping_mul(SECOND_NS).wrapping_add(now.nanoseconds)
    }
}

/// Runs a schedule; returns how many activations were accounted for, negative after a failure.
///
/// # Safety
/// Both references must be valid, and no other thread may write to the recorder.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_link_probe(
    recorder: &Recorder,
    stop: &AtomicBool,
    schedule: &[i64; 3],
) -> i64 {
    let [first_ns, interval_ns, activations] = *schedule;
    let schedule = Schedule { first_ns, interval_ns, activations: activations.unsigned_abs() };
    match tailbound_rt::cyclic::run(&mut Monotonic, &schedule, recorder, stop) {
        LoopEnd::Complete => activations,
        LoopEnd::Stopped(n) => n.cast_signed(),
        LoopEnd::Failed(_, n) => n.cast_signed().wrapping_neg(),
    }
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: never linked; see the declaration.
    unsafe { tailbound_link_probe_panicked() }
}
