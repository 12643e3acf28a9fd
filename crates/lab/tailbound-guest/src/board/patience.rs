// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing lasts for ever: a board whose first process does not come on ends as it was asked to.
//!
//! Context: SETUP, COLD. Units: s.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tailbound_core::board::{BoardEnd, SAYS};
use tailbound_sys::process::ChildSignals;
use tailbound_sys::sched::{self, Attributes, SCHED_FIFO};

/// Whose lines the kernel writes without waiting for anybody.
const KERNEL_LOG: &str = "/dev/kmsg";
const LOOK: Duration = Duration::from_secs(1);
/// Above the processes that are waited for.
const PRIORITY: u32 = 4;

/// How long the next step may take.
pub(super) struct Patience {
    begun: Instant,
    until_s: Arc<AtomicU64>,
}

impl Patience {
    /// From now on.
    pub(super) fn begin(then: BoardEnd, first_s: u64) -> Self {
        // A thread that does not block them takes the signals of children that end, and every wait for one lasts to its limit.
        if let Err(e) = ChildSignals::open() {
            super::say(&format!("what ends may be noticed late: {e}"));
        }
        let this = Self { begun: Instant::now(), until_s: Arc::new(AtomicU64::new(first_s)) };
        let (begun, until_s) = (this.begun, Arc::clone(&this.until_s));
        let watch = move || {
            let low =
                Attributes { policy: SCHED_FIFO, priority: PRIORITY, ..Attributes::default() };
            // Without it it comes later.
            drop(sched::set(0, &low));
            while begun.elapsed().as_secs() <= until_s.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK);
            }
            // The console may be what it waits for.
            let text = format!("<0>{SAYS}failed: it does not come on; {}\n", then.doing());
            drop(fs::write(KERNEL_LOG, text));
            drop(super::end(then));
        };
        if let Err(e) = std::thread::Builder::new().name("patience".into()).spawn(watch) {
            super::say(&format!("nobody watches that it ends: {e}"));
        }
        this
    }

    /// The next step may take so long from now on.
    pub(super) fn allow(&self, time_s: u64) {
        let until_s = self.begun.elapsed().as_secs().saturating_add(time_s);
        self.until_s.store(until_s, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SIGCHLD in the mask of /proc/TID/status. Source: proc_pid_status(5).
    const SIGCHLD_BIT: u64 = 1 << (17 - 1);

    #[test]
    fn the_thread_that_watches_takes_no_signal_of_a_child() {
        let patience = Patience::begin(BoardEnd::Halt, 1 << 40);
        let mut masks = Vec::new();
        // It names itself when it runs.
        while masks.is_empty() {
            for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
                let read = |name: &str| fs::read_to_string(task.path().join(name)).ok();
                if read("comm").is_some_and(|comm| comm.trim() == "patience") {
                    let status = read("status").unwrap();
                    let mask = status.lines().find_map(|l| l.strip_prefix("SigBlk:")).unwrap();
                    masks.push(u64::from_str_radix(mask.trim(), 16).unwrap());
                }
            }
        }
        assert!(masks.iter().all(|mask| mask & SIGCHLD_BIT != 0), "{masks:x?}");
        patience.allow(1 << 40);
    }
}
