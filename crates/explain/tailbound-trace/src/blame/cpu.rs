// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one CPU did, without gaps: segments of time, each with what ran.
//!
//! Units: ns. Interrupts lie over each other and over the thread; a segment names
//! what lies on top, so that segments never overlap. Where events are missing (a kernel that
//! does not record some switches, an overwritten buffer) what runs is taken from the next record:
//! each names the thread in whose time it was made.

use std::collections::VecDeque;

use crate::event::Flags;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpuActivity {
    /// Events are missing.
    Unknown,
    /// Nothing; the idle state, where told.
    Idle(Option<u32>),
    /// The thread.
    Thread,
    /// A work queue's function, in its thread.
    Work(u64),
    /// The thread spins for a lock; the thread that had waited for it before and got it, or 0.
    Spin(i32),
    /// A device's interrupt, by number.
    Irq(i32),
    /// The timer's interrupt; the function of the timer that expired in it.
    Timer(u64),
    /// An interrupt from another CPU: the kernel's name, and the function it was to run.
    Ipi(&'static str, u64),
    /// Another interrupt.
    Vector(&'static str),
    /// A soft interrupt, by number.
    Softirq(u32),
    /// A non-maskable interrupt: its handler.
    Nmi(u64),
}

impl CpuActivity {
    /// Does it run with interrupts disabled, over everything else?
    pub(super) fn is_hard(self) -> bool {
        matches!(
            self,
            Self::Irq(_) | Self::Timer(_) | Self::Ipi(..) | Self::Vector(_) | Self::Nmi(_)
        )
    }

    /// Does a thread run, in whatever way?
    pub(super) fn is_thread(self) -> bool {
        matches!(self, Self::Thread | Self::Work(_) | Self::Spin(_))
    }
}

/// A stretch of time in which one thing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) what: CpuActivity,
    /// The thread beneath.
    pub(super) pid: i32,
    /// The record at its end was made by the thread, with interrupts disabled.
    pub(super) irqs_off: bool,
    /// The scheduler had been asked for another thread, by a record at its begin.
    pub(super) need_resched: bool,
}

impl Segment {
    pub(super) fn ns(&self) -> i64 {
        i64::try_from(self.to.saturating_sub(self.from)).unwrap_or(i64::MAX)
    }
}

/// One CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    /// The thread that has it; `None` before the first record.
    pub(super) pid: Option<i32>,
    /// The idle state, while nothing runs.
    pub(super) idle: Option<u32>,
    /// What lies over the thread, the innermost last.
    pub(super) frames: Vec<CpuActivity>,
    pub(super) segments: VecDeque<Segment>,
    /// Real-time threads that are ready here and have no CPU, each since when.
    pub(super) ready: Vec<(i32, u64)>,
    /// A message went to the kernel's log, and its thread has made no other record since.
    pub(super) prints: bool,
    /// When its last interrupt was seen to begin.
    pub(super) interrupted_at: Option<u64>,
    /// Times of its records.
    pub(super) times: VecDeque<u64>,
    open_from: u64,
    flags: Flags,
}

impl Cpu {
    /// Ends the open segment at `t`, in which `thread` says what the thread beneath did; the record
    /// that ends it has `flags`.
    pub(super) fn close(&mut self, t: u64, thread: CpuActivity, flags: Flags) {
        self.times.push_back(t);
        if self.pid.is_none() {
            self.open_from = t;
            return;
        }
        if let Some(mut segment) = self.open(t, thread) {
            segment.irqs_off = segment.what.is_thread() && flags.in_thread() && flags.irqs_off();
            let same = |last: &Segment| {
                last.to == segment.from
                    && (last.what, last.pid, last.irqs_off, last.need_resched)
                        == (segment.what, segment.pid, segment.irqs_off, segment.need_resched)
            };
            match self.segments.back_mut().filter(|last| same(last)) {
                Some(last) => last.to = segment.to,
                None => self.segments.push_back(segment),
            }
        }
        self.open_from = self.open_from.max(t);
    }

    /// The open segment as it stands at `t`.
    pub(super) fn open(&self, t: u64, thread: CpuActivity) -> Option<Segment> {
        let pid = self.pid?;
        let what = match self.frames.last() {
            Some(frame) => *frame,
            None if pid == 0 => CpuActivity::Idle(self.idle),
            None => thread,
        };
        (t > self.open_from).then_some(Segment {
            from: self.open_from,
            to: t,
            what,
            pid,
            irqs_off: false,
            need_resched: self.flags.need_resched(),
        })
    }

