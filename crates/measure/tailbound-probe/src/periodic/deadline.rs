// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `deadline`: do SCHED_DEADLINE threads get their runtime in every period, and how
//! evenly do their periods begin?
//!
//! Context: SETUP in `check` and `begin`, HOT in the body. Units: ns.
//! Each thread works for a share of its runtime and yields: the kernel puts it to sleep until its
//! runtime is replenished. When that was due it tells on no clock that a program can read:
//! `deadline_grid` says how the begin of a period is found.
//! Source: sched(7), sched_yield(2), Documentation/scheduler/sched-deadline.rst.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::Context;
use tailbound_host::clock_id;
use tailbound_rt::cyclic::{LoopEnd, Port as _, Schedule, Wake};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_sys::clock::{CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, Nanosleep, now_ns};
use tailbound_sys::counter::CLOCK_MONOTONIC_RAW;
use tailbound_sys::deadline::{Overruns, count_overruns};
use tailbound_sys::error::SysError;

use super::deadline_findings::{self as findings, Counts};
use super::deadline_grid::Grid;
use super::deadline_options::Options;
use crate::error::ProbeError;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{Finished, RecordSlot, Recorders, Running, ThreadContext, thread_spec};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "deadline",
    about: "SCHED_DEADLINE: how evenly periods begin, and whether each thread gets its runtime in time",
    from: "the begin of the thread's period: whole periods after the earliest of its starts",
    to: "the thread's first instruction after sched_yield(2), with its runtime replenished",
    replaces: &["cyclicdeadline", "deadline_test"],
    options: &[
        ProbeOption::new("threads", "N", "", "deadline threads [default: one per CPU]"),
        ProbeOption::new(
            "busy",
            "SHARE",
            "0.5",
            "share of its runtime that each thread uses; above 1 it asks for more than it has",
        ),
        ProbeOption::plant("`stall`: every hundredth job sleeps for three periods"),
    ],
    interval: "1ms",
    policy: Some("deadline:200us/1ms"),
    event: Some("period"),
    property: Some("each admitted thread had the runtime it asked for before its deadline"),
    hog: false,
    takes: &[],
    prepare,
};

const STALL_EVERY: u64 = 100;
const STALL_PERIODS: i64 = 3;

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    findings::admitted(setup, options)?;
    Ok(Prepared::with(options, begin))
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    count_overruns()?;
    let mut threads = setup.threads()?;
    let sum = Arc::new(Mutex::new(Counts::default()));
    let clock = clock_id(setup.plan.clock);
    for thread in 0..options.threads {
        let slot =
            |n: u32, context| RecordSlot { context, ..RecordSlot::user(thread * 2 + n, None) };
        let mut worker = threads.thread(slot(0, Context::User))?;
        let response = worker.beside(slot(1, Context::Response))?;
        let sum = Arc::clone(&sum);
        worker.start(thread_spec(setup.plan.policy, Vec::new()), move |thread| {
            run(thread, options, clock, &response, &sum)
        })?;
    }
    let guarantee = findings::Guarantee::of(setup, options);
    threads.after(move |_| {
        let counts = *sum.lock().unwrap_or_else(PoisonError::into_inner);
        findings::output(&counts, options, &guarantee)
    });
    threads.release().map_err(|e| findings::refused(e, options))
}

fn run(
    thread: &ThreadContext,
    options: Options,
    clock: i32,
    response: &Recorders,
    sum: &Mutex<Counts>,
) -> Result<Finished, SysError> {
    let overruns = Overruns::join(options.runtime_ns, options.period_ns.cast_unsigned())?;
    let mut periods = Periods { options, grid: Grid::new(options.period_ns) };
    let mut counts = Counts::default();
    let mut measuring = false;
    let mut before = 0;
    let finished = thread.phases(|schedule, recorder| {
        before = overruns.n();
        counts = Counts::default();
        let beside: &Recorder = if measuring { &response.measured } else { &response.warm_up };
        if !measuring {
            // The period of a deadline thread begins when it wakes.
            let mut sleep = Nanosleep(clock);
            while sleep.sleep_until(schedule.first_ns) == Wake::Interrupted {}
        }
        measuring = true;
        periods.phase(thread, schedule, (recorder, beside), &mut counts)
    });
    counts.overruns = overruns.n().saturating_sub(before);
    sum.lock().unwrap_or_else(PoisonError::into_inner).add(&counts);
    finished
}

/// The periods of one thread.
struct Periods {
    options: Options,
    grid: Grid,
}

impl Periods {
    /// Works in each period of `schedule`. All later phases keep the grid of the first one.
    fn phase(
        &mut self,
        thread: &ThreadContext,
        schedule: &Schedule,
        (recorder, beside): (&Recorder, &Recorder),
        counts: &mut Counts,
    ) -> LoopEnd {
        let period = self.options.period_ns.max(1);
        let mut writer = Writer::new(recorder, schedule.first_ns, period);
        let mut response = Writer::new(beside, schedule.first_ns, period);
        let mut n = 0u64;
        let mut ended = LoopEnd::Complete;
        let shifts = self.grid.shifts;
        while n < schedule.activations {
            if thread.stop().load(Ordering::Relaxed) {
                ended = LoopEnd::Stopped(n);
                break;
            }
            let asked = now_ns(CLOCK_MONOTONIC_RAW);
            std::thread::yield_now();
            let now = now_ns(CLOCK_MONOTONIC_RAW);
            let left = schedule.activations.wrapping_sub(n).wrapping_sub(1);
            let (late, missed) = self.grid.started(asked, now, left);
            self.job(n);
            let done = now_ns(CLOCK_MONOTONIC_RAW).wrapping_sub(now).wrapping_add(late);
            // On the schedule's clock the period begins where the schedule says.
            let due = schedule.first_ns.wrapping_add(period.wrapping_mul(n.cast_signed()));
            writer.wake(n, due, due.wrapping_add(late), missed);
            response.wake(n, due, due.wrapping_add(done), 0);
            counts.job(done, self.options);
            counts.missed = counts.missed.wrapping_add(missed);
            n = n.wrapping_add(missed).wrapping_add(1);
        }
        counts.shifts = self.grid.shifts.saturating_sub(shifts);
        writer.finish();
        response.finish();
        ended
    }

    /// Uses its share of the runtime, by the thread's own CPU clock.
    #[inline]
    fn job(&self, n: u64) {
        let until = now_ns(CLOCK_THREAD_CPUTIME_ID).wrapping_add(self.options.work_ns);
        while now_ns(CLOCK_THREAD_CPUTIME_ID) < until {
            std::hint::spin_loop();
        }
        if self.options.planted.is_present() && n.wrapping_add(1).is_multiple_of(STALL_EVERY) {
            let late = self.options.period_ns.wrapping_mul(STALL_PERIODS);
            let until = now_ns(CLOCK_MONOTONIC).wrapping_add(late);
            Nanosleep(CLOCK_MONOTONIC).sleep_until(until);
        }
    }
}
