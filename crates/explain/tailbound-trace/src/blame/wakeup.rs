// SPDX-License-Identifier: MIT OR Apache-2.0
//! One wake-up of a watched thread, as far as its events were seen.
//!
//! Units: ns on the trace's clock.

/// When and where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// When.
    pub t_ns: u64,
    /// On which CPU.
    pub cpu: u32,
}

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// When and where.
    pub at: At,
    /// The thread in whose time it was.
    pub pid: i32,
    /// An interrupt did it, and not that thread.
    pub by_interrupt: bool,
}

/// Why a timer that was due did not have to expire yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Until when.
    pub until_ns: u64,
    /// Its clock was set forward by this, which made it due; else it is the thread's timer slack.
    pub step_ns: Option<i64>,
}

/// One wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeUp {
    /// Which thread.
    pub pid: i32,
    /// Its priority, as the kernel counts.
    pub prio: i32,
    /// When it went to sleep.
    pub asleep_ns: Option<u64>,
    /// What its timer was set to, where a timer woke it.
    pub due_ns: Option<u64>,
    /// By its slack, or for a clock that was set, the timer may have come so late.
    pub allowed: Option<Allowed>,
    /// The timer's interrupt that found it expired.
    pub fire: Option<At>,
    /// When it was made ready.
    pub waking: Option<Waker>,
    /// When the CPU went over to it.
    pub switch: Option<At>,
    /// What `switch` is told by.
    pub switch_record: SwitchRecord,
}

/// Was the switch to a thread recorded?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchRecord {
    /// Yes.
    Present,
    /// No: the first record in its name tells that it has the CPU.
    Absent,
}

impl WakeUp {
    pub(super) fn new(pid: i32, prio: i32) -> Self {
        Self {
            pid,
            prio,
            asleep_ns: None,
            due_ns: None,
            allowed: None,
            fire: None,
            waking: None,
            switch: None,
            switch_record: SwitchRecord::Present,
        }
    }

    /// From when on it is late: what its timer was set to, else when it was woken.
    #[must_use]
    pub fn from_ns(&self) -> Option<u64> {
        self.due_ns.or(self.waking.map(|w| w.at.t_ns))
    }

    /// How late the CPU went over to it.
    #[must_use]
    pub fn latency_ns(&self) -> Option<i64> {
        let to = self.switch?.t_ns;
        i64::try_from(to.saturating_sub(self.from_ns()?)).ok()
    }
}