    /// The state of the CPU that a record told.
    pub(super) fn told(&mut self, flags: Flags) {
        self.flags = flags;
    }

    /// The last `ns` before now went to `what`, which is told only at its end.
    pub(super) fn told_late(&mut self, t: u64, ns: i64, what: CpuActivity) {
        let from = t.saturating_sub(ns.max(0).cast_unsigned());
        let Some(last) = self.segments.back_mut().filter(|s| s.to == t && s.from < t) else {
            return;
        };
        let from = from.max(last.from);
        let (pid, irqs_off, need_resched) = (last.pid, last.irqs_off, last.need_resched);
        if from == last.from {
            last.what = what;
            return;
        }
        last.to = from;
        self.segments.push_back(Segment { from, to: t, what, pid, irqs_off, need_resched });
    }

    pub(super) fn push(&mut self, what: CpuActivity) {
        self.frames.push(what);
    }

    /// Ends the innermost frame that `is`, and whatever was left over above it.
    pub(super) fn pop(&mut self, is: impl Fn(CpuActivity) -> bool) {
        if let Some(at) = self.frames.iter().rposition(|f| is(*f)) {
            self.frames.truncate(at);
        }
    }

    /// Drops frames whose end was not recorded, by what the next record says of the CPU.
    pub(super) fn settle(&mut self, flags: Flags) {
        if !flags.hardirq() {
            if let Some(at) = self.frames.iter().position(|f| f.is_hard()) {
                self.frames.truncate(at);
            }
        } else if !self.frames.iter().any(|f| f.is_hard()) {
            // An interrupt that this kernel has no events for.
            self.frames.push(CpuActivity::Vector("interrupt"));
        }
        if flags.in_thread() {
            self.frames.clear();
        }
    }

    /// What ran between `from` and `to`, cut to it; times that nothing is known of are `Unknown`.
    pub(super) fn between(&self, from: u64, to: u64, thread: CpuActivity) -> Vec<Segment> {
        let mut out = Vec::new();
        let mut at = from;
        let first = self.segments.partition_point(|s| s.to <= from);
        let unknown = |from, to| Segment {
            from,
            to,
            what: CpuActivity::Unknown,
            pid: -1,
            irqs_off: false,
            need_resched: false,
        };
        let last = self.open(to, thread);
        for s in self.segments.iter().skip(first).chain(&last) {
            if s.from >= to {
                break;
            }
            let cut = Segment { from: s.from.max(at), to: s.to.min(to), ..*s };
            if cut.from > at {
                out.push(unknown(at, cut.from));
            }
            if cut.to > cut.from {
                out.push(cut);
                at = cut.to;
            }
        }
        if at < to {
            out.push(unknown(at, to));
        }
        out
    }

    /// Records between two times, both excluded.
    pub(super) fn records_between(&self, from: u64, to: u64) -> usize {
        let first = self.times.partition_point(|t| *t <= from);
        let after = self.times.partition_point(|t| *t < to);
        after.saturating_sub(first)
    }

    /// The longest time between two times without a record.
    pub(super) fn longest_gap(&self, from: u64, to: u64) -> i64 {
        let first = self.times.partition_point(|t| *t <= from);
        let (mut at, mut longest) = (from, 0);
        for t in self.times.iter().skip(first).take_while(|t| **t < to).chain([&to]) {
            longest = longest.max(t.saturating_sub(at));
            at = *t;
        }
        i64::try_from(longest).unwrap_or(i64::MAX)
    }

    /// Records from a time on, before another.
    pub(super) fn records_from(&self, from: u64, to: u64) -> usize {
        let first = self.times.partition_point(|t| *t < from);
        let after = self.times.partition_point(|t| *t < to);
        after.saturating_sub(first)
    }

    /// Forgets all but the last `n` of what it keeps.
    pub(super) fn keep_last(&mut self, n: usize) {
        self.segments.drain(..self.segments.len().saturating_sub(n));
        self.times.drain(..self.times.len().saturating_sub(n));
    }

    pub(super) fn forget_before(&mut self, t: u64) {
        let n = self.segments.partition_point(|s| s.to < t);
        self.segments.drain(..n);
        let n = self.times.partition_point(|at| *at < t);
        self.times.drain(..n);
    }
}
