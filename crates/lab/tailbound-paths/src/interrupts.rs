// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts' execution: which is under way, how much time all took so far, and each one once it is over.
//!
//! Units: ns.
//! An interrupt executes from its entry until it returns; until the scheduler is called at its end; or until, on the
//! way back to user mode, interrupts are enabled for the thread's own work. Soft interrupts at its end belong to it, others
//! that interrupt it do not. Exceptions (a page fault) are the thread's own time, and are followed only because
//! they return by the same instruction.

use std::collections::HashMap;

use tailbound_core::theory::Execution;

use crate::log::Record;
use crate::record::{kind, state};

const OFF: u8 = state::INTERRUPTS_OFF | state::PREEMPTION_OFF;

/// An entry that has not returned.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// 0: an exception.
    entry: u64,
    /// Is an interrupt and executes still.
    executes: bool,
    /// State of what it interrupted.
    before: u8,
    at_ns: u64,
    own_ns: u64,
    since_ns: u64,
}

/// One that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptExecution {
    /// Its entry.
    pub entry: u64,
    /// When and how long.
    pub execution: Execution,
}

/// See the module.
#[derive(Debug)]
pub struct Interrupts<F> {
    is_interrupt: F,
    schedule: u64,
    thread: u64,
    frames: HashMap<u64, Vec<Frame>>,
    /// How many are under way, one within the other.
    depth: u32,
    since_ns: u64,
    total_ns: u64,
    /// Returns of which no entry was seen.
    pub unmatched: u64,
}

impl<F: Fn(u64) -> bool> Interrupts<F> {
    /// `is_interrupt` tells interrupts' entries from exceptions'; `schedule` is the scheduler's address.
    pub fn new(schedule: u64, is_interrupt: F) -> Self {
        Self {
            is_interrupt,
            schedule,
            thread: 0,
            frames: HashMap::new(),
            depth: 0,
            since_ns: 0,
            total_ns: 0,
            unmatched: 0,
        }
    }

    /// The thread on the CPU.
    pub fn thread(&self) -> u64 {
        self.thread
    }

    /// Records are missing: none is under way any more.
    pub fn lose(&mut self) {
        self.frames.clear();
        self.depth = 0;
    }

    /// Is one under way?
    pub fn under_way(&self) -> bool {
        self.depth > 0
    }

    /// What all took until `t_ns`, which is not before the last record.
    pub fn until(&self, t_ns: u64) -> u64 {
        let running = if self.depth > 0 { t_ns.saturating_sub(self.since_ns) } else { 0 };
        self.total_ns + running
    }

    /// The next record; each that is over is handed over.
    pub fn add(&mut self, r: &Record, mut ended: impl FnMut(InterruptExecution)) {
        match r.kind {
            kind::ENTER => self.enter(r),
            kind::LEAVE if r.state & state::USER != 0 => self.forget_all(r.t_ns, &mut ended),
            kind::LEAVE => self.leave(r.t_ns, &mut ended),
            kind::STATE if r.state & state::USER != 0 => self.forget_all(r.t_ns, &mut ended),
            kind::STATE if r.state & OFF == 0 => self.enabled(r.t_ns, &mut ended),
            kind::POINT if r.value == self.schedule => self.end_all(r.t_ns, &mut ended),
            kind::SWITCH => {
                self.end_all(r.t_ns, &mut ended);
                self.thread = r.value;
            }
            _ => {}
        }
    }

    fn enter(&mut self, r: &Record) {
        let interrupt = (self.is_interrupt)(r.value);
        let frames = self.frames.entry(self.thread).or_default();
        if interrupt {
            if let Some(outer) = frames.iter_mut().rev().find(|f| f.executes) {
                outer.own_ns += r.t_ns.saturating_sub(outer.since_ns);
            }
            if self.depth == 0 {
                self.since_ns = r.t_ns;
            }
            self.depth += 1;
        }
        frames.push(Frame {
            entry: r.value,
            executes: interrupt,
            before: r.state,
            at_ns: r.t_ns,
            own_ns: 0,
            since_ns: r.t_ns,
        });
    }

    /// Interrupts and preemption are enabled: what interrupted something that had both enabled is over.
    fn enabled(&mut self, t_ns: u64, ended: &mut impl FnMut(InterruptExecution)) {
        let innermost = self.frames.get(&self.thread).and_then(|f| f.last());
        if innermost.is_some_and(|f| f.executes && f.before & OFF == 0) {
            self.end(t_ns, ended);
        }
    }

