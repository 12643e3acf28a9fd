// SPDX-License-Identifier: MIT OR Apache-2.0
//! The restrictions of the hot calls, each with a test that it catches a violation: no
//! allocation, no system call that is not on the list.
#![expect(unsafe_code, reason = "a counting allocator, and calls as a C program makes them")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::process::ExitStatusExt as _;

use tailbound_capi::*;
use tailbound_sys::seccomp;

thread_local! {
    static HOT: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Gate;

impl Gate {
    fn pass() {
        if HOT.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        }
    }
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Gate {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::pass();
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        Self::pass();
        // SAFETY: the caller's promise, handed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static GATE: Gate = Gate;

const PERIOD_NS: i64 = 100_000;
const CYCLES: u64 = 2000;

fn open() -> *mut tb_recorder {
    // SAFETY: all-zero bytes are a valid tb_config, filled right after.
    let mut config: tb_config = unsafe { std::mem::zeroed() };
    // SAFETY: a live struct of that size.
    unsafe { tb_config_init(&raw mut config, size_of::<tb_config>()) };
    config.period_ns = PERIOD_NS;
    // Every cycle is an exceedance: the rare path is the common one here.
    config.start_threshold_ns = 0;
    config.completion_threshold_ns = 0;
    // SAFETY: filled above; its texts are null.
    let recorder = unsafe { tb_open(&raw const config) };
    assert!(!recorder.is_null());
    recorder
}

/// Every hot call and every rare path: late, left out, refused, never ended, a new second.
fn hot(recorder: *mut tb_recorder, between: impl Fn()) {
    let first = tb_next_due(recorder);
    for k in 0..CYCLES as i64 {
        let skipped = if k > 500 { 7 } else { 0 };
        let due = first + (k + skipped) * PERIOD_NS;
        let step = k % 3 != 2;
        if step {
            assert_eq!(tb_cycle_start_at(recorder, due, due + 900 + k), TB_OK);
        } else {
            assert_eq!(tb_cycle_start(recorder, due), if k == 501 { TB_ERR_ORDER } else { TB_OK });
        }
        between();
        if k % 100 != 99 {
            let ended = if k % 2 == 0 {
                tb_cycle_end_at(recorder, due + 20_000 + k)
            } else {
                tb_cycle_end(recorder)
            };
            assert!(ended == TB_OK || ended == TB_ERR_ORDER);
        }
        assert_eq!(tb_cycle_start_at(recorder, due, due), TB_ERR_ORDER);
        assert!(tb_now(recorder) > 0);
    }
    let _ = tb_finish(recorder);
}

#[test]
fn the_hot_calls_allocate_nothing() {
    let recorder = open();
    HOT.set(true);
    hot(recorder, || ());
    HOT.set(false);
    assert_eq!(ALLOCATIONS.get(), 0, "an allocation in a hot call");
    assert_eq!(tb_close(recorder), TB_OK);
}

#[test]
fn the_gate_catches_an_allocation() {
    let recorder = open();
    HOT.set(true);
    hot(recorder, || drop(std::hint::black_box(Box::new(1))));
    HOT.set(false);
    assert!(ALLOCATIONS.get() > 0, "the gate is open");
    assert_eq!(tb_close(recorder), TB_OK);
}

/// Runs `inner` of this very test binary in a process of its own.
fn in_a_child(inner: &str) -> std::process::ExitStatus {
    let exe = std::env::current_exe().expect("own path");
    #[expect(clippy::disallowed_methods, reason = "waited for right here")]
    std::process::Command::new(exe)
        .args(["--exact", inner, "--ignored", "--nocapture"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .expect("child")
}

fn confined(forbidden: bool) {
    std::thread::spawn(move || {
        let recorder = open();
        seccomp::confine().expect("seccomp");
        hot(recorder, || {
            if forbidden {
                std::hint::black_box(tailbound_sys::sched::gettid());
            }
        });
    })
    .join()
    .expect("ran");
}

#[test]
#[ignore = "run by `the_list_of_system_calls_holds` in a process of its own"]
fn inner_confined() {
    confined(false);
}

#[test]
#[ignore = "run by `the_list_of_system_calls_holds` in a process of its own"]
fn inner_forbidden() {
    confined(true);
}

#[test]
fn the_list_of_system_calls_holds() {
    assert!(in_a_child("inner_confined").success(), "a hot call needs a call not on the list");
    let forbidden = in_a_child("inner_forbidden");
    assert_eq!(forbidden.signal(), Some(31), "{forbidden:?}: SIGSYS expected");
}
