// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of one watched thread.
//!
//! Units: ns; priorities are the kernel's: 0 to 98 real-time (0 the highest), 100 to
//! 139 ordinary, -1 deadline.

use tailbound_core::words::Word;

use super::Violation;
use super::call::InCall;
use super::cycle::Cycle;
use super::locks::Locks;
use crate::event::FaultMode;

/// The first priority that is not real-time.
pub(super) const ORDINARY: i32 = 100;

/// States in `prev_state`.
/// Source: include/linux/sched.h, TASK_*.
pub(super) const INTERRUPTIBLE: i64 = 1;
const UNINTERRUPTIBLE: i64 = 2;
const STOPPED_OR_TRACED: i64 = 4 | 8;
pub(super) const DEAD: i64 = 0x10 | 0x20;

/// A state that means waiting for something.
pub(super) fn sleeps(state: i64) -> bool {
    state & (INTERRUPTIBLE | UNINTERRUPTIBLE) != 0 && state & (STOPPED_OR_TRACED | DEAD) == 0
}

/// Who wakes, as people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) pid: i32,
    pub(super) prio: Option<i32>,
    pub(super) comm: Word,
}

impl Who {
    /// `logger-41 (ordinary)`.
    pub(super) fn words(&self) -> String {
        let comm = self.comm.as_str();
        let name = match (self.pid, comm) {
            (pid, "") => format!("thread {pid}"),
            (pid, comm) => format!("{comm}-{pid}"),
        };
        match self.prio {
            Some(prio) => format!("{name} ({})", priority(prio)),
            None => name,
        }
    }
}

/// A priority of the kernel's as people set it.
pub(super) fn priority(prio: i32) -> String {
    match prio {
        ..=-1 => "deadline".to_owned(),
        0..=98 => format!("real-time priority {}", 99i32.saturating_sub(prio)),
        99 => "real-time".to_owned(),
        _ => "ordinary".to_owned(),
    }
}

/// What woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waker {
    /// An interrupt or NMI.
    Hard,
    /// A soft interrupt.
    Soft,
    Thread(Who),
}

/// A sleep, from the CPU's going over to another thread on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    pub(super) t_ns: u64,
    pub(super) state: i64,
    /// Its priority then.
    pub(super) prio: i32,
    pub(super) call: InCall,
    /// It waits for one of the kernel's locks with priority inheritance.
    pub(super) rt_mutex: bool,
    pub(super) waker: Option<Waker>,
    /// A waker that may wake it: by an interrupt, or of equal or higher priority.
    pub(super) friendly: bool,
    /// The priority of some waker is not known.
    pub(super) unjudged: bool,
}

/// A page fault whose end was not seen yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) t_ns: u64,
    pub(super) mode: FaultMode,
    pub(super) address: u64,
}

/// A real-time policy that was asked for and refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyRefusal {
    pub(super) t_ns: u64,
    pub(super) call: &'static str,
    pub(super) error: i64,
    pub(super) times: u32,
}

/// One watched thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    pub(super) comm: Option<Word>,
    /// Its priority when it was last seen; `None` where it may have changed since.
    pub(super) prio: Option<i32>,
    pub(super) call: InCall,
    pub(super) rt_mutex: bool,
    pub(super) sleep: Option<Sleep>,
    pub(super) fault: Option<Fault>,
    pub(super) cycle: Cycle,
    pub(super) locks: Locks,
    /// Woken by a less urgent thread: it counts unless the thread goes on sleeping in the same call.
    pub(super) early: Option<Violation>,
    /// Slept outside of any call it had begun: its next event shows whether at the entry of one.
    pub(super) outside: Option<Violation>,
    /// Of the cycle that is under way: they count when it has ended.
    pub(super) pending: Vec<Violation>,
    /// Who woke it, until it sleeps again, and how long it waited for a CPU then.
    pub(super) woken_by: Option<(Who, u64, Option<u64>)>,
    pub(super) refused: Option<PolicyRefusal>,
    /// When it was last seen on a CPU.
    pub(super) seen_ns: u64,
    /// It has ended.
    pub(super) dead: bool,
}

impl Task {
    /// Has it a real-time priority (its own, or lent to it), or a deadline?
    pub(super) fn is_realtime(&self) -> bool {
        self.prio.is_some_and(|p| p < ORDINARY)
    }

    pub(super) fn who(&self, pid: i32) -> Who {
        Who { pid, prio: self.prio, comm: self.comm.unwrap_or_else(|| Word::new("")) }
    }
}
