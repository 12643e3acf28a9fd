// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing lasts for ever: a board whose first process does not come on ends as it was asked to.
//!
//! Context: SETUP, COLD. Units: s.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tailbound_core::board::{BoardEnd, SAYS};
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
