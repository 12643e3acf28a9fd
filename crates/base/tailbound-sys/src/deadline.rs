// SPDX-License-Identifier: MIT OR Apache-2.0
//! SCHED_DEADLINE with the kernel's own word about overruns: SIGXCPU, counted a thread.
//!
//! Context: SETUP ([`count_overruns`], [`Overruns::join`]), HOT (the handler). Units: ns.
//! The guard against real-time threads that never sleep has the same signal
//! (`limits::guard_realtime`): whoever gets it without having joined here is taken for such a one.
//! Not here: what the thread does with its runtime (`tailbound-probe`).
//! Source: sched(7), sched_setattr(2) SCHED_FLAG_DL_OVERRUN.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::error::{SysError, check};
use crate::limits;
use crate::sched::{self, Attributes};

const SCHED_FLAG_DL_OVERRUN: u64 = 0x04;
/// Most threads at a time.
pub const THREADS_MAX: usize = 64;

struct Slot {
    tid: AtomicI32,
    n: AtomicU64,
}

static SLOTS: [Slot; THREADS_MAX] =
    [const { Slot { tid: AtomicI32::new(0), n: AtomicU64::new(0) } }; THREADS_MAX];

/// From now on SIGXCPU is counted for the threads that joined.
///
/// # Errors
/// When the handler cannot be installed.
pub fn count_overruns() -> Result<(), SysError> {
    extern "C" fn on_xcpu(_: i32) {
        let tid = sched::gettid();
        match SLOTS.iter().find(|s| s.tid.load(Ordering::Relaxed) == tid) {
            Some(slot) => {
                slot.n.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                limits::RUNAWAY.store(true, Ordering::Relaxed);
                limits::STOP.store(true, Ordering::Relaxed);
            }
        }
    }
    // SAFETY: all-zero bytes are a valid sigaction: no mask, no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_xcpu as extern "C" fn(i32) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler asks for its thread's id and stores to atomics: async-signal-safe.
    let set = unsafe { libc::sigaction(libc::SIGXCPU, &raw const action, std::ptr::null_mut()) };
    check(set, "sigaction", "SIGXCPU").map(drop)
}

/// The calling thread's count of overruns. When dropped, by that thread, it is an ordinary thread again.
pub struct Overruns {
    slot: &'static Slot,
    admitted: bool,
}

impl Overruns {
    /// Makes the calling thread a deadline thread whose overruns the kernel tells.
    ///
    /// # Errors
    /// EBUSY when the kernel does not admit so much; EPERM without privilege or with a narrowed
    /// affinity; EINVAL for impossible times or a kernel without SCHED_FLAG_DL_OVERRUN (4.16).
    pub fn join(runtime_ns: u64, period_ns: u64) -> Result<Self, SysError> {
        let tid = sched::gettid();
        let free = SLOTS
            .iter()
            .find(|s| s.tid.compare_exchange(0, tid, Ordering::Relaxed, Ordering::Relaxed).is_ok());
        let slot =
            free.ok_or_else(|| SysError::code("deadline", "too many threads", libc::EAGAIN))?;
        slot.n.store(0, Ordering::Relaxed);
        let mut joined = Self { slot, admitted: false };
        let attributes = Attributes {
            policy: sched::SCHED_DEADLINE,
            runtime_ns,
            deadline_ns: period_ns,
            period_ns,
            ..Attributes::default()
        };
        sched::set_with_flags(0, &attributes, SCHED_FLAG_DL_OVERRUN)?;
        joined.admitted = true;
        Ok(joined)
    }

    /// Overruns so far.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.slot.n.load(Ordering::Relaxed)
    }
}

impl Drop for Overruns {
    fn drop(&mut self) {
        // The kernel tells an overrun at a tick, so maybe only now; of an ordinary thread it tells none. One that came after this
        // thread has left would be taken for the guard's word.
        if self.admitted {
            let ordinary = Attributes { policy: sched::SCHED_OTHER, ..Attributes::default() };
            drop(sched::set(0, &ordinary));
        }
        self.slot.tid.store(0, Ordering::Relaxed);
    }
}
