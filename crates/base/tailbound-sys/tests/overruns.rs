// SPDX-License-Identifier: MIT OR Apache-2.0
//! An overrun that the kernel tells late is no runaway thread. Of its own, as signals are the whole process's.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tailbound_sys::clock::{CLOCK_THREAD_CPUTIME_ID, now_ns};
use tailbound_sys::deadline::{Overruns, count_overruns};
use tailbound_sys::limits::RUNAWAY;
use tailbound_sys::process::is_root;
use tailbound_testing::skip;

const RUNTIME_NS: i64 = 1_000_000;
/// How long others may have all that the kernel admits of the CPUs.
const PATIENCE: Duration = Duration::from_secs(60);

fn work(ns: i64) {
    let until = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while now_ns(CLOCK_THREAD_CPUTIME_ID) < until {
        std::hint::spin_loop();
    }
}

#[test]
fn an_overrun_of_the_last_job_is_no_runaway_thread() {
    if !is_root() {
        skip("root", "a deadline thread needs root here");
        return;
    }
    count_overruns().expect("a handler");
    for _ in 0..20 {
        let last_job = std::thread::spawn(|| {
            let begun = Instant::now();
            let overruns = loop {
                match Overruns::join(RUNTIME_NS.unsigned_abs(), 10_000_000) {
                    Err(e) if e.is_busy() && begun.elapsed() < PATIENCE => {
                        tailbound_sys::ipc::wait_readable(&[], 100)?;
                    }
                    joined => break joined?,
                }
            };
            work(RUNTIME_NS + RUNTIME_NS / 20);
            // The kernel finds it here, and tells it at the next tick: in the next period.
            std::thread::yield_now();
            drop(overruns);
            work(12_000_000);
            Ok::<(), tailbound_sys::SysError>(())
        });
        last_job.join().expect("no panic").expect("admitted");
        assert!(!RUNAWAY.load(Relaxed), "an overrun was taken for the guard's word");
    }
}
