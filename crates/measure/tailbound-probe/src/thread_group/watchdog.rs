// SPDX-License-Identifier: MIT OR Apache-2.0
//! Above the threads of a probe: ends those that do not end, and gives their CPUs back.
//!
//! Context: COLD, in a thread of its own of the highest real-time priority where allowed,
//! awake for microseconds once a second. Units: ns on CLOCK_MONOTONIC.
//! Three steps: the stop flag (and a signal that interrupts a sleep) when the schedule has
//! been over for [`GRACE_NS`]; the same again; SIGKILL of the process when that did not help.
//! What was measured by then is in the run file, which is flushed each second.
//! Not here: the limit on CPU time without a sleep (`tailbound_sys::limits`), which ends a
//! thread that no other may preempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tailbound_core::policy::Policy;
use tailbound_rt::cyclic::Port as _;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC, Nanosleep};
use tailbound_sys::error::SysError;
use tailbound_sys::thread::{self, Thread};
use tailbound_sys::{process, sched, signal};

use super::spec::thread_spec;

/// From the end of the schedule, or from the stop flag, to the next step.
const GRACE_NS: i64 = 5_000_000_000;
const LOOK_NS: i64 = 1_000_000_000;
const PRIORITY: u8 = 99;

/// A watchdog; dropped, it goes.
pub(super) struct Watchdog {
    over: Arc<AtomicBool>,
    tid: Arc<AtomicI64>,
    thread: Option<Thread<()>>,
}

impl Watchdog {
    /// Watches threads whose work takes `span_ns` from now on; `None` where no thread can be
    /// made, which the caller's own threads will meet too.
    pub(super) fn start(
        span_ns: i64,
        tids: Vec<Arc<AtomicI64>>,
        stop: &'static AtomicBool,
    ) -> Option<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let tid = Arc::new(AtomicI64::new(0));
        let spawn = |policy| -> Result<Thread<()>, SysError> {
            let (over, own, tids) = (Arc::clone(&over), Arc::clone(&tid), tids.clone());
            thread::spawn(thread_spec(policy, Vec::new()), move || {
                own.store(i64::from(sched::gettid()), Ordering::Relaxed);
                watch(span_ns, &tids, stop, &over);
            })
        };
        let thread = spawn(Policy::Fifo(PRIORITY)).or_else(|_| spawn(Policy::Other)).ok()?;
        Some(Self { over, tid, thread: Some(thread) })
    }

    /// Its thread id, once it runs.
    pub(super) fn tid(&self) -> Option<i32> {
        i32::try_from(self.tid.load(Ordering::Relaxed)).ok().filter(|tid| *tid > 0)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(tid) = self.tid() {
            signal::nudge(tid);
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn watch(span_ns: i64, tids: &[Arc<AtomicI64>], stop: &AtomicBool, over: &AtomicBool) {
    let mut sleep = Nanosleep(CLOCK_MONOTONIC);
    let mut limit = clock::now_ns(CLOCK_MONOTONIC).saturating_add(span_ns).saturating_add(GRACE_NS);
    let mut steps = 0;
    let mut stopping = false;
    while !over.load(Ordering::Acquire) {
        let now = clock::now_ns(CLOCK_MONOTONIC);
        if !stopping && stop.load(Ordering::Relaxed) {
            stopping = true;
            limit = limit.min(now.saturating_add(GRACE_NS));
        }
        if now >= limit {
            steps += 1;
            if steps > 2 {
                // Nothing else can take the CPU back from them.
                drop(process::kill(process::own_pid(), process::SIGKILL));
            }
            stop.store(true, Ordering::Relaxed);
            stopping = true;
            for tid in tids {
                signal::nudge(i32::try_from(tid.load(Ordering::Relaxed)).unwrap_or(0));
            }
            limit = now.saturating_add(GRACE_NS);
        }
        sleep.sleep_until(now.saturating_add(LOOK_NS));
    }
}