    fn leave(&mut self, t_ns: u64, ended: &mut impl FnMut(InterruptExecution)) {
        match self.frames.get(&self.thread).and_then(|f| f.last()) {
            None => self.unmatched += 1,
            Some(frame) => {
                if frame.executes {
                    self.end(t_ns, ended);
                }
                self.frames.get_mut(&self.thread).and_then(Vec::pop);
            }
        }
    }

    fn end_all(&mut self, t_ns: u64, ended: &mut impl FnMut(InterruptExecution)) {
        while self.depth > 0
            && self.frames.get(&self.thread).is_some_and(|f| f.iter().any(|f| f.executes))
        {
            self.end(t_ns, ended);
        }
    }

    /// The thread is in user mode: whatever it was in is over.
    fn forget_all(&mut self, t_ns: u64, ended: &mut impl FnMut(InterruptExecution)) {
        self.end_all(t_ns, ended);
        if let Some(frames) = self.frames.get_mut(&self.thread) {
            frames.clear();
        }
    }

    /// The innermost that executes is over; the one that it interrupted goes on.
    fn end(&mut self, t_ns: u64, ended: &mut impl FnMut(InterruptExecution)) {
        let Some(frames) = self.frames.get_mut(&self.thread) else { return };
        let Some(frame) = frames.iter_mut().rev().find(|f| f.executes) else { return };
        frame.executes = false;
        let own_ns = frame.own_ns + t_ns.saturating_sub(frame.since_ns);
        let execution = Execution {
            at_ns: frame.at_ns.cast_signed(),
            end_ns: t_ns.cast_signed(),
            ns: own_ns.cast_signed(),
        };
        ended(InterruptExecution { entry: frame.entry, execution });
        if let Some(outer) = frames.iter_mut().rev().find(|f| f.executes) {
            outer.since_ns = t_ns;
        }
        self.depth -= 1;
        if self.depth == 0 {
            self.total_ns += t_ns.saturating_sub(self.since_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(t_ns: u64, kind: u8, state: u8, value: u64) -> Record {
        Record { t_ns, cpu: 0, state, kind, value }
    }

    /// Entry, begin, end, and execution time.
    type One = (u64, i64, i64, i64);

    fn run(records: &[Record]) -> (Vec<One>, u64, u64) {
        // Entries below 0x100 are exceptions.
        let mut all = Interrupts::new(0x5, |entry| entry >= 0x100);
        let mut seen = Vec::new();
        for r in records {
            all.add(r, |e| {
                seen.push((e.entry, e.execution.at_ns, e.execution.end_ns, e.execution.ns));
            });
        }
        (seen, all.until(1000), all.unmatched)
    }

    #[test]
    fn one_within_another_is_its_own_and_a_fault_is_no_interrupt() {
        let off = state::INTERRUPTS_OFF;
        let soft = state::PREEMPTION_OFF;
        let (seen, total, unmatched) = run(&[
            record(10, kind::ENTER, 0, 0x20),
            record(20, kind::ENTER, 0, 0x100),
            record(20, kind::STATE, off, 0x100),
            record(30, kind::STATE, soft, 0xa),
            record(40, kind::ENTER, soft, 0x200),
            record(45, kind::LEAVE, soft, 0xb),
            record(60, kind::LEAVE, 0, 0xb),
            record(90, kind::LEAVE, 0, 0xb),
            record(95, kind::LEAVE, 0, 0xb),
        ]);
        assert_eq!(seen, [(0x200, 40, 45, 5), (0x100, 20, 60, 35)]);
        assert_eq!((total, unmatched), (40, 1));
    }

    #[test]
    fn the_scheduler_and_the_threads_own_work_end_it() {
        let off = state::INTERRUPTS_OFF;
        let (seen, total, _) = run(&[
            record(10, kind::ENTER, 0, 0x100),
            record(10, kind::STATE, off, 0x100),
            record(25, kind::POINT, off, 0x5),
            record(30, kind::SWITCH, off, 7),
            record(40, kind::STATE, state::USER, 0xb),
            record(50, kind::ENTER, state::USER, 0x100),
            record(50, kind::STATE, off, 0x100),
            record(58, kind::STATE, 0, 0xb),
            record(70, kind::LEAVE, state::USER, 0xb),
        ]);
        assert_eq!(seen, [(0x100, 10, 25, 15), (0x100, 50, 58, 8)]);
        assert_eq!(total, 23);
    }
}
