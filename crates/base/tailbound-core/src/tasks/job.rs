// SPDX-License-Identifier: MIT OR Apache-2.0
//! One job of a thread, as a trace of the scheduler shows it.
//!
//! Units: ns on one clock. Who had the CPU divides a job's time: every instant from
//! release to end belongs to exactly one of execution, suspension, blocking, latency and preemption
//! (by threads of the model or by others).
//! Not here: how it is found (`tailbound-trace`).

/// A job: from its release to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// When it was released: its thread was woken for it.
    pub release_ns: i64,
    /// When it first ran.
    pub start_ns: i64,
    /// When it was done.
    pub end_ns: i64,
    /// Time on a CPU, with the interrupts that hit it there.
    pub execution_ns: i64,
    /// Time asleep within the job, except for locks that a thread of lower priority held.
    pub suspension_ns: i64,
    /// How often it slept within the job, for whatever.
    pub suspensions: u32,
    /// Time asleep for a lock whose holder had lower priority.
    pub blocked_ns: i64,
    /// Time ready while a thread of lower priority, or none, had the CPU: the kernel's way from the
    /// wake-up to the switch, and sections that could not be preempted.
    pub latency_ns: i64,
    /// The longest single stretch of that.
    pub section_ns: i64,
    /// Time ready while a thread of at least its priority ran that is no task of the model.
    pub unwatched_ns: i64,
    /// The CPU it ended on.
    pub cpu: u32,
}

impl Job {
    /// From release to end.
    #[must_use]
    pub fn response_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.release_ns)
    }
}
