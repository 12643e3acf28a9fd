// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a loop calls in each cycle.
//!
//! Context: HOT: no allocation, lock, panic or system call but the clock (vDSO). Proofs:
//! `tests/hot_path.rs` (allocation, system calls) and the link probe, which compiles this file
//! a second time without the standard library and lists what it can reach.
//! Units: ns on the recorder's clock.
//! Source: clock_gettime(2).

use tailbound_rt::jobs::JobError;

use crate::clock::now_ns;
use crate::codes::{TB_ERR_HANDLE, TB_ERR_ORDER, TB_NONE, TB_OK};
use crate::slots::{self, tb_recorder};

#[inline]
fn answer(result: Result<(), JobError>) -> i32 {
    match result {
        Ok(()) => TB_OK,
        Err(JobError::Order | JobError::NotStarted) => TB_ERR_ORDER,
    }
}

/// A cycle starts, now.
#[unsafe(no_mangle)]
pub extern "C" fn tb_cycle_start(recorder: *mut tb_recorder, due_ns: i64) -> i32 {
    let handle = recorder.addr();
    let Some(clock) = slots::clock(handle) else { return TB_ERR_HANDLE };
    // Before anything else: the latency is what came before this call.
    let now = now_ns(clock);
    slots::with(handle, |jobs| answer(jobs.start(due_ns, now)))
}

/// A cycle started at `now_ns`, which the loop read itself.
#[unsafe(no_mangle)]
pub extern "C" fn tb_cycle_start_at(recorder: *mut tb_recorder, due_ns: i64, now_ns: i64) -> i32 {
    slots::with(recorder.addr(), |jobs| answer(jobs.start(due_ns, now_ns)))
}

/// The cycle at hand is done, now.
#[unsafe(no_mangle)]
pub extern "C" fn tb_cycle_end(recorder: *mut tb_recorder) -> i32 {
    let handle = recorder.addr();
    let Some(clock) = slots::clock(handle) else { return TB_ERR_HANDLE };
    let now = now_ns(clock);
    slots::with(handle, |jobs| answer(jobs.end(now)))
}

/// The cycle at hand was done at `now_ns`, which the loop read itself.
#[unsafe(no_mangle)]
pub extern "C" fn tb_cycle_end_at(recorder: *mut tb_recorder, now_ns: i64) -> i32 {
    slots::with(recorder.addr(), |jobs| answer(jobs.end(now_ns)))
}

/// The first due time still to come after the cycle last started; `TB_NONE` for a bad handle
/// or when another thread is in a call of the same loop.
#[unsafe(no_mangle)]
pub extern "C" fn tb_next_due(recorder: *mut tb_recorder) -> i64 {
    let handle = recorder.addr();
    let Some(clock) = slots::clock(handle) else { return TB_NONE };
    let now = now_ns(clock);
    let mut due = TB_NONE;
    slots::with(handle, |jobs| {
        due = jobs.next_due_ns(now);
        TB_OK
    });
    due
}

/// The recorder's clock; `TB_NONE` for a bad handle.
#[unsafe(no_mangle)]
pub extern "C" fn tb_now(recorder: *const tb_recorder) -> i64 {
    slots::clock(recorder.addr()).map_or(TB_NONE, now_ns)
}

/// The loop is over: the last second and what is owed are written.
#[unsafe(no_mangle)]
pub extern "C" fn tb_finish(recorder: *mut tb_recorder) -> i32 {
    slots::with(recorder.addr(), |jobs| {
        jobs.finish();
        TB_OK
    })
}
