// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which share of virtual time each CPU has while all are busy: one loop on each counts for the same time.
//!
//! Context: SETUP. Units: ns. The emulator executes CPUs in turn; how it shares time among them is its own matter and
//! another in each version, so it is measured in the run that it matters to.
//! Not here: what is said of the counts (`tailbound-lab`).

use std::fs;
use std::hint::black_box;

use tailbound_core::cpus::CpuSet;
use tailbound_core::lab::CpuCount;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::error::SysError;
use tailbound_sys::sched::{Attributes, SCHED_FIFO};
use tailbound_sys::thread::{self, Thread, ThreadSpec};

use crate::error::GuestError;

const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Until all threads sleep and wait for the same moment.
const READY_NS: i64 = 2_000_000;
/// Above everything but the kernel's own threads of the highest priority.
const PRIORITY: u32 = 90;
const STACK_BYTES: usize = 64 * 1024;
/// Rounds between two looks at the clock.
const ROUNDS: u64 = 64;

/// Counts on all CPUs for `window_ns`; what each counted.
pub(crate) fn count(window_ns: u64) -> Result<Vec<CpuCount>, GuestError> {
    let text = fs::read_to_string(ONLINE).map_err(GuestError::file(ONLINE))?;
    let cpus: CpuSet = text.trim().parse().map_err(|_| GuestError::Cpus(text.clone()))?;
    let begin_ns = clock::now_ns(CLOCK_MONOTONIC).saturating_add(READY_NS);
    let end_ns = begin_ns.saturating_add(i64::try_from(window_ns).unwrap_or(i64::MAX));
    let start = |cpu: u32| -> Result<(u32, Thread<u64>), SysError> {
        let attributes =
            Attributes { policy: SCHED_FIFO, priority: PRIORITY, ..Attributes::default() };
        let spec =
            ThreadSpec { attributes, cpus: vec![cpu], group: None, stack_bytes: STACK_BYTES };
        Ok((cpu, thread::spawn(spec, move || until(begin_ns, end_ns))?))
    };
    let threads: Vec<_> = cpus.iter().map(start).collect::<Result<_, _>>()?;
    let counted = |(cpu, thread): (u32, Thread<u64>)| Ok(CpuCount { cpu, counted: thread.join()? });
    threads.into_iter().map(counted).collect()
}

/// How often the loop goes round between these two moments.
fn until(begin_ns: i64, end_ns: i64) -> u64 {
    clock::sleep_until(CLOCK_MONOTONIC, begin_ns);
    let mut counted = 0_u64;
    while clock::now_ns(CLOCK_MONOTONIC) < end_ns {
        for _ in 0..ROUNDS {
            counted = black_box(counted + 1);
        }
    }
    counted
}
