// SPDX-License-Identifier: MIT OR Apache-2.0
//! A light probe: one real-time thread that sleeps and wakes, so that there is something to count where nothing real-time runs.
//!
//! Context: SETUP ([`begin`]), COLD: what it sees is counted as of any other thread, and it measures nothing itself. It wakes its own
//! CPU ten times a second, and no other one. Its priority is the lowest real-time one: it is in nobody's way.
//! A CPU that goes offline gives its threads away, to any other one, and does not take them back. So the probe looks where it is.
//! Source: select_fallback_rq in kernel/sched/core.c.

use std::sync::mpsc;

use serde::Serialize;
use tailbound_host::Root;
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns, sleep_until};
use tailbound_sys::sched::{self, Attributes};
use tailbound_sys::{SysError, limits};

use crate::housekeeping::{self, NoProbeCpu};

/// By this its wake-ups are known: the kernel keeps 15 bytes.
pub(crate) const NAME: &str = "tailbound-probe";
pub(crate) const EVERY_NS: i64 = 100_000_000;
const PRIORITY: u32 = 1;
const STACK_BYTES: usize = 64 << 10;

/// Why there is no probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Not on that CPU.
    #[error(transparent)]
    Cpu(#[from] NoProbeCpu),
    /// This user may not have a real-time thread.
    #[error("{0}; a real-time thread needs root or CAP_SYS_NICE")]
    System(#[from] SysError),
}

/// The probe, as the lines tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Probe {
    cpu: u32,
    policy: &'static str,
    every_ns: i64,
}

/// Back to `cpu`, or as long as that is offline to those that are kept for nobody.
fn go_home(root: &Root, cpu: u32) {
    if sched::set_affinity(0, &[cpu]).is_err() {
        housekeeping::stay(root);
    }
}

/// Begins it on `wanted`, or the first CPU that is kept for nobody; it ends with this process.
///
/// # Errors
/// [`ProbeError`].
pub(crate) fn begin(root: &Root, wanted: Option<u32>) -> Result<Probe, ProbeError> {
    let cpu = housekeeping::of_probe(root, wanted)?;
    limits::guard_realtime(0)?;
    let (to, done) = mpsc::channel();
    let root = root.clone();
    let run = move || {
        let attributes =
            Attributes { policy: sched::SCHED_FIFO, priority: PRIORITY, ..Attributes::default() };
        let ready = sched::set_affinity(0, &[cpu]).and_then(|()| sched::set(0, &attributes));
        let is_ready = ready.is_ok();
        // Whoever began it waits for it.
        drop(to.send(ready));
        if !is_ready {
            return;
        }
        let mut due_ns = now_ns(CLOCK_MONOTONIC);
        loop {
            // After a stall it goes on from now: nothing is due.
            due_ns = due_ns.max(now_ns(CLOCK_MONOTONIC)).saturating_add(EVERY_NS);
            sleep_until(CLOCK_MONOTONIC, due_ns);
            if sched::current_cpu() != Some(cpu) {
                go_home(&root, cpu);
            }
        }
    };
    let thread = std::thread::Builder::new().name(NAME.into()).stack_size(STACK_BYTES);
    thread.spawn(run).map_err(|e| {
        SysError::code("clone", "the probe's thread", e.raw_os_error().unwrap_or(0))
    })?;
    done.recv().unwrap_or_else(|_| Err(SysError::code("clone", "the probe's thread", 0)))?;
    Ok(Probe { cpu, policy: "fifo:1", every_ns: EVERY_NS })
}
