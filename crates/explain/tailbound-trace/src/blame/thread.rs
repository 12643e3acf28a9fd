// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of one thread.
//!
//! Units: ns; priorities are the kernel's: 0 to 99 real-time (0 the highest),
//! 100 to 139 ordinary, -1 deadline.

use std::collections::VecDeque;

use tailbound_core::words::Word;

use super::cpu::CpuActivity;

/// The first priority that is not real-time.
pub(super) const ORDINARY: i32 = 100;
/// How many stretches of waiting for a CPU are kept.
const WAITS_MAX: usize = 64;
/// How many wake-ups of a thread are kept with who made them.
const WAKERS_MAX: usize = 16;

/// Where a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Unknown,
    Running,
    /// Would run if it had a CPU; since when.
    Ready(u64),
    /// Since when.
    Asleep(u64),
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) comm: Word,
    pub(super) prio: i32,
    /// It has the priority of one that waits for it (priority inheritance).
    pub(super) inherited: bool,
    pub(super) state: State,
    /// The CPU it last ran on or was woken for.
    pub(super) cpu: u32,
    /// The work queue's function it runs.
    pub(super) work: Option<u64>,
    /// It spins for a lock, which this thread got before (0: not known).
    pub(super) spins: Option<i32>,
    /// Soft interrupts that were running in it when it lost the CPU (PREEMPT_RT).
    pub(super) frames: Vec<CpuActivity>,
    /// When it was ready and had no CPU.
    pub(super) waits: VecDeque<(u64, u64)>,
    /// When it was woken, and by which thread (0: by an interrupt).
    pub(super) wakers: VecDeque<(u64, i32)>,
}

impl Default for Thread {
    fn default() -> Self {
        Self {
            comm: Word::new(""),
            prio: ORDINARY + 20,
            inherited: false,
            state: State::Unknown,
            cpu: 0,
            work: None,
            spins: None,
            frames: Vec::new(),
            waits: VecDeque::new(),
            wakers: VecDeque::new(),
        }
    }
}

impl Thread {
    /// What it does while it has the CPU.
    pub(super) fn what(&self) -> CpuActivity {
        match (self.spins, self.work) {
            (Some(owner), _) => CpuActivity::Spin(owner),
            (None, Some(function)) => CpuActivity::Work(function),
            (None, None) => CpuActivity::Thread,
        }
    }

    /// It has not been seen to do anything since `t`.
    pub(super) fn is_over(&self, t: u64) -> bool {
        match self.state {
            State::Asleep(since) => since < t,
            State::Unknown => true,
            State::Running | State::Ready(_) => false,
        }
    }

    /// It has a CPU from `t` on.
    pub(super) fn runs(&mut self, t: u64) {
        if let State::Ready(since) = self.state {
            self.waits.push_back((since, t));
            if self.waits.len() > WAITS_MAX {
                self.waits.pop_front();
            }
        }
        self.state = State::Running;
    }

    /// It was woken at `t` by a thread, or by an interrupt (0).
    pub(super) fn woken(&mut self, t: u64, by: i32) {
        if self.wakers.len() >= WAKERS_MAX {
            self.wakers.pop_front();
        }
        self.wakers.push_back((t, by));
    }

    /// The stretches within `from` to `to` that it was ready and had no CPU.
    pub(super) fn waits_between(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let cut = move |&(a, b): &(u64, u64)| (a.max(from), b.min(to));
        self.waits.iter().map(cut).filter(|(a, b)| b > a)
    }
}
